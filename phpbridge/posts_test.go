package phpbridge

import (
	"strings"
	"testing"
)

// sends is a script that sends payloads and prints what each call returned, and at
// the end what the host has got.
const sends = `
	foreach ([%s] as $payload) {
		try { echo json_encode(ephpm_ws_send($payload)), " "; } catch (ValueError $e) { echo "throws "; }
	}
	echo ephpm_ws_count();`

// sendHost takes what is sent but "no", of which it returns false.
type sendHost struct{ sent []string }

func (h *sendHost) host() Host {
	return hostFunc(func(c *Call) {
		switch c.Func() {
		case WSCount:
			c.ReturnInt(int64(len(h.sent)))
		case WSSend:
			h.sent = append(h.sent, c.String(0))
			if c.String(0) == "\xff" {
				c.Throw(ThrowValueError, "not UTF-8")
			} else {
				c.ReturnBool(c.String(0) != "no")
			}
		}
	})
}

func TestPostsKeepTheirPlaceAndAreTakenFor(t *testing.T) {
	p := testPool(t, nil)
	long := strings.Repeat("x", 200_000)
	for _, c := range []struct {
		name, payloads, prints, sent string
		most                         int64
		stopped                      bool
	}{
		{"taken", `"a", "b", "ü", "c"`, "true true true true 4", "a b ü c", 0, false},
		{"over the limit it waits", `"abc", "no!!"`, "true true 2", "abc no!!", 3, false},
		{"longer than posts are", `str_repeat("x", 200_000)`, "true 1", long, 0, false},
		{"not UTF-8", `"a", "\xff", "b"`, "true throws true 3", "a \xff b", 0, false},
		{"stopped", `"no", "a"`, "false true 2", "no a", 0, true},
		{"empty", `""`, "true 1", "", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h sendHost
			r := script(t, strings.Replace(sends, "%s", c.payloads, 1))
			r.Host, r.Posts = h.host(), NewPosts(c.most)
			if c.stopped {
				r.Posts.Stop()
			}
			if got := body(t, run(t, p, r)); got != c.prints {
				t.Errorf("printed %q, want %q", got, c.prints)
			}
			if got := strings.Join(h.sent, " "); got != c.sent {
				t.Errorf("the host saw %.40q, want %.40q", got, c.sent)
			}
		})
	}
}

func TestPostThatIsNotTakenIsTheLast(t *testing.T) {
	p := testPool(t, nil)
	var h sendHost
	r := script(t, `
		echo json_encode(ephpm_ws_send("no")), ephpm_ws_count(); // which waits for it
		echo json_encode(ephpm_ws_send("no")), json_encode(ephpm_ws_send("yes"));`)
	r.Host, r.Posts = h.host(), NewPosts(0)
	if got := body(t, run(t, p, r)); got != "true1falsetrue" {
		t.Errorf("printed %q", got)
	}
}

func TestPostsStopInTheMiddle(t *testing.T) {
	p := testPool(t, nil)
	posts := NewPosts(0)
	var h sendHost
	host := h.host()
	r := script(t, `ephpm_ws_members("stop"); echo json_encode(ephpm_ws_send("no"));`)
	r.Posts = posts
	r.Host = hostFunc(func(c *Call) {
		if c.Func() == WSMembers {
			posts.Stop()
		}
		host.HostCall(t.Context(), c)
	})
	if got := body(t, run(t, p, r)); got != "false" {
		t.Errorf("after Stop it printed %q, want what is true", got)
	}
	posts.Stop() // after the request: the job may be another's
	var other sendHost
	r = script(t, `echo json_encode(ephpm_ws_send("no")), ephpm_ws_count();`)
	r.Host, r.Posts = other.host(), NewPosts(0)
	if got := body(t, run(t, p, r)); got != "true1" {
		t.Errorf("the next request printed %q", got)
	}
}

func TestPostsThatNobodyMaySendBreakTheProtocol(t *testing.T) {
	x := &exchange{}
	for name, payload := range map[string][]byte{
		"not a call":         {1},
		"another function":   {byte(WSCount), 0, 1, 0, 0},
		"without permission": {byte(WSSend), 0, 2, 0, 4, 0, 0, 0, 0, 1},
	} {
		if err := x.post(t.Context(), payload); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
