package phpbridge

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// echoHost answers ephpm_ws_connection_send() with its payload, and
// ephpm_ws_broadcast() with an exception.
type echoHost struct{ site string }

func (h echoHost) HostCall(_ context.Context, c *Call) {
	switch c.Func() {
	case WSConnectionSend:
		c.ReturnString(c.Bytes(1))
	case WSCount:
		c.ReturnString([]byte(h.site))
	case WSBroadcast:
		c.Throw(ThrowValueError, "refused")
	}
}

func findEcho(site string) (Host, error) {
	if site == "none" {
		return nil, errors.New("it has no site \"none\"")
	}
	return echoHost{site}, nil
}

// callServer serves calls on a Unix socket until the test ends.
func callServer(t *testing.T) (socket string, end func()) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_ = ServeCalls(ctx, conn, findEcho) // the other side sees
			})
		}
	})
	end = func() {
		cancel()
		_ = l.Close()
		wg.Wait()
	}
	t.Cleanup(end)
	return socket, end
}

func TestCommandLineCallsAServer(t *testing.T) {
	socket, _ := callServer(t)
	for _, c := range []struct{ site, code, want string }{
		{"", `echo ephpm_ws_connection_send("id", "payload\0\xff") === "payload\0\xff" ? "same" : "other";`, "same"},
		{"", `$s = str_repeat("x", 3000000); echo ephpm_ws_connection_send("id", $s) === $s ? "same" : "other";`, "same"},
		{"", `for ($i = 0; $i < 1000; $i++) if (ephpm_ws_connection_send("id", "$i") !== "$i") echo "other"; echo "done";`, "done"},
		{"a.example", `echo ephpm_ws_count();`, "a.example"},
		{"", `try { ephpm_ws_broadcast("c", "x"); } catch (ValueError $e) { echo $e->getMessage(); }`, "refused"},
		{"none", `try { ephpm_ws_count(); } catch (Error $e) { echo $e->getMessage(); }`, "ephpm_ws_count() cannot reach the server at " + socket + `: it has no site "none"`},
		{"", `if (!function_exists("pcntl_fork")) die("01child1");
			ephpm_ws_connection_send("id", "x"); ob_start(); $p = pcntl_fork();
			for ($i = 0; $i < 200; $i++) { if (ephpm_ws_connection_send("id", "$p $i") !== "$p $i") die("other"); }
			if ($p) { pcntl_waitpid($p, $status); echo $status, ephpm_ws_connection_send("id", "1"), "child", 1; } else { exit(0); }`, "01child1"},
	} {
		status, stdout, stderr := cliWith(t, CLIServer{socket, c.site}, "", "-r", c.code)
		if status != 0 || stdout != c.want || stderr != "" {
			t.Errorf("%s: %d, %q, %q; want %q", c.code, status, stdout, stderr, c.want)
		}
	}
}

func TestCommandLineWithoutItsServer(t *testing.T) {
	socket, end := callServer(t)
	end()
	const code = `try { ephpm_ws_count(); } catch (Error $e) { echo $e->getMessage(); }`
	for name, want := range map[string]string{
		socket:                         "none is running",
		"/does/not/exist":              "none is running",
		"/" + strings.Repeat("x", 200): "ephpm_ws_count() cannot reach the server at /" + strings.Repeat("x", 200) + ": File name too long",
		"no server is running":         "ephpm_ws_count() cannot reach the server: no server is running",
	} {
		if status, stdout, stderr := cliWith(t, CLIServer{Socket: name}, "", "-r", code); status != 0 || !strings.HasSuffix(stdout, want) || stderr != "" {
			t.Errorf("%s: %d, %q, %q; want %q", name, status, stdout, stderr, want)
		}
	}
}

// hello, call and the others are records of a caller.
func remoteRecord(kind recordType, payload string) string {
	var b bytes.Buffer
	_ = writeRemote(&b, kind, []byte(payload)) // a Buffer takes all
	return b.String()
}

var goodCall = appendCall(WSCount, "\x00\x01")

func appendCall(f Func, values string) string {
	p := binary.LittleEndian.AppendUint16(nil, uint16(f))
	return string(binary.LittleEndian.AppendUint16(p, uint16(len(values)))) + values
}

// remoteOver answers what is in the string as if a caller had sent it.
type remoteOver struct {
	io.Reader
	answer bytes.Buffer
}

func (r *remoteOver) Write(p []byte) (int, error) { return r.answer.Write(p) }

func serveString(s string) (answer string, err error) {
	r := &remoteOver{Reader: strings.NewReader(s)}
	host, err := greet(r, findEcho)
	for err == nil {
		err = serveCall(context.Background(), r, host, new(ends))
	}
	return r.answer.String(), err
}

func TestCallersThatMisbehaveAreRefused(t *testing.T) {
	hello := remoteRecord(recHello, "\x01\x00")
	for name, c := range map[string]struct{ sent, want string }{
		"no hello":          {remoteRecord(recCall, goodCall), "record of type 5, want 32"},
		"an empty hello":    {remoteRecord(recHello, ""), "HELLO without a version"},
		"another version":   {remoteRecord(recHello, "\x02\x00"), "the server speaks version 1 of its protocol and the caller version 2: they are of different releases of ephpm"},
		"a second hello":    {hello + hello, "record of type 32, want 5"},
		"an unknown call":   {hello + remoteRecord(recCall, "\xff\xff\x00\x00"), "call of function 65535 with 0 arguments"},
		"a call cut":        {hello + remoteRecord(recCall, goodCall)[:10], "unexpected EOF"},
		"a length too long": {hello + "\xff\xff\xff\xff\x05\x00\x00\x00", "record of type 5 with 4294967295 bytes, at most 67108864 are possible"},
	} {
		answer, err := serveString(c.sent)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || !strings.HasSuffix(answer, remoteRecord(recRefused, err.Error())) {
			t.Errorf("%s: %v, answered %q; want %q", name, err, answer, c.want)
		}
	}
	if answer, err := serveString(hello + remoteRecord(recCall, goodCall)); err != io.EOF ||
		answer != remoteRecord(recWelcome, "\x01\x00")+remoteRecord(recAnswer, "\x04\x00\x00\x00\x00") {
		t.Errorf("a call: %v, %q", err, answer)
	}
}

func FuzzServeCalls(f *testing.F) {
	hello := remoteRecord(recHello, "\x01\x00")
	f.Add(hello + remoteRecord(recCall, goodCall))
	f.Add(hello + remoteRecord(recCall, appendCall(WSConnectionSend, "\x04\x01\x00\x00\x00a\x04\x01\x00\x00\x00b\x01")))
	f.Add(hello[:9])
	f.Add("\xff\xff\xff\x03\x05\x00\x00\x00")
	f.Fuzz(func(t *testing.T, sent string) {
		if _, err := serveString(sent); err == nil {
			t.Error("there is no end")
		}
	})
}
