package phpbridge

// #include <dlfcn.h>
// #include <stdlib.h>
// #include "cli.h"
// #include "wire.h"
import "C"

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"
)

// A CLIServer is the server that scripts on the command line make host calls to.
type CLIServer struct {
	// Socket is the path of its socket; or, when it does not start with a slash,
	// why there is none, in words that follow "cannot reach the server:".
	Socket string
	// Site is one of its sites. Empty means the only one.
	Site string
}

// CLICommand returns what makes PHP's command line out of this process by
// syscall.Exec, which must follow at once: name is how this program was called,
// args are php-cli's. There is an error when libphp is not there.
func CLICommand(name string, args []string, to CLIServer) (path string, argv, env []string, err error) {
	if err := findLibrary(); err != nil {
		return "", nil, nil, err
	}
	env = append(os.Environ(),
		C.EPHPM_CLI_BINARY_VARIABLE+"="+phpBinary(name),
		C.EPHPM_CLI_SERVER_VARIABLE+"="+to.Socket,
		C.EPHPM_CLI_SITE_VARIABLE+"="+to.Site)
	if !CalledPHP(name) {
		name += " php" // for ps
	}
	C.ephpm_cli_restore_signals()
	if len(under) > 0 {
		self, _ := os.Executable() // as zygoteCommand
		path, err := exec.LookPath(under[0])
		return path, slices.Concat(under, []string{self}, args), roleEnvironment(env, "cli"), err
	}
	return "/proc/self/exe", append([]string{name}, args...), roleEnvironment(env, "cli"), nil
}

// CalledPHP reports whether a program called by this name is php: a link such
// as php or php8.2.
func CalledPHP(name string) bool {
	return strings.HasPrefix(filepath.Base(name), "php")
}

// phpBinary returns what PHP_BINARY holds: the link that this program was called
// by, or another one named php in PATH, or else the program itself, which knows
// a script when it gets one.
func phpBinary(name string) string {
	if CalledPHP(name) {
		if link, err := exec.LookPath(name); err == nil {
			if link, err = filepath.Abs(link); err == nil {
				return link
			}
		}
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	if link, err := exec.LookPath("php"); err == nil && filepath.IsAbs(link) && sameFile(link, self) {
		return link
	}
	return self
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// findLibrary asks the loader for libphp, unless it is where Debian has it. The
// loader itself would only warn and go on.
func findLibrary() error {
	if _, err := os.Stat("/usr/lib/" + library()); err == nil {
		return nil
	}
	name := C.CString(library())
	defer C.free(unsafe.Pointer(name))
	if C.dlopen(name, C.RTLD_LAZY) == nil {
		return fmt.Errorf("%s (%s)", C.GoString(C.dlerror()), libraryAdvice())
	}
	return nil // it stays loaded until the process is replaced
}
