package phpbridge

// #include "wire.h"
import "C"

import (
	"sync"
	"time"
	"unsafe"
)

// OPcache is what OPcache holds in shared memory, in bytes and counts, and its totals
// since New, over all starts of PHP. The zero value is none.
type OPcache struct {
	Used, Free, Wasted       int64
	StringsUsed, StringsFree int64 // interned strings
	Scripts, Keys, MaxKeys   int64
	JITSize, JITFree         int64

	Hits, Misses uint64
	Restarts     [opcacheRestarts]uint64 // by OPcacheRestart
}

// An OPcacheRestart says why OPcache forgot everything.
type OPcacheRestart uint8

const (
	RestartedMemory OPcacheRestart = iota // it was full
	RestartedKeys                         // its table of names was full
	RestartedManual                       // a script asked for it
	opcacheRestarts
)

// OPcacheRestarts are all of them.
var OPcacheRestarts = [...]OPcacheRestart{RestartedMemory, RestartedKeys, RestartedManual}

// String returns the reason's name as used in metric labels.
func (r OPcacheRestart) String() string { return [...]string{"oom", "hash", "manual"}[r] }

// Add adds another pool's to it.
func (o *OPcache) Add(other OPcache) {
	for i, n := range other.state() {
		*o.state()[i] += *n
	}
	for i, n := range other.totals() {
		*o.totals()[i] += *n
	}
}

// Totals returns it without the state of this moment.
func (o OPcache) Totals() OPcache {
	return OPcache{Hits: o.Hits, Misses: o.Misses, Restarts: o.Restarts}
}

func (o *OPcache) state() []*int64 {
	return []*int64{&o.Used, &o.Free, &o.Wasted, &o.StringsUsed, &o.StringsFree, &o.Scripts, &o.Keys, &o.MaxKeys, &o.JITSize, &o.JITFree}
}

func (o *OPcache) totals() []*uint64 {
	return []*uint64{&o.Hits, &o.Misses, &o.Restarts[RestartedMemory], &o.Restarts[RestartedKeys], &o.Restarts[RestartedManual]}
}

const (
	opcacheEvery = time.Second // the zygote is asked no more often
	opcacheWait  = time.Second // and has so long to answer
)

// An opcacheWatch asks the zygote, which has OPcache's memory mapped like its
// workers, so that no script has to run for it.
type opcacheWatch struct {
	answers chan message // one at most; manage passes it on

	mu    sync.Mutex // guards the following; held while the zygote answers
	asked time.Time
	turn  uint32  // of the last question
	last  OPcache // as it was known then
	raw   OPcache // what the answer said
}

// OPcache returns what OPcache holds, as it was within the last second; after Close,
// the totals that were known. It waits for the zygote for a second at most, and then
// returns what was known before.
func (p *Pool) OPcache() OPcache {
	w := &p.opcache
	w.mu.Lock()
	defer w.mu.Unlock()
	p.mu.Lock()
	z := p.zygote
	p.mu.Unlock()
	if z == nil {
		if p.life.Err() != nil {
			w.last = w.last.Totals()
		}
		return w.last
	}
	if !w.asked.IsZero() && time.Since(w.asked) < opcacheEvery {
		return w.last
	}
	w.asked = time.Now()
	w.turn++
	if z.askOPcache(w.turn) != nil {
		return w.last // it has gone, and another comes
	}
	late := time.NewTimer(opcacheWait)
	defer late.Stop()
	for {
		select {
		case m := <-w.answers:
			if m.from == z && m.generation == w.turn {
				w.learn(decodeOPcache(m.text))
				return w.last
			}
		case <-late.C:
			return w.last
		case <-p.life.Done():
			return w.last
		}
	}
}

// learn takes an answer. Totals that have become less began anew, with PHP or by a
// restart of OPcache.
func (w *opcacheWatch) learn(now OPcache) {
	totals := w.last.Totals()
	had, has, sum := w.raw.totals(), now.totals(), totals.totals()
	for i := range sum {
		if *has[i] >= *had[i] {
			*sum[i] += *has[i] - *had[i]
		} else {
			*sum[i] += *has[i]
		}
	}
	w.raw, w.last = now, now
	w.last.Hits, w.last.Misses, w.last.Restarts = totals.Hits, totals.Misses, totals.Restarts
}

// opcached passes an answer on, unless nobody waits for it any more.
func (p *Pool) opcached(m message) {
	select {
	case <-p.opcache.answers: // an old one
	default:
	}
	p.opcache.answers <- m // manage alone sends, so there is room
}

// askOPcache asks for OPCACHED.
func (z *zygote) askOPcache(turn uint32) error {
	return z.send(C.EPHPM_MSG_OPCACHE, 0, turn, 0, nil, nil)
}

// decodeOPcache reads an answer; what is none is no OPcache.
func decodeOPcache(text []byte) OPcache {
	var o C.struct_ephpm_opcache
	if len(text) != int(unsafe.Sizeof(o)) {
		return OPcache{}
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&o)), len(text)), text)
	return OPcache{
		Used: int64(o.used), Free: int64(o.free), Wasted: int64(o.wasted),
		StringsUsed: int64(o.strings_used), StringsFree: int64(o.strings_free),
		Scripts: int64(o.scripts), Keys: int64(o.keys), MaxKeys: int64(o.max_keys),
		JITSize: int64(o.jit_size), JITFree: int64(o.jit_free),
		Hits: uint64(o.hits), Misses: uint64(o.misses),
		Restarts: [...]uint64{uint64(o.oom_restarts), uint64(o.hash_restarts), uint64(o.manual_restarts)},
	}
}
