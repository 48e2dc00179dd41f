package server

import (
	"context"
	"log/slog"

	"go.uber.org/zap/zapcore"
)

// A zapCore lets certmagic, which logs by zap, write to our log. What zap calls
// information are steps on the way to a certificate, and debugging here.
type zapCore struct{ log *slog.Logger }

var zapLevels = map[zapcore.Level]slog.Level{
	zapcore.DebugLevel: slog.LevelDebug - 4,
	zapcore.InfoLevel:  slog.LevelDebug,
	zapcore.WarnLevel:  slog.LevelWarn,
}

func slogLevel(l zapcore.Level) slog.Level {
	if level, ok := zapLevels[l]; ok {
		return level
	}
	return slog.LevelError
}

// Enabled is for zapcore.LevelEnabler.
func (c zapCore) Enabled(l zapcore.Level) bool {
	return c.log.Enabled(context.Background(), slogLevel(l))
}

// With returns a core that adds fields to each entry.
func (c zapCore) With(fields []zapcore.Field) zapcore.Core {
	return zapCore{c.log.With(attributes(fields)...)}
}

// Check is for zapcore.Core.
func (c zapCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write logs an entry.
func (c zapCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.log.Log(context.Background(), slogLevel(e.Level), "ACME: "+e.Message, attributes(fields)...)
	return nil
}

// Sync is for zapcore.Core. Nothing is kept back.
func (zapCore) Sync() error { return nil }

// attributes are the fields as slog takes them.
func attributes(fields []zapcore.Field) []any {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	args := make([]any, 0, 2*len(fields))
	for _, f := range fields { // in their order, which a map has not
		if v, ok := enc.Fields[f.Key]; ok {
			args = append(args, f.Key, v)
		}
	}
	return args
}
