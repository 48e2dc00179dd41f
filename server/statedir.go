package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ephpm/phpbridge"
)

// stateName is the default of SitesStateDir, in the directory for temporary files.
const stateName = "ephpm-sites"

// A privateDir is what one site has to itself below SitesStateDir. The directory
// is the server's and only leads to those in it.
type privateDir struct {
	tmp, sessions string // the site's user's, 0700
	uploads       string // the server's, in which workers get theirs
}

// all are the directories in which the site's scripts may read.
func (d privateDir) all() []string { return []string{d.tmp, d.sessions, d.uploads} }

// makePrivateDir makes the directories of a site, or finds them as it left them.
// user is that of the site's workers; nil is the server's.
func makePrivateDir(base, site string, user *phpbridge.User) (privateDir, error) {
	if base == "" {
		base = filepath.Join(os.TempDir(), stateName)
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return privateDir{}, err
	}
	dir := filepath.Join(base, directoryName(site))
	d := privateDir{filepath.Join(dir, "tmp"), filepath.Join(dir, "sessions"), filepath.Join(dir, "uploads")}
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return d, err
	}
	server := &phpbridge.User{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	if user == nil {
		user = server
	}
	for _, one := range []struct {
		path string
		of   *phpbridge.User
		mode fs.FileMode
	}{
		{base, server, 0o711}, {dir, server, 0o711}, {d.uploads, server, 0o711}, {d.tmp, user, 0o700}, {d.sessions, user, 0o700},
	} {
		if err := makeDirectory(one.path, one.of, one.mode); err != nil {
			return d, err
		}
	}
	return d, nil
}

// makeDirectory makes a directory that belongs to a user. The one that it is in
// is the server's, or one for temporary files, where others may have been first:
// what they made is refused.
func makeDirectory(path string, of *phpbridge.User, mode fs.FileMode) error {
	err := os.Mkdir(path, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a directory that only its owner can write to; remove it", path)
	}
	if st.Uid == of.UID && st.Gid == of.GID && info.Mode().Perm() == mode {
		return nil
	}
	if server := uint32(os.Geteuid()); st.Uid != server && (server != 0 || of.UID == 0) {
		return fmt.Errorf("%s belongs to another user (%d); remove it", path, st.Uid)
	}
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	return os.Lchown(path, int(of.UID), int(of.GID))
}

// directoryName is a site's name as a file name, and as no other site's.
func directoryName(site string) string {
	sum := sha256.Sum256([]byte(site))
	readable := strings.NewReplacer("*", "_", ":", "_").Replace(site)
	return readable[:min(len(readable), 100)] + "-" + hex.EncodeToString(sum[:6])
}
