package phpbridge

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// hostFunc is a Host that is a function.
type hostFunc func(c *Call)

func (f hostFunc) HostCall(_ context.Context, c *Call) { f(c) }

func TestHostCallsPassArgumentsAndAnswers(t *testing.T) {
	p := testPool(t, nil)
	var seen []string
	host := hostFunc(func(c *Call) {
		switch c.Func() {
		case WSSend:
			seen = append(seen, fmt.Sprintf("send %q %t", c.Bytes(0), c.Bool(1)))
			c.ReturnBool(true)
		case WSBroadcast:
			seen = append(seen, fmt.Sprintf("broadcast %s %s %t %t", c.String(0), c.Bytes(1), c.Bool(2), c.IsNull(3)))
			c.ReturnInt(-7)
		case WSConnectionClose:
			seen = append(seen, fmt.Sprintf("close %s %d %s", c.Bytes(0), c.Int(1), c.Bytes(2)))
			c.Throw(ThrowValueError, "no 100% such code")
		case WSMembers:
			c.ReturnStrings([]string{"a", "", "b\x00c"})
		}
	})
	r := script(t, `
		echo json_encode(ephpm_ws_send("a\0b", true)), "\n";
		echo json_encode(ephpm_ws_broadcast("c", "text")), "\n";
		try { ephpm_ws_connection_close("id", 4000, "why"); } catch (ValueError $e) { echo get_class($e), ': ', $e->getMessage(), "\n"; }
		echo json_encode(ephpm_ws_members("c")), "\n";
		echo json_encode(ephpm_ws_subscribe("no answer")), "\n";
		try { ephpm_ws_send([]); } catch (TypeError $e) { echo get_class($e), "\n"; }`)
	r.Host = host
	want := "true\n-7\nValueError: no 100% such code\n[\"a\",\"\",\"b\\u0000c\"]\nnull\nTypeError\n"
	if got := body(t, run(t, p, r)); got != want {
		t.Errorf("PHP printed\n%s, want\n%s", got, want)
	}
	wantSeen := `send "a\x00b" true|broadcast c text false true|close id 4000 why`
	if got := strings.Join(seen, "|"); got != wantSeen {
		t.Errorf("the host saw %s, want %s", got, wantSeen)
	}
}

func TestHostCallWithALongArgument(t *testing.T) {
	p := testPool(t, nil)
	got := 0
	r := script(t, `ephpm_ws_send(str_repeat("x", 5_000_000));`)
	r.Host = hostFunc(func(c *Call) { got = len(c.Bytes(0)); c.ReturnBool(true) })
	run(t, p, r)
	if got != 5_000_000 {
		t.Errorf("the host got %d bytes", got)
	}
}

func TestHostCallWithoutAHostThrows(t *testing.T) {
	p := testPool(t, nil)
	got := body(t, run(t, p, script(t, `try { ephpm_ws_send("x"); } catch (Error $e) { echo $e->getMessage(); }`)))
	if !strings.Contains(got, "ephpm_ws_send()") {
		t.Errorf("message %q does not name the function", got)
	}
}
