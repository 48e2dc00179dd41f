package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ephpm/phpbridge"
)

// maxCallers is how many processes may be connected to the control socket at once;
// one more is let go without a word.
const maxCallers = 256

// A control is the Unix socket over which other processes of the machine reach a
// running server: ephpm_* functions of scripts on the command line. Only the
// server's own user and root may.
type control struct {
	listener *net.UnixListener
	find     func(site string) (phpbridge.Host, error)
	log      *slog.Logger
}

// listenControl opens the socket. One that a killed server left is replaced.
func listenControl(path string) (*net.UnixListener, error) {
	address := &net.UnixAddr{Name: path, Net: "unix"}
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("%s is %d bytes long, at most %d are possible for a socket", path, len(path), maxSocketPath)
	}
	l, err := net.ListenUnix("unix", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		if answers(path) {
			return nil, fmt.Errorf("another server has %s", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		l, err = net.ListenUnix("unix", address)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close() // the first error counts
		return nil, err
	}
	return l, nil
}

// maxSocketPath is the longest path of a Unix socket (unix(7)), in bytes.
const maxSocketPath = 107

// answers reports whether a server listens on a socket.
func answers(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said
	return true
}

// serve answers callers until ctx ends, and waits for them.
func (c *control) serve(ctx context.Context) {
	var callers sync.WaitGroup
	defer callers.Wait()
	defer context.AfterFunc(ctx, func() { _ = c.listener.Close() })() // ends Accept
	places := make(chan struct{}, maxCallers)
	for {
		conn, err := c.listener.AcceptUnix()
		if err != nil && ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
			c.log.Error("cannot accept on the control socket", "err", err)
			time.Sleep(acceptRetry) // most likely for lack of descriptors
			continue
		}
		if err != nil {
			return
		}
		select {
		case places <- struct{}{}:
			callers.Go(func() { // ends with the connection or ctx
				c.answer(ctx, conn)
				<-places
			})
		default:
			_ = conn.Close() // nothing was said
			c.log.Warn("too many processes use the control socket", "most", maxCallers)
		}
	}
}

// acceptRetry is the pause after a failure to accept.
const acceptRetry = 100 * time.Millisecond

// answer answers one process until it ends the connection.
func (c *control) answer(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close() //nolint:errcheck // all was written
	caller, err := callerOf(conn)
	if err != nil {
		c.log.Warn("control socket: who calls is unknown", "err", err)
		return
	}
	log := c.log.With("pid", caller.Pid, "uid", caller.Uid)
	if caller.Uid != 0 && int(caller.Uid) != os.Geteuid() {
		log.Warn("control socket: the caller is neither root nor the server's user")
		return
	}
	err = phpbridge.ServeCalls(ctx, conn, c.find)
	log.Debug("control socket: the caller has left", "err", err)
}

// callerOf returns who is at the other end (SO_PEERCRED of unix(7)).
func callerOf(conn *net.UnixConn) (caller *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		caller, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return caller, errors.Join(controlErr, err)
}

// openControl opens the control socket of the configuration. A server without one
// serves all the same.
func (s *Server) openControl() {
	path := s.config.ControlPath()
	if path == "" {
		return
	}
	l, err := listenControl(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: make its directory, or set server.control_socket", err)
	}
	if err != nil {
		s.log.Warn("no control socket: scripts on the command line will not find this server", "err", err)
		return
	}
	s.control = &control{listener: l, find: callable{s.sites}.host, log: s.log}
}

// A callable finds sites for processes that call. It may be used from any
// goroutine, also while the sites shut down.
type callable struct {
	sites *sites
}

// host returns who answers the host calls of a site; an empty name means the only
// site.
func (c callable) host(name string) (phpbridge.Host, error) {
	if (name == "" || name == soleSite) && len(c.sites.all) == 1 && c.sites.dir == nil {
		return c.sites.all[0].host, nil
	}
	if name == "" {
		return nil, fmt.Errorf("it has several sites, name one with --site%s", c.names(": "))
	}
	if host, ok := hostName(name); ok {
		site, err := c.sites.find(host)
		if err != nil {
			return nil, err
		}
		if site != nil && site != c.sites.other {
			return site.host, nil
		}
	}
	return nil, fmt.Errorf("it has no site %q%s", name, c.names(", but "))
}

// names lists the sites that do not come from directories, behind a text; nothing
// without any.
func (c callable) names(behind string) string {
	var names []string
	for _, site := range c.sites.all {
		if site != c.sites.other || site.name != noSite {
			names = append(names, site.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return behind + strings.Join(names, ", ")
}
