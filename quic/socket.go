package quic

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

const (
	readBatch  = 8        // datagrams of one system call
	maxRead    = 64 << 10 // of one, which holds many packets when the kernel joins them
	maxControl = 128      // of the data beside one: address, ECN bits, packet size
	maxHanded  = 256      // packets that wait for a socket that did not read them itself
	udpGROLen  = 4        // an int, as the kernel writes it
)

// A socket is one UDP socket as quic-go reads and writes it: it passes as a
// net.UDPConn, but for what quic-go lacks. It lets the kernel join packets (UDP
// GRO) and takes them apart, and it hands packets of other sockets over.
// ReadBatch is for one goroutine.
type socket struct {
	*net.UDPConn
	index   int
	group   []*socket     // all sockets of the address, this one too
	handed  chan datagram // by others; when it is full, packets are dropped as in a network
	onNoGSO func()        // called when the kernel refuses to take packets apart for us

	mu       sync.Mutex // guards the following
	deadline time.Time  // that quic-go has set

	// Owned by ReadBatch.
	conn *ipv4.PacketConn
	in   []ipv4.Message // reused
	read int            // of in were read
	at   int            // of those is being taken apart
	rest []byte         // of that, not yet returned
	size int            // of a packet in it
}

// A datagram is what one socket hands to another.
type datagram struct {
	data    []byte
	control []byte
	addr    net.Addr
}

func newSocket(c *net.UDPConn, index int, onNoGSO func()) *socket {
	s := &socket{
		UDPConn: c,
		index:   index,
		handed:  make(chan datagram, maxHanded),
		onNoGSO: onNoGSO,
		conn:    ipv4.NewPacketConn(c), // reads IPv6 too
		in:      make([]ipv4.Message, readBatch),
	}
	for i := range s.in {
		s.in[i].Buffers = [][]byte{make([]byte, maxRead)}
		s.in[i].OOB = make([]byte, maxControl)
	}
	return s
}

// joinPackets asks the kernel for GRO.
func (s *socket) joinPackets() error {
	return control(s.UDPConn, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	})
}

// ReadBatch fills messages with one packet each and returns how many it filled,
// at least one without an error. quic-go calls it in place of its own.
func (s *socket) ReadBatch(to []ipv4.Message, flags int) (int, error) {
	for {
		n := 0
		for n < len(to) && s.takeHanded(&to[n]) {
			n++
		}
		for n < len(to) && s.takeRead(&to[n]) {
			n++
		}
		if n > 0 {
			return n, nil
		}
		if err := s.fill(flags); err != nil {
			return 0, err
		}
	}
}

// fill reads from the kernel. It returns without an error when there is something
// or when there may be something that another socket read.
func (s *socket) fill(flags int) error {
	n, err := s.conn.ReadBatch(s.in, flags)
	if err != nil {
		n = 0
		if errors.Is(err, os.ErrDeadlineExceeded) && s.rearm() {
			err = nil
		}
	}
	s.read, s.at = n, 0
	s.open()
	return err
}

// open begins to take apart what is at s.at.
func (s *socket) open() {
	if s.at >= s.read {
		s.rest = nil
		return
	}
	m := &s.in[s.at]
	s.rest = m.Buffers[0][:m.N]
	s.size = packetSize(m.OOB[:m.NN])
	if s.size <= 0 {
		s.size = len(s.rest)
	}
}

// takeRead moves the next packet that was read and is ours, and reports whether
// there was one.
func (s *socket) takeRead(to *ipv4.Message) bool {
	for s.at < s.read {
		if len(s.rest) == 0 {
			s.at++
			s.open()
			continue
		}
		packet := s.rest[:min(s.size, len(s.rest))]
		s.rest = s.rest[len(packet):]
		m := &s.in[s.at]
		if owner := s.ownerOf(packet); owner != s {
			owner.hand(packet, m.OOB[:m.NN], m.Addr)
			continue
		}
		put(to, packet, m.OOB[:m.NN], m.Addr)
		return true
	}
	return false
}

// ownerOf returns the socket that a packet is for.
func (s *socket) ownerOf(packet []byte) *socket {
	if len(s.group) < 2 {
		return s
	}
	if i, ok := socketOf(packet, len(s.group)); ok {
		return s.group[i]
	}
	return s
}

// takeHanded moves the next packet that another socket read for this one.
func (s *socket) takeHanded(to *ipv4.Message) bool {
	select {
	case d := <-s.handed:
		put(to, d.data, d.control, d.addr)
		return true
	default:
		return false
	}
}

// put makes a message of a packet. One that is longer than the buffer is cut, as
// the kernel would; nothing of QUIC's is.
func put(to *ipv4.Message, packet, control []byte, addr net.Addr) {
	to.N = copy(to.Buffers[0], packet)
	to.NN = copy(to.OOB[:cap(to.OOB)], control)
	to.Addr = addr
	to.Flags = 0
}

// hand gives the socket a packet that another one read. It may be called from any
// goroutine and keeps nothing of what it is given.
func (s *socket) hand(packet, control []byte, addr net.Addr) {
	both := make([]byte, len(packet)+len(control))
	n := copy(both, packet)
	copy(both[n:], control)
	select {
	case s.handed <- datagram{data: both[:n:n], control: both[n:], addr: addr}:
	default:
		return // it is busy enough
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deadline.IsZero() {
		_ = s.UDPConn.SetReadDeadline(time.Unix(1, 0)) // long ago: it wakes. A closed one is not read
	}
}

// rearm takes back the deadline of hand, and reports whether it was that.
func (s *socket) rearm() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.deadline.IsZero() {
		return false
	}
	return s.UDPConn.SetReadDeadline(time.Time{}) == nil
}

// SetReadDeadline is net.Conn's. quic-go ends its reader by it.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	return s.UDPConn.SetReadDeadline(t)
}

// WriteMsgUDP is net.UDPConn's. quic-go notices by itself that the kernel refuses
// to split what it is given (EIO, when the device computes no checksums) and goes
// on packet by packet.
func (s *socket) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = s.UDPConn.WriteMsgUDP(b, oob, addr)
	if err != nil && errors.Is(err, unix.EIO) {
		s.onNoGSO()
	}
	return n, oobn, err
}

// packetSize returns the size of the packets that the kernel joined, 0 when it
// did not, from the data beside them.
func packetSize(control []byte) int {
	for len(control) > 0 {
		h, body, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return 0
		}
		if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && len(body) >= udpGROLen {
			return int(binary.NativeEndian.Uint32(body))
		}
		control = rest
	}
	return 0
}
