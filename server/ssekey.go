package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"ephpm/registry"
)

// streamKeys makes the keys of a site's event streams. A key proves that a request
// comes from whoever opened the connection: its ID does not, scripts give IDs away. It
// is the ID and a code that only the site can make, so it is not kept anywhere.
type streamKeys struct{ secret [32]byte }

func newStreamKeys() (k streamKeys) {
	rand.Read(k.secret[:]) // never fails
	return k
}

// of returns the key of a connection: 64 hexadecimal digits.
func (k *streamKeys) of(id registry.ID) string {
	return id.String() + hex.EncodeToString(k.code(id))
}

// open returns the connection whose key it is.
func (k *streamKeys) open(key string) (registry.ID, bool) {
	const digits = 2 * len(registry.ID{})
	if len(key) != 2*digits {
		return registry.ID{}, false
	}
	id, ok := registry.ParseID(key[:digits])
	code, err := hex.DecodeString(key[digits:])
	if !ok || err != nil || !hmac.Equal(code, k.code(id)) {
		return registry.ID{}, false
	}
	return id, true
}

func (k *streamKeys) code(id registry.ID) []byte {
	h := hmac.New(sha256.New, k.secret[:])
	h.Write(id[:])
	return h.Sum(nil)[:len(id)]
}
