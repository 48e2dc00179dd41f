package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

func TestMissingLibrary(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to hide the library")
	}
	libraries, _ := filepath.Glob("/usr/lib/libphp8.?.so") // the pattern is fine
	more, _ := filepath.Glob("/usr/lib/*/libphp8.?.so")
	libraries = append(libraries, more...)
	if len(libraries) == 0 {
		t.Skip("found no libphp to hide")
	}
	hide := "set -e\n"
	empty := filepath.Join(t.TempDir(), "empty")
	writeFiles(t, filepath.Dir(empty), map[string]string{"empty": ""})
	for _, library := range libraries {
		hide += fmt.Sprintf("mount --bind %s \"$(readlink -f %s)\"\n", empty, library)
	}
	try := exec.Command("unshare", "-m", "sh", "-c", hide)
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("may not mount here: %v %s", err, out)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("unshare", "-m", "sh", "-c", hide+`exec "$0" serve -d . -l 127.0.0.1:0`, binary)
	cmd.Dir = t.TempDir()
	cmd.Stderr = &stderr
	err := cmd.Run()
	lines := errorLines(stderr.String())
	want := regexp.MustCompile(`^error: start PHP: the PHP library libphp8\.\d\.so cannot be loaded \(Debian: apt-get install libphp8\.\d-embed\)$`)
	if cmd.ProcessState.ExitCode() != 1 || len(lines) != 1 || !want.MatchString(lines[0]) {
		t.Errorf("%v, %q; want exit status 1 and one line that says what to install", err, lines)
	}
}
