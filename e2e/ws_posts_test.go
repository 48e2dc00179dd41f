package e2e

import (
	"fmt"
	"testing"
)

// ephpm_ws_send to one's own socket does not wait for the server, but knows what
// has become of the socket since the event began.
func TestSendKnowsThatItsSocketWasClosed(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join("", "return 'ended';")
	id, g := s.id(), newGate(t)
	s.send(fmt.Sprintf(`trail(ephpm_ws_send('before')); file_get_contents('%s'); trail(ephpm_ws_send('after'));`, g.path))
	if got := s.recv(); got != "before" {
		t.Errorf("got %q", got)
	}
	g.wait()
	if got := a.page(fmt.Sprintf(`return ephpm_ws_connection_close('%s');`, id)); got != "true" {
		t.Errorf("closing it from a page returned %s", got)
	}
	s.recvClose() // or the server waits for the answer
	g.open()
	a.wantTrail("true", "false", `"ended"`)
}

func TestManySendsOfOneEventArriveInOrder(t *testing.T) {
	t.Parallel()
	a := startPlay(t, patientSends)
	s := a.join("", "")
	const n = 3000
	s.send(fmt.Sprintf(`
		$all = true;
		for ($i = 0; $i < %d; $i++) {
			$all = ephpm_ws_send($i %% 100 ? "$i" : "$i " . str_repeat('ü', 20_000)) && $all;
		}
		return $all;`, n))
	for i := range n {
		var got int
		if _, err := fmt.Sscanf(s.recv(), "%d", &got); err != nil || got != i {
			t.Fatalf("message %d begins with %d, %v", i, got, err)
		}
	}
	if got := s.recv(); got != "true" {
		t.Errorf("ephpm_ws_send returned %s at least once", got)
	}
}
