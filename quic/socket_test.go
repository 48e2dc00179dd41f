package quic

import (
	"bytes"
	"errors"
	"net"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// newSockets returns unsteered sockets of one address that join packets, and a
// client.
func newSockets(t *testing.T, n int) ([]*socket, *net.UDPConn) {
	t.Helper()
	conns, err := openSockets("udp", "127.0.0.1:0", n)
	if err != nil {
		t.Fatal(err)
	}
	var group []*socket
	for i, c := range conns {
		s := newSocket(c, i, func() { t.Error("the kernel refused to split packets") })
		if err := s.joinPackets(); err != nil {
			t.Fatal(err)
		}
		group = append(group, s)
		t.Cleanup(func() { _ = c.Close() })
	}
	for _, s := range group {
		s.group = group
	}
	client, err := net.DialUDP("udp", nil, conns[0].LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return group, client
}

// sendJoined sends packets of one size in one piece.
func sendJoined(t *testing.T, c *net.UDPConn, size uint16, packets []byte) {
	t.Helper()
	control := make([]byte, unix.CmsgSpace(2))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	copy(control[unix.CmsgLen(0):], []byte{byte(size), byte(size >> 8)})
	if _, _, err := c.WriteMsgUDP(packets, control, nil); err != nil {
		t.Fatal(err)
	}
}

// messages are the buffers that quic-go reads to.
func messages() []ipv4.Message {
	ms := make([]ipv4.Message, 8)
	for i := range ms {
		ms[i] = ipv4.Message{Buffers: [][]byte{make([]byte, 1452)}, OOB: make([]byte, 128)}
	}
	return ms
}

func TestSocketTakesJoinedPacketsApart(t *testing.T) {
	group, client := newSockets(t, 1)
	var sent []byte
	for i := range 20 {
		sent = append(sent, bytes.Repeat([]byte{byte(i)}, 1200)...)
	}
	sent = append(sent, 20, 20, 20) // the last may be shorter
	sendJoined(t, client, 1200, sent)

	s, ms := group[0], messages()
	packets := 0
	for packets < 21 {
		_ = s.SetReadDeadline(time.Now().Add(patience))
		n, err := s.ReadBatch(ms, 0)
		if err != nil {
			t.Fatalf("after %d packets: %v", packets, err)
		}
		if packets == 0 && s.in[0].N < 2*1200 {
			t.Errorf("the kernel gave %d bytes at once, want joined packets of 1200", s.in[0].N)
		}
		for _, m := range ms[:n] {
			want := 1200
			if packets == 20 {
				want = 3
			}
			if got := m.Buffers[0][:m.N]; len(got) != want || got[0] != byte(packets) {
				t.Errorf("packet %d has %d bytes of %d, want %d of %d", packets, len(got), got[0], want, packets)
			}
			if m.Addr.String() != client.LocalAddr().String() {
				t.Errorf("packet %d is from %v, want %v", packets, m.Addr, client.LocalAddr())
			}
			packets++
		}
	}
}

func TestSocketHandsOverEachPacketThatIsNotItsOwn(t *testing.T) {
	group, client := newSockets(t, 2)
	// Short headers for connections of both sockets, joined by the kernel.
	var sent []byte
	for i := range 10 {
		p := make([]byte, 100)
		p[0], p[shortID] = 0x40, byte(i)
		sent = append(sent, p...)
	}
	sendJoined(t, client, 100, sent)

	done := make(chan error, 2)
	for _, s := range group {
		go func() { // ended by its fifth packet or its deadline
			ms := messages()
			for seen := 0; seen < 5; {
				n, err := s.ReadBatch(ms, 0)
				if err != nil {
					done <- err
					return
				}
				for _, m := range ms[:n] {
					if got := int(m.Buffers[0][shortID]) % 2; got != s.index || m.N != 100 {
						t.Errorf("socket %d got a packet of %d bytes for socket %d", s.index, m.N, got)
					}
				}
				seen += n
			}
			done <- nil
		}()
	}
	watchdog := time.AfterFunc(patience, func() {
		for _, s := range group {
			_ = s.SetReadDeadline(time.Now())
		}
	})
	defer watchdog.Stop()
	for range group {
		if err := <-done; err != nil {
			t.Errorf("a socket did not get its 5 packets: %v", err)
		}
	}
}

func TestDeadlineOfTheReaderIsNotTakenForAHandover(t *testing.T) {
	group, _ := newSockets(t, 2)
	s := group[0]
	if err := s.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	s.hand([]byte{0x40, 0}, nil, s.LocalAddr())
	if n, err := s.ReadBatch(messages(), 0); n != 1 || err != nil {
		t.Fatalf("got %d packets, %v; want the one that was handed over", n, err)
	}
	if _, err := s.ReadBatch(messages(), 0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
}

func TestFullSocketDropsWhatIsHandedOver(t *testing.T) {
	group, _ := newSockets(t, 2)
	for range maxHanded + 10 {
		group[1].hand([]byte{0x40, 1}, nil, group[1].LocalAddr())
	}
	ms, got := messages(), 0
	for got < maxHanded {
		n, err := group[1].ReadBatch(ms, 0)
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	if got != maxHanded || len(group[1].handed) != 0 {
		t.Errorf("got %d packets and %d are left, want %d and none", got, len(group[1].handed), maxHanded)
	}
}
