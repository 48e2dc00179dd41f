package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// What is kept of files, in bytes.
const (
	// keptContent is the largest file whose content is kept: one write sends it
	// with its header. Larger ones go out by sendfile.
	keptContent = 64 << 10
	// maxKept bounds what one server keeps of files, encoded forms included.
	maxKept = 64 << 20
	// keptEntry is what a file costs beside its content.
	keptEntry = 1 << 10
)

// unsettled is how long after a change a file may change once more without a
// trace: the kernel's clock for files ticks every ten milliseconds at worst.
const unsettled = 20 * time.Millisecond

// A fileID tells two states of a file apart.
type fileID struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // Unix ns
}

func idOf(st *syscall.Stat_t) fileID {
	return fileID{dev: uint64(st.Dev), ino: st.Ino, size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano()}
}

// settled reports whether what changes the file from now on changes its fileID.
func (id fileID) settled(now time.Time) bool { return now.UnixNano()-id.ctime > int64(unsettled) }

// A file is a regular file below a root, as it was when it was read. When the
// file on disk changes there is a new one.
type file struct {
	name     string // below the root
	path     string // absolute
	id       fileID
	modified time.Time
	content  []byte // nil when it is not kept
	settled  bool   // as long as id is the same, so is the content
	// compressible says that the content gets smaller, by its type.
	compressible bool
	header       fileHeader

	siblings atomic.Pointer[siblings] // encoded by somebody else
	encoding sync.Mutex               // held while a form is encoded, so that it is done once
	encoded  [codings]atomic.Pointer[encodedForm]

	// Owned by fileMemory.
	home   *fileMap
	recent atomic.Bool // used since the hand came by
	kept   int64       // bytes that are counted; guarded by fileMemory.mu
	out    bool        // it was dropped; guarded by fileMemory.mu
}

// A fileHeader has the values of header fields, shared by all answers and never
// changed.
type fileHeader struct {
	tag, modified, kind, length []string
	cache                       []string // Cache-Control; nil for none
}

// A fileMap is what a tree has of files, by name below the root.
type fileMap struct {
	memory *fileMemory

	mu    sync.RWMutex // guards the following
	files map[string]*file
}

func newFileMap(k *fileMemory) *fileMap { return &fileMap{memory: k, files: map[string]*file{}} }

// get returns the file called name if it is still what is on disk. One call of
// the kernel tells: identity and times are those of the file that was read, so
// whatever the name leads to now is that file.
func (m *fileMap) get(name string) *file {
	m.mu.RLock()
	f := m.files[name]
	m.mu.RUnlock()
	if f == nil {
		return nil
	}
	var st syscall.Stat_t
	if err := syscall.Stat(f.path, &st); err != nil || idOf(&st) != f.id {
		return nil
	}
	if !f.recent.Load() {
		f.recent.Store(true)
	}
	return f
}

// A fileMemory bounds what the trees of a server keep. When it is full, what was
// not used lately goes first.
type fileMemory struct {
	max int64

	mu   sync.Mutex // guards the following; taken before a fileMap's
	used int64
	ring []*file
	hand int
}

func newFileMemory(limit int64) *fileMemory { return &fileMemory{max: limit} }

// keep takes a file into m, in place of what was there by its name.
func (k *fileMemory) keep(m *fileMap, f *file) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f.home = m
	f.kept = keptEntry + int64(len(f.name)+len(f.path)+len(f.content))
	k.used += f.kept
	k.ring = append(k.ring, f)
	m.mu.Lock()
	before := m.files[f.name]
	m.files[f.name] = f
	m.mu.Unlock()
	if before != nil {
		before.recent.Store(false) // the hand takes it
	}
	k.shrinkLocked(f)
}

// keepForm adds an encoded form to a file that is kept. It reports false when the
// file was dropped meanwhile.
func (k *fileMemory) keepForm(f *file, c coding, form *encodedForm) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.home == nil || f.out {
		return false
	}
	n := int64(len(form.body)) + keptEntry
	f.kept += n
	k.used += n
	f.encoded[c].Store(form)
	k.shrinkLocked(f)
	return true
}

// shrinkLocked drops files until the rest fits. The one that was just added goes
// last.
func (k *fileMemory) shrinkLocked(added *file) {
	for k.used > k.max && len(k.ring) > 0 {
		if k.hand >= len(k.ring) {
			k.hand = 0
		}
		f := k.ring[k.hand]
		if (f.recent.Swap(false) || f == added) && len(k.ring) > 1 {
			k.hand++
			added = nil // once
			continue
		}
		last := len(k.ring) - 1
		k.ring[k.hand], k.ring[last] = k.ring[last], nil
		k.ring = k.ring[:last]
		k.used -= f.kept
		f.out = true
		f.home.mu.Lock()
		if f.home.files[f.name] == f {
			delete(f.home.files, f.name)
		}
		f.home.mu.Unlock()
	}
}

// file returns the regular file called name, which look found. Its error is for
// the log; the client learns that there is nothing.
func (t *tree) file(name string, now time.Time) (*file, error) {
	if f := t.files.get(name); f != nil {
		return f, nil
	}
	opened, info, err := t.openFile(name)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	f, err := t.newFile(name, opened, info, now)
	if err == nil && f.settled {
		t.files.memory.keep(t.files, f)
	}
	return f, err
}

// openFile opens the regular file called name, which must not be the
// configuration.
func (t *tree) openFile(name string) (*os.File, fs.FileInfo, error) {
	opened, err := t.open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := opened.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", name)
	case isFile(info, t.secret):
		err = fmt.Errorf("%s is the configuration", name)
	default:
		return opened, info, nil
	}
	_ = opened.Close() // it was only looked at
	return nil, nil, err
}

// newFile reads what is to be known of an open file.
func (t *tree) newFile(name string, opened *os.File, info fs.FileInfo, now time.Time) (*file, error) {
	f := &file{name: strings.Clone(name), path: t.path + "/" + name, modified: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		f.id = idOf(st)
		f.settled = f.id.settled(now)
	}
	tag := statTag(f.id)
	if size := info.Size(); size <= keptContent {
		content := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
		if _, err := content.ReadFrom(io.LimitReader(opened, size+1)); err != nil {
			return nil, err
		}
		// One that grows meanwhile is another file already.
		if f.settled = f.settled && int64(content.Len()) == size; f.settled {
			f.content, tag = content.Bytes(), contentTag(content.Bytes())
		}
	}
	if !f.settled {
		tag = "W/" + tag
	}
	f.header = fileHeader{
		tag:      []string{tag},
		modified: []string{f.modified.UTC().Format(http.TimeFormat)},
		kind:     []string{t.kinds.contentType(name)},
		length:   []string{strconv.FormatInt(info.Size(), 10)},
		cache:    t.kinds.cacheControl(name),
	}
	f.compressible = isCompressible(f.header.kind[0]) && !hasDirective(f.header.cache, "no-transform")
	return f, nil
}

// contentTag is a strong entity tag by the content alone: it is the same on every
// machine, and changes even where all files have the same time.
func contentTag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:15]) + `"`
}

// statTag is a strong entity tag by what the kernel says about a file that has
// settled.
func statTag(id fileID) string {
	b := make([]byte, 0, 64)
	b = append(b, '"')
	b = strconv.AppendInt(b, id.mtime, 36)
	b = append(b, '-')
	b = strconv.AppendInt(b, id.size, 36)
	b = append(b, '-')
	b = strconv.AppendUint(b, id.ino, 36)
	return string(append(b, '"'))
}
