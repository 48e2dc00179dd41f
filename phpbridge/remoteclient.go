package phpbridge

// #include "wire.h"
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"syscall"
	"time"
)

// A RemoteHost is the Host of a site in a server that runs, reached over its
// control socket. One goroutine may use it at a time. After an error that is no
// *Thrown it cannot be used any more.
type RemoteHost struct {
	conn net.Conn
}

// A Thrown is the exception that a host call threw, as an error.
type Thrown struct {
	Class   ThrowClass
	Message string
}

func (t *Thrown) Error() string { return t.Message }

// MaxCall is the most bytes of one host call, the values of its arguments included.
const MaxCall = C.EPHPM_CALL_MAX

// Errors of DialHost and RemoteHost.Call.
var (
	errNoneRuns  = errors.New("none is running")
	errEnded     = errors.New("it ended the connection")
	errMalformed = errors.New("its answer is malformed")
)

// DialHost connects to the server that listens on a Unix socket, for one of its
// sites; an empty name means the only one. The caller closes the RemoteHost.
func DialHost(ctx context.Context, socket, site string) (*RemoteHost, error) {
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, errNoneRuns
	}
	if err != nil {
		return nil, plain(err)
	}
	h := &RemoteHost{conn}
	hello := append(binary.LittleEndian.AppendUint16(nil, remoteVersion), site...)
	if _, err := h.exchange(ctx, recHello, hello, recWelcome); err != nil {
		_ = conn.Close() // the first error counts
		return nil, err
	}
	return h, nil
}

// Close ends the connection.
func (h *RemoteHost) Close() error { return h.conn.Close() }

// Call makes one host call with arguments as NewCall takes them, int64 too. The
// result is nil, a bool, an int64, []byte, [][]byte for a list or []Entry for an
// array, whose values are of these types but [][]byte. An exception is a *Thrown.
func (h *RemoteHost) Call(ctx context.Context, f Func, arguments ...any) (any, error) {
	if len(arguments) > math.MaxUint16 {
		return nil, fmt.Errorf("one call has %d arguments, at most %d are possible", len(arguments), math.MaxUint16)
	}
	call := encodeCall(f, arguments...)
	if len(call) > MaxCall {
		return nil, fmt.Errorf("one call has %d bytes, at most %d are possible", len(call), MaxCall)
	}
	p, err := h.exchange(ctx, recCall, call, recAnswer)
	if err != nil {
		return nil, err
	}
	return parseAnswer(p)
}

// exchange sends a record and returns the payload of the answer, until ctx ends.
func (h *RemoteHost) exchange(ctx context.Context, kind recordType, payload []byte, want recordType) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = h.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	sent := writeRemote(h.conn, kind, payload)
	// Why a server ends the connection early it says first.
	got, p, err := readAnyRemote(h.conn, MaxAnswer)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && got == recRefused:
		return nil, errors.New(string(p))
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(sent, syscall.EPIPE):
		return nil, errEnded
	case sent != nil:
		return nil, plain(sent)
	case err != nil:
		return nil, plain(err)
	case got != want:
		return nil, fmt.Errorf("record of type %d, want %d", got, want)
	}
	return p, nil
}

// plain is the cause of a network's error: the address is the caller's to name.
func plain(err error) error {
	if op := new(net.OpError); errors.As(err, &op) {
		return op.Err
	}
	return err
}

// encodeCall is the payload of a CALL record: what parseCall reads.
func encodeCall(f Func, arguments ...any) []byte {
	p := binary.LittleEndian.AppendUint16(nil, uint16(f))
	p = binary.LittleEndian.AppendUint16(p, uint16(len(arguments)))
	for _, a := range arguments {
		switch a := a.(type) {
		case nil:
			p = append(p, C.EPHPM_VAL_NULL)
		case bool:
			kind := byte(C.EPHPM_VAL_FALSE)
			if a {
				kind = C.EPHPM_VAL_TRUE
			}
			p = append(p, kind)
		case int:
			p = binary.LittleEndian.AppendUint64(append(p, C.EPHPM_VAL_INT), uint64(a))
		case int64:
			p = binary.LittleEndian.AppendUint64(append(p, C.EPHPM_VAL_INT), uint64(a))
		case string:
			p = appendText(append(p, C.EPHPM_VAL_STRING), []byte(a))
		case []byte:
			p = appendText(append(p, C.EPHPM_VAL_STRING), a)
		default:
			panic(fmt.Sprintf("phpbridge: no argument of type %T", a))
		}
	}
	return p
}
