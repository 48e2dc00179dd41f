package quic

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	oneSecret   = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	otherSecret = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff"
)

func TestLoadKeysMakesAFileThatGivesTheSameKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quic.keys")
	var wg sync.WaitGroup
	all := make([]*Keys, 8)
	for i := range all { // nodes that share a directory and start together
		wg.Go(func() {
			keys, err := LoadKeys(file)
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = keys
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for i, keys := range all {
		if *keys.token() != *all[0].token() || *keys.reset() != *all[0].reset() ||
			!slices.Equal(keys.Tickets("a"), all[0].Tickets("a")) {
			t.Errorf("process %d has other keys than process 0", i)
		}
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the key file has mode %o, want 600", got)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".ephpm-keys-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestLoadKeysRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"others may read it", oneSecret, 0o644, "chmod 600"},
		{"the group may write it", oneSecret, 0o660, "chmod 600"},
		{"short", "# a\n\n" + oneSecret[:62], 0o600, "line 3: want 64 hexadecimal digits"},
		{"no hex", strings.Repeat("z", 64), 0o600, "line 1: want 64 hexadecimal digits"},
		{"empty", "# nothing\n", 0o600, "no key in it"},
		{"long line", strings.Repeat("0", 60<<10) + strings.Repeat("0", 5<<10), 0o600, "too large"},
		{"many", strings.Repeat(oneSecret+"\n", 17), 0o600, "line 17: more than 16 keys"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(dir, test.name)
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, test.mode); err != nil {
				t.Fatal(err)
			}
			_, err := LoadKeys(file)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("got error %v, want one with %q and the file", err, test.want)
			}
			if err != nil && len(test.text) > 60 && strings.Contains(err.Error(), test.text[:60]) {
				t.Errorf("the error shows what is in the file: %v", err)
			}
		})
	}
	if _, err := LoadKeys(filepath.Join(dir, "missing", "quic.keys")); err == nil {
		t.Error("a key file was made in a directory that does not exist")
	}
}

func TestNewKeyComesFirstAndTheOldStillCounts(t *testing.T) {
	before, err := parseKeys([]byte(oneSecret))
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseKeys([]byte("# rotated\n" + otherSecret + "\n" + oneSecret + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	old, now := before.Tickets("h3"), after.Tickets("h3")
	if len(now) != 2 || now[0] == old[0] || now[1] != old[0] {
		t.Error("want a new ticket key first, then the old one")
	}
	if *before.token() == *after.token() {
		t.Error("tokens are still made with the old key")
	}
}

func TestNoKeyIsUsedForTwoPurposes(t *testing.T) {
	k := NewKeys()
	keys := [][]byte{k.token()[:], k.reset()[:]}
	for _, purpose := range []string{"a", "b"} {
		b := k.Tickets(purpose)[0]
		keys = append(keys, b[:])
	}
	for i := range keys {
		for j := range i {
			if bytes.Equal(keys[i], keys[j]) {
				t.Errorf("keys %d and %d are equal", i, j)
			}
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add([]byte(oneSecret))
	f.Add([]byte("# comment\n\n  " + oneSecret + "\r\n" + otherSecret))
	f.Add([]byte("00"))
	f.Add([]byte{0, 0xff})
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseKeys(text)
		if (keys == nil) == (err == nil) {
			t.Fatalf("keys %v and error %v", keys, err)
		}
		if keys == nil {
			return
		}
		if n := len(keys.Tickets("x")); n < 1 || n > maxSecrets {
			t.Errorf("%d keys", n)
		}
	})
}
