package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestChangedFileIsSeenAtOnce(t *testing.T) {
	root := writeAll(t, t.TempDir(), map[string]string{"a.txt": strings.Repeat("one ", 1000)})
	settle(t, root)
	s := newTest(t, root, &fakePool{})
	var tags []string
	for _, content := range []string{"one ", "two ", "six "} {
		writeAll(t, root, map[string]string{"a.txt": strings.Repeat(content, 1000)})
		for range 2 { // the second may come from memory
			for _, accept := range []string{"", "gzip"} {
				r := fetchFile(s, "GET", "/a.txt", "Accept-Encoding", accept)
				if got := decode(t, r); !strings.HasPrefix(got, content) || len(got) != 4000 {
					t.Errorf("%q, encoded %q: got %.8q", content, accept, got)
				}
				tags = append(tags, r.Header.Get("Etag"))
			}
			settle(t, root)
		}
	}
	if !strings.HasPrefix(tags[0], "W/") {
		t.Errorf("a file that was just written has the tag %s, want a weak one", tags[0])
	}
	if err := os.Remove(filepath.Join(root, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if r := get(s, "/a.txt"); text(t, r) != "404 Not Found\n" {
		t.Errorf("a file that was removed: %d, want 404", r.StatusCode)
	}
}

func TestFileMemoryIsBounded(t *testing.T) {
	root := t.TempDir()
	for i := range 40 {
		writeAll(t, root, map[string]string{fmt.Sprintf("%d.txt", i): strings.Repeat("x", 10<<10)})
	}
	settle(t, root)
	memory := newFileMemory(100 << 10)
	r, err := openRoot(root, true, "", extensions{".php"}, &fileKinds{}, memory, quiet)
	if err != nil {
		t.Fatal(err)
	}
	tree := r.tree(time.Now())
	for i := range 40 {
		f, err := tree.file(fmt.Sprintf("%d.txt", i), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		memory.keepForm(f, gzipCoding, &encodedForm{body: make([]byte, 1<<10)})
		if _, err := tree.file("0.txt", time.Now()); err != nil { // the one that is used all the time
			t.Fatal(err)
		}
	}
	if memory.used > memory.max || memory.used < memory.max/2 {
		t.Errorf("%d bytes are kept, want at most %d and not much less", memory.used, memory.max)
	}
	if len(memory.ring) != len(tree.files.files) {
		t.Errorf("%d files are counted, %d kept", len(memory.ring), len(tree.files.files))
	}
	if tree.files.get("0.txt") == nil {
		t.Error("what is used all the time was dropped")
	}
}
