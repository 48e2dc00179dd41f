package phpbridge

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// A User is whom the processes of a pool run as. The front must be root: the
// zygote takes the user on before PHP is loaded, and no_new_privs, so that neither
// it nor a worker nor a program that they start gets any other right again.
type User struct {
	Name     string // USER and LOGNAME
	Home     string // HOME
	UID, GID uint32
	Groups   []uint32 // supplementary ones; none means none, not the front's
}

// credential is for the start of the zygote.
func (u *User) credential() *syscall.Credential {
	if u == nil {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
}

// environ returns the environment of a zygote. That of the front may hold secrets,
// which are not for another user.
func (u *User) environ(front []string) []string {
	if u == nil {
		return front
	}
	env := []string{"USER=" + u.Name, "LOGNAME=" + u.Name, "HOME=" + u.Home}
	for _, e := range front {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case name == "PATH", name == "TZ", name == "LANG", strings.HasPrefix(name, "LC_"),
			name == "LD_PRELOAD", name == "PHP_INI_SCAN_DIR", name == "PHPRC":
			env = append(env, e)
		}
	}
	return env
}

// own gives a new directory to the user. The one that it is in must be one that
// the user cannot write to.
func (u *User) own(dir string) error {
	if u == nil {
		return nil
	}
	if err := os.Lchown(dir, int(u.UID), int(u.GID)); err != nil {
		return fmt.Errorf("give to user %s: %w", u.Name, err)
	}
	return nil
}
