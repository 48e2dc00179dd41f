package phpbridge

// #include "wire.h"
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"
)

// MaxAnswer is the longest answer to a host call, in bytes. A longer one throws an
// Error in its place, so a Host should not gather it.
const MaxAnswer = C.EPHPM_CALL_MAX

// call answers CALL.
func (x *exchange) call(ctx context.Context, payload []byte) error {
	c, err := parseCall(payload)
	if err != nil {
		return err
	}
	x.hostCall(ctx, c)
	if len(c.answer) > MaxAnswer {
		c.Throw(ThrowError, "the server's answer is too long")
	}
	x.pending = c.answerOrNull()
	x.answerPart()
	return nil
}

func (x *exchange) hostCall(ctx context.Context, c *Call) {
	c.ends = &x.ends
	if x.request.Host == nil {
		c.Throw(ThrowError, "the server answers no calls for this request")
		return
	}
	x.job.during(ctx, func(ctx context.Context) { x.request.Host.HostCall(ctx, c) })
}

// reads passes READS on, as a call that has no answer.
func (x *exchange) reads(ctx context.Context, p []byte) error {
	if len(p) < 24 {
		return fmt.Errorf("reads of %d bytes", len(p))
	}
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(p[at:]) }
	hits, misses, n, hashes := number(0), number(8), number(16), p[24:]
	if uint64(len(hashes))/8 != n || len(hashes)%8 != 0 || hits > maxReads || misses > maxReads {
		return fmt.Errorf("reads: %d hits, %d misses, %d hashes in %d bytes", hits, misses, n, len(hashes))
	}
	if x.request.Host != nil {
		x.request.Host.HostCall(ctx, &Call{function: KVReads, ends: &x.ends, values: [4]value{
			{kind: C.EPHPM_VAL_INT, n: int64(hits)}, {kind: C.EPHPM_VAL_INT, n: int64(misses)},
			{kind: C.EPHPM_VAL_STRING, text: hashes},
		}})
	}
	return nil
}

// maxReads bounds what one report can claim.
const maxReads = 1 << 40

// more answers MORE.
func (x *exchange) more() error {
	if len(x.pending) == 0 {
		return errors.New("it asked for more of an answer that has no more")
	}
	x.answerPart()
	return nil
}

// answerPart sends what fits of the answer.
func (x *exchange) answerPart() {
	n := copy(x.job.answer, x.pending)
	if x.pending = x.pending[n:]; len(x.pending) == 0 {
		x.pending = nil
	}
	x.waited, x.alone = false, x.single // the next call often follows at once
	x.job.c.more = C.uint32_t(len(x.pending))
	x.job.answered(n)
}

// during runs f with a context that ends with the worker, and when the script is
// told to end; that the client has gone is the script's affair.
func (j *job) during(ctx context.Context, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	j.interrupt.Store(&cancel)
	defer j.interrupt.Store(nil)
	if j.death.Load() == nil && j.outcome() == nil {
		f(ctx)
	}
}

// interruptCall ends the host call that runs for the job, if one does.
func (j *job) interruptCall() {
	if cancel := j.interrupt.Load(); cancel != nil {
		(*cancel)()
	}
}

// ends are what must be undone when a caller ends, however it ends.
type ends struct {
	mu    sync.Mutex // guards the following
	over  bool
	named map[string]func()
}

// AtEnd has f run when the caller's request has ended, however it ends, unless
// EndNow comes first. There is one f for a name: another takes its place, and is
// not run itself. False if the request has ended already: f was not taken.
func (c *Call) AtEnd(name string, f func()) bool {
	e := c.ends
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return false
	}
	if e.named == nil {
		e.named = map[string]func(){}
	}
	e.named[name] = f
	return true
}

// EndNow runs what AtEnd has under a name and forgets it.
func (c *Call) EndNow(name string) {
	e := c.ends
	e.mu.Lock()
	f := e.named[name]
	delete(e.named, name)
	e.mu.Unlock()
	if f != nil {
		f()
	}
}

// run ends everything.
func (e *ends) run() {
	e.mu.Lock()
	all := maps.Clone(e.named)
	e.named, e.over = nil, true
	e.mu.Unlock()
	for _, f := range all {
		f()
	}
}
