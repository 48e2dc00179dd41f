package phpbridge

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestRemoteHostCallsAServer(t *testing.T) {
	socket, end := callServer(t)
	h, err := DialHost(t.Context(), socket, "a.example")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	big := bytes.Repeat([]byte("x"), 3<<20)
	for _, c := range []struct {
		f    Func
		args []any
		want any
	}{
		{WSCount, []any{nil, false}, []byte("a.example")},
		{WSConnectionSend, []any{"id", "a\x00\xff", true}, []byte("a\x00\xff")},
		{WSConnectionSend, []any{"id", big, false}, big},
		{WSMembers, []any{"c", int64(-1), true}, nil},
	} {
		if got, err := h.Call(t.Context(), c.f, c.args...); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("call %d: %.20v, %v; want %.20v", c.f, got, err, c.want)
		}
	}
	_, err = h.Call(t.Context(), WSBroadcast, "c", "x", false, nil)
	if thrown := new(Thrown); !errors.As(err, &thrown) || *thrown != (Thrown{ThrowValueError, "refused"}) {
		t.Errorf("an exception: %v", err)
	}
	if _, err := h.Call(t.Context(), WSConnectionSend, "id", make([]byte, MaxCall), true); err == nil || !strings.HasPrefix(err.Error(), "one call has 671088") {
		t.Errorf("too long a call: %v", err)
	}
	if _, err := h.Call(t.Context(), WSCount); err == nil || err.Error() != "call of function 10 with 0 arguments" {
		t.Errorf("a call without its argument: %v", err)
	}
	if _, err := h.Call(t.Context(), WSCount, nil, false); !errors.Is(err, errEnded) {
		t.Errorf("a call behind it: %v", err)
	}
	end()
	if _, err := DialHost(t.Context(), socket, ""); !errors.Is(err, errNoneRuns) {
		t.Errorf("without a server: %v", err)
	}
}

func TestDialHostIsRefused(t *testing.T) {
	socket, _ := callServer(t)
	if _, err := DialHost(t.Context(), socket, "none"); err == nil || err.Error() != `it has no site "none"` {
		t.Errorf("a site that is none: %v", err)
	}
	if _, err := DialHost(t.Context(), "/"+strings.Repeat("x", 200), ""); err == nil {
		t.Error("a path too long: no error")
	}
}

// A server that never answers is left when the context ends.
func TestRemoteHostGivesUpWithItsContext(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 100)) // the hello
		cancel()
		_, _ = conn.Read(make([]byte, 100)) // the end
	})
	if _, err := DialHost(ctx, socket, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
}

// answerOf is the payload that a Host's answer has.
func answerOf(set func(*Call)) []byte {
	c := new(Call)
	set(c)
	return c.answerOrNull()
}

func TestParseAnswerReadsWhatCallsReturn(t *testing.T) {
	for _, c := range []struct {
		set  func(*Call)
		want any
	}{
		{func(*Call) {}, nil},
		{func(c *Call) { c.ReturnBool(true) }, true},
		{func(c *Call) { c.ReturnBool(false) }, false},
		{func(c *Call) { c.ReturnInt(-1 << 63) }, int64(-1 << 63)},
		{func(c *Call) { c.ReturnString(nil) }, []byte{}},
		{func(c *Call) { c.ReturnStrings(nil) }, [][]byte{}},
		{func(c *Call) { c.ReturnStrings([]string{"a\x00", ""}) }, [][]byte{[]byte("a\x00"), {}}},
		{func(c *Call) { c.ReturnArray(nil) }, []Entry{}},
		{func(c *Call) {
			c.ReturnArray([]Entry{{[]byte("k"), [][]byte{[]byte("v")}}, {[]byte{}, int64(7)}, {nil, nil}})
		}, []Entry{{[]byte("k"), []Entry{{nil, []byte("v")}}}, {[]byte{}, int64(7)}, {nil, nil}}},
	} {
		p := answerOf(c.set)
		if got, err := parseAnswer(p); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %#v, %v; want %#v", p, got, err, c.want)
		}
		for i := range p {
			if got, err := parseAnswer(p[:i]); err == nil {
				t.Errorf("%q cut at %d: %v, want an error", p, i, got)
			}
		}
		if got, err := parseAnswer(append(p, 0)); err == nil {
			t.Errorf("%q and a byte: %v, want an error", p, got)
		}
	}
	thrown := answerOf(func(c *Call) { c.Throw(ThrowError, "why") })
	if _, err := parseAnswer(thrown); !reflect.DeepEqual(err, &Thrown{ThrowError, "why"}) {
		t.Errorf("an exception: %v", err)
	}
	for i := range thrown {
		if _, err := parseAnswer(thrown[:i]); !errors.Is(err, errMalformed) {
			t.Errorf("an exception cut at %d: %v", i, err)
		}
	}
	deep := strings.Repeat("\x07\x01\x00\x00\x00\x00", 100) + "\x00"
	if _, err := parseAnswer([]byte(deep)); !errors.Is(err, errMalformed) {
		t.Errorf("a hundred arrays in each other: %v", err)
	}
}

func TestParseCallReadsWhatEncodeCallWrites(t *testing.T) {
	for _, c := range []struct {
		f    Func
		args []any
	}{
		{KVSet, []any{"k\x00", []byte("\xff"), 5}},
		{KVCAS, []any{"k", nil, "v", int64(-1)}},
		{WSBroadcast, []any{"c", "p", true, "x"}},
		{WSBroadcast, []any{"c", "p", false, nil}},
		{KVDel, []any{"a", "", "c"}},
	} {
		got, err := parseCall(encodeCall(c.f, c.args...))
		if err != nil {
			t.Errorf("%d %q: %v", c.f, c.args, err)
			continue
		}
		for i, a := range c.args {
			if n, ok := a.(int64); ok {
				c.args[i] = int(n)
			}
		}
		want := NewCall(c.f, c.args...)
		got.ends, want.ends = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d %q: %+v, want %+v", c.f, c.args, got, want)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add(answerOf(func(*Call) {}))
	f.Add(answerOf(func(c *Call) { c.ReturnBool(true) }))
	f.Add(answerOf(func(c *Call) { c.ReturnStrings([]string{"a", "b"}) }))
	f.Add(answerOf(func(c *Call) { c.Throw(ThrowError, "why") }))
	f.Add(answerOf(func(c *Call) {
		c.ReturnArray([]Entry{{[]byte("keys"), [][]byte{[]byte("k")}}, {[]byte("cursor"), int64(7)}, {nil, nil}})
	}))
	f.Add([]byte("\x07\xff\xff\xff\xff\x00\x00"))
	f.Add([]byte(strings.Repeat("\x07\x01\x00\x00\x00\x00", 9) + "\x00"))
	f.Fuzz(func(t *testing.T, p []byte) {
		v, err := parseAnswer(p)
		if err != nil && v != nil {
			t.Errorf("%v and %v", v, err)
		}
	})
}
