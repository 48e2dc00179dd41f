package server

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestClientsCountAddresses(t *testing.T) {
	c := newClients(2)
	at := func(ip string) *peer { return &peer{ip: netip.MustParseAddr(ip)} }
	for _, step := range []struct {
		ip   string
		want bool
	}{
		{"192.0.2.1", true}, {"192.0.2.1", true}, {"192.0.2.1", false}, {"::ffff:192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8:0:1::1", true}, {"2001:db8:0:1:ffff::2", true}, {"2001:db8:0:1::3", false}, {"2001:db8:0:2::1", true},
	} {
		if _, ok := c.enter(at(step.ip)); ok != step.want {
			t.Errorf("a socket of %s: %v, want %v", step.ip, ok, step.want)
		}
	}
	c.leave(limitKey(netip.MustParseAddr("192.0.2.1")))
	if _, ok := c.enter(at("192.0.2.1")); !ok {
		t.Error("no room after one has left")
	}
	c.leave(limitKey(netip.MustParseAddr("192.0.2.2")))
	c.leave(limitKey(netip.MustParseAddr("2001:db8:0:2::9")))
	if len(c.sockets) != 2 {
		t.Errorf("%d addresses are remembered, want the 2 with sockets", len(c.sockets))
	}
}

func TestClientsExemptTrustedProxies(t *testing.T) {
	c := newClients(1)
	for range 3 {
		client, ok := c.enter(&peer{ip: netip.MustParseAddr("10.0.0.1"), proxy: true})
		if !ok || client.IsValid() {
			t.Errorf("a proxy: %v, %v, want in and not counted", client, ok)
		}
		c.leave(client)
	}
	if client, ok := (*clients)(nil).enter(&peer{ip: netip.MustParseAddr("10.0.0.1")}); !ok || client.IsValid() {
		t.Errorf("without a limit: %v, %v, want in and not counted", client, ok)
	}
}

func TestClientIsCountedEverywhereOrNowhere(t *testing.T) {
	server, site := newClients(3), newClients(1)
	here, elsewhere := clientCounts{server, site}, clientCounts{server, newClients(0)}
	p := &peer{ip: netip.MustParseAddr("10.0.0.1")}
	first, ok := here.enter(p)
	if !ok || !first.IsValid() {
		t.Fatalf("the first: %v, %v", first, ok)
	}
	for range 5 {
		if _, ok := here.enter(p); ok {
			t.Error("a second socket at a site with room for one")
		}
	}
	for range 2 { // what was refused has left nothing
		if _, ok := elsewhere.enter(p); !ok {
			t.Error("no room on the server after refusals of a site")
		}
	}
	if _, ok := elsewhere.enter(p); ok {
		t.Error("a fourth socket at a server with room for three")
	}
	here.leave(first)
	if _, ok := here.enter(p); !ok {
		t.Error("no room at the site when its socket has left")
	}
	if client, ok := (clientCounts{nil, nil}).enter(p); !ok || client.IsValid() {
		t.Errorf("without limits: %v, %v, want in and not counted", client, ok)
	}
}

func TestMessagePaceHasABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMessagePace(10, 3), &traffic{}
		time.Sleep(time.Minute)
		for i := range 3 {
			if !m.admits(c) {
				t.Fatalf("message %d of the burst is refused", i+1)
			}
			m.handled(c)
		}
		if m.admits(c) {
			t.Fatal("one more than the burst is admitted")
		}
		for i := range 20 {
			time.Sleep(100 * time.Millisecond)
			if !m.admits(c) {
				t.Fatalf("message %d at the pace is refused", i+1)
			}
			m.handled(c)
		}
		if m.admits(c) {
			t.Error("one more than the pace is admitted")
		}
	})
}

// What a slow script held up comes all at once when it has ended.
func TestMessagePaceForgivesWhatHadToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMessagePace(10, 3), &traffic{}
		time.Sleep(time.Minute)
		if !m.admits(c) {
			t.Fatal("the first message is refused")
		}
		time.Sleep(2 * time.Second) // the script
		m.handled(c)
		for i := range 20 {
			if !m.admits(c) {
				t.Fatalf("message %d of those that came meanwhile is refused", i+1)
			}
			m.handled(c)
		}
		for i := range 2 { // 3 at once, the first message among them
			if !m.admits(c) {
				t.Fatalf("message %d of the burst on top is refused", i+1)
			}
		}
		if m.admits(c) {
			t.Error("more than the pace and the burst is admitted")
		}
		time.Sleep(time.Hour) // a pause is no credit
		for i := range 4 {
			if got := m.admits(c); got != (i < 3) {
				t.Errorf("message %d after a pause: %v", i+1, got)
			}
			m.handled(c)
		}
	})
}
