package websocket

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"unicode/utf8"
)

// A deadLine takes nothing: what is pending stays.
type deadLine struct{}

func (deadLine) start(*Conn)      {}
func (deadLine) flush(*Conn)      {}
func (deadLine) wakeReader(*Conn) {}
func (deadLine) halfClose(*Conn)  {}
func (deadLine) hangUp(*Conn)     {}

// A recorder is a Handler that keeps what it is told.
type recorder struct{ log []string }

func (r *recorder) Message(m Message) error {
	r.log = append(r.log, fmt.Sprintf("%v %q", m.Binary, m.Data))
	return nil
}
func (r *recorder) Closing()      {}
func (r *recorder) Closed(Closed) {}

// feedAll feeds b in pieces of at most step bytes and tells what came of it.
func feedAll(l *Loop, o *Options, b []byte, step int) (log []string, how string) {
	r := &recorder{}
	c := l.New(o)
	c.handler, c.line = r, deadLine{}
	var held []byte
	defer l.crew.wait()
	for {
		used, v, err := c.feed(held)
		held = held[used:]
		switch {
		case err != nil:
			how = fmt.Sprint(err.code, err.reason)
		case v == ended:
			c.mu.Lock()
			if e := c.end; e != nil {
				how = fmt.Sprint("peer ", e.code, e.reason)
			} else {
				how = fmt.Sprint("peer ", c.later.code, c.later.reason)
			}
			c.mu.Unlock()
		case v == paused:
			l.crew.wait()
			continue
		case len(b) > 0:
			n := min(step, len(b))
			held, b = append(held, b[:n]...), b[n:]
			continue
		default:
			how = "open"
		}
		l.crew.wait()
		return r.log, how
	}
}

// However the bytes are cut, the messages and the end are the same; a message is
// text only if it is UTF-8, and not larger than allowed.
func FuzzFeed(f *testing.F) {
	f.Add(append(text("hello"), closing(1000, "bye")...), uint8(3))
	f.Add(append(masked(opText, []byte("κόσ")), masked(fin, []byte("με"))...), uint8(1))
	f.Add(append(masked(opText, []byte("a\xf4")), masked(fin, []byte("\x90\x80\x80"))...), uint8(0))
	f.Add(masked(fin|opBinary, make([]byte, 300)), uint8(1))
	f.Add([]byte{fin | opText, maskBit | 127, 0x80, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4}, uint8(5))
	f.Add([]byte{fin | opText, maskBit | 126, 0, 1, 0, 0, 0, 0, 'x'}, uint8(5))
	f.Add(appendFrame(nil, opBinary, make([]byte, 70000)), uint8(200))
	f.Add(append(masked(fin|opPing, []byte("ping")), masked(opBinary, make([]byte, 200))...), uint8(9))
	o := &Options{MaxFrameSize: 256, MaxMessageSize: 400, QueueFrames: 1}
	l := NewLoop()
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		want, wantHow := feedAll(l, o, b, len(b)+1)
		got, how := feedAll(l, o, b, int(step)+1)
		if how != wantHow || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("in pieces of %d: %q, %s; at once: %q, %s", step+1, got, how, want, wantHow)
		}
	})
}

func TestUnmask(t *testing.T) {
	key := [4]byte{1, 2, 3, 4}
	for n := range 40 {
		want := make([]byte, n)
		for i := range want {
			want[i] = key[i%4]
		}
		got := make([]byte, n)
		unmask(key, got)
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

func TestPartRune(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "a": 0, "ä": 0, "\xc3": 1, "a\xe2\x82": 2, "\xf0\x9f\x98": 3, "\xf0\x9f\x98\x80": 0,
		"\xf4\x90": 0, "\xed\xa0": 0, "\x80": 0, "\xff": 0, "\xe2": 1,
	} {
		if got := partRune([]byte(s)); got != want {
			t.Errorf("partRune(%q) = %d, want %d", s, got, want)
		}
	}
}

// A declared length costs nothing until the bytes come.
func TestDeclaredLengthIsNotAllocated(t *testing.T) {
	o := &Options{QueueFrames: 1}
	c := newLoop(t).New(o)
	c.handler, c.line = &recorder{}, deadLine{}
	head := binary.BigEndian.AppendUint64([]byte{fin | opBinary, maskBit | 127}, 1<<40)
	if _, _, err := c.feed(append(head, 1, 2, 3, 4, 'x')); err != nil {
		t.Fatal(err)
	}
	if cap(c.in.data) > firstRoom {
		t.Errorf("%d bytes allocated for one that came", cap(c.in.data))
	}
}

// Text is refused at the first byte that makes it impossible.
func TestBadTextIsRefusedAtOnce(t *testing.T) {
	for _, s := range []string{"ok\xff", "ok\xf4\x90", "\xed\xa0", "\xc0", "κ\x80"} {
		for i := range len(s) + 1 {
			c := newLoop(t).New(&Options{QueueFrames: 1})
			c.handler, c.line = &recorder{}, deadLine{}
			frame := masked(opText, []byte(s+"more that does not come"))
			_, _, err := c.feed(frame[:len(frame)-len(s+"more that does not come")+i])
			hopeless := i == len(s)
			if (err == errNotUTF8) != hopeless {
				t.Errorf("%q after %d bytes: %v, want refused %v", s, i, err, hopeless)
			}
		}
	}
	if utf8.FullRune([]byte("\xf4\x8f")) {
		t.Error("a rune that can be completed counts as full")
	}
}
