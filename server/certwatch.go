package server

import (
	"context"
	"os"
	"slices"
	"syscall"
	"time"
)

// certInterval is the time between two looks at the files of certificates.
const certInterval = time.Second

// A stamp tells one state of a certificate's files from another.
type stamp [2]fileStamp

type fileStamp struct {
	inode    uint64
	size     int64
	modified time.Time
}

// stampOf looks at the files. One that is not there has the zero fileStamp.
func stampOf(p keyPair) stamp {
	var s stamp
	for i, name := range [...]string{p.cert, p.key} {
		info, err := os.Stat(name) // follows links, by which many tools swap files
		if err != nil {
			continue
		}
		s[i] = fileStamp{size: info.Size(), modified: info.ModTime()}
		if sys, ok := info.Sys().(*syscall.Stat_t); ok {
			s[i].inode = sys.Ino
		}
	}
	return s
}

// watch takes up changed files until ctx ends.
func (c *certificates) watch(ctx context.Context) {
	tick := time.NewTicker(certInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.look(false)
		case <-ctx.Done():
			return
		}
	}
}

// reload reads every file again, at once.
func (c *certificates) reload() { c.look(true) }

// look takes up the files that changed or are new, and have then stayed the same for
// one look: between the writing of a certificate and of its key they do not belong
// together. With all set it reads every file. What cannot be used is logged, and
// the certificate that was there before stays.
func (c *certificates) look(all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.listLocked()
	entries := c.entries
	if !c.troubled {
		entries = slices.Concat(entries, c.found)
	}
	for _, e := range entries {
		now := stampOf(e.keyPair)
		settled := now == e.seen && now != e.stamp
		e.seen = now
		if (all || settled) && c.takeUpLocked(e) {
			changed = true
		}
	}
	if changed {
		c.indexLocked()
	}
}

// takeUpLocked reads the files of a certificate as they are now, and reports whether
// they could be used.
func (c *certificates) takeUpLocked(e *certEntry) bool {
	e.stamp = stampOf(e.keyPair)
	e.seen = e.stamp
	loaded, err := loadKeyPair(e.cert, e.key)
	if err != nil {
		c.failures.Add(1)
		c.log.Error("certificate not taken up, the one before stays", "cert", e.cert, "err", err)
		return false
	}
	e.loaded = loaded
	if c.dir != "" && slices.Contains(c.found, e) {
		e.names = namesOf(loaded.Leaf.DNSNames)
	}
	c.log.Info("certificate taken up", "cert", e.cert, "not_after", loaded.Leaf.NotAfter)
	c.warnOfAge(e)
	return true
}
