package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"ephpm/server"
)

// reload tells the server that wrote the configuration's pid_file to take up new
// code.
func reload(args, environ []string, stdout, stderr io.Writer) int {
	c, _, status, ok := loadFor("reload", args, environ, stderr)
	if !ok {
		return status
	}
	pid, err := readPID(c.Server.PIDFile)
	if err != nil {
		return fail(stderr, err)
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		return fail(stderr, fmt.Errorf("process %d of %s: %w", pid, c.Server.PIDFile, err))
	}
	fmt.Fprintf(stdout, "told process %d; its log says how it went\n", pid)
	return 0
}

// catch keeps a signal from ending the process, from now on: it may come while the
// server starts or stops.
func catch(s os.Signal) <-chan os.Signal {
	signals := make(chan os.Signal, 1) // one that waits is enough
	signal.Notify(signals, s)
	return signals
}

// reloadOnHangUp reloads at each signal until ctx ends.
func reloadOnHangUp(ctx context.Context, signals <-chan os.Signal, s *server.Server, log *slog.Logger) {
	for {
		select {
		case <-signals:
			log.Info("reloading PHP")
			if err := s.Reload(ctx); err != nil {
				log.Error("not reloaded, all stays as it was", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// reopenOnSignal opens the log files anew at each signal until ctx ends.
func reopenOnSignal(ctx context.Context, signals <-chan os.Signal, s *server.Server) {
	for {
		select {
		case <-signals:
			s.ReopenLogs()
		case <-ctx.Done():
			return
		}
	}
}

// writePID writes the process id so that nobody reads half of it. remove deletes
// the file, unless another server has written it since.
func writePID(file string) (remove func(), err error) {
	text := []byte(strconv.Itoa(os.Getpid()) + "\n")
	temporary := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".new")
	if err := os.WriteFile(temporary, text, 0o644); err != nil {
		return func() {}, fmt.Errorf("server.pid_file: %w", err)
	}
	if err := os.Rename(temporary, file); err != nil {
		return func() {}, fmt.Errorf("server.pid_file: %w", err)
	}
	return func() {
		if now, err := os.ReadFile(file); err == nil && bytes.Equal(now, text) {
			_ = os.Remove(file) // it may have gone already
		}
	}, nil
}

func readPID(file string) (int, error) {
	if file == "" {
		return 0, errors.New("server.pid_file is not set, so the server cannot be found: set it and restart, or send SIGHUP to its process")
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("no server is running: there is no %s", file)
	}
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("%s does not hold a process id", file)
	}
	return pid, nil
}
