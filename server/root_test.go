package server

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLinksOutOfTheRootAreRefused(t *testing.T) {
	outside := files(t, "secret.txt", "secret.php")
	root := files(t, "in/a.txt", "in/b.php")
	for name, to := range map[string]string{
		"out.txt": outside + "/secret.txt",
		"out.php": outside + "/secret.php",
		"rel.txt": "../" + filepath.Base(outside) + "/secret.txt",
		"abs.txt": root + "/in/a.txt",
		"abs.php": root + "/in/b.php",
		"src.txt": root + "/in/b.php",
		"ok.txt":  "in/a.txt",
	} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := newTest(t, root, &fakePool{})
	for target, want := range map[string]int{
		"/out.txt": 403, "/out.php": 403, "/rel.txt": 403, "/abs.txt": 200, "/abs.php": 200, "/src.txt": 404, "/ok.txt": 200,
	} {
		if r := get(s, target); r.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", target, r.StatusCode, want)
		}
	}
}

func TestRootIsLookedUpAgain(t *testing.T) {
	base := files(t, "v1/a.txt", "v2/b.txt")
	link := filepath.Join(base, "current")
	if err := os.Symlink("v1", link); err != nil {
		t.Fatal(err)
	}
	r, err := openRoot(link, true, "", extensions{".php"}, &fileKinds{}, newFileMemory(maxKept), quiet)
	if err != nil {
		t.Fatal(err)
	}
	now := r.current.Load()
	at := timeZero
	if got := r.tree(at); got != now {
		t.Error("an unchanged root was opened again")
	}
	_ = os.Remove(link)
	if err := os.Symlink("v2", link); err != nil {
		t.Fatal(err)
	}
	if got := r.tree(at.Add(lookAgain / 2)); got != now {
		t.Error("the root was looked up again too early")
	}
	if got := r.tree(at.Add(lookAgain)); filepath.Base(got.path) != "v2" {
		t.Errorf("the switched root leads to %s, want v2", got.path)
	}
}

func TestScriptsAreRememberedForAWhile(t *testing.T) {
	dir := files(t, "a.php")
	r, err := openRoot(dir, true, "", extensions{".php"}, &fileKinds{}, newFileMemory(maxKept), quiet)
	if err != nil {
		t.Fatal(err)
	}
	tree, at := r.current.Load(), timeZero
	if f := tree.locate("/a.php/x", at); f.kind != aScript || f.pathInfo != "/x" {
		t.Fatalf("found %+v", f)
	}
	_ = os.Remove(filepath.Join(dir, "a.php"))
	if f := tree.locate("/a.php", at.Add(lookAgain-1)); f.kind != aScript {
		t.Error("a script was forgotten too early")
	}
	if f := tree.locate("/a.php", at.Add(lookAgain)); f.kind != nothing {
		t.Error("a removed script is still found")
	}
}
