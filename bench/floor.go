package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// floorEnv, when set, makes this program the floor of -sockets. Its value is the
// address.
const floorEnv = "EPHPM_BENCH_FLOOR"

// startFloor starts this program again, as a bare server on coder/websocket.
func startFloor(ctx context.Context, _ *socketReport, _ bool) (*wsServer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), floorEnv+"="+addr)
	s, err := start(ctx, "coder/websocket", addr, cmd)
	return &wsServer{s, addr}, err
}

// A floor does what socketFiles do, as a straightforward Go program would: a
// goroutine that reads and one that writes for each connection.
type floor struct {
	mu    sync.Mutex
	conns map[*floorConn]struct{}
}

type floorConn struct {
	ws   *websocket.Conn
	send chan []byte
}

// serveFloor is that process. It does not return.
func serveFloor(addr string) {
	f := &floor{conns: map[*floorConn]struct{}{}}
	http.HandleFunc("/hello.php", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Hello, world") })
	http.HandleFunc("/send.php", f.broadcast)
	http.HandleFunc("/", f.serve)
	fmt.Fprintln(os.Stderr, "bench:", http.ListenAndServe(addr, nil))
	os.Exit(1)
}

func (f *floor) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }() // may be closed already
	c := &floorConn{ws, make(chan []byte, 64)}
	f.mu.Lock()
	f.conns[c] = struct{}{}
	f.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go c.write(ctx) // ends with ctx
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			break
		}
		select {
		case c.send <- data:
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	delete(f.conns, c)
	f.mu.Unlock()
}

func (c *floorConn) write(ctx context.Context) {
	for {
		select {
		case data := <-c.send:
			limited, cancel := context.WithTimeout(ctx, 10*time.Second)
			err := c.ws.Write(limited, websocket.MessageText, data)
			cancel()
			if err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (f *floor) broadcast(w http.ResponseWriter, r *http.Request) {
	size, _ := strconv.Atoi(r.FormValue("size"))
	count, _ := strconv.Atoi(r.FormValue("count"))
	payload, begun := []byte(strings.Repeat("x", size)), time.Now()
	for range count {
		f.mu.Lock()
		conns := make([]*floorConn, 0, len(f.conns))
		for c := range f.conns {
			conns = append(conns, c)
		}
		f.mu.Unlock()
		for _, c := range conns {
			select {
			case c.send <- payload:
			case <-time.After(100 * time.Millisecond): // shed
			}
		}
	}
	fmt.Fprint(w, time.Since(begun).Nanoseconds())
}
