package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// startSymfony starts the small application of testdata, which is made of
// Debian's packages of Symfony. Its directory is returned too.
func startSymfony(t *testing.T) (*app, string) {
	t.Helper()
	needDebian(t, "/usr/share/php/Symfony/Bundle/FrameworkBundle/autoload.php", "php-symfony-framework-bundle")
	needDebian(t, "/usr/share/php/Symfony/Bundle/TwigBundle/autoload.php", "php-symfony-twig-bundle")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/apps/symfony")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "var/files"), 0o755); err != nil {
		t.Fatal(err)
	}
	return startApp(t, appOptions{Root: filepath.Join(dir, "public")}), dir
}

func TestSymfonyInTheBrowser(t *testing.T) {
	startsApplication(t)
	a, _ := startSymfony(t)
	photo := filepath.Join(t.TempDir(), "Abend am Meer.png")
	writePhoto(t, photo, 640, 360)

	chromium := newBrowser(t)
	b := chromium.newProfile().open(a.URL + "/")
	b.waitText("#empty", "Nothing here yet.")
	b.fill("#title", `Dusk & "dawn" é`)
	b.choose("#file", photo)
	b.click("#upload")
	b.waitText(".flash.notice", `Stored Abend am Meer.png as "Dusk & "dawn" é".`)
	b.waitText("figcaption", "Abend am Meer.png")
	b.wait(`document.querySelector('figure img').naturalWidth === 640`)
	if got := b.text("#empty"); got != "" {
		t.Errorf("the album with a file says %q", got)
	}
	b.picture(t, "symfony.png", false)

	// A flash is shown once, and to whom it was for.
	b.visit(a.URL + "/")
	b.waitText("figcaption", "Abend am Meer.png")
	if got := b.text(".flash"); got != "" {
		t.Errorf("flash on the second page: %q, want none", got)
	}
	b.click("#upload")
	b.waitText(".flash.error", "No file came.")
	other := chromium.newProfile().open(a.URL + "/")
	other.waitText("figcaption", "Abend am Meer.png")
	if got := other.text(".flash"); got != "" {
		t.Errorf("flash for another visitor: %q, want none", got)
	}

	b.click(".remove")
	b.waitText(".flash.notice", "Removed Abend am Meer.png.")
	b.waitText("#empty", "Nothing here yet.")

	b.visit(a.URL + "/no/such/page")
	b.waitText("h1", "Oops! An Error Occurred")
	b.waitText("h2", `The server returned a "404 Not Found".`)
	a.checkPHPLog()
}

func TestSymfonyRoutes(t *testing.T) {
	startsApplication(t)
	a, dir := startSymfony(t)

	resp, body := a.do(a.request("GET", "/%C3%BCber/fr/7?a=b%26c&d[]=1", "", "X-Requested-With", "XMLHttpRequest"))
	var got struct {
		Locale string
		Page   int
		Query  map[string]any
		Base   string
		Path   string
		URL    string
		IP     string
		Ajax   bool
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%s %q: %v", resp.Status, body, err)
	}
	want := fmt.Sprintf("{fr 7 map[a:b&c d:[1]]  /%%C3%%BCber/fr/7 %s/%%C3%%BCber/de/1 127.0.0.1 true}", a.URL)
	if s := fmt.Sprint(got); s != want {
		t.Errorf("about: %s, want %s", s, want)
	}

	for _, c := range []struct {
		method, path, header string
		status               int
		body                 string // a part of it
	}{
		{"GET", "/index.php/late", "", 200, "answered"}, // by PATH_INFO
		{"GET", "/stream", "", 200, "one,two"},
		{"GET", "/no/such/page", "", 404, "Oops!"},
		{"GET", "/files/no.png", "", 404, "Oops!"},
		{"PUT", "/files", "", 405, "Oops!"},
		{"GET", "/broken", "", 500, "Oops!"},
		{"GET", "/files/ten.txt", "", 200, "0123456789"},
		{"GET", "/files/ten.txt", "bytes=2-4", 206, "234"},
		{"HEAD", "/files/ten.txt", "", 200, ""},
	} {
		writeFiles(t, filepath.Join(dir, "var/files"), map[string]string{"ten.txt": "0123456789"})
		req := a.request(c.method, c.path, "")
		if c.header != "" {
			req.Header.Set("Range", c.header)
		}
		resp, body := a.do(req)
		if resp.StatusCode != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%s %s %s: %s %q, want %d with %q", c.method, c.path, c.header, resp.Status, body, c.status, c.body)
		}
		if c.status == 405 && resp.Header.Get("Allow") != "POST" {
			t.Errorf("%s %s: Allow %q, want POST", c.method, c.path, resp.Header.Get("Allow"))
		}
		if c.status == 206 && resp.Header.Get("Content-Range") != "bytes 2-4/10" {
			t.Errorf("Content-Range %q, want bytes 2-4/10", resp.Header.Get("Content-Range"))
		}
		if c.method == "HEAD" && resp.ContentLength != 10 {
			t.Errorf("HEAD: Content-Length %d, want 10", resp.ContentLength)
		}
	}
	a.waitLog(`LogicException: ..broken on purpose`)
}

// Response::send ends with fastcgi_finish_request, so that what listens for the
// end of the kernel keeps no client waiting.
func TestSymfonyWorksOnAfterTheAnswer(t *testing.T) {
	startsApplication(t)
	a, _ := startSymfony(t)
	g := newGate(t)
	done := filepath.Join(t.TempDir(), "done")

	resp, body := a.get("/late?gate=" + g.path + "&done=" + done)
	if resp.StatusCode != 200 || body != "answered" {
		t.Fatalf("%s %q, want 200 answered", resp.Status, body)
	}
	g.wait()
	if _, err := os.Stat(done); err == nil {
		t.Error("the listener ran through before the gate was open")
	}
	g.open()
	if err := eventually(func() error { _, err := os.Stat(done); return err }); err != nil {
		t.Errorf("the listener never finished: %v", err)
	}
}

func TestSymfonyEarlyHints(t *testing.T) {
	startsApplication(t)
	a, _ := startSymfony(t)
	var hints []string
	req := a.request("GET", "/hint", "")
	req = req.WithContext(httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, " ", header.Get("Link")))
			return nil
		},
	}))
	resp, body := a.do(req)
	const link = "</style.css>; rel=preload; as=style"
	if len(hints) != 1 || hints[0] != "103 "+link {
		t.Errorf("hints %q, want one 103 with %s", hints, link)
	}
	if resp.StatusCode != http.StatusOK || body != "hinted" || resp.Header.Get("Link") != link {
		t.Errorf("%s %q, Link %q, want 200 hinted with the same link", resp.Status, body, resp.Header.Get("Link"))
	}
}
