package phpbridge

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// How long a process may do nothing although it should.
const (
	stoppedMax = time.Second      // a worker that SIGSTOP or a debugger holds
	stuckMax   = 10 * time.Second // a worker that the system may just not have run
	forkMax    = 20 * time.Second // a zygote that owes an answer
)

// wakeAnother wakes a worker for each class of which work waits: the one that was
// woken for it may be unable to run. A worker that overwrote the shared memory may
// have taken the queue or the doorbell from all.
func (p *Pool) wakeAnother() {
	p.mu.Lock()
	for class := range classes {
		p.mendLocked(class)
	}
	busy := !p.idleLocked()
	p.mu.Unlock()
	for class := range classes {
		if !p.memory.queueEmpty(class) {
			p.memory.wake(&p.masks[class])
		}
	}
	if busy {
		p.completer.ring()
	}
}

// enqueueLocked appends a job that is ready to its queue. False if that is full.
func (p *Pool) enqueueLocked(j *job) bool {
	p.mendLocked(j.class)
	return p.memory.push(j.class, j.entry())
}

// mendLocked puts the jobs that wait into their queue again if some worker has
// overwritten its ends. Which one it was cannot be known.
func (p *Pool) mendLocked(class Class) {
	if !p.memory.mend(class) {
		return
	}
	p.counts.broken++
	p.log.Error("a worker has overwritten a queue, it is made anew", "class", class)
	for _, j := range p.jobs {
		if s := j.state(); j.class == class && s.phase() == stateReady && s.generation() == j.generation {
			p.memory.push(class, j.entry()) // has room: there are fewer jobs than entries
		}
	}
}

// endStuck kills workers that leave work lying, or do not end when they are told
// to, and has others take their places. The scripts' own limits are check's.
func (p *Pool) endStuck() {
	type worker struct {
		slot, pid int
		waited    time.Duration
	}
	var idle []worker
	now := time.Now()
	p.mu.Lock()
	busy, late := p.busyLocked(), p.lateLocked(now)
	for i := range p.slots {
		s := &p.slots[i]
		if s.status == slotEmpty || s.pid == 0 {
			continue
		}
		served := atomic.LoadUint64(u64(&p.memory.slots[i].served))
		wanted := s.status == slotStopping || late.has(i)
		if !wanted || busy.has(i) || served != s.stuckAt {
			s.stuckAt, s.stuckSince = served, time.Time{}
			continue
		}
		if s.stuckSince.IsZero() {
			s.stuckSince = now
		}
		idle = append(idle, worker{i, s.pid, now.Sub(s.stuckSince)})
	}
	p.mu.Unlock()
	for _, w := range idle {
		state := processState(w.pid)
		if w.waited < stoppedMax || !stopped(state) && w.waited < stuckMax {
			continue
		}
		p.log.Error("worker does nothing, it is killed", "slot", w.slot, "pid", w.pid,
			"state", string(state), "since", w.waited.Round(time.Millisecond))
		p.kill(w.slot, syscall.SIGKILL)
	}
}

// busyLocked returns the slots whose workers have a job.
func (p *Pool) busyLocked() (busy slotSet) {
	for _, j := range p.jobs {
		s := j.state()
		if phase := s.phase(); s.slot() < len(p.slots) && (phase == stateTaken || phase == stateDone || phase == stateKilled) {
			busy.add(s.slot())
		}
	}
	return busy
}

// lateLocked returns the slots that may take a job that has waited too long.
func (p *Pool) lateLocked(now time.Time) (late slotSet) {
	for _, j := range p.jobs {
		if j.state().phase() == stateReady && now.Sub(j.submitted) >= stoppedMax {
			late = late.union(p.masks[j.class])
		}
	}
	return late
}

// wakeZygotes lets zygotes go on that somebody has stopped, and gives up one that
// does not fork: nothing else would ever end its workers.
func (p *Pool) wakeZygotes() {
	zygotes := map[*zygote]bool{} // true: it owes an answer for too long
	now := time.Now()
	p.mu.Lock()
	if p.zygote != nil {
		zygotes[p.zygote] = false
	}
	for i := range p.slots {
		if s := &p.slots[i]; s.status != slotEmpty {
			zygotes[s.zygote] = zygotes[s.zygote] || s.pid == 0 && now.Sub(s.started) >= forkMax
		}
	}
	p.mu.Unlock()
	for z, late := range zygotes {
		switch pid := z.cmd.Process.Pid; {
		case stopped(processState(pid)):
			p.log.Warn("the zygote was stopped, it is told to go on", "pid", pid)
			_ = z.cmd.Process.Signal(syscall.SIGCONT) // it may have gone just now
		case late:
			p.giveUp(z, errors.New("it was asked to fork and does not answer"))
		}
	}
}

// stopped reports whether a process in this state runs only when somebody else
// lets it.
func stopped(state byte) bool { return state == 'T' || state == 't' }

// processState returns the state of a process as proc(5) has it, such as 'R', 'S'
// or 'T'; '?' when it has gone.
func processState(pid int) byte {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return '?'
	}
	// The name before it is in parentheses and may hold anything.
	if i := bytes.LastIndexByte(text, ')'); i >= 0 && i+2 < len(text) {
		return text[i+2]
	}
	return '?'
}
