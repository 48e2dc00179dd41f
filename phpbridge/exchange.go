package phpbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// An exchange is all that passes between front and worker for one request. It
// belongs to the goroutine of Serve; when the script has finished the answer
// and goes on, to one of its own.
type exchange struct {
	pool     *Pool
	job      *job // nil until its turn
	request  Request
	start    time.Time // of Serve
	busyAt   time.Time // not taken by a worker then: ErrBusy
	response response
	body     int64 // bytes of the body that the worker does not have yet
	gone     bool  // the client has left
	finished bool  // the client has its answer, the script goes on
	detached bool  // and Serve has returned
	fatal    bool  // the script had a fatal error
	ends     ends
	pending  []byte // of the answer to a host call
	through  bool   // the worker has no hand in the job any more
	single   bool   // no other request was under way when it was submitted
	alone    bool   // and none when those before it were
	waited   bool   // linger was called
	ended    time.Time
}

// exchanges are reused by request after request.
var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func newExchange(p *Pool, r *Request, w http.ResponseWriter, start time.Time) *exchange {
	x := exchanges.Get().(*exchange)
	*x = exchange{
		pool:     p,
		request:  *r,
		start:    start,
		busyAt:   start.Add(cmp.Or(r.Wait, p.options.BacklogWait)),
		response: newResponse(w, x.response.lines),
		body:     r.BodyLen,
	}
	return x
}

// free ends an exchange that has no job any more.
func (x *exchange) free() {
	x.response.free()
	*x = exchange{response: response{lines: x.response.lines}}
	exchanges.Put(x)
}

// begin writes the request and the start of its body into the job.
func (x *exchange) begin() error {
	x.job.load(&x.request)
	n, err := x.readBody()
	x.job.bodyHere(n)
	return err
}

// readBody puts the next part of the body into the job.
func (x *exchange) readBody() (int, error) {
	if x.body == 0 {
		return 0, nil
	}
	area := x.job.bodyArea()
	n, err := io.ReadFull(x.request.Body, area[:min(int64(len(area)), x.body)])
	x.body -= int64(n)
	if err != nil {
		return n, fmt.Errorf("phpbridge: request body: %w", err)
	}
	return n, nil
}

// run takes the worker's records until the request is shut down, or until the
// script has finished the answer and needs Serve no more.
func (x *exchange) run(ctx context.Context) error {
	for {
		if x.leavesServe() {
			return nil
		}
		p, err := x.wait(ctx)
		if err != nil {
			return err
		}
		for len(p) > 0 {
			r, n, ok, err := x.job.decoder.decode(p)
			if err != nil {
				return x.broken(err)
			}
			p = p[n:]
			if ok {
				err = x.take(ctx, r)
			}
			x.job.consumed(n)
			if err != nil {
				return x.broken(err)
			}
			if x.through {
				return x.end(ctx)
			}
			if x.leavesServe() {
				break
			}
		}
	}
}

// leavesServe reports whether the rest of the script can run without Serve: its
// client has the answer, and the body, which is Serve's, was read.
func (x *exchange) leavesServe() bool { return x.finished && !x.detached && x.body == 0 }

// tail runs what comes after a finished answer, for nobody.
func (x *exchange) tail(ctx context.Context) {
	x.detached = true
	err := x.run(context.WithoutCancel(ctx))
	if err != nil {
		x.pool.log.Warn("script did not come to its end after it finished the answer", x.about("error", err)...)
	}
	x.settle()
	_ = x.pool.count(x.request.Class, err) // it was logged
	x.free()
}

// settle gives the job back, or leaves it to its dying worker.
func (x *exchange) settle() {
	x.ends.run()
	x.request.Posts.end()
	x.pool.disarm(x.job)
	if x.through {
		x.pool.release(x.job)
	} else {
		x.pool.abandon(x.job)
	}
}

// wait returns what the worker has written, as soon as there is something.
func (x *exchange) wait(ctx context.Context) ([]byte, error) {
	for {
		p, bad := x.job.written()
		if bad {
			return nil, x.broken(errors.New("more in the ring than it holds"))
		}
		if len(p) > 0 {
			return p, nil
		}
		if err := x.over(); err != nil {
			return nil, err
		}
		if !x.waited {
			x.waited = true
			x.linger()
			continue
		}
		if !x.job.sleep() {
			continue
		}
		var left <-chan struct{} // asked for only here: it is made when it is
		if !x.gone && !x.finished {
			left = ctx.Done()
		}
		select {
		case <-x.job.ready:
		case <-left:
			if x.job.withdraw(ctx.Err()) {
				continue // over says so
			}
			x.leave()
		}
	}
}

// linger gives the worker a moment before the goroutine sleeps, which costs more
// than a small script. Alone in the pool it looks out for the answer. Otherwise it
// lets others run first: a busy worker may take the job meanwhile; if none did, one
// is woken.
func (x *exchange) linger() {
	if x.alone {
		x.pool.spinner.await(x.job)
		return
	}
	runtime.Gosched()
	if x.job.state().phase() == stateReady {
		x.pool.wake(x.request.Class)
	}
}

// over returns why there will be nothing more: the job was withdrawn, its time
// is over, or its worker is dead.
func (x *exchange) over() error {
	j := x.job
	if outcome := j.withdrawn.Load(); outcome != nil {
		x.through = true
		return *outcome
	}
	if outcome := j.outcome(); outcome != nil {
		return outcome
	}
	death := j.death.Load()
	if death == nil {
		return nil
	}
	if p, _ := j.written(); len(p) > 0 {
		return nil // its last words
	}
	return &CrashError{Slot: j.state().slot(), Reason: *death}
}

// leave tells the script that its client has gone. What it still writes is
// thrown away.
func (x *exchange) leave() {
	x.gone = true
	x.response.discard()
	atomic.StoreUint32(u32(&x.job.c.aborted), 1)
}

// broken ends a worker that wrote what no worker of ours writes.
func (x *exchange) broken(err error) error {
	j := x.job
	s := j.state()
	crash := &CrashError{Slot: s.slot(), Reason: "protocol: " + err.Error()}
	if j.withdraw(crash) {
		x.through = true // nobody has it: another worker wrote into it
		return crash
	}
	x.pool.disarm(j)
	x.pool.countBroken()
	x.pool.log.Error("worker broke the protocol, it is killed", x.about("error", err, "slot", s.slot())...)
	j.swapState(s, newJobState(s.generation(), s.slot(), stateKilled))
	x.pool.killHolder(j, syscall.SIGKILL)
	return crash
}

func (p *Pool) countBroken() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.broken++
}

// about adds to the attributes of a log line which request it is about.
func (x *exchange) about(attributes ...any) []any {
	r := &x.request
	return append(attributes, "site", r.Site, "script", r.Script, "request", r.ID)
}

// take acts on one record.
func (x *exchange) take(ctx context.Context, r record) error {
	if x.job.told.Load() {
		x.response.mute() // what it says about its end is not the answer
	}
	switch r.kind {
	case recHeaders:
		return x.headers(r.payload)
	case recOutput:
		x.response.output(r.payload)
	case recFlush:
		x.response.flush()
	case recRead:
		return x.read()
	case recCall:
		return x.call(ctx, r.payload)
	case recPost:
		return x.post(ctx, r.payload)
	case recLog:
		return x.logMessage(r.payload)
	case recInform:
		return x.inform(r.payload)
	case recFinish:
		x.finish(ctx)
	case recReads:
		return x.reads(ctx, r.payload)
	case recMore:
		return x.more()
	case recNote:
		return x.note(r.payload)
	case recEnd:
		x.through = true
		x.fatal = len(r.payload) > 0 && r.payload[0] != 0
	}
	if x.response.failed && !x.gone && !x.finished {
		x.leave()
	}
	return nil
}

func (x *exchange) headers(p []byte) error {
	status, err := parseHeaders(p, x.response.header)
	if err != nil {
		return err
	}
	if status < 200 || status > 599 {
		x.pool.log.Error("script set an impossible status, answered with 500", x.about("status", status)...)
		status = http.StatusInternalServerError
	}
	x.response.status = status
	return nil
}

// inform sends an informational response (RFC 9110 §15.2).
func (x *exchange) inform(p []byte) error {
	var lines []headerLine
	status, err := parseHeaders(p, func(l []byte) { lines = appendHeader(lines, l) })
	if err != nil {
		return err
	}
	if status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
		return fmt.Errorf("informational response with status %d", status)
	}
	x.response.inform(status, lines)
	return nil
}

// finish completes the answer. A WebSocket event has no client that waits for
// one, and its end is the end of its script: the next message waits for it.
func (x *exchange) finish(ctx context.Context) {
	if x.request.Class != Page || x.gone {
		return
	}
	if ctx.Err() != nil {
		x.leave()
		return
	}
	x.response.end()
	x.response.flush()
	x.response.discard()
	x.finished = true
}

// read answers READ. A body that cannot be read any more ends here for the
// script; the reason is logged.
func (x *exchange) read() error {
	n, err := x.readBody()
	if err != nil {
		x.pool.log.Error("cannot read the request body", x.about("error", err)...)
	}
	x.job.answered(n)
	return nil
}

func (x *exchange) end(ctx context.Context) error {
	x.ended = time.Now()
	if x.job.told.Load() {
		return ErrTimeout // it came to its end, but not by itself
	}
	if x.finished {
		return nil
	}
	if x.gone {
		if err := ctx.Err(); err != nil {
			return err
		}
		return errClientGone
	}
	x.response.end()
	return nil
}

func (x *exchange) result() Result {
	now := x.ended
	if now.IsZero() {
		now = time.Now()
	}
	taken := now
	if atomic.LoadUint64(u64(&x.job.c.taken_at)) != 0 {
		taken = x.pool.takenAt(x.job, now)
	}
	return Result{Queued: taken.Sub(x.start), Ran: now.Sub(taken), Fatal: x.fatal}
}
