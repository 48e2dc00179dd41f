package phpbridge

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// lineMax is the longest line taken from a worker's stderr, in bytes; longer
// ones come in pieces.
const lineMax = 8 << 10

// lastWords is how long Close waits for a pipe that somebody still holds.
const lastWords = 100 * time.Millisecond

// pipes read what workers print on stderr. The zero value is ready.
type pipes struct {
	readers sync.WaitGroup
	mu      sync.Mutex // guards the following
	reading map[*os.File]bool
}

// open starts to read a pipe line by line, until the last writer has gone, and
// returns the end to write to.
func (p *pipes) open(line func(string)) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.reading == nil {
		p.reading = make(map[*os.File]bool)
	}
	p.reading[r] = true
	p.mu.Unlock()
	p.readers.Go(func() {
		readLines(r, line)
		p.mu.Lock()
		delete(p.reading, r)
		p.mu.Unlock()
		_ = r.Close() // only read
	})
	return w, nil
}

// close takes the last words of workers that have ended, and does not wait for
// programs that PHP started and that outlive it.
func (p *pipes) close() {
	p.mu.Lock()
	for r := range p.reading {
		_ = r.SetReadDeadline(time.Now().Add(lastWords)) // a pipe has deadlines
	}
	p.mu.Unlock()
	p.readers.Wait()
}

// readLines calls line for each line of r.
func readLines(r io.Reader, line func(string)) {
	b := bufio.NewReaderSize(r, lineMax)
	for {
		text, err := b.ReadSlice('\n')
		if s := strings.TrimRight(string(text), "\r\n"); s != "" {
			line(s)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return // the end, or the deadline
		}
	}
}

// stderrLine logs what the worker in a slot prints on stderr, with the request
// it runs or ran last: the line may be read a little later than it was written.
// What is over the limit is told by a line in its place, with the next that is not.
func (p *Pool) stderrLine(slot int) func(string) {
	limit := lineLimit{rate: p.options.StderrRate}
	return func(text string) {
		ok, leftOut := limit.pass(time.Now())
		if !ok {
			return
		}
		if leftOut > 0 {
			p.log.Warn("PHP stderr, lines left out", "lines", leftOut, "slot", slot)
		}
		attributes := []any{"text", text}
		s := &p.memory.slots[slot]
		n := int(atomic.LoadUint32(u32(&s.job))) - 1
		if n >= 0 && n < len(p.jobs) {
			generation := atomic.LoadUint32(u32(&s.generation))
			attributes = append(attributes, p.jobs[n].label.attributesOf(generation)...)
		}
		p.log.Warn("PHP stderr", attributes...)
	}
}
