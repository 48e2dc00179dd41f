package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// The names of sites that have none of their own.
const (
	soleSite = "default" // the only one
	noSite   = "-"       // the document root for host names that are no site's
)

// sites are the sites of a server. Its methods may be called from any goroutine, but
// for shutdown and then wait, which are for the one that stops the server.
type sites struct {
	named nameTable[*site]
	dir   *sitesDir // nil without sites_dir
	other *site     // of all names that are no other site's; nil: they get 404
	all   []*site   // once each, without those of dir

	ending []*site // set by shutdown, for wait
}

// find returns the site of a host name in the form of hostName, or nil. What a
// client makes up is looked up and forgotten. An error means that there is one,
// which cannot be opened.
func (s *sites) find(name string) (*site, error) {
	if site, ok := s.named.exact[name]; ok {
		return site, nil
	}
	if s.dir != nil {
		if site, err := s.dir.find(name); site != nil || err != nil {
			return site, err
		}
	}
	if site, ok := s.named.findBelow(name); ok {
		return site, nil
	}
	return s.other, nil
}

// now returns the sites that are open, those of directories too.
func (s *sites) now() []*site {
	if s.dir == nil {
		return s.all
	}
	return slices.Concat(s.all, s.dir.now())
}

// A siteOpener makes a site. It gets the site's name, which is noSite for the
// document root of unknown names, and the configuration as the site has it.
type siteOpener func(name string, c Config, sc SiteConfig) (*site, error)

// newSites makes the sites of a checked configuration.
func newSites(c Config, open siteOpener) (*sites, error) {
	s := &sites{}
	if c.Server.DocumentRoot != "" {
		site, err := open(c.rootName(), c, SiteConfig{})
		if err != nil {
			return nil, fmt.Errorf("document root: %w", err)
		}
		s.other = site
		s.all = append(s.all, site)
	}
	for _, sc := range c.Sites {
		site, err := open(sc.Names[0], c.forSite(sc), sc)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", sc.Names[0], err)
		}
		s.all = append(s.all, site)
		for _, name := range sc.Names {
			s.named.set(name, site)
		}
	}
	return s, nil
}

// rootName is the name of the site of the document root.
func (c Config) rootName() string {
	if c.hasSites() {
		return noSite
	}
	return soleSite
}

// wake starts the workers that sites have to themselves. Those of directories
// start when they are needed.
func (s *sites) wake() error {
	errs := make([]error, len(s.all))
	var wg sync.WaitGroup
	for i, site := range s.all {
		wg.Go(func() {
			if err := site.tenant.wake(context.Background()); err != nil {
				errs[i] = fmt.Errorf("site %s: %w", site.name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// shutdown shuts all sites down at once; see site.shutdown. No site is opened any
// more.
func (s *sites) shutdown(ctx context.Context) {
	s.ending = s.all
	if s.dir != nil {
		s.ending = slices.Concat(s.all, s.dir.end())
	}
	var wg sync.WaitGroup
	for _, site := range s.ending {
		wg.Go(func() { site.shutdown(ctx) })
	}
	wg.Wait()
}

// wait returns when everything that sockets ran has ended, after shutdown.
func (s *sites) wait() {
	for _, site := range s.ending {
		if site.sockets != nil {
			site.sockets.wait()
		}
	}
}
