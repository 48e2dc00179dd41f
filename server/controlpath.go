package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ControlAuto, in ServerConfig.ControlSocket, stands for a path that follows from
// the configuration's file, or from the document root without one.
const ControlAuto = "auto"

// ControlPath returns the path of the server's control socket; empty when it has
// none. With ControlAuto it makes the directory.
func (c Config) ControlPath() string {
	if c.Server.ControlSocket != ControlAuto {
		return c.Server.ControlSocket
	}
	for _, dir := range controlDirs() {
		if dir.open() == nil {
			removeDead(dir)
			return filepath.Join(dir.path, c.controlName())
		}
	}
	return ""
}

// controlName is the same at each start of the same server.
func (c Config) controlName() string { return controlName(cmp.Or(c.File, c.Server.DocumentRoot)) }

func controlName(path string) string {
	if abs, err := filepath.Abs(path); err == nil { // fails only without a working directory
		path = abs
	}
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8]) + controlSuffix
}

const controlSuffix = ".sock"

// FindControl returns the control socket of the server that was started with this
// configuration, whether it runs or not; empty when it has none.
func (c Config) FindControl() string {
	if c.Server.ControlSocket != ControlAuto {
		return c.Server.ControlSocket
	}
	if path, ok := findControl(c.controlName()); ok {
		return path
	}
	return filepath.Join(controlDirs()[0].path, c.controlName()) // where it might be
}

// FindControlOf returns the control socket of a server that was started without a
// file, for a document root. It reports false when there is none.
func FindControlOf(root string) (path string, ok bool) { return findControl(controlName(root)) }

func findControl(name string) (path string, ok bool) {
	for _, dir := range controlDirs() {
		if files := dir.sockets(name); len(files) > 0 {
			return files[0], true
		}
	}
	return "", false
}

// Errors of RunningControl.
var (
	errNoServer      = errors.New("no server is running")
	errSeveralServer = errors.New("several servers are running: name the ephpm.toml of one with --config FILE")
)

// RunningControl returns the control socket of the only server that runs for this
// user, with ControlAuto.
func RunningControl() (string, error) {
	for _, dir := range controlDirs() {
		files := dir.sockets("*" + controlSuffix)
		if len(files) > 1 { // one may be a killed server's: the caller will see
			files = slices.DeleteFunc(files, func(file string) bool { return !answers(file) })
		}
		switch {
		case len(files) == 1:
			return files[0], nil
		case len(files) > 1:
			return "", errSeveralServer
		}
	}
	return "", errNoServer
}

// ControlPID returns the process of the server that a control socket is of.
func ControlPID(socket string) (int, error) {
	conn, err := net.Dial("unix", socket)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return 0, fmt.Errorf("cannot reach the server at %s: none is running", socket)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot reach the server at %s: %w", socket, err)
	}
	defer conn.Close()                              //nolint:errcheck // nothing was said
	listener, err := callerOf(conn.(*net.UnixConn)) // what Dial returns for "unix"
	if err != nil {
		return 0, fmt.Errorf("cannot tell which process has %s: %w", socket, err)
	}
	if listener.Pid < 1 { // in another namespace
		return 0, fmt.Errorf("the server at %s is in another container: run ephpm reload there", socket)
	}
	return int(listener.Pid), nil
}

// A controlDir is a directory in which sockets may be.
type controlDir struct {
	path   string
	make   bool // by the server; the one above it must exist
	system bool // nobody but root and who root wanted can have made it
}

// controlDirs returns them in the order of preference: what systemd made for this
// service, what a login made for this user, and what everybody has.
func controlDirs() []controlDir {
	uid := strconv.Itoa(os.Geteuid())
	var dirs []controlDir
	if first, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":"); first != "" {
		dirs = append(dirs, controlDir{path: first, system: true})
	}
	if login := os.Getenv("XDG_RUNTIME_DIR"); login != "" {
		dirs = append(dirs, controlDir{path: filepath.Join(login, "ephpm"), make: true})
	}
	return append(dirs,
		controlDir{path: "/run/user/" + uid + "/ephpm", make: true},
		controlDir{path: "/run/ephpm", make: os.Geteuid() == 0, system: true},
		controlDir{path: "/tmp/ephpm-" + uid, make: true})
}

// open makes the directory for a server if need be. An error says that it is not
// the server's own.
func (d controlDir) open() error {
	if d.make {
		if err := os.Mkdir(d.path, 0o700); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return d.own()
}

// own returns an error if somebody else could put a socket there.
func (d controlDir) own() error {
	info, err := os.Lstat(d.path)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid // what Lstat returns on Unix
	if !info.IsDir() || int(owner) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a directory that only its owner may write to", d.path)
	}
	return nil
}

// sockets returns those in the directory that a caller may trust.
func (d controlDir) sockets(pattern string) []string {
	if !d.system && d.own() != nil {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(d.path, pattern))
	if err != nil {
		return nil // a strange path
	}
	return files
}

// removeDead removes the sockets of servers that were killed.
func removeDead(dir controlDir) {
	for _, file := range dir.sockets("*" + controlSuffix) {
		if info, err := os.Lstat(file); err == nil && info.Mode().Type() == os.ModeSocket && !answers(file) {
			_ = os.Remove(file) // the next start tries again
		}
	}
}
