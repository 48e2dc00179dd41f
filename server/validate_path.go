package server

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// root opens a document root as the server will: nothing is served from one that
// cannot be read. where says where else it can be named.
func (k *checks) root(key, root, where string) {
	if root == "" {
		k.add(key, "is empty; name the directory to serve%s", where)
		return
	}
	dir, err := os.Open(root)
	if err == nil {
		_, err = dir.Readdirnames(1)
		_ = dir.Close() // it was only read
	}
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case errors.Is(err, fs.ErrNotExist):
		k.add(key, "%q does not exist; name another%s", root, where)
	case errors.Is(err, fs.ErrPermission):
		k.add(key, "%q cannot be read by this user; give it read and execute permission, or run as its owner", root)
	default:
		if info, e := os.Stat(root); e == nil && !info.IsDir() {
			k.add(key, "%q is not a directory; name another%s", root, where)
			return
		}
		k.add(key, "%q cannot be read (%v); name another%s", root, err, where)
	}
}

// files checks names that are looked up below the document root.
func (k *checks) files(key string, names []string) {
	for _, name := range names {
		if !filepath.IsLocal(name) || strings.ContainsRune(name, 0) {
			k.add(key, "%q is not a file name below the document root", name)
		}
	}
}

// inDirectory checks that a file can be made where its path says. Empty is no file.
func (k *checks) inDirectory(key, path string) {
	if path == "" {
		return
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		k.add(key, "%q is a directory; name a file in it", path)
		return
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil {
		k.add(key, "%q cannot be made, its directory cannot be read: %v", path, errors.Unwrap(err))
	} else if !info.IsDir() {
		k.add(key, "%q cannot be made: %q is not a directory", path, dir)
	}
}

// directory checks that a directory is there.
func (k *checks) directory(key, path string) {
	if info, err := os.Stat(path); err != nil {
		k.add(key, "%q cannot be read: %v; make the directory first", path, errors.Unwrap(err))
	} else if !info.IsDir() {
		k.add(key, "%q is not a directory", path)
	}
}

// private checks that a file or directory of secrets is not below a directory that
// is served.
func (k *checks) private(key, path string, roots []string) {
	if path == "" {
		return
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return // without a current directory nothing relative can be opened
	}
	for _, root := range roots {
		if root, err = filepath.Abs(root); err != nil {
			return
		}
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			k.add(key, "%q is below the document root, where everybody can fetch it; put it elsewhere", path)
			return
		}
	}
}
