package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

const (
	// maxCost bounds what one wrong password may cost: about a second.
	maxCost = 14
	// maxLogins bounds the passwords that are remembered to be right.
	maxLogins = 1024
)

// users are hashes of passwords by name.
type users map[string][]byte

// parseUsers reads lines of an htpasswd file.
func parseUsers(lines []string) (users, error) {
	all := users{}
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, hash, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return nil, fmt.Errorf(`line %d is not "name:hash"`, i+1)
		}
		cost, err := bcrypt.Cost([]byte(hash))
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: the hash of %s is not bcrypt; make one by \"htpasswd -nB %s\"", i+1, name, name)
		case cost > maxCost:
			return nil, fmt.Errorf("line %d: the hash of %s has cost %d; more than %d would let anybody keep the server busy", i+1, name, cost, maxCost)
		}
		all[name] = []byte(hash)
	}
	return all, nil
}

// hash returns the hash of a user, and whether there is one of that name. That of
// another takes as long: nobody learns who exists.
func (u users) hash(name string) ([]byte, bool) {
	if hash, ok := u[name]; ok {
		return hash, true
	}
	var slowest []byte
	most := 0
	for _, hash := range u {
		if cost, _ := bcrypt.Cost(hash); cost > most { // parseUsers knew it
			slowest, most = hash, cost
		}
	}
	return slowest, false
}

// passwords checks passwords for all sites of a server: few at a time, for each
// costs as much as a hundred pages, and what was right once only once.
type passwords struct {
	turns chan struct{} // one for each hash that is computed
	key   []byte        // of the sums

	mu    sync.Mutex // guards the following
	right map[[sha256.Size]byte]struct{}
}

func newPasswords() *passwords {
	p := &passwords{turns: make(chan struct{}, max(1, runtime.NumCPU()/2)), key: make([]byte, 32), right: map[[sha256.Size]byte]struct{}{}}
	rand.Read(p.key) // never fails
	return p
}

// check reports whether a password has a hash. The error is that of ctx.
func (p *passwords) check(ctx context.Context, hash []byte, password string) (bool, error) {
	var sum [sha256.Size]byte
	mac := hmac.New(sha256.New, p.key)
	mac.Write(hash)
	mac.Write([]byte(password))
	mac.Sum(sum[:0])
	p.mu.Lock()
	_, ok := p.right[sum]
	p.mu.Unlock()
	if ok {
		return true, nil
	}
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if bcrypt.CompareHashAndPassword(hash, []byte(password)) != nil {
		return false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.right) >= maxLogins {
		clear(p.right)
	}
	p.right[sum] = struct{}{}
	return true, nil
}

// An auth is a checked AuthConfig.
type auth struct {
	path      []pathGlob
	challenge string
	passwords *passwords
	inline    users
	file      string

	mu     sync.Mutex // guards the following
	all    users
	looked time.Time // at the file
	id     fileState
}

// A fileState tells one content of a file from the next.
type fileState struct {
	modified time.Time
	size     int64
}

func newAuth(c AuthConfig, p *passwords) *auth {
	a := &auth{path: globs([]string{c.Path}), passwords: p, file: c.File}
	realm := c.Realm
	if realm == "" {
		realm = "Restricted"
	}
	a.challenge = `Basic realm="` + realm + `", charset="UTF-8"` // RFC 7617
	a.inline, _ = parseUsers(c.Users)                            // Validate has read them
	a.all = a.inline
	return a
}

// check lets a client pass that has a name and the password for it.
func (a *auth) check(s *site, w *response, r *http.Request, v *visit, now time.Time) bool {
	name, password, ok := r.BasicAuth()
	if ok {
		hash, known := a.users(s, now).hash(name)
		right, err := a.passwords.check(r.Context(), hash, password)
		if err != nil {
			w.cut = true // nobody is there
			return false
		}
		if right && known {
			v.user = name
			return true
		}
	}
	w.Header().Set("WWW-Authenticate", a.challenge)
	w.fail(http.StatusUnauthorized)
	return false
}

// users returns those that there are now. A file that cannot be read any more leaves
// them as they are.
func (a *auth) users(s *site, now time.Time) users {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == "" || now.Sub(a.looked) < lookAgain {
		return a.all
	}
	a.looked = now
	info, err := os.Stat(a.file)
	if err == nil {
		id := fileState{info.ModTime(), info.Size()}
		if id == a.id {
			return a.all
		}
		a.id = id
		err = a.readLocked()
	}
	if err != nil {
		s.log.Error("password file is not taken up", "site", s.name, "file", a.file, "err", err)
	}
	return a.all
}

func (a *auth) readLocked() error {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return err
	}
	read, err := parseUsers(strings.Split(string(text), "\n"))
	if err != nil {
		return err
	}
	all := maps.Clone(a.inline)
	maps.Copy(all, read)
	a.all = all
	return nil
}
