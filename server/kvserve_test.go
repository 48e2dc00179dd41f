package server

import (
	"testing"

	"ephpm/kv"
)

func TestPasswordsOpenTheStoreOfTheirSite(t *testing.T) {
	store := func() *kv.Store {
		s, err := kv.New(kv.Options{MemoryLimit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	root := &site{name: noSite, kv: newKVHost(noSite, store())}
	one, two := &site{name: "one.example", kv: newKVHost("one.example", store())}, &site{name: "*.two.example", kv: newKVHost("*.two.example", store())}
	several := &sites{other: root, all: []*site{root, one, two}}
	several.named.set("one.example", one)
	several.named.set("alias.example", one)
	several.named.set("*.two.example", two)
	sole := &sites{other: root, all: []*site{root}}
	both := KVConfig{Secret: "s", Redis: RedisConfig{Password: "pw"}}
	for _, test := range []struct {
		name           string
		config         KVConfig
		sites          *sites
		user, password string
		want           *site
	}{
		{"the password", both, several, "default", "pw", root},
		{"a wrong password", both, several, "default", "pw2", nil},
		{"none", both, several, "default", "", nil},
		{"a site", both, several, "one.example", sitePassword("s", "one.example"), one},
		{"a site's other name", both, several, "alias.example", sitePassword("s", "alias.example"), one},
		{"another's password", both, several, "one.example", sitePassword("s", "alias.example"), nil},
		{"another secret", both, several, "one.example", sitePassword("t", "one.example"), nil},
		{"the password of the root for a site", both, several, "one.example", "pw", nil},
		{"a name below a wildcard", both, several, "a.two.example", sitePassword("s", "a.two.example"), two},
		{"a name of nobody", both, several, "three.example", sitePassword("s", "three.example"), nil},
		{"a name in capitals", both, several, "ONE.example", sitePassword("s", "ONE.example"), nil},
		{"the root beside sites", both, several, noSite, sitePassword("s", noSite), root},
		{"the only site", KVConfig{Secret: "s"}, sole, soleSite, sitePassword("s", soleSite), root},
		{"the only site by any name", KVConfig{Secret: "s"}, sole, "x.example", sitePassword("s", "x.example"), root},
		{"no secret", KVConfig{Redis: RedisConfig{Password: "pw"}}, sole, "x.example", sitePassword("", "x.example"), nil},
		{"the secret has no password", KVConfig{Secret: "s"}, sole, "default", "", nil},
	} {
		var want *kv.Store
		if test.want != nil {
			want = test.want.kv.store
		}
		if got := authenticator(test.config, test.sites)(test.user, test.password); got != want {
			t.Errorf("%s: got %p, want %p", test.name, got, want)
		}
	}
}

// openssl dgst says the same.
func TestSitePasswordIsAnHMAC(t *testing.T) {
	const want = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"
	if got := sitePassword("key", "The quick brown fox jumps over the lazy dog"); got != want {
		t.Errorf("password = %s, want %s", got, want)
	}
}
