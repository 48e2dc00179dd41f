package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed scripts/*.php
var scriptFiles embed.FS

//go:embed count.lua
var countLua []byte

// newSite makes a directory with the scripts in www, wrk's script, and room for
// the servers' own files. Servers that drop their privileges can read it.
func newSite() (string, error) {
	dir, err := os.MkdirTemp("", "ephpm-bench-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "count.lua"), countLua, 0o644); err != nil {
		return "", err
	}
	scripts, err := fs.Sub(scriptFiles, "scripts")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(filepath.Join(dir, "www"), scripts); err != nil {
		return "", fmt.Errorf("copy the scripts: %w", err)
	}
	return dir, os.Chmod(filepath.Join(dir, "www"), 0o755)
}
