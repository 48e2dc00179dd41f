package server

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ephpm/phpbridge"
)

func TestPrivateDirectoriesAreTheSites(t *testing.T) {
	base := filepath.Join(t.TempDir(), "var", "sites")
	var user *phpbridge.User
	if os.Geteuid() == 0 {
		user = &phpbridge.User{UID: 54321, GID: 54322}
	}
	for range 2 { // made, then found
		d, err := makePrivateDir(base, "*.a.example", user)
		if err != nil {
			t.Fatal(err)
		}
		for path, mode := range map[string]fs.FileMode{d.tmp: 0o700, d.sessions: 0o700, d.uploads: 0o711, base: 0o711, filepath.Dir(d.tmp): 0o711} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != mode {
				t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), mode)
			}
			uid := info.Sys().(*syscall.Stat_t).Uid
			if want := uint32(54321); user != nil && mode == 0o700 && uid != want {
				t.Errorf("%s belongs to %d, want %d", path, uid, want)
			} else if mode != 0o700 && uid != uint32(os.Geteuid()) {
				t.Errorf("%s belongs to %d, want the server's user", path, uid)
			}
		}
		if strings.Contains(strings.TrimPrefix(d.tmp, base), "*") {
			t.Errorf("%s has a sign in it that shells know", d.tmp)
		}
	}
	if a, b := directoryName("_.example"), directoryName("*.example"); a == b {
		t.Errorf("two sites share %s", a)
	}
}

func TestForeignPrivateDirectoriesAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(base string) error{
		"a link":          func(base string) error { return os.Symlink(t.TempDir(), base) },
		"open to all":     func(base string) error { _ = os.Mkdir(base, 0o777); return os.Chmod(base, 0o777) },
		"a file":          func(base string) error { return os.WriteFile(base, nil, 0o600) },
		"somebody else's": func(base string) error { _ = os.Mkdir(base, 0o755); return os.Chown(base, 54321, -1) },
	} {
		if name == "somebody else's" && os.Geteuid() != 0 {
			continue // only root can give a directory away
		}
		base := filepath.Join(t.TempDir(), "sites")
		if err := spoil(base); err != nil {
			t.Fatal(err)
		}
		if _, err := makePrivateDir(base, "a", nil); err == nil || !strings.Contains(err.Error(), base) {
			t.Errorf("%s: %v, want it refused by name", name, err)
		}
	}
}

func TestUsersToRunAs(t *testing.T) {
	for runAs, want := range map[string]string{
		"nobody":       "",
		"nobody:mail":  "",
		"54321:54322":  "",
		"root":         "root",
		"nobody:root":  "root",
		"0":            "root",
		"54321:0":      "root",
		"54321":        "not a user",
		"no such":      "not a user",
		"nobody:xx":    "not a group",
		"":             "not a user",
		"4294967295:1": "",
	} {
		u, err := lookUpUser(runAs)
		switch {
		case runAs == "4294967295:1":
			if err == nil { // that number means "no change" to the system
				t.Errorf("%q is a user, %+v", runAs, u)
			}
		case want == "" && err != nil:
			t.Errorf("%q: %v", runAs, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want an error with %q", runAs, err, want)
		}
	}
	if u, err := lookUpUser("54321:54322"); err != nil || u.UID != 54321 || u.GID != 54322 || len(u.Groups) != 0 {
		t.Errorf("numbers give %+v, %v", u, err)
	}
}

func TestSettingsOfASite(t *testing.T) {
	c := DefaultConfig()
	c.Server.Security.OpenBasedir = true
	d := &privateDir{"/s/tmp", "/s/sessions", "/s/uploads"}
	ini := siteSettings(c, SiteConfig{INI: INITable{"memory_limit": "1G"}}, "/srv/a", d, c.isOurs)
	for name, want := range map[string]string{
		"memory_limit": "1G", "open_basedir": "/srv/a/:/s/tmp:/s/sessions:/s/uploads", "sys_temp_dir": "/s/tmp",
		"session.save_path": "/s/sessions", "session.gc_probability": "1",
	} {
		if ini[name] != want {
			t.Errorf("%s = %q, want %q", name, ini[name], want)
		}
	}
	c.PHP.INIOverrides = []INI{{"session.save_handler", "redis"}, {"sys_temp_dir", "/ram"}}
	ini = siteSettings(c, SiteConfig{INI: INITable{"open_basedir": "/srv/a:/usr/share/php"}}, "/srv/a", d, c.isOurs)
	if got, want := ini["open_basedir"], "/srv/a:/usr/share/php:/s/tmp:/s/sessions:/s/uploads"; got != want {
		t.Errorf("open_basedir = %q, want %q", got, want)
	}
	for _, name := range []string{"session.save_path", "sys_temp_dir", "session.gc_probability"} {
		if value, ok := ini[name]; ok {
			t.Errorf("%s = %q, which is the operator's to say", name, value)
		}
	}
}

func TestHardeningIsOnWithSitesDir(t *testing.T) {
	derive := func(dir string, set ...string) Config {
		c := DefaultConfig()
		c.Server.SitesDir = dir
		c.Derive(func(key string) bool {
			for _, s := range set {
				if s == key {
					return true
				}
			}
			return false
		})
		return c
	}
	if c := derive(""); c.Server.Security.OpenBasedir || len(disabledFunctions(c.Server.Security)) != 0 ||
		c.Server.WebSocket.MaxConnectionsPerSite != 0 || c.Server.DocumentRoot != "." {
		t.Errorf("one site is hardened: %+v", c.Server.Security)
	}
	c := derive("/sites")
	if !c.Server.Security.OpenBasedir || c.Server.WebSocket.MaxConnectionsPerSite != 1000 || c.Server.DocumentRoot != "" {
		t.Errorf("sites of a directory are not hardened: %+v", c.Server)
	}
	names := disabledFunctions(c.Server.Security)
	for _, name := range []string{"exec", "fsockopen", "opcache_reset", "posix_kill", "shm_attach", "mail", "dl"} {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
			t.Errorf("%s is left to scripts", name)
		}
	}
	c = derive("/sites", "server.security.open_basedir", "server.websocket.max_connections_per_site", "server.document_root")
	if c.Server.Security.OpenBasedir || !c.Server.Security.DisableShellExec || c.Server.WebSocket.MaxConnectionsPerSite != 0 || c.Server.DocumentRoot != "." {
		t.Errorf("what was set is not as it was set: %+v", c.Server)
	}
}
