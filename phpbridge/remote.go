package phpbridge

// #include "wire.h"
import "C"

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The records of remote callers; wire.h describes each.
const (
	recHello   recordType = C.EPHPM_REC_HELLO
	recWelcome recordType = C.EPHPM_REC_WELCOME
	recRefused recordType = C.EPHPM_REC_REFUSED
	recAnswer  recordType = C.EPHPM_REC_ANSWER
)

const (
	remoteVersion = C.EPHPM_REMOTE_VERSION
	// helloWait is how long a caller may take to say hello.
	helloWait = 10 * time.Second
	// helloMax is the longest HELLO: a version and the name of a site.
	helloMax = 2 + 256
)

// ServeCalls answers the host calls that another process makes over conn, such as
// a script on the command line, until it ends the connection or ctx ends. find
// returns the Host of a site; an empty name means the only one. Its error is told
// to the caller. conn is the caller's to close. ServeCalls returns nil when the
// other process has ended the connection in good order.
func ServeCalls(ctx context.Context, conn net.Conn, find func(site string) (Host, error)) error {
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // ends a read
	if err := conn.SetReadDeadline(time.Now().Add(helloWait)); err != nil {
		return err
	}
	host, err := greet(conn, find)
	if err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err() // its deadline may just have been undone
	}
	var ends ends
	defer ends.run()
	for {
		err := serveCall(ctx, conn, host, &ends)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// greet takes HELLO and answers it.
func greet(conn io.ReadWriter, find func(site string) (Host, error)) (Host, error) {
	p, err := readRemote(conn, recHello, helloMax)
	if err != nil {
		return nil, refuse(conn, err)
	}
	if len(p) < 2 {
		return nil, refuse(conn, errors.New("HELLO without a version"))
	}
	version := binary.LittleEndian.Uint16(p)
	if version != remoteVersion {
		return nil, refuse(conn, fmt.Errorf("the server speaks version %d of its protocol and the caller version %d: they are of different releases of ephpm", remoteVersion, version))
	}
	host, err := find(string(p[2:]))
	if err != nil {
		return nil, refuse(conn, err)
	}
	return host, writeRemote(conn, recWelcome, binary.LittleEndian.AppendUint16(nil, remoteVersion))
}

// serveCall takes one CALL and answers it; io.EOF when there is none any more.
func serveCall(ctx context.Context, conn io.ReadWriter, host Host, ends *ends) error {
	p, err := readRemote(conn, recCall, C.EPHPM_CALL_MAX)
	if errors.Is(err, io.EOF) {
		return err
	}
	if err != nil {
		return refuse(conn, err)
	}
	c, err := parseCall(p)
	if err != nil {
		return refuse(conn, err)
	}
	c.ends = ends
	host.HostCall(ctx, c)
	if len(c.answer) > MaxAnswer {
		c.Throw(ThrowError, "the server's answer is too long")
	}
	return writeRemote(conn, recAnswer, c.answerOrNull())
}

// refuse tells the caller why the connection ends, and returns err.
func refuse(conn io.Writer, err error) error {
	_ = writeRemote(conn, recRefused, []byte(err.Error())) // it may have gone
	return err
}

// readRemote reads a record, which must be of one kind. The error is io.EOF at the
// end of the connection between two records.
func readRemote(r io.Reader, kind recordType, most int64) ([]byte, error) {
	got, n, err := readRemoteHeader(r)
	if err != nil {
		return nil, err
	}
	if got != kind {
		return nil, fmt.Errorf("record of type %d, want %d", got, kind)
	}
	return readRemotePayload(r, got, n, most)
}

// readAnyRemote is readRemote for a record of any kind.
func readAnyRemote(r io.Reader, most int64) (kind recordType, payload []byte, err error) {
	kind, n, err := readRemoteHeader(r)
	if err != nil {
		return 0, nil, err
	}
	payload, err = readRemotePayload(r, kind, n, most)
	return kind, payload, err
}

func readRemoteHeader(r io.Reader) (kind recordType, n int64, err error) {
	var header [C.EPHPM_RECORD_HEADER]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, 0, err
	}
	return recordType(header[4]), int64(binary.LittleEndian.Uint32(header[:])), nil
}

// readRemotePayload takes memory as the bytes come, not as they are announced.
func readRemotePayload(r io.Reader, kind recordType, n, most int64) ([]byte, error) {
	if n > most {
		return nil, fmt.Errorf("record of type %d with %d bytes, at most %d are possible", kind, n, most)
	}
	var b bytes.Buffer
	if m, err := b.ReadFrom(io.LimitReader(r, n)); err != nil || m < n {
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return b.Bytes(), nil
}

func writeRemote(w io.Writer, kind recordType, payload []byte) error {
	header := binary.LittleEndian.AppendUint32(make([]byte, 0, C.EPHPM_RECORD_HEADER+len(payload)), uint32(len(payload)))
	header = append(header, byte(kind), 0, 0, 0)
	_, err := w.Write(append(header, payload...))
	return err
}
