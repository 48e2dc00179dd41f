package server

import (
	"go/parser"
	gotoken "go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docFile is the name of a file in the package comment; a * is any rest.
var docFile = regexp.MustCompile(`[a-z0-9_*]+\.go\b`)

func TestPackageCommentNamesEveryFile(t *testing.T) {
	f, err := parser.ParseFile(gotoken.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(f.Doc.Text(), "# Files")
	list, _, _ = strings.Cut(list, "# Words")
	patterns := docFile.FindAllString(list, -1)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return name == "doc.go" || strings.HasSuffix(name, "_test.go") })
	for _, name := range files {
		if !slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok }) {
			t.Errorf("%s is not in the list of files in doc.go", name)
		}
	}
	for _, p := range docFile.FindAllString(f.Doc.Text(), -1) {
		if !slices.ContainsFunc(files, func(name string) bool { ok, _ := path.Match(p, name); return ok }) {
			t.Errorf("doc.go names %s, which is not there", p)
		}
	}
}
