package kv

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A snapshot is a file with the keys of a Store. All numbers are little endian:
//
//	snapshotMagic
//	records: u8 what it is, u8 coding, i64 expiry, u32 length of the key, u32
//	         length of the value, key, value
//	u8 recordEnd, u64 number of records
//	SHA-256 of everything before
//
// The value of a hash is, for each field, u32 and u32, the lengths of field and
// value, and the two. A key may be there twice: the last record is right.
const (
	snapshotMagic = "ephpm kv snapshot 1\n"

	recordEnd    = 0
	recordString = 1
	recordHash   = 2
	recordPrefix = 2 + 8 + 4 + 4

	snapshotBatch = 64 // buckets under the lock at a time
)

// A SnapshotError says why a file cannot be loaded: it is torn, was changed, or
// is something else.
type SnapshotError struct {
	Path   string
	Reason string
}

func (e *SnapshotError) Error() string { return "kv: snapshot " + e.Path + ": " + e.Reason }

// Save writes a snapshot and returns how many records it has. It replaces the
// file at path when the new one is complete and on the disk, so that whatever
// happens there is a whole one. Each key is as it was at some moment while Save
// ran. Calls for one path must not overlap.
func (s *Store) Save(ctx context.Context, path string) (records int, err error) {
	name := path + ".tmp"
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()       // the first error counts
			_ = os.Remove(name) // and leaves nothing
		}
	}()
	if records, err = s.writeSnapshot(ctx, f); err != nil {
		return 0, err
	}
	if err = f.Sync(); err != nil {
		return 0, err
	}
	if err = f.Close(); err != nil {
		return 0, err
	}
	if err = os.Rename(name, path); err != nil {
		return 0, err
	}
	return records, syncDir(filepath.Dir(path))
}

// syncDir makes a rename in a directory survive a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	_ = d.Close() // it was only read
	return err
}

func (s *Store) writeSnapshot(ctx context.Context, f io.Writer) (int, error) {
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
	if _, err := w.WriteString(snapshotMagic); err != nil {
		return 0, err
	}
	s.mu.Lock()
	start := s.version
	s.mu.Unlock()
	records := 0
	// Once more for what changed meanwhile: a key that was renamed from where
	// the first round had not been to where it had would be lost.
	for _, after := range []uint64{0, start} {
		var batch []byte
		for cursor, more := uint32(0), true; more; {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			var n int
			batch, n, cursor, more = s.appendRecords(batch[:0], cursor, after)
			if _, err := w.Write(batch); err != nil {
				return 0, err
			}
			records += n
		}
	}
	_ = w.WriteByte(recordEnd) // an error stays with w
	_, _ = w.Write(binary.LittleEndian.AppendUint64(nil, uint64(records)))
	if err := w.Flush(); err != nil {
		return 0, err
	}
	_, err := f.Write(sum.Sum(nil))
	return records, err
}

// appendRecords appends the records of some buckets, of those that changed after
// a version, and returns how many, where to go on, and whether there is more.
func (s *Store) appendRecords(dst []byte, bucket uint32, after uint64) (_ []byte, n int, next uint32, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, now := s.table.mem, s.now()
	for end := min(bucket+snapshotBatch, s.table.buckets); bucket < end; bucket++ {
		for r := m.bucket(bucket); r != 0; r = m.next(r) {
			at := m.expiry(r)
			if at != 0 && at <= now || m.version(r) <= after {
				continue
			}
			dst = s.appendRecord(dst, r)
			n++
		}
	}
	return dst, n, bucket, bucket < s.table.buckets
}

func (s *Store) appendRecord(dst []byte, r ref) []byte {
	m := s.table.mem
	key := m.key(r)
	what, value := byte(recordString), m.value(r)
	if m.kind(r) == kindHash {
		what, value = recordHash, nil
		fields(m.value(r)).all(func(field, v []byte) bool {
			value = binary.LittleEndian.AppendUint32(value, uint32(len(field)))
			value = binary.LittleEndian.AppendUint32(value, uint32(len(v)))
			value = append(append(value, field...), v...)
			return true
		})
	}
	dst = append(dst, what, byte(m.coding(r)))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.expiry(r)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(key)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
	return append(append(dst, key...), value...)
}

// Load stores what a snapshot has and returns how many keys that were; those
// that have expired are left out. If the file is not whole the error is a
// *SnapshotError, and nothing was stored. ErrFull means that no more fitted.
func (s *Store) Load(path string) (keys int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // it was only read
	refused := func(reason string) (int, error) { return 0, &SnapshotError{path, reason} }
	size, err := verifySnapshot(f)
	var reason unsound
	if errors.As(err, &reason) {
		return refused(string(reason))
	} else if err != nil {
		return 0, err
	}
	if _, err := f.Seek(int64(len(snapshotMagic)), io.SeekStart); err != nil {
		return 0, err
	}
	r := bufio.NewReaderSize(io.LimitReader(f, size-int64(len(snapshotMagic))), 1<<20)
	for n := uint64(0); ; n++ {
		stored, end, err := s.loadRecord(r, n)
		if errors.As(err, &reason) {
			return refused(string(reason))
		}
		if end || err != nil {
			return keys, err
		}
		if stored {
			keys++
		}
	}
}

// unsound is why a snapshot is refused.
type unsound string

func (u unsound) Error() string { return string(u) }

// verifySnapshot checks magic and checksum, and returns the size of what the
// checksum covers.
func verifySnapshot(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, &fs.PathError{Op: "load", Path: f.Name(), Err: errors.New("is not a file")}
	}
	size := info.Size() - sha256.Size
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(f, magic); err != nil || string(magic) != snapshotMagic {
		return 0, unsound("it is no snapshot of this version")
	}
	if size < int64(len(snapshotMagic)) {
		return 0, unsound("it is cut off")
	}
	sum := sha256.New()
	sum.Write(magic)
	if _, err := io.CopyN(sum, f, size-int64(len(magic))); err != nil {
		return 0, err
	}
	return size, sameSum(f, sum)
}

func sameSum(f io.Reader, sum hash.Hash) error {
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(f, want); err != nil {
		return err
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return unsound("its checksum is wrong: it is cut off or was changed")
	}
	return nil
}

// loadRecord stores the next record. n records came before it.
func (s *Store) loadRecord(r io.Reader, n uint64) (stored, end bool, err error) {
	var head [recordPrefix]byte
	if _, err := io.ReadFull(r, head[:1]); err != nil {
		return false, false, unsound("a record is missing")
	}
	if head[0] == recordEnd {
		if _, err := io.ReadFull(r, head[:8]); err != nil || binary.LittleEndian.Uint64(head[:]) != n {
			return false, false, unsound("the number of records is wrong")
		}
		return false, true, nil
	}
	if _, err := io.ReadFull(r, head[1:]); err != nil {
		return false, false, unsound("a record is cut off")
	}
	expireAt := int64(binary.LittleEndian.Uint64(head[2:]))
	keyLen, valueLen := binary.LittleEndian.Uint32(head[10:]), binary.LittleEndian.Uint32(head[14:])
	if head[0] > recordHash || keyLen > MaxKey || valueLen > MaxValue || expireAt < 0 {
		return false, false, unsound("a record makes no sense")
	}
	text := make([]byte, keyLen+valueLen)
	if _, err := io.ReadFull(r, text); err != nil {
		return false, false, unsound("a record is cut off")
	}
	key, value := text[:keyLen], text[keyLen:]
	if expireAt != 0 && expireAt <= s.now() {
		return false, false, nil
	}
	if head[0] == recordHash {
		return s.loadHash(key, value, expireAt)
	}
	return s.loadString(key, packed{value, coding(head[1])}, expireAt)
}

func (s *Store) loadString(key []byte, p packed, expireAt int64) (stored, end bool, err error) {
	if p.coding != codingPlain {
		if p.coding > codingZstd || len(p.data) < 4 {
			return false, false, unsound("a value has no known coding")
		}
		// The configuration may have changed since.
		value, err := unpackAny(p)
		if err != nil {
			return false, false, unsound(err.Error())
		}
		p = s.pack(value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.putLocked(key, p, expireAt)
	return err == nil, false, err
}

func (s *Store) loadHash(key, value []byte, expireAt int64) (stored, end bool, err error) {
	var pairs []Pair
	for len(value) > 0 {
		if len(value) < 8 {
			return false, false, unsound("a hash is cut off")
		}
		n, m := uint64(binary.LittleEndian.Uint32(value)), uint64(binary.LittleEndian.Uint32(value[4:]))
		value = value[8:]
		if n+m > uint64(len(value)) {
			return false, false, unsound("a hash is cut off")
		}
		pairs = append(pairs, Pair{value[:n], value[n : n+m]})
		value = value[n+m:]
	}
	if len(pairs) == 0 {
		return false, false, unsound("a hash is empty")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleteLocked(key)
	if _, err = s.hsetLocked(key, 0, false, pairs); err != nil {
		return false, false, err
	}
	if r, found := s.findLocked(key); found && expireAt != 0 {
		s.setExpiryLocked(key, r, expireAt)
	}
	return true, false, nil
}
