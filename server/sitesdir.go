package server

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ephpm/kv"
)

const (
	// listAgain is how often the directory of sites is looked at.
	listAgain = time.Second
	// listSettled is how old a directory's time must be for it to tell of every
	// change: file systems count in steps, the coarsest of two seconds.
	listSettled = 3 * time.Second
	// listAnyway is when it is listed whatever its time says: a symbolic link in
	// it may lead to nothing now, and not every file system keeps times.
	listAnyway = 10 * time.Second
)

// A sitesDir finds the sites of [server] sites_dir. Names are looked up in a list
// of what is there: what clients invent costs neither a look at the disk nor
// memory. Its methods may be called from any goroutine.
type sitesDir struct {
	path   string
	suffix string // removed from host names; may be empty
	open   func(name string) (*site, error)
	gone   func(names []string) // is told the host names of one that is removed; nil: nobody is
	close  func(*site)          // ends one; takes as long as its scripts take
	log    *slog.Logger

	index   atomic.Pointer[map[string]*dirSite]
	closing sync.WaitGroup // of sites that are gone

	mu       sync.Mutex // guards the following; held by who lists
	changed  time.Time  // of the directory, when it was listed
	listed   time.Time  // when that was
	troubled bool       // it could not be listed; told
}

// A dirSite is a directory that is a site, made one by its first request.
type dirSite struct {
	name string
	site atomic.Pointer[site]

	mu    sync.Mutex // guards the following
	err   error      // why it is none yet
	tried time.Time
	gone  bool
}

// newSitesDir lists the directory for the first time.
func (s *Server) newSitesDir(open siteOpener) (*sitesDir, error) {
	d := &sitesDir{
		path:   s.config.Server.SitesDir,
		suffix: s.config.Server.SitesDomainSuffix,
		open: func(name string) (*site, error) {
			sc := s.config.directorySite(name)
			site, err := open(name, s.config.forSite(sc), sc)
			if err == nil {
				s.setRedisVars(site)
			}
			return site, err
		},
		close: s.closeSite,
		log:   s.log,
	}
	return d, d.refresh(time.Now())
}

// closeSite ends a site that is gone as a stop of the server would.
func (s *Server) closeSite(gone *site) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(s.config.Server.Timeouts.Shutdown))
	defer cancel()
	gone.shutdown(ctx)
	if err := s.closeTenant(ctx, gone.tenant); err != nil {
		s.log.Warn("killed the scripts that were still running", "site", gone.name, "err", err)
	}
	if gone.sockets != nil {
		gone.sockets.wait()
	}
	s.stores.remove(ctx, gone.name, func(store *kv.Store) {
		if s.redis != nil {
			s.redis.Cut(store)
		}
	})
}

// find returns the site of a host name in the form of hostName. Nil without an
// error means that there is none.
func (d *sitesDir) find(name string) (*site, error) {
	entry := d.entry(name)
	if entry == nil {
		return nil, nil
	}
	if s := entry.site.Load(); s != nil {
		return s, nil
	}
	return d.make(entry)
}

// entry returns the directory of a host name, or nil.
func (d *sitesDir) entry(name string) *dirSite {
	index := *d.index.Load()
	if short, ok := strings.CutSuffix(name, d.suffix); ok && d.suffix != "" {
		if e := index[short]; e != nil {
			return e
		}
	}
	return index[name]
}

// has reports whether a directory is the site of a host name, without opening it.
func (d *sitesDir) has(name string) bool { return d.entry(name) != nil }

// make opens a site. One that cannot be opened is tried again after a while.
func (d *sitesDir) make(e *dirSite) (*site, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch s := e.site.Load(); {
	case s != nil:
		return s, nil
	case e.gone:
		return nil, nil // just now
	case e.err != nil && time.Since(e.tried) < listAgain:
		return nil, e.err
	}
	s, err := d.open(e.name)
	if e.err, e.tried = err, time.Now(); err != nil {
		d.log.Error("directory cannot be a site", "site", e.name, "err", err)
		return nil, err
	}
	e.site.Store(s)
	d.log.Info("site opened", "site", e.name)
	return s, nil
}

// remove lets no new request in and returns the site, if there is one.
func (e *dirSite) remove() *site {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone = true
	return e.site.Swap(nil)
}

// refresh brings the list up to date, and closes the sites that are gone.
func (d *sitesDir) refresh(now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := os.Stat(d.path)
	if err != nil {
		return d.trouble(err)
	}
	settled := d.listed.Sub(d.changed) > listSettled
	if info.ModTime().Equal(d.changed) && settled && now.Sub(d.listed) < listAnyway {
		return nil
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return d.trouble(err)
	}
	d.changed, d.listed, d.troubled = info.ModTime(), now, false
	var old map[string]*dirSite
	if p := d.index.Load(); p != nil {
		old = *p
	}
	index := make(map[string]*dirSite, len(entries))
	for _, e := range entries {
		name := e.Name()
		if host, ok := hostName(name); !ok || host != name || !d.isDirectory(e) {
			continue
		}
		if index[name] = old[name]; index[name] == nil {
			index[name] = &dirSite{name: name}
		}
	}
	d.index.Store(&index)
	for name, e := range old {
		if index[name] == nil {
			d.forget(e)
		}
	}
	return nil
}

// isDirectory reports whether an entry is a directory or a link to one.
func (d *sitesDir) isDirectory(e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(d.path, e.Name()))
	return err == nil && info.IsDir()
}

// trouble keeps what is known: a file system that is away comes back.
func (d *sitesDir) trouble(err error) error {
	if !d.troubled {
		d.log.Error("directory of sites cannot be read, its sites stay as they are", "dir", d.path, "err", err)
	}
	d.troubled = true
	return err
}

// forget ends a site that is gone.
func (d *sitesDir) forget(e *dirSite) {
	if d.gone != nil {
		d.gone([]string{e.name, e.name + d.suffix})
	}
	if s := e.remove(); s != nil {
		d.log.Info("site removed", "site", e.name)
		d.closing.Go(func() { d.close(s) }) // ends with its scripts
	}
}

// watch keeps the list up to date until ctx ends, then waits for sites that were
// removed.
func (d *sitesDir) watch(ctx context.Context) {
	defer d.closing.Wait()
	t := time.NewTicker(listAgain)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			_ = d.refresh(now) // it was logged
		case <-ctx.Done():
			return
		}
	}
}

// now returns the sites that are open.
func (d *sitesDir) now() (open []*site) {
	for _, e := range *d.index.Load() {
		if s := e.site.Load(); s != nil {
			open = append(open, s)
		}
	}
	return open
}

// end returns the sites that are open, and opens no more.
func (d *sitesDir) end() []*site {
	var open []*site
	for _, e := range *d.index.Load() {
		if s := e.remove(); s != nil {
			open = append(open, s)
		}
	}
	return open
}
