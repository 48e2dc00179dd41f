package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"

	h2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// An h2wire is a connection of HTTP/2 frame by frame, for what no client would
// send.
type h2wire struct {
	t testing.TB
	net.Conn
	*h2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer // of encoder
	next    uint32       // stream
}

// An h2answer is what came on one stream.
type h2answer struct {
	status string
	header map[string]string
	body   string
	ended  bool              // by END_STREAM
	reset  *h2.ErrCode       // or by this
	goAway *h2.ErrCode       // or the connection by this
	hints  []h2informational // before the answer
}

type h2informational struct{ status, link string }

// frames opens a connection: TLS with the authority, plain text with nil.
func (a *app) frames(ca *authority) *h2wire {
	a.t.Helper()
	w, err := a.tryFrames(ca)
	if err != nil {
		a.t.Fatal(err)
	}
	return w
}

// tryFrames is frames for any goroutine.
func (a *app) tryFrames(ca *authority) (*h2wire, error) {
	conn, err := net.DialTimeout("tcp", a.Addr, patience)
	if err != nil {
		return nil, err
	}
	conn = &patientConn{Conn: conn}
	if ca != nil {
		conn = tls.Client(conn, &tls.Config{RootCAs: ca.Pool, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
	}
	a.t.Cleanup(func() { _ = conn.Close() }) // may be closed already
	w := &h2wire{t: a.t, Conn: conn, Framer: h2.NewFramer(conn, conn), next: 1}
	w.encoder = hpack.NewEncoder(&w.block)
	w.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, h2.ClientPreface); err != nil {
		return nil, err
	}
	return w, w.WriteSettings()
}

// fields encodes pairs of names and values.
func (w *h2wire) fields(pairs ...string) []byte {
	w.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = w.encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}) // to memory
	}
	return w.block.Bytes()
}

// ask sends a whole GET with further fields and returns its stream.
func (w *h2wire) ask(path string, more ...string) uint32 {
	w.t.Helper()
	pairs := append([]string{":method", "GET", ":scheme", "https", ":path", path}, more...)
	stream := w.next
	w.next += 2
	err := w.WriteHeaders(h2.HeadersFrameParam{StreamID: stream, BlockFragment: w.fields(pairs...), EndStream: true, EndHeaders: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return stream
}

// answer reads until the stream or the connection ends.
func (w *h2wire) answer(stream uint32) h2answer {
	w.t.Helper()
	a, err := w.tryAnswer(stream)
	if err != nil {
		w.t.Fatalf("stream %d: %v", stream, err)
	}
	return a
}

// tryAnswer is answer for any goroutine.
func (w *h2wire) tryAnswer(stream uint32) (h2answer, error) {
	a := h2answer{header: map[string]string{}}
	for !a.ended && a.reset == nil && a.goAway == nil {
		frame, err := w.ReadFrame()
		if err != nil {
			return a, err
		}
		w.take(&a, stream, frame)
	}
	return a, nil
}

// take adds a frame to what came on a stream. What it answers itself may find the
// connection closed, which the next frame will tell.
func (w *h2wire) take(a *h2answer, stream uint32, frame h2.Frame) {
	switch f := frame.(type) {
	case *h2.SettingsFrame:
		if !f.IsAck() {
			_ = w.WriteSettingsAck()
		}
	case *h2.GoAwayFrame:
		a.goAway = &f.ErrCode
		return
	}
	if frame.Header().StreamID != stream {
		return
	}
	switch f := frame.(type) {
	case *h2.MetaHeadersFrame:
		status := f.PseudoValue("status")
		header := map[string]string{}
		for _, field := range f.RegularFields() {
			header[field.Name] = field.Value
		}
		if status != "" && status[0] == '1' {
			a.hints = append(a.hints, h2informational{status, header["link"]})
			break
		}
		a.status, a.header, a.ended = status, header, f.StreamEnded()
	case *h2.DataFrame:
		a.body += string(f.Data())
		a.ended = f.StreamEnded()
		if n := len(f.Data()); n > 0 {
			_ = w.WriteWindowUpdate(0, uint32(n))
			if !a.ended {
				_ = w.WriteWindowUpdate(stream, uint32(n))
			}
		}
	case *h2.RSTStreamFrame:
		a.reset = &f.ErrCode
	}
}

// String is for failures.
func (a h2answer) String() string {
	switch {
	case a.goAway != nil:
		return fmt.Sprintf("the connection was ended: %v", *a.goAway)
	case a.reset != nil:
		return fmt.Sprintf("reset: %v, after %s %q", *a.reset, a.status, a.body)
	}
	return fmt.Sprintf("%s %q", a.status, a.body)
}
