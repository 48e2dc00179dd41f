package main

import (
	"log/slog"
	"syscall"
	"testing"

	"ephpm/server"
)

func sendTERM(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func TestTheFirstSignalStopsGracefullyAndTheSecondAtOnce(t *testing.T) {
	exited := make(chan int, 1)
	ctx, stop := untilSignal(slog.New(slog.DiscardHandler), func(status int) { exited <- status })
	defer stop()
	if ctx.Err() != nil {
		t.Fatal("the context ended before any signal")
	}
	sendTERM(t)
	<-ctx.Done()
	select {
	case status := <-exited:
		t.Fatalf("the first signal exited with %d", status)
	default:
	}
	sendTERM(t)
	if status := <-exited; status != 1 {
		t.Errorf("the second signal exits with %d, want 1", status)
	}
}

func TestStopEndsTheContextWithoutASignal(t *testing.T) {
	ctx, stop := untilSignal(slog.New(slog.DiscardHandler), func(int) { t.Error("exited") })
	stop()
	if ctx.Err() == nil {
		t.Error("the context is still alive after stop")
	}
}

func TestLogLevelIsTheConfigured(t *testing.T) {
	for _, level := range []string{"debug", "info", "warn", "error"} {
		log, err := newLog(t.Output(), server.LoggingConfig{Level: level})
		if err != nil {
			t.Fatal(err)
		}
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			t.Fatal(err)
		}
		if !log.Enabled(t.Context(), l) || log.Enabled(t.Context(), l-1) {
			t.Errorf("a log at level %s takes something else", level)
		}
	}
}
