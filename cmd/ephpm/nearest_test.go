package main

import "testing"

func TestNearestFindsWhatWasMeant(t *testing.T) {
	keys := []string{"listen", "document_root", "index_files", "idle", "ping_interval_secs", "idle_timeout_secs"}
	for name, want := range map[string]string{
		"lisetn":         "listen",
		"Listen":         "listen",
		"documentroot":   "document_root",
		"pingg_interval": "ping_interval_secs",
		"idel":           "idle",
		"x":              "",
		"unrelated":      "",
		"":               "",
	} {
		if got := nearest(name, keys); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"abc", "abd", 1}, {"abc", "ab", 1}, {"abc", "xabc", 1}, {"ab", "ba", 1},
		{"kitten", "sitting", 3},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("distance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
