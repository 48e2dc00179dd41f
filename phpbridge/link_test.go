package phpbridge

import (
	"debug/elf"
	"os"
	"slices"
	"strings"
	"testing"
)

// A name missing in weak.h makes the whole program depend on libphp: the front
// would carry it, and a machine without it would get the loader's message
// instead of ours.
func TestProgramDoesNotNeedLibphp(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(libraries, func(l string) bool { return strings.Contains(l, "php") }) {
		t.Errorf("the program needs %v: name the new symbol in weak.h", libraries)
	}
}
