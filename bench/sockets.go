package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"embed"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// socketFiles are what the servers have to do for -sockets, in PHP.
//
//go:embed sockets/*.php
var socketFiles embed.FS

// wsServer is a server of -sockets.
type wsServer struct {
	*server
	addr string
}

// measureSockets prints what sockets cost: memory, opening, broadcasts, echo, a
// client that does not read, and pages beside sockets, of ephpm and of a bare
// coder/websocket server in Go, which runs no PHP.
func measureSockets(ctx context.Context, dir string, o options) error {
	if err := os.CopyFS(dir, socketFiles); err != nil {
		return err
	}
	r := &socketReport{o: o, dir: dir}
	for _, part := range []struct {
		name    string
		measure func(context.Context, *socketReport) error
	}{
		{"memory", measureMemory}, {"streams", measureStreams}, {"opening", measureOpening}, {"broadcast", measureFanOut},
		{"echo", measureEcho}, {"deaf", measureDeaf}, {"share", measureShare},
	} {
		if o.parts != "" && !slices.Contains(strings.Split(o.parts, ","), part.name) {
			continue
		}
		if err := part.measure(ctx, r); err != nil {
			return err
		}
	}
	r.printBars()
	return nil
}

// both runs f for our server and for the floor, each started for it alone.
func (r *socketReport) both(ctx context.Context, f func(s *wsServer) error) error {
	for _, start := range []func(context.Context, *socketReport, bool) (*wsServer, error){startSockets, startFloor} {
		s, err := start(ctx, r, false)
		if err != nil {
			return err
		}
		err = f(s)
		s.stop()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func startSockets(ctx context.Context, r *socketReport, secure bool) (*wsServer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`[server]
listen = %q
document_root = "sockets"

[server.limits]
max_connections = 19000

[server.websocket]
max_connections = 0
sse = true
ping_interval_secs = 0

[php]
workers = %d
min_workers = %d
worker_max_requests = 0
`, addr, r.o.workers, r.o.workers)
	if secure {
		if err := writeCertificate(r.dir); err != nil {
			return nil, err
		}
		config += "\n[server.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n"
	}
	file := filepath.Join(r.dir, "sockets.toml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(r.o.binary, "serve", "-c", file)
	if secure {
		s, err := startSecure(ctx, addr, cmd)
		return &wsServer{s, addr}, err
	}
	s, err := start(ctx, "ephpm", addr, cmd)
	return &wsServer{s, addr}, err
}

// startSecure is start for a server that is not asked for a page.
func startSecure(ctx context.Context, addr string, cmd *exec.Cmd) (*server, error) {
	s := &server{name: "ephpm, TLS", url: "https://" + addr}
	p, err := startProcess(cmd)
	if err != nil {
		return nil, err
	}
	s.procs = append(s.procs, p)
	for {
		conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			return s, conn.Close()
		}
		select {
		case <-p.exited:
			return nil, fmt.Errorf("ended at once\n%s", p.out.Bytes())
		case <-ctx.Done():
			s.stop()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func writeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o644),
		os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	)
}

// openSecure opens idle sockets over TLS.
func openSecure(addr string, from, n, parallel int) ([]net.Conn, error) {
	conns, errs := make([]net.Conn, n), make([]error, parallel)
	var wg sync.WaitGroup
	for worker := range parallel {
		wg.Go(func() {
			for i := worker; i < n && errs[worker] == nil; i += parallel {
				conns[i], errs[worker] = dialSecure(addr, from+i)
			}
		})
	}
	wg.Wait()
	return conns, errors.Join(errs...)
}

func dialSecure(addr string, index int) (net.Conn, error) {
	d := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: dialTimeout, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+index%8))}},
		Config:    &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}},
	}
	conn, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	const key = "dGhlIHNhbXBsZSBub25jZQ=="
	if _, err := conn.Write([]byte(handshake(addr, "/", key))); err != nil {
		return conn, err
	}
	head, b := []byte(nil), make([]byte, 1)
	for !strings.HasSuffix(string(head), "\r\n\r\n") {
		if _, err := conn.Read(b); err != nil {
			return conn, err
		}
		head = append(head, b[0])
	}
	return conn, checkAnswer(string(head), key)
}

// trigger has the server broadcast, and returns how long the calls took in PHP, 0
// for a server that does not say.
func (s *wsServer) trigger(ctx context.Context, size, count int) (time.Duration, error) {
	body, err := fetch(ctx, fmt.Sprintf("%s/send.php?size=%d&count=%d", s.url, size, count))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(body, 10, 64)
	return time.Duration(n), err
}
