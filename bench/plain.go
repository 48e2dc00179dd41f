package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// plainEnv, when set, makes this program the server that startPlain wants: one
// that answers with what the scripts print and runs no PHP. Its value is
// "address directory".
const plainEnv = "EPHPM_BENCH_PLAIN"

// startPlain starts the ceiling: this program again, as a process of its own.
func startPlain(ctx context.Context, dir string, o options, like *server) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	for _, script := range append([]string{"hello"}, o.scripts...) {
		body, err := fetch(ctx, like.url+"/"+script+".php")
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, script+".out"), []byte(body), 0o644); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), plainEnv+"="+addr+" "+dir)
	return start(ctx, "Go, no PHP", addr, cmd)
}

// servePlain is that process. It does not return.
func servePlain(value string) {
	addr, dir, _ := strings.Cut(value, " ")
	outputs, err := filepath.Glob(filepath.Join(dir, "*.out"))
	if err != nil {
		panic(err) // the pattern is ours
	}
	mux := http.NewServeMux()
	for _, output := range outputs {
		body, err := os.ReadFile(output)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		script := strings.TrimSuffix(filepath.Base(output), ".out")
		mux.HandleFunc("/"+script+".php", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=UTF-8")
			_, _ = w.Write(body) // the client may be gone
		})
	}
	fmt.Fprintln(os.Stderr, "bench:", http.ListenAndServe(addr, mux))
	os.Exit(1)
}
