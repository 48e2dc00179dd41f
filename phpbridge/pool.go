package phpbridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// prefetch is how many jobs more than workers a class has at least: what waits
// in shared memory needs no wake-up when a worker comes free.
const prefetch = 64

// A Pool runs PHP scripts in worker processes. All methods may be called from
// any goroutine; Close ends it.
type Pool struct {
	options   Options
	log       *slog.Logger
	memory    *memory
	completer *completer
	jobs      []*job
	clock     time.Time // the moment of
	clockNS   int64     // this CLOCK_MONOTONIC
	masks     [classes]slotSet
	ranges    [classes + 1]slotRange // general slots, then the reserve of each class
	slotCount int

	pressured chan struct{} // work waits and no worker sleeps
	growable  atomic.Bool   // false: pressure would change nothing
	spinner   spinner
	watching  atomic.Bool     // manage looks at what waits, and needs no hint
	messages  chan message    // from the zygotes
	listeners sync.WaitGroup  // who pass them on
	reloading sync.Mutex      // one Reload at a time
	life      context.Context // ends when Close begins
	endLife   context.CancelFunc
	reloaded  chan *zygote  // a new one, for manage
	stop      chan struct{} // ends manage
	managed   chan struct{} // closed when manage has ended
	stderr    pipes
	opcache   opcacheWatch
	tails     sync.WaitGroup // scripts that go on after their answer

	placing sync.Mutex // held by who hands jobs over, before mu

	mu        sync.Mutex // guards the following
	push      uint32     // generation of the last submission
	backlogs  [classes]backlog
	lonely    int // requests in a row that found no other under way, up to lonelyAfter
	slots     []slot
	want      [classes + 1]int // workers of each range
	zygote    *zygote
	closing   bool
	killed    bool // closing, and no patience any more: nothing is forked or submitted
	handovers []handover
	idle      chan struct{} // closed when closing and no job is held
	refused   [classes]uint64
	counts    counts
}

// counts are the totals in Stats.
type counts struct {
	spawns, crashes, timeouts, failures, broken uint64
	recycles                                    [recycles]uint64
}

// New starts PHP and the first workers, and returns when PHP can serve.
func New(o Options) (*Pool, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	perClass := o.MaxWorkers + o.Reserve + max(prefetch, o.MaxWorkers)
	p := &Pool{
		options:   o,
		log:       o.Log,
		pressured: make(chan struct{}, 1),
		messages:  newMessages(),
		reloaded:  make(chan *zygote),
		stop:      make(chan struct{}),
		managed:   make(chan struct{}),
		idle:      make(chan struct{}),
		opcache:   opcacheWatch{answers: make(chan message, 1)},
	}
	p.life, p.endLife = context.WithCancel(context.Background())
	p.layOut()
	if p.memory, err = newMemory(perClass*int(classes), o.MaxRequests); err != nil {
		return nil, err
	}
	if p.spinner.off = o.Processors == 1; !p.spinner.off {
		p.memory.bePatient()
	}
	for class := range classes {
		p.backlogs[class].limit = o.MaxWorkers + o.Backlog
		for range perClass {
			p.addJob(class)
		}
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return nil, fmt.Errorf("monotonic clock: %w", err)
	}
	p.clock, p.clockNS = time.Now(), ts.Nano()
	return p, p.start()
}

// layOut divides the slots: general workers take any class, those of a reserve
// only theirs, and run only while it would starve.
func (p *Pool) layOut() {
	p.ranges[general] = slotRange{0, p.options.MaxWorkers}
	all := newSlotSet(0, p.options.MaxWorkers)
	at := p.options.MaxWorkers
	for class := range classes {
		p.ranges[1+class] = slotRange{at, at + p.options.Reserve}
		p.masks[class] = all.union(newSlotSet(at, at+p.options.Reserve))
		at += p.options.Reserve
	}
	p.slots, p.slotCount = make([]slot, at), at
	p.want[general] = p.options.MinWorkers
}

func (p *Pool) addJob(class Class) {
	j := newJob(p.memory, len(p.jobs), class)
	j.timer = time.AfterFunc(time.Hour, func() { p.check(j) })
	j.timer.Stop()
	p.jobs = append(p.jobs, j)
	p.backlogs[class].free = append(p.backlogs[class].free, j)
}

func (p *Pool) start() (err error) {
	if p.completer, err = newCompleter(); err != nil {
		p.memory.close()
		return err
	}
	if p.zygote, err = p.newZygote(p.life); err != nil {
		_ = p.completer.file.Close() // nobody reads it yet
		p.memory.close()
		return err
	}
	p.log.Info("PHP started", "version", p.zygote.php, "opcache", p.zygote.opcache,
		"workers", p.options.MinWorkers, "max_workers", p.options.MaxWorkers)
	if !p.zygote.opcache {
		p.log.Warn("OPcache is off, every request compiles its scripts", "hint", "install the opcache extension or set opcache.enable=1")
	}
	go p.completer.run(p)
	go p.manage()
	return nil
}

// newZygote starts PHP, unless ctx ends first.
func (p *Pool) newZygote(ctx context.Context) (*zygote, error) {
	w, err := p.stderr.open(func(line string) { p.log.Warn("PHP message", "text", line) })
	if err != nil {
		return nil, fmt.Errorf("stderr of the zygote: %w", err)
	}
	defer w.Close() //nolint:errcheck // the zygote has its own copy
	return startZygote(ctx, &p.options, p.memory, p.completer.file, w)
}

// Serve runs one script and writes what it answers to w, flushing where the
// script flushes. It returns when the worker has shut the request down, or with
//
//   - ErrBusy, ErrClosed or ErrTooLarge, when the script was not run,
//   - ErrTimeout or a *CrashError, when it did not come to its end: what was
//     written to w until then is not the whole answer,
//   - ctx.Err(), when the client left. If the script was running already, it
//     was told (PHP's ignore_user_abort decides) and ran to its end.
//
// PHP's own fatal errors are answers, not errors. A script that finishes its
// answer early (fastcgi_finish_request) may go on after Serve has returned;
// r.Host must serve it until then.
func (p *Pool) Serve(ctx context.Context, w http.ResponseWriter, r *Request) (Result, error) {
	if len(r.Vars)+len(r.Env)+len(r.INI) > requestSize-bodyMin {
		return Result{}, ErrTooLarge
	}
	x := newExchange(p, r, w, time.Now())
	if err := p.enter(ctx, x); err != nil {
		queued := time.Since(x.start)
		x.free()
		return Result{Queued: queued}, p.count(r.Class, err)
	}
	settled := false
	defer func() {
		if !settled { // w has panicked
			p.killHolder(x.job, syscall.SIGKILL)
			x.settle()
		}
	}()
	err := x.run(ctx)
	settled = true
	result := x.result()
	if err == nil && !x.through {
		p.tails.Go(func() { x.tail(ctx) }) // until the script ends; Close waits
		return result, nil
	}
	x.settle()
	x.free()
	return result, p.count(r.Class, err)
}

func (p *Pool) count(class Class, err error) error {
	busy, late := errors.Is(err, ErrBusy), errors.Is(err, ErrTimeout)
	if busy || late {
		p.mu.Lock()
		if busy {
			p.refused[class]++
		} else {
			p.counts.timeouts++
		}
		p.mu.Unlock()
	}
	return err
}

// submit puts a loaded job into its class's queue and sees to it that a worker
// takes it: one that looks for work, or one that it wakes. While others run, that
// is left to linger.
func (p *Pool) submit(x *exchange, now time.Time) {
	j := x.job
	p.mu.Lock()
	if p.killed {
		closed := ErrClosed
		j.withdrawn.Store(&closed)
		p.mu.Unlock()
		return
	}
	if x.single = p.backlogs[Page].held+p.backlogs[Event].held == 1; !x.single {
		p.lonely = 0
	} else if p.lonely < lonelyAfter {
		p.lonely++
	}
	x.alone = p.lonely == lonelyAfter
	p.push++
	j.generation = p.push
	j.submitted = now
	j.label.set(&x.request, j.generation, x.start)
	j.setState(newJobState(j.generation, 0, stateReady))
	queued := p.enqueueLocked(j)
	p.mu.Unlock()
	p.arm(j, now, x.busyAt, x.request.Timeout)
	if !queued {
		return // full of withdrawn jobs, so no worker took any for long: busy
	}
	if x.alone {
		p.wake(j.class)
	}
}

// wake wakes a worker for a job of the class that waits, unless one looks for
// work.
func (p *Pool) wake(class Class) {
	mask := &p.masks[class]
	if !p.memory.watched(class, mask) && !p.memory.wake(mask) {
		p.press()
	}
}

// press tells manage that work waits and no worker sleeps, unless it looks
// already or can do nothing about it.
func (p *Pool) press() {
	if p.growable.Load() && p.watching.CompareAndSwap(false, true) {
		p.pressured <- struct{}{} // has room: manage takes it before watching is false again
	}
}
