package server

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/pires/go-proxyproto"
)

// The PROXY protocol of HAProxy, section 2.
const (
	proxyV1Max   = 107 // bytes of a header of version 1
	proxyV1Least = 15  // "PROXY UNKNOWN\r\n"
	proxyV2Fixed = 16  // bytes of version 2 before what its length counts
	proxyV2Max   = 4 << 10
)

var (
	proxyV1Start = []byte("PROXY ")
	proxyV2Start = []byte("\r\n\r\n\x00\r\nQUIT\n")
)

// readProxyHeader reads the header that a proxy sends before anything else, within
// limit, and not a byte more. It returns the addresses of the client and of where
// it connected to; nil when the proxy connects for itself or does not know.
func readProxyHeader(c net.Conn, limit time.Duration) (remote, local net.Addr, err error) {
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return nil, nil, err
	}
	header, err := proxyHeader(c)
	if err != nil {
		return nil, nil, err
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return nil, nil, err
	}
	return parseProxyHeader(header)
}

// proxyHeader reads the bytes of the header.
func proxyHeader(r io.Reader) ([]byte, error) {
	b := make([]byte, proxyV1Least, proxyV1Max)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(b, proxyV1Start):
		for !bytes.HasSuffix(b, []byte("\n")) {
			if len(b) == proxyV1Max {
				return nil, errors.New("line too long")
			}
			b = b[:len(b)+1]
			if _, err := io.ReadFull(r, b[len(b)-1:]); err != nil {
				return nil, err
			}
		}
		return b, nil
	case bytes.HasPrefix(b, proxyV2Start):
		b = b[:proxyV2Fixed]
		if _, err := io.ReadFull(r, b[proxyV1Least:]); err != nil {
			return nil, err
		}
		n := int(binary.BigEndian.Uint16(b[proxyV2Fixed-2:]))
		if n > proxyV2Max {
			return nil, fmt.Errorf("%d bytes are too long", n)
		}
		b = append(b, make([]byte, n)...)
		_, err := io.ReadFull(r, b[proxyV2Fixed:])
		return b, err
	}
	return nil, errors.New("something else came first")
}

// parseProxyHeader returns the addresses in a header.
func parseProxyHeader(b []byte) (remote, local net.Addr, err error) {
	h, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(b), max(16, len(b)))) // version 1 wants it in one piece
	if err != nil {
		return nil, nil, err
	}
	if h.Command.IsLocal() {
		return nil, nil, nil
	}
	from, ok1 := h.SourceAddr.(*net.TCPAddr)
	to, ok2 := h.DestinationAddr.(*net.TCPAddr)
	if !ok1 || !ok2 || from == nil || to == nil {
		return nil, nil, nil // of another kind, or unknown
	}
	return from, to, nil
}
