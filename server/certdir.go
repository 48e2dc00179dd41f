package server

import (
	"os"
	"path/filepath"
	"strings"
)

// The files of a certificate in a directory of [server.tls] cert_dir, as certbot and
// others name them.
const (
	dirCert = "fullchain.pem"
	dirKey  = "privkey.pem"
)

// listLocked brings the certificates of the directory up to date with what is there, and
// reports whether one is gone. New ones are still to be loaded.
func (c *certificates) listLocked() (changed bool) {
	if c.dir == "" {
		return false
	}
	entries, err := os.ReadDir(c.dir) // sorted by name
	if err != nil {
		if !c.troubled {
			c.log.Error("directory of certificates cannot be read, its certificates stay as they are", "dir", c.dir, "err", err)
		}
		c.troubled = true
		return false
	}
	c.troubled = false
	before := map[string]*certEntry{} // by file
	for _, e := range c.found {
		before[e.cert] = e
	}
	c.found = nil
	for _, entry := range entries {
		p := keyPair{cert: filepath.Join(c.dir, entry.Name(), dirCert), key: filepath.Join(c.dir, entry.Name(), dirKey)}
		now := stampOf(p)
		if now[0] == (fileStamp{}) || now[1] == (fileStamp{}) {
			continue // something else, or one that is being made
		}
		e := before[p.cert]
		if e == nil {
			e = &certEntry{keyPair: p}
		}
		delete(before, p.cert)
		c.found = append(c.found, e)
	}
	for _, gone := range before {
		if gone.loaded != nil {
			c.log.Info("certificate removed", "cert", gone.cert)
			changed = true
		}
	}
	return changed
}

// namesOf returns the names of a certificate in the form of a site's.
func namesOf(names []string) []string {
	var patterns []string
	for _, name := range names {
		patterns = append(patterns, strings.ToLower(strings.TrimSuffix(name, ".")))
	}
	return patterns
}
