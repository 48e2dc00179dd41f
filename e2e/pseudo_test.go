package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go/quicvarint"
	h2 "golang.org/x/net/http2"
)

// badFields are requests of HTTP/2 and HTTP/3 that no client would send: what stands
// in a line of HTTP/1.1 is a field here, which may hold anything (RFC 9113 §8.2, §8.3,
// RFC 9114 §4.2, §4.3). None may run a script.
var badFields = map[string][]string{
	"no method":             {":scheme", "https", ":path", "/", ":authority", "x"},
	"no path":               {":method", "GET", ":scheme", "https", ":authority", "x"},
	"an empty path":         {":method", "GET", ":scheme", "https", ":path", "", ":authority", "x"},
	"two paths":             {":method", "GET", ":scheme", "https", ":path", "/", ":path", "/y", ":authority", "x"},
	"two methods":           {":method", "GET", ":method", "POST", ":scheme", "https", ":path", "/", ":authority", "x"},
	"two authorities":       {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", ":authority", "y"},
	"a method with a space": {":method", "GET /y HTTP/1.1", ":scheme", "https", ":path", "/", ":authority", "x"},
	"a method with a line":  {":method", "GET\r\nX: y", ":scheme", "https", ":path", "/", ":authority", "x"},
	"an empty method":       {":method", "", ":scheme", "https", ":path", "/", ":authority", "x"},
	"a path with a line":    {":method", "GET", ":scheme", "https", ":path", "/\r\nX: y", ":authority", "x"},
	"a path with a space":   {":method", "GET", ":scheme", "https", ":path", "/ HTTP/1.1", ":authority", "x"},
	"a path with a NUL":     {":method", "GET", ":scheme", "https", ":path", "/\x00", ":authority", "x"},
	"a path with %00":       {":method", "GET", ":scheme", "https", ":path", "/%00", ":authority", "x"},
	"a path that goes up":   {":method", "GET", ":scheme", "https", ":path", "/../x", ":authority", "x"},
	"a path encoded up":     {":method", "GET", ":scheme", "https", ":path", "/%2e%2e/x", ":authority", "x"},
	"a backslash":           {":method", "GET", ":scheme", "https", ":path", "/a%5cb", ":authority", "x"},
	"no slash":              {":method", "GET", ":scheme", "https", ":path", "index.php", ":authority", "x"},
	"an asterisk":           {":method", "GET", ":scheme", "https", ":path", "*", ":authority", "x"},
	"a CONNECT":             {":method", "CONNECT", ":authority", "x:80"},
	"a CONNECT with a path": {":method", "CONNECT", ":scheme", "https", ":path", "/", ":authority", "x"},
	"a user":                {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "user@x"},
	"a path as authority":   {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x/y"},
	"a line in authority":   {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x\r\nX: y"},
	"a space in authority":  {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x y"},
	"dots as authority":     {":method", "GET", ":scheme", "https", ":path", "/", ":authority", ".."},
	"another host":          {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "host", "y"},
	"two other hosts":       {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "host", "x", "host", "y"},
	"an unknown one":        {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", ":admin", "1"},
	"one of responses":      {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", ":status", "200"},
	"a late one":            {":method", "GET", ":scheme", "https", ":authority", "x", "x", "y", ":path", "/"},
	"upper case":            {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "X-Upper", "y"},
	"a name with a space":   {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "x y", "z"},
	"a name with a colon":   {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "x: y", "z"},
	"a name with a line":    {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "x\r\ny", "z"},
	"an empty name":         {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "", "z"},
	"a value with a line":   {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "x", "y\r\nhost: z"},
	"a value with a NUL":    {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "x", "y\x00z"},
	"connection":            {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "connection", "close"},
	"transfer-encoding":     {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "transfer-encoding", "chunked"},
	"te":                    {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "te", "gzip"},
	"upgrade":               {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "upgrade", "websocket"},
	"a length without body": {":method", "POST", ":scheme", "https", ":path", "/", ":authority", "x", "content-length", "5"},
	"two lengths":           {":method", "POST", ":scheme", "https", ":path", "/", ":authority", "x", "content-length", "0", "content-length", "5"},
	"a length below 0":      {":method", "POST", ":scheme", "https", ":path", "/", ":authority", "x", "content-length", "-1"},
}

// refusedFields asks for each of badFields, and wants an error or a reset. It reports
// the status of what was answered, 0 for a stream or a connection that ended.
func refusedFields(t *testing.T, mark string, ask func(fields []string) (int, error), fine func() error) {
	t.Helper()
	for name, fields := range badFields {
		status, err := ask(fields)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case status != 0 && (status < 400 || status >= 502):
			t.Errorf("%s: answered with %d", name, status)
		}
		if ran, err := os.ReadFile(mark); err == nil {
			t.Errorf("%s: a script was run: %s", name, ran)
			_ = os.Remove(mark) // for the next
		}
	}
	if err := fine(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// markPage leaves a mark when it runs.
func markPage(mark string) map[string]string {
	return map[string]string{
		"index.php": `<?php file_put_contents('` + mark + `', json_encode($_SERVER));`,
		"fine.php":  `<?php echo "fine";`,
	}
}

func TestHTTP2FieldsThatNobodySends(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a, ca := startTLS(t, appOptions{Files: markPage(mark)})
	ask := func(fields []string) (int, error) {
		w := a.frames(ca) // of its own: some end the connection
		defer w.Close()
		err := w.WriteHeaders(h2.HeadersFrameParam{StreamID: 1, BlockFragment: w.fields(fields...), EndStream: true, EndHeaders: true})
		if err != nil {
			return 0, err
		}
		got := h2answer{header: map[string]string{}}
		for !got.ended && got.reset == nil && got.goAway == nil {
			frame, err := w.ReadFrame()
			if errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "reset") {
				return 0, nil
			}
			if err != nil {
				return 0, err
			}
			w.take(&got, 1, frame)
		}
		if got.reset != nil || got.goAway != nil {
			return 0, nil
		}
		status := 0
		_, err = fmt.Sscan(got.status, &status)
		return status, err
	}
	refusedFields(t, mark, ask, func() error {
		w := a.frames(ca)
		if got := w.answer(w.ask("/fine.php", ":authority", "x", "te", "trailers")); got.body != "fine" {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

func TestHTTP3FieldsThatNobodySends(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a := startHTTP3(t, appOptions{Files: markPage(mark)})
	refusedFields(t, mark, a.askFields, func() error { return a.wantBody("/fine.php", "fine") })
}

// askFields sends a request of these fields on a connection of its own, and returns
// the status of the answer; 0 when the stream or the connection ended without one.
func (a *quicApp) askFields(fields []string) (int, error) {
	conn := a.conn()
	defer conn.CloseWithError(0, "")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return 0, err
	}
	var block bytes.Buffer
	e := qpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		if err := e.WriteField(qpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return 0, err
		}
	}
	frame := quicvarint.Append([]byte{0x01}, uint64(block.Len())) // HEADERS, RFC 9114 §7.2.2
	_, _ = s.Write(append(frame, block.Bytes()...))               // the read tells
	_ = s.Close()                                                 // as above
	if err := s.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	answer, err := io.ReadAll(s)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, errors.New("neither an answer nor a reset")
	}
	if err != nil || len(answer) == 0 {
		return 0, nil
	}
	return firstStatus(answer)
}

// firstStatus returns the status in the first HEADERS frame.
func firstStatus(frames []byte) (int, error) {
	in := bytes.NewReader(frames)
	kind, err := quicvarint.Read(in)
	if err != nil || kind != 1 {
		return 0, fmt.Errorf("the first frame is of type %d, %v", kind, err)
	}
	n, err := quicvarint.Read(in)
	if err != nil || n > uint64(in.Len()) {
		return 0, fmt.Errorf("a frame of %d bytes, %v", n, err)
	}
	block := make([]byte, n)
	_, _ = io.ReadFull(in, block) // it is as long
	next := qpack.NewDecoder().Decode(block)
	status := 0
	for {
		f, err := next()
		if err != nil {
			return 0, fmt.Errorf("no status: %w", err)
		}
		if f.Name == ":status" {
			_, err := fmt.Sscan(f.Value, &status)
			return status, err
		}
	}
}
