package server

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// lookAgain is how long a lookup is believed: that of a script, and that of
	// the document root itself. A script that was removed may be started for
	// this long, which is then PHP's own error.
	lookAgain = time.Second
	// maxScripts bounds the scripts remembered; above it all are forgotten.
	maxScripts = 1024
)

// A root is a site's document root. It is looked up again as time goes by, so
// that a root which was built anew, or a symbolic link that was switched to
// another release, is served without a restart.
type root struct {
	path    string // absolute, as configured
	resolve bool   // show scripts where path leads to, not path
	secret  string // the configuration file, which is never sent; may be empty
	php     extensions
	kinds   *fileKinds
	memory  *fileMemory
	log     *slog.Logger
	current atomic.Pointer[tree]
	checked atomic.Int64 // when current was last compared with path, Unix ns
}

// openRoot opens the directory at path. What is known of its files is kept in memory.
func openRoot(path string, resolve bool, secret string, php extensions, kinds *fileKinds, memory *fileMemory, log *slog.Logger) (*root, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	r := &root{path: abs, resolve: resolve, secret: secret, php: php, kinds: kinds, memory: memory, log: log}
	t, err := r.open()
	if err != nil {
		return nil, err
	}
	r.current.Store(t)
	return r, nil
}

func (r *root) open() (*tree, error) {
	path, err := filepath.EvalSymlinks(r.path)
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := dir.Stat(".")
	if err != nil {
		_ = dir.Close() // it was only opened to be looked at
		return nil, err
	}
	t := &tree{
		dir: dir, path: path, shown: r.path, info: info, secret: r.secret, php: r.php, kinds: r.kinds, log: r.log,
		files: newFileMap(r.memory), scripts: map[string]*script{},
	}
	if r.resolve {
		t.shown = path
	}
	return t, nil
}

// tree returns what the root leads to. It looks at most once per lookAgain and
// keeps the last answer when there is nothing to open.
func (r *root) tree(now time.Time) *tree {
	t := r.current.Load()
	last := r.checked.Load()
	if now.UnixNano()-last < int64(lookAgain) || !r.checked.CompareAndSwap(last, now.UnixNano()) {
		return t
	}
	if path, err := filepath.EvalSymlinks(r.path); err == nil && path == t.path {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, t.info) {
			return t
		}
	}
	next, err := r.open()
	if err != nil {
		return t
	}
	// Requests may still use t: its descriptor is closed with the last of them,
	// by the garbage collector.
	r.current.Store(next)
	return next
}

// isSecret reports whether info is the configuration file, under whatever name.
func (r *root) isSecret(info fs.FileInfo) bool { return isFile(info, r.secret) }

// isFile reports whether info is the file at path, which may be empty.
func isFile(info fs.FileInfo, path string) bool {
	if path == "" {
		return false
	}
	own, err := os.Stat(path)
	return err == nil && os.SameFile(own, info)
}

// A tree is one directory that a root led to. Nothing outside it is reached
// through it, whatever symbolic links it holds.
type tree struct {
	dir    *os.Root
	path   string // absolute, without symbolic links
	shown  string // DOCUMENT_ROOT
	info   fs.FileInfo
	secret string // see root
	php    extensions
	kinds  *fileKinds
	files  *fileMap
	log    *slog.Logger

	mu      sync.RWMutex // guards the following
	scripts map[string]*script
}

// A script is a PHP file below the root.
type script struct {
	name  string // as in a URL, "/a/b.php": SCRIPT_NAME
	file  string // absolute: SCRIPT_FILENAME
	until time.Time
}

// A found is what a name leads to.
type found struct {
	kind     kind
	name     string  // below the root, for files
	file     *file   // when it was known and is as it was
	script   *script // for scripts
	pathInfo string  // for scripts: what follows it in the path
}

type kind uint8

const (
	nothing kind = iota
	aFile        // a regular file that may be sent
	aScript      // a file that ends in ".php" or another of extensions
	aSource      // PHP by another spelling, such as ".PHP": neither run nor sent
	directory
	refused // a file that may not be read, or lies outside the root
)

// locate tells what the decoded path p leads to. A script may be followed by
// more path: p is cut after the first segment that ends as scripts do and is a file.
func (t *tree) locate(p string, now time.Time) found {
	for end := t.php.end(p, 0); end > 0; end = t.php.end(p, end) {
		// What is neither directory nor file has nothing below it: a path of a
		// thousand "x.php" segments costs one lookup.
		if f := t.script(fileName(p[:end]), now); f.kind != directory {
			f.pathInfo = p[end:]
			return f
		}
	}
	f := t.look(fileName(p))
	switch {
	case f.kind != aFile:
		return f
	case isDirectoryPath(p):
		return found{}
	case t.php.conceal(f.name):
		return found{kind: aSource}
	}
	return f
}

// script looks up the script called name. The answer "yes" is remembered.
func (t *tree) script(name string, now time.Time) found {
	t.mu.RLock()
	s := t.scripts[name]
	t.mu.RUnlock()
	if s != nil && now.Before(s.until) {
		return found{kind: aScript, script: s}
	}
	f := t.look(name)
	if f.kind != aFile {
		return f
	}
	s = &script{name: "/" + name, file: filepath.Join(t.shown, f.name), until: now.Add(lookAgain)}
	t.mu.Lock()
	if len(t.scripts) >= maxScripts {
		clear(t.scripts)
	}
	t.scripts[strings.Clone(name)] = s // name is part of a whole request target
	t.mu.Unlock()
	return found{kind: aScript, script: s}
}

// look asks the file system for name. Here a script is a file like any other.
func (t *tree) look(name string) found {
	if f := t.files.get(name); f != nil {
		return found{kind: aFile, name: name, file: f}
	}
	info, err := t.dir.Stat(name)
	if escapes(err) {
		name, info, err = t.follow(name)
	}
	var errno syscall.Errno
	switch {
	case err == nil && info.IsDir():
		return found{kind: directory, name: name}
	case err == nil && !info.Mode().IsRegular():
		return found{kind: refused}
	case err == nil:
		return found{kind: aFile, name: name}
	case escapes(err):
		t.log.Warn("refused a symbolic link that leaves the document root", "root", t.path, "name", name)
		return found{kind: refused}
	case errors.As(err, &errno) && (errno == syscall.EACCES || errno == syscall.EPERM):
		return found{kind: refused}
	}
	return found{}
}

// follow looks name up once more when a link led out of the root by its text:
// os.Root refuses absolute links, also those that point back inside.
func (t *tree) follow(name string) (string, fs.FileInfo, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(t.path, name))
	if err != nil {
		return name, nil, err
	}
	inside, err := filepath.Rel(t.path, real)
	if err != nil {
		return name, nil, err
	}
	info, err := t.dir.Stat(inside)
	if escapes(err) {
		return name, nil, err
	}
	return inside, info, err
}

// escapes reports whether err is os.Root's refusal to leave the root: the only
// error of Stat that the kernel did not give.
func escapes(err error) bool {
	var errno syscall.Errno
	return err != nil && !errors.As(err, &errno) && !errors.Is(err, fs.ErrNotExist)
}

// open opens a file that look found. It does not wait for a writer, should the
// name have become a pipe meanwhile.
func (t *tree) open(name string) (*os.File, error) {
	return t.dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
