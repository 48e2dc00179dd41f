package registry

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// An ID names one connection, on every node and for ever. It is unguessable:
// whoever knows it may send to the connection. The zero ID names none.
type ID [16]byte

// NewID returns a random ID.
func NewID() (ID, error) {
	var id ID
	if _, err := rand.Read(id[:]); err != nil {
		return ID{}, err
	}
	return id, nil
}

// ParseID reads an ID as String wrote it: 32 digits, lower case.
func ParseID(s string) (ID, bool) {
	var id ID
	if len(s) != hex.EncodedLen(len(id)) || strings.ContainsAny(s, "ABCDEF") {
		return ID{}, false
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, false
	}
	return id, true
}

// String returns the ID as 32 hexadecimal digits.
func (id ID) String() string {
	return hex.EncodeToString(id[:])
}
