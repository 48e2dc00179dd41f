package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"ephpm/phpbridge"
)

// logRun logs why a script did not answer. A worker's death was logged by the
// pool, which knows how it died.
func (s *site) logRun(v *visit, err error, begun bool) {
	level, message := slog.LevelWarn, "script not run"
	var crash *phpbridge.CrashError
	switch {
	case errors.As(err, &crash):
		level, message = slog.LevelDebug, "script crashed its worker"
	case errors.Is(err, phpbridge.ErrTimeout):
		message = "script ran over the time limit"
	case errors.Is(err, errShed), errors.Is(err, phpbridge.ErrTooLarge):
		level = slog.LevelDebug // meant to be, or a client's fault
	case statusOf(err) == http.StatusInternalServerError:
		level = slog.LevelError
	}
	s.log.LogAttrs(context.Background(), level, message, append(v.attrs(s), slog.Any("err", err), slog.Bool("cut", begun))...)
}

// logError logs what is wrong with this machine rather than with a client.
func (s *site) logError(v *visit, err error) {
	s.log.LogAttrs(context.Background(), slog.LevelError, "request failed", append(v.attrs(s), slog.Any("err", err))...)
}

// attrs names the request.
func (v *visit) attrs(s *site) []slog.Attr {
	attrs := []slog.Attr{slog.String("site", s.name), slog.String("request", v.id), slog.String("path", v.path)}
	if v.route.script != nil {
		attrs = append(attrs, slog.String("script", v.route.script.file))
	}
	return attrs
}

// httpLog is the handler of net/http's own lines. They come without a level: all
// but panics are a client's fault.
type httpLog struct{ slog.Handler }

func (h httpLog) Handle(ctx context.Context, r slog.Record) error {
	r.Message = strings.TrimPrefix(r.Message, "http: ")
	if strings.HasPrefix(r.Message, "panic serving") {
		r.Level = slog.LevelError
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// Enabled lets every line through to Handle when errors are logged at all: the
// level is not known before.
func (h httpLog) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.Handler.Enabled(ctx, slog.LevelError)
}
