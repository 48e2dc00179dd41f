package phpbridge

// #include "wire.h"
import "C"

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A job is one request in shared memory: its request, response and answer
// areas. Serve holds it from the moment it got one until the worker is through
// or dead.
type job struct {
	index int
	class Class
	c     *C.struct_ephpm_job

	request  []byte // the variables, environment and ini settings, then the body
	response []byte // a ring of records
	answer   []byte // of host calls

	// ready has one token when there may be news: records, a death, the timer.
	ready chan struct{}
	// label says whose request this is.
	label label
	// death is why the worker died; nil while it lives.
	death atomic.Pointer[string]
	// told is true when the script was told to end because of its time.
	told atomic.Bool
	// interrupt ends the host call that Serve answers; nil while there is none.
	interrupt atomic.Pointer[context.CancelFunc]
	// withdrawn is what Serve returns for a job that no worker took.
	withdrawn atomic.Pointer[error]

	// Guarded by Pool.mu.
	orphan bool // Serve has gone, the worker not yet: free it at its death
	lost   bool // its state was overwritten: free it at the next death

	timer *time.Timer // runs Pool.check
	mu    sync.Mutex  // guards the following
	limit limits
	fires time.Time // the timer; zero: it is not set

	// Set before the job is submitted.
	generation uint32
	submitted  time.Time

	// Owned by the goroutine of Serve.
	head    uint64 // of the response ring
	bodyAt  int    // where the body is in request
	decoder decoder
}

// A label names the request of a job for those who log about its worker, when
// Serve may have returned already. No lock is taken while its mutex is held.
type label struct {
	mu               sync.Mutex // guards the following
	id, site, script string
	method, uri      string
	since            time.Time
	generation       uint32
	free             bool // the request has ended
}

func (l *label) set(r *Request, generation uint32, since time.Time) {
	l.mu.Lock()
	l.method, l.uri, l.since = r.Method, r.URI, since
	l.id, l.site, l.script, l.generation, l.free = r.ID, r.Site, r.Script, generation, false
	l.mu.Unlock()
}

func (l *label) end() {
	l.mu.Lock()
	l.free = true
	l.mu.Unlock()
}

// attributes returns what a log line says about the request that has the job;
// none without one.
func (l *label) attributes() []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free || l.script == "" {
		return nil
	}
	return []any{"site", l.site, "script", l.script, "request", l.id}
}

// attributesOf is for one request, which may have ended; none after another has
// come.
func (l *label) attributesOf(generation uint32) []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.generation != generation || l.script == "" {
		return nil
	}
	return []any{"site", l.site, "script", l.script, "request", l.id}
}

// limits are the clock of a job: what happens when, and what has happened.
type limits struct {
	active     bool
	generation uint32
	busyAt     time.Time     // not taken by then: busy
	run        time.Duration // from taken: the script is over its time; 0: never
	takenAt    time.Time     // as first seen
	traced     bool          // its backtrace was asked for
	toldAt     time.Time     // the script was told to end
	doneAt     time.Time     // the script was seen to be through
	outcome    error         // once decided
}

func newJob(m *memory, index int, class Class) *job {
	return &job{
		index:    index,
		class:    class,
		c:        &m.jobs[index],
		request:  m.area(index, 0, requestSize),
		response: m.area(index, requestSize, responseSize),
		answer:   m.area(index, requestSize+responseSize, answerSize),
		ready:    make(chan struct{}, 1),
	}
}

// alarm is notify for what ends the job: a host call that Serve answers ends too.
func (j *job) alarm() {
	j.interruptCall()
	j.notify()
}

// notify wakes the goroutine that waits for news of the job.
func (j *job) notify() {
	select {
	case j.ready <- struct{}{}:
	default: // it has one coming
	}
}

// A jobState is the state word: generation, slot and phase in one.
type jobState uint64

func newJobState(generation uint32, slot, phase int) jobState {
	return jobState(generation)<<32 | jobState(slot)<<8 | jobState(phase)
}

func (s jobState) generation() uint32 { return uint32(s >> 32) }
func (s jobState) slot() int          { return int(s>>8) & 0xffffff }
func (s jobState) phase() int         { return int(s & 0xff) }

func (j *job) state() jobState { return jobState(atomic.LoadUint64(u64(&j.c.state))) }

func (j *job) swapState(from, to jobState) bool {
	return atomic.CompareAndSwapUint64(u64(&j.c.state), uint64(from), uint64(to))
}

// entry is what the queue has of a job.
func (j *job) entry() uint64 { return uint64(j.generation)<<32 | uint64(j.index) }

// heldBy reports whether a worker in the slot has the job.
func (j *job) heldBy(slot int) bool {
	s := j.state()
	return s.slot() == slot && (s.phase() == stateTaken || s.phase() == stateDone || s.phase() == stateKilled)
}

// load writes the request into shared memory. The caller has checked that the
// variables fit.
func (j *job) load(r *Request) {
	c := j.c
	n := copy(j.request, r.Vars)
	c.vars_len = C.uint32_t(n)
	env := copy(j.request[n:], r.Env)
	c.env_len = C.uint32_t(env)
	ini := copy(j.request[n+env:], r.INI)
	c.ini_len = C.uint32_t(ini)
	j.bodyAt = n + env + ini
	c.body_off = C.uint32_t(j.bodyAt)
	c.tenant = C.uint32_t(r.Tenant)
	c.body_len = C.int64_t(r.BodyLen)
	c.store = C.uint32_t(r.Store)
	c.has_host = 0
	if r.Host != nil {
		c.has_host = 1
	}
	r.Posts.begin(u32(&c.post_max))
	c.seconds = C.uint32_t(min(r.Timeout.Round(time.Second)/time.Second, 1<<31))
	atomic.StoreUint32(u32(&c.stop), 0)
	atomic.StoreUint32(u32(&c.front_waits), 0)
	atomic.StoreUint32(u32(&c.aborted), 0)
	atomic.StoreUint32(u32(&c.worker_waits), 0)
	atomic.StoreUint32(u32(&c.answers), 0)
	atomic.StoreUint64(u64(&c.out_head), 0)
	atomic.StoreUint64(u64(&c.out_tail), 0)
	atomic.StoreUint64(u64(&c.taken_at), 0)
	j.head = 0
	j.told.Store(false)
	j.decoder.reset()
}

// bodyHere says that the first n bytes of the body are in place.
func (j *job) bodyHere(n int) { j.c.body_here = C.uint32_t(n) }

// bodyArea is where the parts of the body go.
func (j *job) bodyArea() []byte { return j.request[j.bodyAt:] }

// written returns the next bytes of the response ring, up to its edge. bad is
// true if the worker claims more than the ring holds.
func (j *job) written() (p []byte, bad bool) {
	n := atomic.LoadUint64(u64(&j.c.out_tail)) - j.head
	if n > responseSize {
		return nil, true
	}
	at := j.head % responseSize
	return j.response[at:min(at+n, responseSize)], false
}

// consumed gives n bytes of the response ring back to the worker.
func (j *job) consumed(n int) {
	j.head += uint64(n)
	atomic.StoreUint64(u64(&j.c.out_head), j.head)
	if atomic.LoadUint32(u32(&j.c.worker_waits)) != 0 {
		j.ringWorker()
	}
}

// answered tells the worker that n bytes answer its READ or CALL.
func (j *job) answered(n int) {
	atomic.StoreUint32(u32(&j.c.answer_len), uint32(n))
	atomic.AddUint32(u32(&j.c.answers), 1)
	j.ringWorker()
}

// ringWorker wakes the worker if it sleeps on the job's bell. It reads the word
// of what it waits for after it has set worker_waits, so one of the two sees
// the other.
func (j *job) ringWorker() {
	atomic.AddUint32(u32(&j.c.bell), 1)
	if atomic.SwapUint32(u32(&j.c.worker_waits), 0) != 0 {
		futexWake(u32(&j.c.bell))
	}
}

// sleep announces that the goroutine is about to wait. False if there is news
// already.
func (j *job) sleep() bool {
	atomic.StoreUint32(u32(&j.c.front_waits), 1)
	return atomic.LoadUint64(u64(&j.c.out_tail)) == j.head
}

// setState is for a job that no worker can claim or has.
func (j *job) setState(s jobState) { atomic.StoreUint64(u64(&j.c.state), uint64(s)) }

// withdraw takes back a job that no worker has claimed; its Serve returns
// outcome.
func (j *job) withdraw(outcome error) bool {
	s := j.state()
	if s.phase() != stateReady || !j.swapState(s, newJobState(s.generation(), 0, stateFree)) {
		return false
	}
	j.withdrawn.Store(&outcome)
	j.notify()
	return true
}
