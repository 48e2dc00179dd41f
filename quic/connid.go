package quic

import (
	"crypto/rand"

	quicgo "github.com/quic-go/quic-go"
)

// idLen is the length of our connection IDs in bytes. All but a part of the
// first is random.
const idLen = 8

// MaxSockets is the most sockets that an address can have: each gets at least
// four values of an ID's first byte, so that an ID of a small server tells
// little.
const MaxSockets = 64

// connIDs makes the connection IDs of one socket. It implements
// quicgo.ConnectionIDGenerator.
type connIDs struct{ socket, sockets int }

// GenerateConnectionID returns an ID whose first byte is the socket's number
// modulo the number of sockets.
func (g connIDs) GenerateConnectionID() (quicgo.ConnectionID, error) {
	var b [idLen]byte
	rand.Read(b[:]) // never fails
	choices := (256-g.socket-1)/g.sockets + 1
	b[0] = byte(g.socket + g.sockets*(int(b[0])%choices))
	return quicgo.ConnectionIDFromBytes(b[:]), nil
}

// ConnectionIDLen returns the length of all IDs.
func (g connIDs) ConnectionIDLen() int { return idLen }

// Where the destination connection ID is: RFC 8999 §5.1 and, for short headers,
// which do not tell its length, §5.2.
const (
	longHeader = 0x80 // in the first byte
	longIDLen  = 5    // index of the ID's length
	longID     = 6    // index of its first byte
	shortID    = 1    // the same without a long header
)

// socketOf returns the number of the socket that a packet is for. What names
// none, such as a packet that is cut short, is any socket's: it is false then. A
// client's first packets have an ID that it invented; they go where it points.
func socketOf(packet []byte, sockets int) (int, bool) {
	at := shortID
	if len(packet) > 0 && packet[0]&longHeader != 0 {
		if len(packet) <= longIDLen || packet[longIDLen] == 0 {
			return 0, false
		}
		at = longID
	}
	if len(packet) <= at {
		return 0, false
	}
	return int(packet[at]) % sockets, true
}
