package phpbridge

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// uploadsPattern names the directories of uploads in PHP's upload_tmp_dir.
const uploadsPattern = "ephpm-uploads-*"

// youngUploads is more than it takes from making such a directory to locking it.
const youngUploads = time.Minute

// uploads is a directory, in PHP's upload_tmp_dir, with one for each worker of a
// zygote: a worker that was killed leaves its uploads and the bodies of its
// request there, which are removed with it. The methods may be called on nil and
// from any goroutine.
type uploads struct {
	dir  string
	lock *os.File // dir, locked while it is in use
	user *User    // of the workers

	mu     sync.Mutex // guards the following
	closed bool
}

// newUploads makes a directory in base, and removes those of servers that were
// killed. A user of the workers can go through it but change nothing in it, or the
// front could be led astray when it makes and removes theirs.
func newUploads(base string, user *User) (*uploads, error) {
	removeAbandoned(base)
	dir, err := os.MkdirTemp(base, uploadsPattern)
	if err != nil {
		return nil, err
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		_ = os.Remove(dir) // the first error counts
		return nil, err
	}
	if user != nil {
		err = os.Chmod(dir, 0o711)
	}
	return &uploads{dir: dir, lock: lock, user: user}, err
}

// lockDirectory opens a directory of this user that nobody else has locked.
func lockDirectory(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &st); err == nil && int(st.Uid) != os.Geteuid() {
		err = unix.EPERM
	}
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		_ = f.Close() // only read
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

// removeAbandoned removes directories that no server has locked. Young ones stay:
// a server may just have made it.
func removeAbandoned(base string) {
	old, err := filepath.Glob(filepath.Join(base, uploadsPattern))
	if err != nil {
		return // base is no pattern
	}
	for _, dir := range old {
		info, err := os.Lstat(dir)
		if err != nil || time.Since(info.ModTime()) < youngUploads {
			continue
		}
		if lock, err := lockDirectory(dir); err == nil {
			_ = os.RemoveAll(dir) // the next start tries again
			_ = lock.Close()      // only read
		}
	}
}

// open makes the directory of a worker and returns it; "" when that is not
// possible.
func (u *uploads) open(slot int, generation uint32) string {
	if u == nil {
		return ""
	}
	dir := u.of(slot, generation)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || os.Mkdir(dir, 0o700) != nil || u.user.own(dir) != nil {
		return ""
	}
	return dir
}

// remove removes what a worker that has ended left behind.
func (u *uploads) remove(slot int, generation uint32) {
	if u != nil {
		_ = os.RemoveAll(u.of(slot, generation)) // close tries again
	}
}

// close removes all. The workers have ended.
func (u *uploads) close() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.closed = true
		_ = os.RemoveAll(u.dir) // the next start tries again
		_ = u.lock.Close()      // only read
	}
}

func (u *uploads) of(slot int, generation uint32) string {
	return filepath.Join(u.dir, fmt.Sprintf("%d-%d", slot, generation))
}
