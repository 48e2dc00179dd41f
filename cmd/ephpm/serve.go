package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"ephpm/server"
)

// serve runs a server until a signal stops it.
func serve(args, environ []string, stderr io.Writer) int {
	r := request{environ: environ}
	flags := newFlags("serve")
	configFlag(flags, &r)
	stringFlag(flags, &r.listen, "l", "listen")
	stringFlag(flags, &r.root, "d", "document-root")
	flags.BoolVar(&r.verbose, "v", false, "")
	if status, ok := parseFlags(flags, args, stderr); !ok {
		return status
	}
	c, notes, err := load(r)
	if err != nil {
		return fail(stderr, err)
	}
	return runServer(c, notes, stderr, func(ctx context.Context, log *slog.Logger) error {
		return serveUntil(ctx, c, log, func(*server.Server) {})
	})
}

// runServer runs what serves with a context that signals end, and returns the exit
// status.
func runServer(c server.Config, notes []string, stderr io.Writer, run func(ctx context.Context, log *slog.Logger) error) int {
	log, err := newLog(stderr, c.Server.Logging)
	if err != nil {
		return fail(stderr, err)
	}
	for _, note := range notes {
		log.Warn("configuration", "note", note)
	}

	ctx, stop := untilSignal(log, os.Exit)
	defer stop()
	tuned, untune := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer untune()
	wg.Go(func() { server.TuneRuntime(tuned) })
	if err := run(ctx, log); err != nil {
		return fail(stderr, err)
	}
	return 0
}

// serveUntil runs the server until ctx ends. announce is called when clients can
// connect.
func serveUntil(ctx context.Context, c server.Config, log *slog.Logger, announce func(*server.Server)) error {
	signals := catch(syscall.SIGHUP)
	logSignals := catch(syscall.SIGUSR1)
	s, err := server.New(c, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { reloadOnHangUp(ctx, signals, s, log) })
	wg.Go(func() { reopenOnSignal(ctx, logSignals, s) })
	if c.Server.PIDFile != "" {
		remove, err := writePID(c.Server.PIDFile)
		if err != nil {
			log.Error("ephpm reload will not find this server", "err", err)
		}
		defer remove()
	}
	announce(s)
	return s.Run(ctx)
}

// newLog returns the logger that everything gets. The configuration was checked.
func newLog(w io.Writer, c server.LoggingConfig) (*slog.Logger, error) {
	var o slog.HandlerOptions
	var l slog.Level
	if err := l.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, err
	}
	o.Level = l
	if c.Format == server.LogJSON {
		return slog.New(slog.NewJSONHandler(w, &o)), nil
	}
	return slog.New(slog.NewTextHandler(w, &o)), nil
}

// untilSignal returns a context that the first SIGINT or SIGTERM ends, for a
// graceful stop. The second exits at once: who sends it has waited enough, and
// the workers end with this process. stop waits for the goroutine.
func untilSignal(log *slog.Logger, exit func(status int)) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	stopped := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for first := true; ; first = false {
			select {
			case s := <-signals:
				if !first {
					log.Warn("stopping at once", "signal", s.String())
					exit(1)
					return
				}
				log.Info("stopping, a second signal stops at once", "signal", s.String())
				cancel()
			case <-stopped:
				return
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		wg.Wait()
		cancel()
	}
}
