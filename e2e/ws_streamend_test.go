package e2e

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	h2 "golang.org/x/net/http2"
)

// streamEnds are the ways to the end of a socket for a client that never ends its
// side of the stream. Each sends something, gets a close frame and maybe answers it.
var streamEnds = map[string]struct {
	send, want, answer string
}{
	"the client closes":       {whole(frameClose, closePayload(4001, "bye")), "\x88\x02\x0f\xa1", ""},
	"the script closes":       {whole(frameText, `ephpm_ws_close(4002);`), "\x88\x02\x0f\xa2", whole(frameClose, closePayload(4002, ""))},
	"the client broke a rule": {"\x81\x01x", "\x88\x02\x03\xea", ""},
	"and goes on":             {"\x81\x01x" + repeat(100), "\x88\x02\x03\xea", repeat(1000)},
}

// The stream of a socket ends with the closing handshake, not when the client ends
// its side: the client is told that the rest of it is not read, without an error.
func TestStreamsEndWithTheirSocket(t *testing.T) {
	t.Parallel()
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		a := startPlay(t, "[server]\nh2c = true\n")
		w := a.frames(nil)
		for name, end := range streamEnds {
			stream := w.next
			w.next += 2
			block := w.fields(":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":path", "/", ":authority", a.Addr, "sec-websocket-version", "13")
			if err := w.WriteHeaders(h2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true}); err != nil {
				t.Fatal(err)
			}
			got := h2answer{}
			until := func(there func() bool) {
				for !there() {
					frame, err := w.ReadFrame()
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					w.take(&got, stream, frame)
				}
			}
			send := func(text string) {
				if err := w.WriteData(stream, false, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			until(func() bool { return got.status != "" })
			send(end.send)
			until(func() bool { return len(got.body) >= len(end.want) || got.ended })
			if end.answer != "" {
				send(end.answer)
			}
			until(func() bool { return got.reset != nil || got.goAway != nil })
			if got.status != "200" || got.body != end.want || !got.ended || got.reset == nil || *got.reset != h2.ErrCodeNo {
				t.Errorf("%s: %+v, want %q, END_STREAM and NO_ERROR", name, got, end.want)
			}
			a.wantMetric("ephpm_ws_connections_active", 0)
		}
	})
	t.Run("HTTP/3", func(t *testing.T) {
		t.Parallel()
		a := startHTTP3(t, appOptions{Root: "testdata/play"})
		c := a.http3Conn()
		for name, end := range streamEnds {
			s, resp := a.openSocket(c, "/", "websocket")
			if resp.StatusCode != 200 {
				t.Fatalf("%s: %s", name, resp.Status)
			}
			if _, err := io.WriteString(s, end.send); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(end.want))
			if n, err := io.ReadFull(s, got); err != nil || string(got) != end.want {
				t.Fatalf("%s: %q, %v, want %q", name, got[:n], err, end.want)
			}
			_, _ = io.WriteString(s, end.answer) // the server may not read it
			if rest, err := io.ReadAll(s); err != nil || len(rest) > 0 {
				t.Errorf("%s: behind the close frame came %q, %v, want the end", name, rest, err)
			}
			var stopped *quic.StreamError
			err := eventually(func() error {
				if _, err := s.Write([]byte("x")); !errors.As(err, &stopped) {
					return fmt.Errorf("write: %v", err)
				}
				return nil
			})
			if err != nil || stopped.ErrorCode != quic.StreamErrorCode(http3.ErrCodeNoError) || !stopped.Remote {
				t.Errorf("%s: sending ends by %v, %v, want H3_NO_ERROR", name, stopped, err)
			}
		}
	})
}
