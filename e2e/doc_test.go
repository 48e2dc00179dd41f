package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tests that the package comment names are there.
func TestPackageCommentNamesTests(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for dir, in := range map[string]string{"": ".", "server: ": "../server", "registry: ": "../registry"} {
		files, err := filepath.Glob(in + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
				there[dir+string(name[1])] = true
			}
		}
	}
	names := regexp.MustCompile(`(\w+: )?\bTest[A-Z]\w*`).FindAllString(string(doc), -1)
	for _, name := range names {
		if !there[name] {
			t.Errorf("there is no %s", strings.TrimSpace(name))
		}
	}
	if len(names) < 50 {
		t.Errorf("the comment names %d tests", len(names))
	}
}
