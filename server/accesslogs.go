package server

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
)

// accessLogs are the access logs of a server, one for each file.
type accessLogs struct {
	all map[string]*accessLog // by AccessStdout or path
	// main is that of [server.logging], nil when there is none: it has the sites
	// without a log of their own, and what is no site's.
	main *accessLog
}

// openAccessLogs opens the logs of a checked configuration.
func openAccessLogs(c Config, log *slog.Logger) (*accessLogs, error) {
	a := &accessLogs{all: map[string]*accessLog{}}
	if err := a.open("server.logging.access", c.Server.Logging, log); err != nil {
		return nil, err
	}
	a.main = a.of(c.Server.Logging)
	for i, s := range c.Sites {
		if err := a.open("site["+strconv.Itoa(i+1)+"].logging.access", c.forSite(s).Server.Logging, log); err != nil {
			a.close()
			return nil, err
		}
	}
	return a, nil
}

// open opens a log, unless there is none or it is open.
func (a *accessLogs) open(key string, c LoggingConfig, log *slog.Logger) error {
	if a.of(c) != nil {
		return nil
	}
	l, err := newAccessLog(key, c, log)
	if l != nil && err == nil {
		a.all[accessName(c)] = l
	}
	return err
}

// of returns the log of a configuration that was opened, nil when there is none.
func (a *accessLogs) of(c LoggingConfig) *accessLog { return a.all[accessName(c)] }

// accessName is the log's name, the same however the file is spelled.
func accessName(c LoggingConfig) string {
	if c.Access == "" || c.Access == AccessStdout {
		return c.Access
	}
	return filepath.Clean(c.Access)
}

// close closes logs that never ran.
func (a *accessLogs) close() {
	for _, l := range a.all {
		_ = l.file.Close() // nothing was written
	}
}

// run writes the logs until ctx ends, and then the rest.
func (a *accessLogs) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, l := range a.all {
		wg.Go(func() { l.run(ctx) })
	}
}

// reopen opens the files anew; see accessLog.reopen.
func (a *accessLogs) reopen() {
	for _, l := range a.all {
		l.reopen()
	}
}

// dropped returns how many lines were lost.
func (a *accessLogs) dropped() (n uint64) {
	for _, l := range a.all {
		n += l.dropped.Load()
	}
	return n
}
