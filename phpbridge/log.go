package phpbridge

import (
	"context"
	"errors"
	"log/slog"
)

// logMessage logs what a script wrote with error_log() or PHP has to say.
func (x *exchange) logMessage(p []byte) error {
	if len(p) == 0 {
		return errors.New("log record without a priority")
	}
	x.pool.log.Log(context.Background(), syslogLevel(p[0]), "PHP message", "text", string(p[1:]),
		"site", x.request.Site, "script", x.request.Script, "request", x.request.ID)
	return nil
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
