package phpbridge

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// nowhere is a ResponseWriter that costs nothing.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}

func BenchmarkServe(b *testing.B) {
	p, err := New(Options{MinWorkers: 2, MaxWorkers: 2, Backlog: 1000, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close(context.Background()) //nolint:errcheck // the end of the benchmark
	file := filepath.Join(b.TempDir(), "hello.php")
	if err := os.WriteFile(file, []byte("<?php echo 'Hello, world';"), 0o644); err != nil {
		b.Fatal(err)
	}
	r := &Request{Script: file, Timeout: time.Minute,
		Vars: Vars{}.Add("REQUEST_METHOD", "GET").Add("SCRIPT_FILENAME", file).Add("QUERY_STRING", "")}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		w := nowhere{http.Header{}}
		for pb.Next() {
			clear(w.header)
			if _, err := p.Serve(ctx, w, r); err != nil {
				b.Error(err)
			}
		}
	})
}
