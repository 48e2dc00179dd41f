package websocket

import (
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"ephpm/descriptor"
)

// CanAccept reports whether the connection behind w can be taken over. Streams of
// HTTP/2 and HTTP/3 can if the server makes them look like one.
func CanAccept(w http.ResponseWriter) bool {
	for {
		if _, ok := w.(http.Hijacker); ok {
			return true
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = u.Unwrap()
	}
}

// Accept answers the handshake with 101 and the headers set on w, and takes the
// connection over. The client must have offered the subprotocol; empty means
// none. r must have passed CheckHandshake. After an error the Conn is abandoned
// and leaves nothing behind.
func (c *Conn) Accept(w http.ResponseWriter, r *http.Request, subprotocol string) error {
	if err := c.accept(w, r, subprotocol); err != nil {
		c.Abandon()
		return fmt.Errorf("websocket: accept: %w", err)
	}
	return nil
}

func (c *Conn) accept(w http.ResponseWriter, r *http.Request, subprotocol string) error {
	if !CanAccept(w) {
		return http.ErrNotSupported
	}
	h := w.Header()
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
	h.Set("Sec-WebSocket-Accept", acceptKey(r.Header.Get("Sec-WebSocket-Key")))
	c.answer(h, r, subprotocol)
	c.mu.Lock()
	c.opening = true
	c.mu.Unlock()
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	buffered, _ := rw.Reader.Peek(rw.Reader.Buffered()) // cannot fail for what is buffered
	early := append([]byte(nil), buffered...)
	if err := conn.SetDeadline(time.Time{}); err != nil {
		_ = conn.Close()
		return err
	}
	return c.takeOver(conn, early)
}

// acceptKey proves that the handshake was understood (RFC 6455 §4.2.2).
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// takeOver parks the connection if it has a descriptor to park.
func (c *Conn) takeOver(conn net.Conn, early []byte) error {
	if !c.park(conn) {
		if err := c.opens(newStreamLine(c, conn, early)); err != nil {
			_ = conn.Close()
			return err
		}
		return nil
	}
	c.stash = early
	p, err := c.loop.poller()
	if err == nil {
		err = c.opens(p)
	}
	if err != nil {
		_ = unix.Close(int(c.fd))
		c.fd = -1
		return err
	}
	return nil
}

// opens begins the connection's life; what is queued goes out.
func (c *Conn) opens(l line) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil && c.end.frame == nil {
		return errors.New("abandoned")
	}
	c.opened = c.loop.now()
	c.heard.Store(c.opened)
	c.nextPing = c.opened + int64(c.o.PingInterval)
	c.line = l
	c.flushLocked()
	return nil
}

// park takes the descriptor from package net.
func (c *Conn) park(conn net.Conn) bool {
	d, ok := descriptor.Park(conn)
	if ok {
		c.fd, c.tls = int32(d.FD), d.TLS
	}
	return ok
}
