package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// How TLS is measured.
const (
	tlsClients = 16   // handshakes at a time
	h2Conns    = 10   // of h2load
	h2Streams  = 10   // of each
	idleConns  = 2000 // whose memory is looked at
)

// A tlsSample is what one round shows of one server.
type tlsSample struct {
	handshakes, requests     float64       // a second
	handshakeCPU, requestCPU time.Duration // of the server, each
	idle                     float64       // bytes of PSS for each idle connection
}

// measureTLS prints full handshakes and hello over HTTP/2, and what an idle
// connection holds, beside nginx + php-fpm.
func measureTLS(ctx context.Context, dir string, o options) error {
	if err := writeCertificate(dir); err != nil {
		return err
	}
	ours, err := startEphpmTLS(ctx, dir, o)
	if err != nil {
		return err
	}
	defer ours.stop()
	theirs, err := startNginxTLS(ctx, dir, o)
	if err != nil {
		return err
	}
	defer theirs.stop()
	got := map[*server][]tlsSample{}
	for range o.rounds {
		for _, s := range []*server{ours, theirs} {
			sample, err := sampleTLS(ctx, s, o)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			got[s] = append(got[s], sample)
		}
	}
	fmt.Printf("TLS 1.3, ECDSA P-256: full handshakes, %d at a time; hello.php over HTTP/2, %d connections of %d streams; %d idle connections\n",
		tlsClients, h2Conns, h2Streams, idleConns)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "server\thandshakes/s\tCPU µs each\th2 req/s\tCPU µs/req\tidle KB each\t")
	for _, s := range []*server{ours, theirs} {
		all := got[s]
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t\n", s.name,
			median(all, func(s tlsSample) float64 { return s.handshakes }),
			float64(median(all, func(s tlsSample) time.Duration { return s.handshakeCPU }))/1e3,
			median(all, func(s tlsSample) float64 { return s.requests }),
			float64(median(all, func(s tlsSample) time.Duration { return s.requestCPU }))/1e3,
			median(all, func(s tlsSample) float64 { return s.idle })/1024)
	}
	return w.Flush()
}

func sampleTLS(ctx context.Context, s *server, o options) (tlsSample, error) {
	var got tlsSample
	pids := s.pids()
	addr := strings.TrimPrefix(s.url, "https://")

	before := cpuTime(pids)
	n, took, err := handshakes(ctx, addr, o.duration)
	if err != nil {
		return got, err
	}
	got.handshakes, got.handshakeCPU = float64(n)/took.Seconds(), (cpuTime(pids)-before)/time.Duration(n)

	before = cpuTime(pids)
	n, took, err = h2load(ctx, s.url+"/hello.php", o.duration)
	if err != nil {
		return got, err
	}
	got.requests, got.requestCPU = float64(n)/took.Seconds(), (cpuTime(pids)-before)/time.Duration(n)

	got.idle, err = idleMemory(s, addr)
	return got, err
}

// anyCertificate is for servers of this program's own.
func anyCertificate(protocol string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
}

// handshakes makes full handshakes, each on a connection of its own.
func handshakes(ctx context.Context, addr string, d time.Duration) (n int, took time.Duration, err error) {
	var count atomic.Int64
	errs := make(chan error, tlsClients)
	var wg sync.WaitGroup
	start := time.Now()
	for range tlsClients {
		wg.Go(func() {
			for time.Since(start) < d {
				conn, err := (&tls.Dialer{Config: anyCertificate("h2")}).DialContext(ctx, "tcp", addr)
				if err != nil {
					errs <- err
					return
				}
				count.Add(1)
				_ = conn.Close() // it was only opened
			}
		})
	}
	wg.Wait()
	took = time.Since(start)
	select {
	case err = <-errs:
	default:
		if count.Load() == 0 {
			err = errors.New("no handshake succeeded")
		}
	}
	return int(count.Load()), took, err
}

var h2Result = regexp.MustCompile(`finished in ([0-9.]+)(m?s), [\s\S]*requests: \d+ total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed, (\d+) errored`)

// h2load puts load on a URL and returns how many requests were answered.
func h2load(ctx context.Context, url string, d time.Duration) (n int, took time.Duration, err error) {
	out, err := exec.CommandContext(ctx, "h2load", "-t", "1", "-c", strconv.Itoa(h2Conns), "-m", strconv.Itoa(h2Streams),
		"-D", strconv.Itoa(int(d.Seconds())), url).CombinedOutput()
	m := h2Result.FindStringSubmatch(string(out))
	if err != nil || m == nil || m[4] != "0" || m[5] != "0" {
		return 0, 0, fmt.Errorf("h2load %s: %v\n%s", url, err, out)
	}
	if took, err = time.ParseDuration(m[1] + m[2]); err != nil {
		return 0, 0, err
	}
	if n, err = strconv.Atoi(m[3]); err == nil && n == 0 {
		err = fmt.Errorf("h2load %s: no request was answered", url)
	}
	return n, took, err
}

// idleMemory opens connections, has each answer one request over HTTP/1.1, and
// returns how many bytes more the server holds for each.
func idleMemory(s *server, addr string) (float64, error) {
	before, err := memory(s.pids()...)
	if err != nil {
		return 0, err
	}
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close() // nothing is said on it any more
		}
	}()
	for range idleConns {
		c, err := tls.Dial("tcp", addr, anyCertificate("http/1.1"))
		if err != nil {
			return 0, err
		}
		conns = append(conns, c)
		if _, err := io.WriteString(c, "GET /missing.txt HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return 0, err
		}
		if _, err := c.Read(make([]byte, 4096)); err != nil {
			return 0, err
		}
	}
	after, err := memory(s.pids()...)
	return float64(after-before) / idleConns, err
}

// startEphpmTLS is startEphpm for TLS.
func startEphpmTLS(ctx context.Context, dir string, o options) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`[server]
listen = %q
document_root = "www"
[server.tls]
cert = "cert.pem"
key = "key.pem"
[server.http3]
enabled = false
[php]
workers = %d
min_workers = %[2]d
worker_max_requests = 0
`, addr, o.workers)
	file := filepath.Join(dir, "tls.toml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	return startAt(ctx, "ephpm", "https://"+addr, exec.Command(o.binary, "serve", "-c", file))
}

// startNginxTLS is startFPM for TLS, with kept connections to php-fpm.
func startNginxTLS(ctx context.Context, dir string, o options) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	own := filepath.Join(dir, "nginx-tls")
	if err := os.Mkdir(own, 0o755); err != nil {
		return nil, err
	}
	fpmConf, nginxConf := filepath.Join(own, "fpm.conf"), filepath.Join(own, "nginx.conf")
	if err := os.WriteFile(fpmConf, []byte(fpmConfig(own, o.workers)), 0o644); err != nil {
		return nil, err
	}
	config := strings.Replace(nginxConfig(dir, own, addr+" ssl http2", o.workers, true), "server {\n\t\tlisten",
		fmt.Sprintf("server {\n\t\tssl_certificate %[1]s/cert.pem;\n\t\tssl_certificate_key %[1]s/key.pem;\n\t\tssl_protocols TLSv1.2 TLSv1.3;\n\t\tlisten", dir), 1)
	if err := os.WriteFile(nginxConf, []byte(config), 0o644); err != nil {
		return nil, err
	}
	fpm := exec.Command("php-fpm8.2", "--nodaemonize", "--fpm-config", fpmConf)
	nginx := exec.Command("nginx", "-c", nginxConf, "-e", filepath.Join(own, "nginx.log"))
	return startAt(ctx, "nginx + fpm", "https://"+addr, fpm, nginx)
}
