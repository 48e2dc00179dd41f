package eventstream

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"ephpm/descriptor"
)

// A parked is what a Conn has when a poller writes it: the bare descriptor of a
// connection of HTTP/1.1. But for what says otherwise it is the poller's alone.
type parked struct {
	poller  *poller
	fd      int // -1: it is closed
	tls     *descriptor.TLS
	chunked bool // RFC 9112 §7.1

	ticket descriptor.Ticket // of the poller

	rest    [][]byte // what the kernel did not take yet of what was taken from the queue
	last    bool     // nothing follows it
	blocked bool     // the kernel takes nothing at the moment
	heard   int      // bytes that a client of TLS has sent
}

// Park begins to send, over the connection of a response of HTTP/1.1 whose header was
// sent: hello, what is queued and what will be, until the end. chunked says that the
// header announces that coding. Nothing is held for a connection that is idle: the
// descriptor is parked. conn is closed in any case. After an error, which is when the
// process has no descriptor left or conn has none, the connection is over.
func (c *Conn) Park(conn net.Conn, chunked bool, hello Hello) error {
	if err := c.park(conn, chunked, hello); err != nil {
		_ = conn.Close() // it is of no use
		c.lost(CauseGone)
		return fmt.Errorf("eventstream: park: %w", err)
	}
	return nil
}

var errNoDescriptor = errors.New("no descriptor")

func (c *Conn) park(conn net.Conn, chunked bool, hello Hello) error {
	p, err := c.loop.poller()
	if err != nil {
		return err
	}
	d, ok := descriptor.Park(conn)
	if !ok {
		c.loop.left()
		return errNoDescriptor
	}
	descriptor.LimitUnacknowledged(d.FD, c.o.AckTimeout)
	k := &parked{poller: p, fd: d.FD, tls: d.TLS, chunked: chunked}
	k.rest = slices.Clone(k.frame(hello.append(make([]byte, chunkHead, 256)), nil, false, nil))
	c.mu.Lock()
	c.parked = k
	c.mu.Unlock()
	p.start(c)
	return nil
}

const (
	chunkHead = 8 + len("\r\n") // of a chunk below 4 GiB
	chunkTail = len("\r\n0\r\n\r\n")
)

var (
	endOfChunk = []byte("\r\n")
	lastChunk  = []byte("\r\n0\r\n\r\n")
)

// frame appends to out what is written for events: b, in front of which chunkHead bytes
// are free, and large. Others may share large, which is not changed.
func (k *parked) frame(b, large []byte, last bool, out [][]byte) [][]byte {
	if !k.chunked {
		for _, part := range [][]byte{b[chunkHead:], large} {
			if len(part) > 0 {
				out = append(out, part)
			}
		}
		return out
	}
	var size [chunkHead]byte
	head := append(strconv.AppendUint(size[:0], uint64(len(b)-chunkHead+len(large)), 16), "\r\n"...)
	start := chunkHead - len(head)
	copy(b[start:], head)
	tail := endOfChunk
	if last {
		tail = lastChunk
	}
	if large == nil {
		return append(out, append(b, tail...)[start:])
	}
	return append(out, b[start:], large, tail)
}

// send hands b, or a part of it, to the kernel, and reports whether that takes no
// more now. TLS is given a record at a time, so that little waits below it.
func (k *parked) send(b []byte) (n int, full bool, err error) {
	if k.tls == nil {
		n, err = descriptor.Write(k.fd, b)
		return n, n < len(b), err
	}
	n, err = k.tls.Write(b[:min(len(b), chunkSize)])
	return n, k.tls.Waiting(), err
}

// keep keeps what the kernel did not take. fresh is how many parts there were when
// they came from the poller, whose buffer the first is in; 0 means that all were kept
// before.
func (k *parked) keep(rest [][]byte, fresh int) {
	if len(rest) == 0 {
		k.rest = nil
		return
	}
	if fresh > 0 {
		inBuffer := len(rest) == fresh
		if rest = slices.Clone(rest); inBuffer {
			rest[0] = bytes.Clone(rest[0])
		}
	}
	k.rest = rest
}

// stuck is called when the kernel takes nothing: the client gets WriteTimeout to make
// progress, and progress gives it as much again.
func (c *Conn) stuck(progress bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.o.WriteTimeout == 0 || c.expiry != 0 && (!progress || c.urgentLocked()) {
		return
	}
	c.expiry = c.loop.now() + int64(c.o.WriteTimeout)
	c.watchLocked()
}

// free is called when the kernel takes something again.
func (c *Conn) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.urgentLocked() {
		c.expiry = 0
	}
}

// urgentLocked reports whether the client is only waited for once more: Kill's bound is
// not renewed.
func (c *Conn) urgentLocked() bool { return c.end != nil && c.end.urgent }
