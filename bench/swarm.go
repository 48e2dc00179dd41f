package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A swarm is many WebSocket clients on one goroutine: raw frames, an epoll set
// and no buffer of their own, so that the client costs the server's machine as
// little as possible.
type swarm struct {
	set     int
	buf     []byte
	message func(p *peer, op byte, size uint64) // called for every whole message
	lost    atomic.Int64                        // peers that the server closed
	stop    atomic.Bool
	done    chan struct{}

	mu    sync.Mutex // guards the following
	peers []*peer    // by descriptor
	count int        // that were ever opened
}

// A peer is one client.
type peer struct {
	fd     int
	index  int
	header [10]byte
	have   int    // bytes of header
	left   uint64 // of the payload
	inside bool   // the payload
	size   uint64 // of the message so far
	op     byte   // of the message
	sentAt time.Time
}

const dialTimeout = 20 * time.Second

// newSwarm starts a swarm; close ends it.
func newSwarm(message func(p *peer, op byte, size uint64)) (*swarm, error) {
	set, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	s := &swarm{set: set, buf: make([]byte, 256<<10), message: message, done: make(chan struct{})}
	go s.run() // close waits for it
	return s, nil
}

// close ends all clients without a word.
func (s *swarm) close() {
	s.stop.Store(true)
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers {
		if p != nil {
			_ = syscall.Close(p.fd) // nobody is told
		}
	}
	_ = syscall.Close(s.set)
}

func (s *swarm) run() {
	defer close(s.done)
	runtime.LockOSThread()
	events := make([]syscall.EpollEvent, 512)
	for !s.stop.Load() {
		n, err := syscall.EpollWait(s.set, events, 50)
		if err != nil && err != syscall.EINTR {
			return
		}
		for _, e := range events[:max(0, n)] {
			s.mu.Lock()
			p := s.peers[e.Fd]
			s.mu.Unlock()
			if p != nil {
				s.read(p)
			}
		}
	}
}

// open opens n more clients, so many at a time.
func (s *swarm) open(addr, path string, n, parallel int) error {
	target, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	from := s.count
	for range min(parallel, n) {
		wg.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := s.openOne(target, path, from+i); err != nil {
					err = fmt.Errorf("client %d: %w", from+i, err)
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	s.count += n
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *swarm) openOne(target netip.AddrPort, path string, index int) error {
	fd, rest, err := dial(target, path, index)
	if err != nil {
		return err
	}
	p := &peer{fd: fd, index: index}
	s.feed(p, rest)
	if err := syscall.SetNonblock(fd, true); err != nil {
		return err
	}
	s.mu.Lock()
	for len(s.peers) <= fd {
		s.peers = append(s.peers, make([]*peer, 4096)...)
	}
	s.peers[fd] = p
	s.mu.Unlock()
	return syscall.EpollCtl(s.set, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

// dial opens a WebSocket, from one of several addresses of the loopback, since
// one has not ports for all. rest is what came behind the answer.
func dial(target netip.AddrPort, path string, index int) (fd int, rest []byte, err error) {
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		if err != nil {
			_ = syscall.Close(fd) // it is of no use
		}
	}()
	const bindNoPort = 24 // IP_BIND_ADDRESS_NO_PORT
	limit := syscall.NsecToTimeval(int64(dialTimeout))
	err = errors.Join(
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, bindNoPort, 1),
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit),
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &limit),
		syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, byte(2 + index%8)}}),
		connect(fd, target),
	)
	if err != nil {
		return 0, nil, fmt.Errorf("connect: %w", err)
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	key := base64.StdEncoding.EncodeToString(random[:])
	if err := writeAll(fd, []byte(handshake(target.String(), path, key))); err != nil {
		return 0, nil, fmt.Errorf("handshake: %w", err)
	}
	var got []byte
	for buf := make([]byte, 2048); len(got) < 16<<10; {
		n, err := retry(func() (int, error) { return syscall.Read(fd, buf) })
		if err != nil || n == 0 {
			return 0, nil, fmt.Errorf("handshake: no answer: %w", err)
		}
		got = append(got, buf[:n]...)
		if head, rest, ok := bytes.Cut(got, []byte("\r\n\r\n")); ok {
			return fd, rest, checkAnswer(string(head), key)
		}
	}
	return 0, nil, errors.New("handshake: endless answer")
}

// connect goes on when a signal interrupts it.
func connect(fd int, target netip.AddrPort) error {
	for {
		err := syscall.Connect(fd, &syscall.SockaddrInet4{Addr: target.Addr().As4(), Port: int(target.Port())})
		if err == nil || err == syscall.EISCONN {
			return nil
		}
		if err != syscall.EINTR && err != syscall.EALREADY {
			return err
		}
	}
}

// handshake is the request, with what a browser would send.
func handshake(host, path, key string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Origin: http://" + host + "\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\r\n" +
		"Accept-Encoding: gzip, deflate, br\r\nAccept-Language: en-GB,en;q=0.9\r\nCookie: session=0123456789abcdef0123456789abcdef\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + "\r\n\r\n"
}

func checkAnswer(head, key string) error {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	if status, _, _ := strings.Cut(head, "\r\n"); !strings.HasPrefix(status, "HTTP/1.1 101 ") ||
		!strings.Contains(head, base64.StdEncoding.EncodeToString(sum[:])) {
		return fmt.Errorf("handshake: %s", status)
	}
	return nil
}

// read takes what came for p.
func (s *swarm) read(p *peer) {
	n, err := syscall.Read(p.fd, s.buf)
	switch {
	case n > 0:
		s.feed(p, s.buf[:n])
	case err == syscall.EAGAIN || err == syscall.EINTR:
	default:
		s.drop(p)
	}
}

func (s *swarm) drop(p *peer) {
	s.lost.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peers[p.fd] == p {
		s.peers[p.fd] = nil
		_ = syscall.Close(p.fd) // it left the set by that
	}
}

// feed follows the frames in b. Control frames of a server have short headers.
func (s *swarm) feed(p *peer, b []byte) {
	for len(b) > 0 {
		if !p.inside {
			p.header[p.have] = b[0]
			b = b[1:]
			if p.have++; p.have < 2 || p.have < headerLen(p.header[1]) {
				continue
			}
			p.have, p.inside = 0, true
			p.left = payloadLen(p.header)
			if op := p.header[0] & 15; op == 1 || op == 2 {
				p.op, p.size = op, 0
			}
		}
		n := min(p.left, uint64(len(b)))
		p.left -= n
		b = b[n:]
		if p.header[0]&8 == 0 {
			p.size += n
		}
		if p.left > 0 {
			return
		}
		p.inside = false
		switch p.header[0] {
		case 0x80, 0x81, 0x82:
			s.message(p, p.op, p.size)
		case 0x89:
			_ = writeAll(p.fd, clientFrame(10, nil)) // empty pings are all the servers send
		}
	}
}

func headerLen(second byte) int {
	switch second & 127 {
	case 126:
		return 4
	case 127:
		return 10
	}
	return 2
}

func payloadLen(h [10]byte) uint64 {
	switch n := h[1] & 127; n {
	case 126:
		return uint64(binary.BigEndian.Uint16(h[2:]))
	case 127:
		return binary.BigEndian.Uint64(h[2:])
	default:
		return uint64(n)
	}
}

// clientFrame returns a masked frame of less than 64 KiB.
func clientFrame(op byte, payload []byte) []byte {
	b := []byte{0x80 | op, 0x80 | byte(len(payload))}
	if len(payload) > 125 {
		b[1] = 0x80 | 126
		b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
	}
	mask := [4]byte{0x5A, 0xC3, 0x17, 0x88}
	b = append(b, mask[:]...)
	for i, x := range payload {
		b = append(b, x^mask[i&3])
	}
	return b
}

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := retry(func() (int, error) { return syscall.Write(fd, b) })
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func retry(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); err != syscall.EINTR {
			return n, err
		}
	}
}
