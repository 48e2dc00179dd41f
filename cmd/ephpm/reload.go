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

// reload tells a running server to take up new code: that which wrote the
// configuration's pid_file or, without one, has the control socket that ephpm php
// would find.
func reload(args, environ []string, stdout, stderr io.Writer) int {
	r := request{environ: environ}
	flags := newFlags("reload")
	configFlag(flags, &r)
	if status, ok := parseFlags(flags, args, stderr); !ok {
		return status
	}
	pid, err := serverPID(r.file, environ)
	if err != nil {
		return fail(stderr, err)
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		return fail(stderr, fmt.Errorf("process %d of the server: %w", pid, err))
	}
	fmt.Fprintf(stdout, "told process %d; its log says how it went\n", pid)
	return 0
}

// serverPID finds the server's process.
func serverPID(file string, environ []string) (int, error) {
	c, err := loadServer(file, environ)
	switch {
	case err != nil:
		return 0, err
	case c.Server.PIDFile != "":
		return readPID(c.Server.PIDFile)
	case c.Server.ControlSocket == "":
		return 0, errors.New("neither server.pid_file nor server.control_socket is set, so the server cannot be found: set one and restart, or send SIGHUP to its process")
	}
	socket, err := serverSocket(file, environ)
	if err != nil {
		return 0, err
	}
	return server.ControlPID(socket)
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
			if err := s.Reload(ctx); err != nil && ctx.Err() == nil { // or it stops, and nobody needs it
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
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("no server is running: there is no %s", file)
	}
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || pid < 1 { // 1 is a server that is all of a container
		return 0, fmt.Errorf("%s does not hold a process id", file)
	}
	return pid, nil
}
