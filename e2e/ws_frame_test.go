package e2e

import (
	"bufio"
	endian "encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// First bytes of frames (RFC 6455 §5.2).
const (
	frameCont   = 0x0
	frameText   = 0x1
	frameBinary = 0x2
	frameClose  = 0x8
	framePing   = 0x9
	framePong   = 0xA
	frameFin    = 0x80
)

// frames is a WebSocket on a wire: it sees every frame and can break every rule.
type frames struct {
	*wire
	resp *http.Response // of the handshake
}

// upgradeText is an upgrade request as it goes over the wire.
func upgradeText(target string, header ...string) string {
	return getText(target, append([]string{"Connection: Upgrade", "Upgrade: websocket",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}, header...)...)
}

// dialWire opens a WebSocket on a wire.
func (a *app) dialWire(target string, header ...string) *frames {
	a.t.Helper()
	w := a.connect()
	w.send(upgradeText(target, header...))
	return w.accepted()
}

// dialWireUnless is dialWire for what a busy machine may refuse with a status: 503
// when no worker came free in time, 504 when the script was over its limit.
func (a *app) dialWireUnless(busy int, target string) *frames {
	a.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		w := a.connect()
		w.send(upgradeText(target))
		resp, err := http.ReadResponse(w.in, nil)
		if err != nil {
			a.t.Fatalf("no answer to the upgrade: %v", err)
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return &frames{wire: w, resp: resp}
		}
		if resp.StatusCode != busy || time.Now().After(deadline) {
			a.t.Fatalf("upgrade: %s", resp.Status)
		}
	}
}

// dialDeaf opens a WebSocket whose client has as little room as the kernel
// allows for what it does not read.
func (a *app) dialDeaf(target string) *frames {
	a.t.Helper()
	d := net.Dialer{Timeout: patience, Control: func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1)
		}); e != nil {
			return e
		}
		return err
	}}
	conn, err := d.Dial("tcp", a.Addr)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = conn.Close() }) // may be closed already
	conn = &patientConn{Conn: conn}
	w := &wire{t: a.t, Conn: conn, in: bufio.NewReaderSize(conn, 16)}
	w.send(upgradeText(target))
	return w.accepted()
}

// accepted reads the answer to an upgrade, which must be 101.
func (w *wire) accepted() *frames {
	w.t.Helper()
	f, err := w.tryAccepted()
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// tryAccepted is accepted for any goroutine.
func (w *wire) tryAccepted() (*frames, error) {
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return nil, fmt.Errorf("no answer to the upgrade: %w", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		body, _ := io.ReadAll(resp.Body) // it is only shown
		return nil, fmt.Errorf("upgrade: %s %s", resp.Status, body)
	}
	return &frames{wire: w, resp: resp}, nil
}

// masked returns a frame of a client.
func masked(first byte, payload string) string {
	b := []byte{first}
	switch n := len(payload); {
	case n <= 125:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = endian.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = endian.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	key := [4]byte{1, 2, 3, 4}
	b = append(b, key[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^key[i%4])
	}
	return string(b)
}

// closePayload is what a close frame carries.
func closePayload(code int, reason string) string {
	return string(endian.BigEndian.AppendUint16(nil, uint16(code))) + reason
}

// say sends one whole frame.
func (f *frames) say(op byte, payload string) {
	f.t.Helper()
	f.send(masked(frameFin|op, payload))
}

// next returns the next frame, which must be whole and not masked.
func (f *frames) next() (op byte, payload string) {
	f.t.Helper()
	op, payload, err := f.tryNext()
	if err != nil {
		f.t.Fatalf("read a frame: %v", err)
	}
	return op, payload
}

func (f *frames) tryNext() (op byte, payload string, err error) {
	first, payload, err := f.tryFrame()
	if err == nil && first&0xF0 != frameFin {
		err = fmt.Errorf("frame begins with %#x, want a whole frame", first)
	}
	return first & 0x0F, payload, err
}

// tryFrame returns the next frame with its first byte.
func (f *frames) tryFrame() (first byte, payload string, err error) {
	var head [2]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return 0, "", err
	}
	n := uint64(head[1])
	var long [8]byte
	switch n {
	case 126:
		_, err = io.ReadFull(f.in, long[6:])
		n = endian.BigEndian.Uint64(long[:])
	case 127:
		_, err = io.ReadFull(f.in, long[:])
		n = endian.BigEndian.Uint64(long[:])
	}
	if err != nil {
		return 0, "", err
	}
	if head[1]&0x80 != 0 || n > 64<<20 {
		return 0, "", fmt.Errorf("frame header % x of %d bytes, want one without a mask", head, n)
	}
	p := make([]byte, n)
	_, err = io.ReadFull(f.in, p)
	return head[0], string(p), err
}

// want reads the next frame and compares.
func (f *frames) want(op byte, payload string) {
	f.t.Helper()
	if gotOp, got := f.next(); gotOp != op || got != payload {
		f.t.Fatalf("frame %#x %.80q, want %#x %.80q", gotOp, got, op, payload)
	}
}

// wantEnd reads the next frame, which must be a close frame, and the end of the
// connection behind it.
func (f *frames) wantEnd(code int, reason string) {
	f.t.Helper()
	f.want(frameClose, closePayload(code, reason))
	if rest, err := f.rest(); rest != "" || err != nil {
		f.t.Errorf("behind the close frame came %q, %v, want the end", rest, err)
	}
}

// wantClose is wantEnd for a close that the server began: it is answered.
func (f *frames) wantClose(code int, reason string) {
	f.t.Helper()
	f.want(frameClose, closePayload(code, reason))
	f.say(frameClose, closePayload(code, ""))
	if rest, err := f.rest(); rest != "" || err != nil {
		f.t.Errorf("behind the close frame came %q, %v, want the end", rest, err)
	}
}

// skipToClose reads up to a close frame, whatever it says.
func (f *frames) skipToClose() {
	f.t.Helper()
	for op := byte(0); op != frameClose; {
		op, _ = f.next()
	}
}

// run runs PHP code in a message event and returns its result as JSON.
func (f *frames) run(code string) string {
	f.t.Helper()
	f.say(frameText, code)
	op, payload := f.next()
	if op != frameText {
		f.t.Fatalf("frame %#x %q, want text", op, payload)
	}
	return payload
}

// curlUpgrade asks for a socket with curl and returns what it prints: header
// and body.
func (a *app) curlUpgrade(target string, args ...string) (head, body string) {
	a.t.Helper()
	out, err := exec.Command("curl", append([]string{"-sS", "-i", "--max-time", maxTime, "--path-as-is", "--http1.1",
		"-H", "Connection: Upgrade", "-H", "Upgrade: websocket",
		"-H", "Sec-WebSocket-Version: 13", "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
	}, append(args, a.URL+target)...)...).CombinedOutput()
	if err != nil {
		a.t.Fatalf("curl: %v\n%s", err, out)
	}
	head, body, _ = strings.Cut(string(out), "\r\n\r\n")
	return head, body
}
