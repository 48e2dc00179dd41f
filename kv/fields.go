package kv

import "encoding/binary"

// fields is a hash as it lies in memory: a header, an index for finding a field
// when there are many, and records one after the other. Its length is the room
// that it has; only the first used() bytes mean something. All numbers are
// little endian and have 32 bits.
//
//	0  count of fields
//	4  used: where the next record goes
//	8  slots of the index: 0, or a power of two
//	12 bytes of dead records
//	16 index: per slot the offset of a record, 0 if free, 1 if it was deleted
//	…  records: length of the field, length of the value, field, value
//
// A dead record has deadBit in its first number.
type fields []byte

const (
	fieldsHeader = 16
	recordHeader = 8
	slotDeleted  = 1
	deadBit      = 1 << 31

	// indexFrom is how many fields are worth an index.
	indexFrom = 24
)

func (f fields) u32(at int) int       { return int(binary.LittleEndian.Uint32(f[at:])) }
func (f fields) setU32(at, v int)     { binary.LittleEndian.PutUint32(f[at:], uint32(v)) }
func (f fields) count() int           { return f.u32(0) }
func (f fields) used() int            { return f.u32(4) }
func (f fields) slots() int           { return f.u32(8) }
func (f fields) dead() int            { return f.u32(12) }
func (f fields) first() int           { return fieldsHeader + 4*f.slots() }
func recordSize(field, value int) int { return recordHeader + field + value }

// fieldsSize is the room for records of so many bytes in all.
func fieldsSize(count, bytes int) int { return fieldsHeader + 4*slotsFor(count) + bytes }

// slotsFor is the size of an index that is at most half full with count fields.
func slotsFor(count int) int {
	if count < indexFrom {
		return 0
	}
	n := 64
	for n < 2*count {
		n *= 2
	}
	return n
}

// newFields makes a hash of room for it, with an index for count fields.
func newFields(room []byte, count int) fields {
	f := fields(room)
	clear(f[:fieldsHeader+4*slotsFor(count)])
	f.setU32(8, slotsFor(count))
	f.setU32(4, f.first())
	return f
}

// record returns what is at an offset, and the offset of the next.
func (f fields) record(at int) (field, value []byte, live bool, next int) {
	head := f.u32(at)
	live = head&deadBit == 0
	n, m := head&^deadBit, f.u32(at+4)
	start := at + recordHeader
	next = start + n + m
	return f[start : start+n : start+n], f[start+n : next : next], live, next
}

// all yields the live records in the order in which they came.
func (f fields) all(yield func(field, value []byte) bool) {
	for at, end := f.first(), f.used(); at < end; {
		field, value, live, next := f.record(at)
		if live && !yield(field, value) {
			return
		}
		at = next
	}
}

// find returns the offset of a field's record, or 0, and the slot of the index
// that leads there. hash is the field's.
func (f fields) find(field []byte, hash uint32) (at, slot int) {
	slots := f.slots()
	if slots == 0 {
		for at, end := f.first(), f.used(); at < end; {
			have, _, live, next := f.record(at)
			if live && string(have) == string(field) {
				return at, 0
			}
			at = next
		}
		return 0, 0
	}
	for i := 0; i < slots; i++ {
		slot = (int(hash) + i) & (slots - 1)
		at = f.u32(fieldsHeader + 4*slot)
		if at == 0 {
			return 0, 0
		}
		if at == slotDeleted {
			continue
		}
		if have, _, _, _ := f.record(at); string(have) == string(field) {
			return at, slot
		}
	}
	return 0, 0
}

// home yields the fields for which a search begins at a slot of the index.
func (f fields) home(slot int, hashOf func(field []byte) uint32, yield func(field, value []byte) bool) {
	last := f.slots() - 1
	for i := range last + 1 {
		at := f.u32(fieldsHeader + 4*((slot+i)&last))
		if at == 0 {
			return
		}
		if at == slotDeleted {
			continue
		}
		field, value, _, _ := f.record(at)
		if int(hashOf(field))&last == slot && !yield(field, value) {
			return
		}
	}
}

// get returns a field's value where it lies, and whether there is one.
func (f fields) get(field []byte, hash uint32) ([]byte, bool) {
	at, _ := f.find(field, hash)
	if at == 0 {
		return nil, false
	}
	_, value, _, _ := f.record(at)
	return value, true
}

// fits reports whether n more records of so many bytes in all have room, in the
// worst case.
func (f fields) fits(n, bytes int) bool {
	if f.used()+bytes > len(f) {
		return false
	}
	slots := f.slots()
	if slots == 0 {
		return f.count()+n < indexFrom
	}
	// Deleted slots count, because a search passes them.
	return 4*(f.indexed()+n) <= 3*slots
}

// indexed is how many slots of the index are not free. A dead record may have
// left its slot deleted, so all records are counted.
func (f fields) indexed() int { return f.count() + f.dead()/recordHeader }

// set gives a field a value, for which there must be room, and reports whether
// the field is new.
func (f fields) set(field, value []byte, hash uint32) bool {
	at, slot := f.find(field, hash)
	if at != 0 {
		_, have, _, _ := f.record(at)
		if len(have) == len(value) {
			copy(have, value)
			return false
		}
		f.kill(at)
		f.append(field, value)
		if f.slots() > 0 {
			f.setU32(fieldsHeader+4*slot, f.used()-recordSize(len(field), len(value)))
		}
		return false
	}
	at = f.used()
	f.append(field, value)
	f.setU32(0, f.count()+1)
	f.index(at, hash)
	return true
}

func (f fields) append(field, value []byte) {
	at := f.used()
	f.setU32(at, len(field))
	f.setU32(at+4, len(value))
	copy(f[at+recordHeader:], field)
	copy(f[at+recordHeader+len(field):], value)
	f.setU32(4, at+recordSize(len(field), len(value)))
}

func (f fields) kill(at int) {
	_, _, _, next := f.record(at)
	f.setU32(at, f.u32(at)|deadBit)
	f.setU32(12, f.dead()+next-at)
}

// index enters a record that is not in the index.
func (f fields) index(at int, hash uint32) {
	slots := f.slots()
	for i := 0; i < slots; i++ {
		slot := fieldsHeader + 4*((int(hash)+i)&(slots-1))
		if f.u32(slot) <= slotDeleted {
			f.setU32(slot, at)
			return
		}
	}
}

// remove deletes a field and reports whether it was there.
func (f fields) remove(field []byte, hash uint32) bool {
	at, slot := f.find(field, hash)
	if at == 0 {
		return false
	}
	f.kill(at)
	f.setU32(0, f.count()-1)
	if f.slots() > 0 {
		f.setU32(fieldsHeader+4*slot, slotDeleted)
	}
	return true
}

// live is the size of the live records in bytes.
func (f fields) live() int { return f.used() - f.first() - f.dead() }

// copyTo fills empty fields that have room with the live records.
func (f fields) copyTo(to fields, hashOf func(field []byte) uint32) {
	f.all(func(field, value []byte) bool {
		at := to.used()
		to.append(field, value)
		to.index(at, hashOf(field))
		return true
	})
	to.setU32(0, f.count())
}
