package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"ephpm/eventstream"
	"ephpm/registry"
)

func TestAskOf(t *testing.T) {
	const events = "text/event-stream"
	for _, c := range []struct {
		method, query string
		header        []string
		want          ask
	}{
		{"GET", "", nil, ask{}},
		{"GET", "", []string{"Accept", "*/*"}, ask{}},
		{"GET", "", []string{"Accept", "text/*"}, ask{}},
		{"GET", "", []string{"Accept", "text/html, " + events + ";q=0"}, ask{}},
		{"GET", "", []string{"Accept", "text/html, Text/Event-Stream;charset=utf-8;q=0.5"}, ask{kind: asksStream}},
		{"GET", "", []string{"Accept", events, "Last-Event-ID", "7-1"}, ask{kind: asksStream, last: "7-1"}},
		{"GET", "last_event_id=7-1", []string{"Accept", events}, ask{kind: asksStream, last: "7-1"}},
		{"GET", "last_event_id=7-1", []string{"Accept", events, "Last-Event-ID", "7-2"}, ask{kind: asksStream, last: "7-2"}},
		{"HEAD", "", []string{"Accept", events}, ask{}},
		{"GET", "a=1&transport=poll&ws_connection_key=k", []string{"Accept", events}, ask{kind: asksPoll, key: "k"}},
		{"GET", "transport=pollen", nil, ask{}},
		{"GET", "a=transport=poll", nil, ask{}},
		{"POST", "transport=poll", nil, ask{}},
		{"POST", "", []string{"WS-Connection-Key", "k"}, ask{kind: sends, key: "k"}},
		{"POST", "ws_connection_key=k", nil, ask{kind: sends, key: "k"}},
		{"PUT", "ws_connection_key=k", nil, ask{}},
		{"DELETE", "ws_connection_key=k", nil, ask{kind: leaves, key: "k"}},
		{"OPTIONS", "ws_connection_key=k", nil, ask{key: "k"}},
		{"OPTIONS", "", []string{"Origin", "https://a.test", askedField, "x"}, ask{}},
		{"OPTIONS", "", []string{"Origin", "https://a.test", askedField, "Content-Type, WS-Connection-Key"}, ask{kind: preflight}},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Add(c.header[i], c.header[i+1])
		}
		if got := askOf(r, c.query); got != c.want {
			t.Errorf("%s ?%s %q asks for %+v, want %+v", c.method, c.query, c.header, got, c.want)
		}
	}
}

func FuzzAskOf(f *testing.F) {
	f.Add("GET", "transport=poll&last_event_id=e7a-1-2", "text/event-stream, */*;q=0.1", "", "")
	f.Add("POST", "ws_connection_key=00", "", "e7a-1", "ws-connection-key")
	f.Add("OPTIONS", "%", "text/event-stream;q=", ";;,,", "\x00")
	f.Fuzz(func(t *testing.T, method, query, accept, last, asked string) {
		r := &http.Request{Method: method, URL: &url.URL{}, Header: http.Header{
			"Accept": {accept}, "Origin": {"https://a.test"}, askedField: {asked},
		}}
		if last != "" {
			r.Header[lastField] = []string{last}
		}
		a := askOf(r, query)
		if a.kind == asksStream && !strings.Contains(strings.ToLower(accept), "text/event-stream") {
			t.Errorf("Accept %q is taken for events", accept)
		}
		if (a.kind == sends || a.kind == leaves) && a.key == "" {
			t.Errorf("%s without a key is about a connection", method)
		}
		if resume := newResume(a.last, 0xe7a, 1<<63); resume.complete() && !strings.HasPrefix(a.last, "e7a-") {
			t.Errorf("a client goes on from %q", a.last)
		}
	})
}

func TestStreamKeysProveWhoOpenedAConnection(t *testing.T) {
	one, other := newStreamKeys(), newStreamKeys()
	id, err := registry.NewID()
	if err != nil {
		t.Fatal(err)
	}
	key := one.of(id)
	if got, ok := one.open(key); !ok || got != id {
		t.Errorf("open(%q) = %v, %v, want the connection", key, got, ok)
	}
	for _, wrong := range []string{"", id.String(), other.of(id), key[:63], key + "0", strings.Repeat("0", 64), key[:32] + strings.Repeat("x", 32), one.of(registry.ID{})[:32] + key[32:]} {
		if _, ok := one.open(wrong); ok {
			t.Errorf("open(%q) = true", wrong)
		}
	}
}

func newestOf(a *histories) uint64 {
	n, _ := a.newest()
	return n
}

func TestHistoryKnowsWhatIsMissing(t *testing.T) {
	a := newHistories(1 << 20)
	a.remember("other", 5, []byte("x")) // 2
	for _, text := range []string{"3", "4", "5", "6"} {
		a.remember("chat", 3, []byte(text))
	}
	past := a.joining("chat", 3)
	defer past.end()
	for _, c := range []struct {
		seq      uint64
		want     string
		complete bool
	}{{2, "4 5 6", false}, {3, "4 5 6", true}, {4, "5 6", true}, {6, "", true}, {100, "", true}} {
		messages, complete := past.since(eventstream.Position{Seq: c.seq})
		if got := payloads(messages); got != c.want || complete != c.complete {
			t.Errorf("since %d: %q, complete %v, want %q, %v", c.seq, got, complete, c.want, c.complete)
		}
	}
	if newest, settled := a.newest(); newest != 6 || settled != 6 {
		t.Errorf("newest() = %d, %d, want 6", newest, settled)
	}
}

// A channel that was forgotten meanwhile has not remembered all, nor one that is new.
func TestHistoryThatWasForgottenIsNotComplete(t *testing.T) {
	a := newHistories(2000)
	a.remember("chat", 5, []byte("2"))
	at := newestOf(a)
	for range 10 {
		a.remember("large", 5, make([]byte, 500))
	}
	for channel, since := range map[string]uint64{"chat": at, "new": at} {
		past := a.joining(channel, 5)
		if _, complete := past.since(eventstream.Position{Seq: since}); complete {
			t.Errorf("%s is complete since %d", channel, since)
		}
		past.end()
	}
	past := a.joining("chat", 5)
	defer past.end()
	if _, complete := past.since(eventstream.Position{Seq: newestOf(a)}); !complete {
		t.Error("nothing was broadcast since, but something is missing")
	}
}

func TestResumeReadsOnlyItsOwnMarks(t *testing.T) {
	for last, want := range map[string]resume{
		"":                                  {},
		"e7a-12":                            {asked: true, since: eventstream.Position{Seq: 12}},
		"e7a-12-5":                          {asked: true, since: eventstream.Position{Seq: 12}},
		"e7a-12.14.20":                      {asked: true, since: eventstream.Position{Seq: 12, Beyond: []uint64{14, 20}}},
		"e7a-12.14.21":                      {asked: true},
		"e7a-21":                            {asked: true},
		"e7b-12":                            {asked: true},
		"e7a-18446744073709551615":          {asked: true},
		"e7a-18446744073709551616":          {asked: true},
		"e7a-" + strings.Repeat("9", 1<<16): {asked: true},
		"nonsense":                          {asked: true},
		eventstream.Over:                    {asked: true},
		"e7a-0":                             {asked: true},
		"e7a-012":                           {asked: true},
		"e7a-12-5 or more":                  {asked: true},
	} {
		if got := newResume(last, 0xe7a, 20); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is read as %+v, want %+v", last, got, want)
		}
	}
}
