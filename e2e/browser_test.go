package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"
)

// A browser is one headless Chromium.
type browser struct {
	t   testing.TB
	ctx context.Context
}

// A profile is one person at the browser: tabs of a profile share cookies,
// profiles share nothing.
type profile struct {
	t   testing.TB
	ctx context.Context // of its first tab
	own bool            // the first tab has been given out
}

// A tab is one page of a profile, in a window of its own.
type tab struct {
	t   testing.TB
	ctx context.Context
}

// newBrowser starts Chromium, with further options. It ends with the test.
func newBrowser(t testing.TB, more ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Fatal("no Chromium found; install it with: apt-get install chromium")
	}
	dir, err := os.MkdirTemp("", "ephpm-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(dir),
		chromedp.NoSandbox, // it refuses to run as root with one
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(1000, 720),
		chromedp.WSURLReadTimeout(patience), // for it to say where it listens
	)
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		// Waits for the process; its helpers may still write for a moment.
		_ = chromedp.Cancel(ctx)
		cancel()
		cancelAlloc()
		if err := eventually(func() error { return os.RemoveAll(dir) }); err != nil {
			t.Errorf("remove the browser's directory: %v", err)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return &browser{t: t, ctx: ctx}
}

// newProfile returns a person without cookies.
func (b *browser) newProfile() *profile {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	b.t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		b.t.Fatalf("new browser profile: %v", err)
	}
	return &profile{t: b.t, ctx: ctx}
}

// open opens a page in a new tab.
func (p *profile) open(url string) *tab {
	p.t.Helper()
	ctx := p.ctx
	if p.own {
		var cancel context.CancelFunc
		ctx, cancel = chromedp.NewContext(p.ctx)
		p.t.Cleanup(cancel)
	}
	p.own = true
	b := &tab{t: p.t, ctx: ctx}
	// The first call decides how long the tab lives, so it has no time limit.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1000, 720)); err != nil {
		p.t.Fatalf("new tab: %v", err)
	}
	b.do("open "+url, chromedp.Navigate(url))
	return b
}

func (b *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// fill types a text into the field that a CSS selector finds.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do("fill "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// click clicks on what a CSS selector finds, once it is enabled.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do("click "+selector, chromedp.WaitEnabled(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector)))
}

// wait waits until an expression of JavaScript is true in the page, whatever
// the page loads meanwhile.
func (b *tab) wait(expression string) {
	b.t.Helper()
	err := eventually(func() error {
		ctx, cancel := context.WithTimeout(b.ctx, patience/6) // a page that is left answers nothing
		defer cancel()
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err == nil && !ok {
			err = errors.New("false")
		}
		return err
	})
	if err != nil {
		b.t.Fatalf("%s: %v\nThe page says:\n%s", expression, err, b.text("body"))
	}
}

// waitText waits until one of the elements that a CSS selector finds has
// exactly this text.
func (b *tab) waitText(selector, text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.textContent === %s)`,
		strconv.Quote(selector), strconv.Quote(text)))
}

// text returns the visible text of the first element that a CSS selector finds.
func (b *tab) text(selector string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](
		fmt.Sprintf(`document.querySelector(%s)?.innerText ?? ''`, strconv.Quote(selector))))
	if err != nil {
		b.t.Fatalf("text of %s: %v", selector, err)
	}
	return text
}

// screenshot writes what the tab shows to a PNG file.
func (b *tab) screenshot(path string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatalf("screenshot: %v", err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
