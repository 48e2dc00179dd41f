package descriptor

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A member is a connection that Turns serve; it leaves in a turn when asked to.
type member struct {
	ticket Ticket
	fd     int
	leaves chan bool // has one value: leave
	turns  chan turnTaken
}

type turnTaken struct {
	events  uint32
	claimed bool
}

func newMember(fd int) *member {
	return &member{fd: fd, leaves: make(chan bool, 1), turns: make(chan turnTaken, 100)}
}

// want waits for a turn of one kind; others may come before.
func (m *member) want(t *testing.T, what string, ok func(turnTaken) bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case got := <-m.turns:
			if ok(got) {
				return
			}
		case <-late:
			t.Fatalf("no turn for %s", what)
		}
	}
}

func newTurns(t *testing.T) *Turns[*member] {
	t.Helper()
	var turns *Turns[*member]
	turn := func(m *member, events uint32, claimed bool) {
		select {
		case <-m.leaves:
			turns.Leave(m)
			_ = unix.Close(m.fd)
		default:
		}
		m.turns <- turnTaken{events, claimed}
	}
	turns, err := NewTurns(func(m *member) *Ticket { return &m.ticket }, turn, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(turns.Close)
	return turns
}

func wantClaimed(got turnTaken) bool  { return got.claimed }
func wantReadable(got turnTaken) bool { return !got.claimed && got.events&In != 0 }

func TestTurnsForEventsAndClaims(t *testing.T) {
	turns := newTurns(t)
	server, client := pair(t)
	d, ok := Park(server)
	if !ok {
		t.Fatal("a TCP connection cannot be parked")
	}
	m := newMember(d.FD)
	if err := turns.Add(m, m.fd, In|Edge); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	m.want(t, "what came", wantReadable)
	turns.Claim(m)
	m.want(t, "a claim", wantClaimed)
	m.leaves <- true
	turns.Claim(m)
	m.want(t, "a claim", wantClaimed)
	if n := turns.Len(); n != 0 {
		t.Errorf("%d connections are there after the only one has left", n)
	}
}

// Whoever comes gets the place of who left, and nothing of what was meant for that.
func TestTurnsGivePlacesAgain(t *testing.T) {
	turns := newTurns(t)
	for range 50 {
		server, client := pair(t)
		d, ok := Park(server)
		if !ok {
			t.Fatal("a TCP connection cannot be parked")
		}
		m := newMember(d.FD)
		if err := turns.Add(m, m.fd, In|Edge); err != nil {
			t.Fatal(err)
		}
		m.leaves <- true
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		m.want(t, "what came", wantReadable)
	}
	turns.mu.Lock()
	defer turns.mu.Unlock()
	if len(turns.conns) != 2 || turns.conns[1] != nil || len(turns.free) != 1 {
		t.Errorf("%d of %d slots are free after the end", len(turns.free), len(turns.conns)-1)
	}
}
