package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A body that is ambiguous for some reader must not become a second request.
func TestRequestsAreNotSmuggled(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php": `<?php file_put_contents('` + mark + `', $_SERVER['REQUEST_URI'] . "\n", FILE_APPEND); echo "[", $_SERVER['REQUEST_URI'], "]";`,
	}})
	smuggled := "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, text := range map[string]string{
		"both lengths":                fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", 5+len(smuggled), smuggled),
		"odd encoding":                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\n0\r\n" + smuggled,
		"two encodings":               "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled,
		"a bare line feed":            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\n0\r\n\r\n" + smuggled,
		"no line before it":           "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"folded encoding":             fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: %d\r\n\r\n0\r\n\r\n%s", 5+len(smuggled), smuggled),
		"folded length":               fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n %d\r\n\r\n%s", len(smuggled), smuggled),
		"listed length":               fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0, %d\r\n\r\n%s", len(smuggled), smuggled),
		"lengths differ":              fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"odd length":                  fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +%d\r\n\r\n%s", len(smuggled), smuggled),
		"length in a name":            fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length\x00: 0\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"a body of a GET":             fmt.Sprintf("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"a body of an upgrade":        fmt.Sprintf("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"a body that is refused":      fmt.Sprintf("POST /%%00 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"a body with 417":             fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nExpect: x\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"an extension":                fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x;a=\"\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled),
		"a line feed in an extension": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;\nxx\r\n0\r\n\r\n" + smuggled,
		"a short chunk":               "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n" + smuggled,
		"a trailer that is a length":  fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: chunked\r\nX: %s", smuggled),
		"absolute form":               fmt.Sprintf("POST http://x/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"underscores":                 fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent_Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"blank before it":             "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled,
	} {
		w := a.connect()
		w.send(text)
		w.answer()
		_ = w.tcp().CloseWrite() // the server may have closed it
		answer, _ := w.rest()
		if ran, _ := os.ReadFile(mark); strings.Contains(answer+string(ran), "/smuggled") {
			t.Errorf("%s: the body was run as a request: %q", name, answer)
		}
	}
	// These have no answer, or one without the body that is announced.
	for name, text := range map[string]string{
		"a body of a HEAD":     fmt.Sprintf("HEAD / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"a huge chunk":         "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + smuggled,
		"a huge chunk, signed": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n8000000000000000\r\n" + smuggled,
	} {
		w := a.connect()
		w.send(text)
		_ = w.tcp().CloseWrite() // the server may have closed it
		answer, _ := w.rest()
		if ran, _ := os.ReadFile(mark); strings.Contains(answer+string(ran), "/smuggled") {
			t.Errorf("%s: the body was run as a request: %q", name, answer)
		}
	}
}

// Of two lengths the chunks count, for the script as for where the request ends; then
// the connection ends, because somebody in front may have gone by the other (RFC 9112
// §6.1, §6.3).
func TestChunksCountMoreThanALength(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php": `<?php echo $_SERVER['REQUEST_URI'], ' ', $_SERVER['CONTENT_LENGTH'] ?? '', ' ', file_get_contents('php://input');`,
	}})
	for _, length := range []int{0, 1, 14, 1000} {
		w := a.connect()
		w.send(fmt.Sprintf("POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", length) + getText("/next"))
		if resp, body := w.answer(); body != "/first 4 body" || !resp.Close {
			t.Errorf("with the length %d: %q, close: %v; want the body and the end", length, body, resp.Close)
		}
		if rest, _ := w.rest(); rest != "" { // what was not read may reset it
			t.Errorf("with the length %d: then %q, want the end", length, rest)
		}
	}
}
