package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// How HTTP/3 is measured.
const (
	http3Conns    = 10 // connections of hello
	http3Parallel = 32 // requests of each at a time
	http3BigSize  = 256 << 20
	http3Text     = "Hello, world\n" // what hello.php prints
	http3Wanted   = 0.9              // times a bare quic-go handler
)

// A http3Subject is what is measured together.
type http3Subject struct {
	path    string
	unit    string
	measure func(ctx context.Context, s *http3Peer, path string, d time.Duration) (amount float64, requests int, err error)
	want    float64 // of the ratio; 0: only printed
}

var http3Subjects = []http3Subject{
	{"/hello.txt", "requests/s", http3Hello, http3Wanted},
	{"/hello.php", "requests/s", http3Hello, 0},
	{"/big.bin", "MB/s", http3Download, http3Wanted},
}

// A http3Peer is a server and where it speaks HTTP/3.
type http3Peer struct {
	*server
	secure string // https://…, without the path
}

// measureHTTP3 compares with a bare quic-go handler, which runs no PHP and reads no
// files.
func measureHTTP3(ctx context.Context, dir string, o options) error {
	if err := writeCertificate(dir); err != nil {
		return err
	}
	www := filepath.Join(dir, "www")
	if err := os.WriteFile(filepath.Join(www, "hello.txt"), []byte(http3Text), 0o644); err != nil {
		return err
	}
	big, err := os.Create(filepath.Join(www, "big.bin"))
	if err != nil {
		return err
	}
	if err := errors.Join(big.Truncate(http3BigSize), big.Close()); err != nil {
		return err
	}
	var peers []*http3Peer
	defer func() {
		for _, p := range peers {
			p.stop()
		}
	}()
	for _, start := range []func(context.Context, string, options) (*http3Peer, error){startHTTP3Ephpm, startHTTP3Bare} {
		p, err := start(ctx, dir, o)
		if err != nil {
			return err
		}
		peers = append(peers, p)
	}
	fmt.Printf("HTTP/3: hello over %d connections with %d requests each, %d MB over one\n", http3Conns, http3Parallel, http3BigSize>>20)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "path\t\tephpm\tquic-go\tratio\twant\tCPU of ephpm\tof quic-go\t")
	for _, sub := range http3Subjects {
		if err := compareHTTP3(ctx, w, sub, peers, o); err != nil {
			return err
		}
	}
	return w.Flush()
}

// compareHTTP3 measures one subject and prints its line.
func compareHTTP3(ctx context.Context, w io.Writer, sub http3Subject, peers []*http3Peer, o options) error {
	amounts, cpu := make([][]float64, len(peers)), make([][]time.Duration, len(peers))
	for round := range o.rounds + 1 { // the first is not counted: caches fill, windows grow
		for i, p := range peers {
			d := o.duration
			if round == 0 {
				d = time.Second
			}
			before := cpuTime(p.pids())
			amount, requests, err := sub.measure(ctx, p, sub.path, d)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if round > 0 {
				amounts[i] = append(amounts[i], amount)
				cpu[i] = append(cpu[i], (cpuTime(p.pids())-before)/time.Duration(requests))
			}
		}
	}
	ours, theirs := middle(amounts[0]), middle(amounts[1])
	want := "-"
	if sub.want > 0 {
		want = fmt.Sprintf("%.1f", sub.want)
	}
	fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.2f\t%s\t%v\t%v\t\n", sub.path, sub.unit, ours, theirs, ours/theirs, want, middle(cpu[0]), middle(cpu[1]))
	return nil
}

// middle returns the median of figures, the lower of two.
func middle[T cmp.Ordered](figures []T) T {
	slices.Sort(figures)
	return figures[(len(figures)-1)/2]
}

// http3Client returns a client with one connection.
func http3Client() *http.Client {
	return &http.Client{Transport: &http3.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true,
		QUICConfig: &quic.Config{MaxStreamReceiveWindow: 16 << 20, MaxConnectionReceiveWindow: 24 << 20},
	}}
}

// http3Hello returns how many requests are answered in a second.
func http3Hello(ctx context.Context, p *http3Peer, path string, d time.Duration) (float64, int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var answered atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range http3Conns {
		c := http3Client()
		defer c.CloseIdleConnections()
		for range http3Parallel {
			wg.Go(func() { // ends after d or with ctx
				for time.Since(start) < d && ctx.Err() == nil {
					body, err := http3Get(ctx, c, p.secure+path)
					if err == nil && body != http3Text {
						err = fmt.Errorf("%s is %q", path, body)
					}
					if err != nil {
						cancel(err)
						return
					}
					answered.Add(1)
				}
			})
		}
	}
	wg.Wait()
	n := int(answered.Load())
	return float64(n) / time.Since(start).Seconds(), max(n, 1), context.Cause(ctx)
}

func http3Get(ctx context.Context, c *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// http3Download returns the megabytes that come in a second, of one download.
func http3Download(ctx context.Context, p *http3Peer, path string, _ time.Duration) (float64, int, error) {
	c := http3Client()
	defer c.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, "GET", p.secure+path, nil)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, make([]byte, 256<<10))
	if err == nil && n != http3BigSize {
		err = fmt.Errorf("%d bytes came, want %d", n, http3BigSize)
	}
	return float64(n) / 1e6 / time.Since(start).Seconds(), 1, err
}

func startHTTP3Ephpm(ctx context.Context, dir string, o options) (*http3Peer, error) {
	plain, err := freeAddr()
	if err != nil {
		return nil, err
	}
	secure, err := freeAddr()
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`[server]
listen = %q
document_root = "www"

[server.tls]
listen = %q
cert = "cert.pem"
key = "key.pem"

[php]
workers = %d
min_workers = %d
worker_max_requests = 0
`, plain, secure, o.workers, o.workers)
	file := filepath.Join(dir, "http3.toml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	s, err := start(ctx, "ephpm", plain, exec.Command(o.binary, "serve", "-c", file))
	return &http3Peer{s, "https://" + secure}, err
}

// bareEnv, when set, makes this program the bare handler. Its value is "address
// directory".
const bareEnv = "EPHPM_BENCH_HTTP3"

func startHTTP3Bare(ctx context.Context, dir string, _ options) (*http3Peer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), bareEnv+"="+addr+" "+dir)
	s, err := start(ctx, "quic-go", addr, cmd)
	return &http3Peer{s, "https://" + addr}, err
}

// serveBare is that process. It does not return.
func serveBare(value string) {
	addr, dir, _ := strings.Cut(value, " ")
	hello := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, http3Text) // the client may be gone
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/hello.txt", hello)
	mux.HandleFunc("/hello.php", hello)
	mux.HandleFunc("/big.bin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", fmt.Sprint(http3BigSize))
		piece := make([]byte, 128<<10)
		for sent := 0; sent < http3BigSize; sent += len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	go func() { // as long as the process
		fmt.Fprintln(os.Stderr, "bench:", http.ListenAndServe(addr, mux)) // for ready
		os.Exit(1)
	}()
	err := http3.ListenAndServeQUIC(addr, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), mux)
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}
