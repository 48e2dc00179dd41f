package phpbridge

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
)

// logMessage logs what a script wrote with error_log() or PHP has to say.
func (x *exchange) logMessage(p []byte) error {
	if len(p) == 0 {
		return errors.New("log record without a priority")
	}
	x.pool.log.Log(context.Background(), syslogLevel(p[0]), "PHP message",
		x.about("text", string(p[1:]))...)
	return nil
}

// note logs what a script wrote with ephpm_log().
func (x *exchange) note(p []byte) error {
	if len(p) < 8 {
		return errors.New("note without a level")
	}
	level := slog.Level(int32(binary.LittleEndian.Uint32(p)))
	n := uint64(binary.LittleEndian.Uint32(p[4:]))
	p = p[8:]
	if n > uint64(len(p)) {
		return fmt.Errorf("note of %d bytes, %d are left", n, len(p))
	}
	attributes := x.about("text", string(p[:n]))
	x.pool.log.Log(context.Background(), level, "PHP message", append(attributes, contextOf(p[n:])...)...)
	return nil
}

// contextOf turns JSON into an attribute: an object into a group sorted by name.
func contextOf(text []byte) []any {
	var value any
	if len(text) == 0 || json.Unmarshal(text, &value) != nil {
		return nil
	}
	values, ok := value.(map[string]any)
	if !ok {
		return []any{"context", value}
	}
	group := make([]any, 0, 2*len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		group = append(group, name, values[name])
	}
	return []any{slog.Group("context", group...)}
}

// syslogLevel turns a priority of syslog(3) into a level.
func syslogLevel(priority byte) slog.Level {
	switch priority & 7 {
	case 0, 1, 2, 3: // LOG_EMERG to LOG_ERR
		return slog.LevelError
	case 4: // LOG_WARNING
		return slog.LevelWarn
	case 5, 6: // LOG_NOTICE, of error_log(), and LOG_INFO
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
