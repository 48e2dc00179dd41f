package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"ephpm/kv"
	"ephpm/phpbridge"
	"ephpm/registry"
)

// A redisServer serves clients of Redis.
type redisServer struct {
	*kv.Server
	listeners []net.Listener
	log       *slog.Logger
}

// listenRedis opens the listeners of [kv.redis_compat]; none when it is off.
func listenRedis(c KVConfig) (list []net.Listener, err error) {
	if !c.Redis.Enabled {
		return nil, nil
	}
	defer func() {
		if err != nil {
			closeListeners(list)
		}
	}()
	if addr := c.Redis.Listen; addr != "" {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return list, fmt.Errorf("kv.redis_compat.listen: %w", err)
		}
		list = append(list, l)
	}
	if path := c.Redis.Socket; path != "" {
		l, err := listenControl(path)
		if err != nil {
			return list, fmt.Errorf("kv.redis_compat.socket: %w", err)
		}
		list = append(list, l)
		if c.Redis.Password != "" || c.Secret != "" {
			if err := os.Chmod(path, 0o666); err != nil { // the password guards it
				return list, fmt.Errorf("kv.redis_compat.socket: %w", err)
			}
		}
	}
	return list, nil
}

func closeListeners(list []net.Listener) {
	for _, l := range list {
		_ = l.Close() // nobody was accepted
	}
}

// openRedis gives the server what serves the listeners, and the scripts of all
// sites what they need to connect.
func (s *Server) openRedis(list []net.Listener) {
	if len(list) > 0 {
		s.redis = newRedisServer(s.config, s.sites, list, s.log)
		for _, site := range s.sites.all {
			s.setRedisVars(site)
		}
	}
	if s.metrics != nil {
		s.metrics.registry.MustRegister(kvMetrics{s.stores, s.redis})
	}
}

// setRedisVars gives the scripts of a site what they need to connect, if there is
// something to connect to. For who opens the site.
func (s *Server) setRedisVars(site *site) {
	if s.redis != nil {
		site.vars = redisVars(s.config.KV, site.name, s.redis.listeners)
	}
}

// newRedisServer returns what serves the listeners.
func newRedisServer(c Config, sites *sites, list []net.Listener, log *slog.Logger) *redisServer {
	r := c.KV.Redis
	o := kv.ServerOptions{
		Log:            log,
		MaxConnections: r.MaxConnections,
		MaxInput:       int(r.MaxInputBuffer),
		ClientsMemory:  c.KV.clientsMemory(),
		IdleTimeout:    time.Duration(r.IdleTimeout),
		Version:        Build().Version,
	}
	if r.Password == "" && c.KV.Secret == "" {
		o.Default = sites.other.kv.store
	} else {
		o.Authenticate = authenticator(c.KV, sites)
	}
	if r.WebSocketPrefix != "" {
		o.PublishPrefix = r.WebSocketPrefix
		o.Publish = publisher(sites)
	}
	return &redisServer{kv.NewServer(o), list, log}
}

// authenticator returns what knows the passwords: that of kv.secret for the name
// of a site, kv.redis_compat.password for the document root without a name.
func authenticator(c KVConfig, sites *sites) func(user, password string) *kv.Store {
	return func(user, password string) *kv.Store {
		if user == "default" && c.Redis.Password != "" && sites.other != nil &&
			hmac.Equal([]byte(password), []byte(c.Redis.Password)) {
			return sites.other.kv.store
		}
		if c.Secret == "" || !hmac.Equal([]byte(password), []byte(sitePassword(c.Secret, user))) {
			return nil
		}
		if site := sites.owner(user); site != nil {
			return site.kv.store
		}
		return nil
	}
}

// sitePassword is the password of a site's clients.
func sitePassword(secret, site string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(site))
	return hex.EncodeToString(m.Sum(nil))
}

// owner returns the site that a user is, by one of its host names or, on a server
// that can have no other site, whatever the name.
func (s *sites) owner(user string) *site {
	if name, ok := hostName(user); ok && name == user {
		if site, err := s.find(name); err != nil || site != s.other {
			return site // nil with an error, which was logged
		}
	}
	if s.dir == nil && s.other != nil && len(s.all) == 1 || user == noSite {
		return s.other
	}
	return nil
}

// publisher returns what brings a message to the sockets of a site. It waits for
// nobody.
func publisher(sites *sites) func(*kv.Store, string, []byte) int {
	return func(store *kv.Store, channel string, payload []byte) int {
		for _, site := range sites.now() {
			if site.kv.store != store || site.sockets == nil {
				continue
			}
			h := &host{s: site.sockets}
			n, _ := h.broadcast(context.Background(), channel, payload, !utf8.Valid(payload), registry.ID{}) // what cannot be sent reaches nobody
			return n
		}
		return 0
	}
}

// serve serves until ctx ends.
func (r *redisServer) serve(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, l := range r.listeners {
		r.log.Info("serving clients of Redis", "on", l.Addr().String())
		wg.Go(func() {
			if err := r.Serve(ctx, l); err != nil {
				r.log.Error("cannot serve clients of Redis any more", "on", l.Addr().String(), "err", err)
			}
		})
	}
}

// redisVars are the variables by which the scripts of a site find its store as
// clients of Redis.
func redisVars(c KVConfig, site string, list []net.Listener) phpbridge.Vars {
	var v phpbridge.Vars
	for _, l := range list {
		switch addr := l.Addr().(type) {
		case *net.TCPAddr:
			host := addr.IP.String()
			if addr.IP.IsUnspecified() {
				host = "127.0.0.1"
			}
			v = v.Add("EPHPM_REDIS_HOST", host)
			v = v.Add("EPHPM_REDIS_PORT", fmt.Sprint(addr.Port))
		case *net.UnixAddr:
			path, err := filepath.Abs(addr.Name)
			if err != nil {
				path = addr.Name // no current directory, so it is absolute or of no use
			}
			v = v.Add("EPHPM_REDIS_SOCKET", path)
		}
	}
	switch {
	case len(list) == 0:
	case c.Secret != "":
		v = v.Add("EPHPM_REDIS_USERNAME", site)
		v = v.Add("EPHPM_REDIS_PASSWORD", sitePassword(c.Secret, site))
	case c.Redis.Password != "":
		v = v.Add("EPHPM_REDIS_USERNAME", "default")
		v = v.Add("EPHPM_REDIS_PASSWORD", c.Redis.Password)
	}
	return v
}
