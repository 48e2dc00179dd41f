package quic

import (
	"bufio"
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	quicgo "github.com/quic-go/quic-go"
)

const (
	secretLen  = 32 // bytes
	maxSecrets = 16
	maxKeyFile = 64 << 10 // bytes
)

// Keys are what clients keep a part of: tokens that prove an address, tokens
// that end a connection that we lost, session tickets. A process that has the
// keys of the one before it, or of another node, takes all of them up. Keys are
// never changed and may be used from any goroutine.
type Keys struct {
	secrets [][]byte // the first is for what is new, all are for what comes back
}

// NewKeys returns keys that nobody else has.
func NewKeys() *Keys {
	secret := make([]byte, secretLen)
	rand.Read(secret) // never fails
	return &Keys{secrets: [][]byte{secret}}
}

// LoadKeys reads the keys of a file, which it makes if there is none. Errors name
// the file, and the line if there is one to name.
func LoadKeys(file string) (*Keys, error) {
	keys, err := readKeys(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	if err := makeKeyFile(file); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make key file: %w", err)
	}
	return readKeys(file) // what another process made at the same time counts
}

func readKeys(file string) (*Keys, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", file)
	case info.Mode().Perm()&0o027 != 0:
		return nil, fmt.Errorf("%s can be read or written by others (mode %04o); run: chmod 600 %s", file, info.Mode().Perm(), file)
	case info.Size() > maxKeyFile:
		return nil, fmt.Errorf("%s is too large for a key file", file)
	}
	text := make([]byte, info.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	keys, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return keys, nil
}

// parseKeys reads one secret a line in hexadecimal digits, the newest first.
// Empty lines and lines that start with "#" say nothing. Errors never contain
// what is in the file.
func parseKeys(text []byte) (*Keys, error) {
	keys := &Keys{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		secret, err := hex.DecodeString(line)
		if err != nil || len(secret) != secretLen {
			return nil, fmt.Errorf("line %d: want %d hexadecimal digits", n, 2*secretLen)
		}
		if len(keys.secrets) == maxSecrets {
			return nil, fmt.Errorf("line %d: more than %d keys", n, maxSecrets)
		}
		keys.secrets = append(keys.secrets, secret)
	}
	if err := lines.Err(); err != nil {
		return nil, errors.New("a line is too long for a key")
	}
	if len(keys.secrets) == 0 {
		return nil, errors.New("there is no key in it")
	}
	return keys, nil
}

// makeKeyFile makes the file as a whole, so that nobody reads a part of it.
func makeKeyFile(file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".ephpm-keys-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = fmt.Fprintf(f, "# Keys of QUIC tokens and session tickets, for all servers of the same names.\n"+
		"# Put a new one first to change them, and drop the last a week later.\n%s\n", hex.EncodeToString(NewKeys().secrets[0]))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), file)
}

// Tickets returns the keys of session tickets for one purpose: the first for new
// ones, all for those that come back (tls.Config.SetSessionTicketKeys).
func (k *Keys) Tickets(purpose string) [][32]byte {
	keys := make([][32]byte, len(k.secrets))
	for i, secret := range k.secrets {
		keys[i] = derive(secret, "session tickets of "+purpose)
	}
	return keys
}

// token returns the key of tokens that prove a client's address (RFC 9000 §8.1).
func (k *Keys) token() *quicgo.TokenGeneratorKey {
	key := quicgo.TokenGeneratorKey(derive(k.secrets[0], "address validation tokens"))
	return &key
}

// reset returns the key of stateless resets (RFC 9000 §10.3.2).
func (k *Keys) reset() *quicgo.StatelessResetKey {
	key := quicgo.StatelessResetKey(derive(k.secrets[0], "stateless resets"))
	return &key
}

// derive returns a key that tells nothing of the others.
func derive(secret []byte, purpose string) (key [32]byte) {
	b, err := hkdf.Key(sha256.New, secret, nil, "ephpm quic "+purpose, len(key))
	if err != nil {
		panic(err) // only for a length that HKDF cannot make
	}
	return [32]byte(b)
}
