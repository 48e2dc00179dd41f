package websocket

import (
	"bufio"
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ephpm/descriptor"
)

func TestOverTLS(t *testing.T) {
	t.Run("parked", func(t *testing.T) { testTLS(t, true) })
	t.Run("with goroutines", func(t *testing.T) { testTLS(t, false) })
}

func testTLS(t *testing.T, park bool) {
	done := make(chan (<-chan Closed), 1)
	loop, o := newLoop(t), DefaultOptions()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := loop.New(&o)
		if err := c.Accept(w, r, ""); err != nil {
			t.Error(err)
			return
		}
		done <- start(c, func(ctx context.Context, m Message) error {
			for range 100 {
				c.SendWait(ctx, Prepare(m.Data, m.Binary))
			}
			return nil
		})
	}))
	if park {
		s.Listener = descriptor.Parkable(s.Listener)
	}
	s.StartTLS()
	defer s.Close()
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	cl := &client{t: t, Conn: conn, r: bufio.NewReader(conn)}
	long := strings.Repeat("x", 50000)
	cl.write([]byte(handshake + string(text("early")) + string(text(long))))
	cl.expect101()
	for _, want := range []string{"early", long} {
		for range 100 {
			cl.want(opText, want)
		}
	}
	cl.write(text("\xff"))
	cl.want(opClose, "1007 text is not UTF-8")
	cl.wantEOF()
	conn.Close()
	if got := <-<-done; got.Code != CodeInvalidData || got.FramesOut != 200 {
		t.Errorf("got %+v", got)
	}
}
