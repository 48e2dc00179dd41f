package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A server is one of those that are compared: one process or two, with all of
// their children.
type server struct {
	name  string
	url   string // without the path
	procs []*process
}

// A process is one that was started, with what it wrote.
type process struct {
	cmd    *exec.Cmd
	out    bytes.Buffer  // complete when exited is closed
	exited chan struct{} // closed when it has ended
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ended by the process; stop waits for it
		defer close(p.exited)
		_ = cmd.Wait() // whoever waits looks at the output
	}()
	return p, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // may have ended
	select {
	case <-p.exited:
	case <-time.After(10 * time.Second):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.exited
	}
}

func (s *server) stop() {
	for _, p := range s.procs {
		p.stop()
	}
}

// pids returns all processes of the server.
func (s *server) pids() []int {
	var roots []int
	for _, p := range s.procs {
		roots = append(roots, p.cmd.Process.Pid)
	}
	return processTree(roots...)
}

// start starts the commands of a server and waits until it answers at an address.
func start(ctx context.Context, name, addr string, cmds ...*exec.Cmd) (*server, error) {
	return startAt(ctx, name, "http://"+addr, cmds...)
}

// startAt is start with a URL without a path.
func startAt(ctx context.Context, name, url string, cmds ...*exec.Cmd) (*server, error) {
	s := &server{name: name, url: url}
	for _, cmd := range cmds {
		p, err := startProcess(cmd)
		if err != nil {
			s.stop()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.procs = append(s.procs, p)
	}
	if err := s.ready(ctx); err != nil {
		s.stop()
		for _, p := range s.procs {
			err = fmt.Errorf("%w\n%s", err, p.out.Bytes())
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		body, err := fetch(ctx, s.url+"/hello.php")
		if err == nil && body == "Hello, world\n" {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("answered %q", body)
		}
		for _, p := range s.procs {
			select {
			case <-p.exited:
				return errors.New("ended at once")
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// client takes any certificate: all servers are this program's own.
var client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

func fetch(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return "", err
	}
	req.Close = true // a connection that is kept would occupy a worker of fpm
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

// freeAddr returns an address nobody listens on at the moment.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// startEphpm starts what we made.
func startEphpm(ctx context.Context, dir string, o options) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`[server]
listen = %q
document_root = "www"

[php]
workers = %d
min_workers = %d
worker_max_requests = 0
`, addr, o.workers, o.workers)
	file := filepath.Join(dir, "ephpm.toml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	return start(ctx, "ephpm", addr, exec.Command(o.binary, "serve", "-c", file))
}
