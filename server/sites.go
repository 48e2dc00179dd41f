package server

import (
	"context"
	"fmt"
	"sync"
)

// The names of sites that have none of their own.
const (
	soleSite = "default" // the only one
	noSite   = "-"       // the document root for host names that are no site's
)

// sites are the sites of a server. It never changes; its methods may be called
// from any goroutine.
type sites struct {
	named nameTable[*site]
	other *site   // of all names that are not in named; nil: they get 404
	all   []*site // once each
}

// find returns the site of a host name in the form of hostName, or nil. What a
// client makes up is looked up and forgotten.
func (s *sites) find(name string) *site {
	if site, ok := s.named.find(name); ok {
		return site
	}
	return s.other
}

// newSites makes the sites of a checked configuration by open, which gets the
// name of a site and the configuration as that site has it. name is noSite for
// the document root of unknown names.
func newSites(c Config, open func(name string, c Config) (*site, error)) (*sites, error) {
	s := &sites{}
	if c.Server.DocumentRoot != "" {
		site, err := open(c.rootName(), c)
		if err != nil {
			return nil, fmt.Errorf("document root: %w", err)
		}
		s.other = site
		s.all = append(s.all, site)
	}
	for _, sc := range c.Sites {
		site, err := open(sc.Names[0], c.forSite(sc))
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

// shutdown closes the sockets of all sites at once; see sockets.shutdown.
func (s *sites) shutdown(ctx context.Context) {
	var wg sync.WaitGroup
	for _, site := range s.all {
		if site.sockets != nil {
			wg.Go(func() { site.sockets.shutdown(ctx) })
		}
	}
	wg.Wait()
}

// wait returns when everything that sockets ran has ended, after shutdown.
func (s *sites) wait() {
	for _, site := range s.all {
		if site.sockets != nil {
			site.sockets.wait()
		}
	}
}
