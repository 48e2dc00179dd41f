package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"ephpm/kv"
	"ephpm/phpbridge"
)

// A tenant is a site's hold on workers, and what its scripts find that those of
// other sites do not.
type tenant struct {
	php     runner // as whoever runs the site's scripts sees it
	workers int    // how many of them it may use at once

	store       *kv.Store
	storeNumber int // as phpbridge.Request.Store has it

	own   *ownPool // nil when the site shares workers
	share *share   // nil when it may use all of them
	user  *phpbridge.User
}

// newTenant gives a site its workers. name and configuration are as for newSite.
func (s *Server) newTenant(name string, c Config, sc SiteConfig) (*tenant, error) {
	user, err := userOf(sc)
	if err != nil {
		return nil, err
	}
	var private *privateDir
	if c.hasSites() || c.Server.Security.OpenBasedir {
		d, err := makePrivateDir(c.Server.SitesStateDir, name, user)
		if err != nil {
			return nil, fmt.Errorf("private directories: %w", err)
		}
		private = &d
	}
	store, err := s.stores.open(name)
	if err != nil {
		return nil, fmt.Errorf("key-value store: %w", err)
	}
	t := &tenant{user: user, store: store.Store, storeNumber: store.number}
	root, err := filepath.Abs(c.Server.DocumentRoot) // open_basedir is looked at from a script's directory
	if err != nil {
		return nil, err
	}
	ini := siteSettings(c, sc, root, private, c.isOurs)
	if sc.own() {
		t.storeNumber = 1
		s.ownWorkers(t, name, c, sc, ini, private, store)
		return t, nil
	}
	s.sharedWorkers(t, c, sc, ini)
	return t, nil
}

// userOf returns whom the workers of a site run as; nil is the server's user.
func userOf(sc SiteConfig) (*phpbridge.User, error) {
	if sc.RunAs == "" {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("run_as = %q: only root can run workers as another user; start ephpm as root", sc.RunAs)
	}
	if sc.RunAs != RunAsOwner {
		return lookUpUser(sc.RunAs)
	}
	info, err := os.Stat(sc.Root)
	if err != nil {
		return nil, err
	}
	return ownerOf(info)
}

// ownWorkers gives the site a pool of its own, which starts when it is needed.
func (s *Server) ownWorkers(t *tenant, name string, c Config, sc SiteConfig, ini INITable, d *privateDir, store *siteStore) {
	o := poolOptions(c, s.pools.have, s.log.With("pool", name))
	if t.workers = int(sc.Workers); t.workers == 0 {
		t.workers = max(2, o.MaxWorkers/4)
	}
	o.MinWorkers, o.MaxWorkers = 1, t.workers
	for _, name := range slices.Sorted(maps.Keys(ini)) {
		o.INI = append(o.INI, phpbridge.INI{Name: name, Value: ini[name]})
	}
	o.Env = map[string]string{}
	maps.Copy(o.Env, c.PHP.Env)
	maps.Copy(o.Env, sc.Env)
	o.User = t.user
	o.Stores = []*os.File{store.file}
	if d != nil {
		o.UploadDir = d.uploads
	}
	t.own = &ownPool{
		site:  name,
		start: func() (workers, error) { return s.pools.start(o) },
		log:   s.log,
	}
	if sc.fromDirectory {
		t.own.idle = time.Duration(c.Server.SitesPoolIdle)
	}
	s.pools.addOwn(t.own)
	t.php = t.own
	if c.PHP.OverloadPolicy == OverloadShed {
		s.addShare(t, t.own, c.PHP)
	}
}

// sharedWorkers gives the site a part of the pool that sites share.
func (s *Server) sharedWorkers(t *tenant, c Config, sc SiteConfig, ini INITable) {
	_, most := s.pools.have.workers(c.PHP)
	t.php, t.workers = s.shared, most
	if c.sharers() > 1 || sc.Workers > 0 {
		if t.workers = int(sc.Workers); t.workers == 0 {
			t.workers = most * 3 / 4
		}
		t.workers = max(1, min(t.workers, most))
		s.addShare(t, s.shared, c.PHP)
	}
	if !c.hasSites() && len(ini) == 0 {
		return
	}
	limit := strconv.FormatInt(int64(c.Server.Request.MaxBodySize), 10)
	for _, name := range []string{"post_max_size", "upload_max_filesize"} {
		if _, set := ini[name]; !set && !c.isOurs(name) && c.Server.Request.MaxBodySize != s.config.Server.Request.MaxBodySize {
			ini[name] = limit
		}
	}
	t.php = &asTenant{php: t.php, env: varsOf(sc.Env), ini: varsOf(ini), number: s.tenants.Add(1)}
}

func (s *Server) addShare(t *tenant, php runner, c PHPConfig) {
	t.share = newShare(php, t.workers, c)
	t.php = t.share
	s.pools.addShare(t.share)
}

// wake starts the workers that the site has to itself, so that what is wrong with
// them is told at once.
func (t *tenant) wake(ctx context.Context) error {
	if t.own == nil {
		return nil
	}
	_, err := t.own.enter(ctx)
	if err == nil {
		t.own.leave()
	}
	return err
}

// varsOf returns a table in the form of requests, by name.
func varsOf[T ~map[string]string](table T) phpbridge.Vars {
	var v phpbridge.Vars
	for _, name := range slices.Sorted(maps.Keys(table)) {
		v = v.Add(name, table[name])
	}
	return v
}

// An asTenant tells workers that several sites share whose request it is.
type asTenant struct {
	php      runner
	env, ini phpbridge.Vars
	number   uint32
}

// Serve implements runner.
func (a *asTenant) Serve(ctx context.Context, w http.ResponseWriter, r *phpbridge.Request) (phpbridge.Result, error) {
	r.Env, r.INI, r.Tenant = a.env, a.ini, a.number
	return a.php.Serve(ctx, w, r)
}

// close ends the workers that the site has to itself; see workers.Close.
func (s *Server) closeTenant(ctx context.Context, t *tenant) error {
	var err error
	if t.own != nil {
		err = t.own.Close(ctx)
	}
	s.pools.forget(t.own, t.share)
	return err
}
