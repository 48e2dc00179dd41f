package phpbridge

import (
	"strings"
	"time"
)

// trace asks for the backtrace of the script that a worker runs. The zygote
// reads it from the worker's memory, which the worker does not notice; traced
// logs it.
func (p *Pool) trace(j *job, slot int, ran time.Duration) {
	p.mu.Lock()
	if slot >= len(p.slots) {
		p.mu.Unlock()
		return // a worker wrote nonsense
	}
	s := &p.slots[slot]
	z, generation := s.zygote, s.generation
	s.traced = append(j.label.attributes(), "ran", ran.Round(time.Millisecond), "slot", slot)
	p.mu.Unlock()
	if z == nil {
		return
	}
	if err := z.trace(slot, generation, j.index); err != nil {
		p.giveUp(z, err)
	}
}

// traced logs a backtrace, unless the script had ended before it was read.
func (p *Pool) traced(m message) {
	p.mu.Lock()
	s := &p.slots[m.slot]
	var attributes []any
	if s.zygote == m.from && s.generation == m.generation {
		attributes, s.traced = s.traced, nil
	}
	p.mu.Unlock()
	if len(attributes) == 0 || len(m.text) == 0 {
		return
	}
	p.log.Warn("slow script", append(attributes, "backtrace", strings.Split(strings.TrimSpace(string(m.text)), "\n"))...)
}
