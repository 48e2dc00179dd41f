package phpbridge

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
)

// lineMax is the longest line taken from a worker's stderr, in bytes; longer
// ones come in pieces.
const lineMax = 8 << 10

// readLines calls line for what is written to the other end of a pipe, until
// the last writer has gone. It closes r.
func readLines(r *os.File, line func(string)) {
	defer r.Close() //nolint:errcheck // only read
	b := bufio.NewReaderSize(r, lineMax)
	for {
		text, err := b.ReadSlice('\n')
		if s := strings.TrimRight(string(text), "\r\n"); s != "" {
			line(s)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if !errors.Is(err, io.EOF) {
				line("stderr: " + err.Error())
			}
			return
		}
	}
}

// stderrLine logs what the worker in a slot prints on stderr, with the request
// it runs.
func (p *Pool) stderrLine(slot int) func(string) {
	return func(text string) {
		n := int(atomic.LoadUint32(u32(&p.memory.slots[slot].job))) - 1
		if n >= 0 && n < len(p.jobs) {
			if r := p.jobs[n].current.Load(); r != nil {
				p.log.Warn("PHP stderr", "text", text, "site", r.Site, "script", r.Script, "request", r.ID)
				return
			}
		}
		p.log.Warn("PHP stderr", "text", text)
	}
}
