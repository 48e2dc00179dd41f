package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const chatKey = "a key for the test"

// startChat starts the sample with the file that it comes with.
func startChat(t *testing.T) *app {
	t.Helper()
	return startApp(t, appOptions{
		Config: "../examples/chat/ephpm.toml",
		Env:    []string{"CHAT_NOTIFY_KEY=" + chatKey},
	})
}

// chatLogin logs in by HTTP and returns the headers of an upgrade of that user.
func chatLogin(t *testing.T, a *app, name string) http.Header {
	t.Helper()
	req, err := http.NewRequest("POST", a.URL+"/login.php", strings.NewReader(url.Values{"name": {name}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, body := a.do(req)
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("log in as %q: %s %s", name, resp.Status, body)
	}
	// The session had no name before and has a new id now: the last one counts.
	var session *http.Cookie
	for _, c := range resp.Cookies() {
		session = c
	}
	if session == nil {
		t.Fatal("log in set no cookie")
	}
	if !session.HttpOnly || session.SameSite != http.SameSiteLaxMode {
		t.Errorf("session cookie %q, want HttpOnly and SameSite=Lax", session.Raw)
	}
	return http.Header{"Cookie": {session.Name + "=" + session.Value}, "Origin": {a.URL}}
}

// chatNotify pushes to a user by HTTP.
func chatNotify(t *testing.T, a *app, key, to, text string) (*http.Response, string) {
	t.Helper()
	form := url.Values{"to": {to}, "text": {text}}
	req, err := http.NewRequest("POST", a.URL+"/notify.php", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Api-Key", key)
	return a.do(req)
}

type chatMessage struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	From  string `json:"from"`
	Text  string `json:"text"`
	Count int    `json:"count"`
	At    int64  `json:"at"`
}

// recvChat returns the next message, without the time.
func recvChat(t *testing.T, s *socket) chatMessage {
	t.Helper()
	var m chatMessage
	text := s.recv()
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("message %q: %v", text, err)
	}
	if m.At == 0 {
		t.Errorf("message %q has no time", text)
	}
	m.At = 0
	return m
}

func wantChat(t *testing.T, s *socket, want chatMessage) {
	t.Helper()
	if got := recvChat(t, s); got != want {
		t.Fatalf("received %+v, want %+v", got, want)
	}
}

func TestChatBetweenForeignClients(t *testing.T) {
	a := startChat(t)
	aliceHeader := chatLogin(t, a, "alice")
	alice := a.dial("/", aliceHeader)
	wantChat(t, alice, chatMessage{Type: "welcome", Name: "alice", Count: 1})

	bob := a.dial("/", chatLogin(t, a, "bob"))
	wantChat(t, bob, chatMessage{Type: "welcome", Name: "bob", Count: 2})
	wantChat(t, alice, chatMessage{Type: "join", Name: "bob", Count: 2})

	bob.send(`{"text":" hello <b>you</b> "}`)
	hello := chatMessage{Type: "message", From: "bob", Text: "hello <b>you</b>"}
	wantChat(t, alice, hello)
	wantChat(t, bob, hello)

	for _, bad := range []string{``, `no JSON`, `[]`, `"text"`, `7`, `{"text":""}`, `{"text":7}`, `{"text":["x"]}`,
		`{"text":"` + strings.Repeat("x", 1001) + `"}`} {
		bob.send(bad)
		if got := recvChat(t, bob); got.Type != "error" {
			t.Errorf("answer to %.40q is %+v, want an error", bad, got)
		}
	}

	again := a.dial("/", aliceHeader)
	wantChat(t, again, chatMessage{Type: "welcome", Name: "alice", Count: 3})
	wantChat(t, bob, chatMessage{Type: "count", Name: "alice", Count: 3})
	again.close()
	wantChat(t, bob, chatMessage{Type: "count", Name: "alice", Count: 2})
	alice.close()
	wantChat(t, bob, chatMessage{Type: "leave", Name: "alice", Count: 1})
}

func TestChatRefusesAnonymousUpgrade(t *testing.T) {
	a := startChat(t)
	resp, body := a.refusal("/", http.Header{"Origin": {a.URL}})
	if resp.StatusCode != http.StatusUnauthorized || body != "log in first\n" {
		t.Errorf("anonymous upgrade: %s %q, want 401 and the script's words", resp.Status, body)
	}
}

func TestChatRefusalIsReadableInCurl(t *testing.T) {
	a := startChat(t)
	out, err := exec.Command("curl", "-sS", "-i", "--max-time", maxTime,
		"-H", "Connection: Upgrade", "-H", "Upgrade: websocket",
		"-H", "Sec-WebSocket-Version: 13", "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
		"-H", "Origin: "+a.URL, a.URL+"/").CombinedOutput()
	if err != nil {
		t.Fatalf("curl: %v\n%s", err, out)
	}
	head, body, _ := strings.Cut(string(out), "\r\n\r\n")
	if !strings.HasPrefix(head, "HTTP/1.1 401 ") || body != "log in first\n" {
		t.Errorf("curl -i printed\n%s\nwant a 401 with the script's words", out)
	}
}

func TestChatRefusesForeignOrigin(t *testing.T) {
	a := startChat(t)
	header := chatLogin(t, a, "alice")
	header.Set("Origin", "https://evil.example")
	resp, body := a.refusal("/", header)
	if resp.StatusCode != http.StatusForbidden || body != "wrong origin\n" {
		t.Errorf("upgrade from a foreign page: %s %q, want 403 and the script's words", resp.Status, body)
	}
}

func TestChatNotifyWantsItsKey(t *testing.T) {
	a := startChat(t)
	if resp, body := chatNotify(t, a, "wrong", "alice", "hi"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("with a wrong key: %s %q, want 401", resp.Status, body)
	}
	if resp, body := chatNotify(t, a, chatKey, "alice", "hi"); resp.StatusCode != 200 || body != `{"queued":0}`+"\n" {
		t.Errorf("to a user who is away: %s %q, want 200 and nobody queued", resp.Status, body)
	}
	if resp, body := chatNotify(t, a, chatKey, "<alice>", "hi"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("to an impossible name: %s %q, want 400", resp.Status, body)
	}

	closed := startApp(t, appOptions{Config: "../examples/chat/ephpm.toml", Env: []string{"CHAT_NOTIFY_KEY="}})
	if resp, body := chatNotify(t, closed, "", "alice", "hi"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without a key set: %s %q, want 503", resp.Status, body)
	}
}

func TestChatLogoutClosesEveryTab(t *testing.T) {
	a := startChat(t)
	header := chatLogin(t, a, "alice")
	first, second := a.dial("/", header), a.dial("/", header)

	req, err := http.NewRequest("POST", a.URL+"/logout.php", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	a.do(req)
	for _, s := range []*socket{first, second} {
		if code, reason, _ := s.recvClose(); code != 4001 || reason != "logged out" {
			t.Errorf("after the logout: close %d %q, want 4001", code, reason)
		}
	}
	if resp, _ := a.refusal("/", header); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("upgrade after the logout: %s, want 401", resp.Status)
	}
}

// say writes a line in the chat page and waits until it is shown there.
func say(b *tab, line string) {
	b.t.Helper()
	b.fill("#text", line)
	b.click("#send")
	b.waitText(".message.own .text", line)
}

// hears waits until the page shows a line and who spoke.
func hears(b *tab, from, line string) {
	b.t.Helper()
	b.waitText(".message:not(.own) .text", line)
	b.waitText(".message:not(.own):has(.text) .from", from)
}

func enter(p *profile, a *app, name string) *tab {
	p.t.Helper()
	b := p.open(a.URL + "/")
	b.fill("#name", name)
	b.click("form button")
	b.waitText("#state", "online")
	return b
}

func TestChatInTheBrowser(t *testing.T) {
	a := startChat(t)
	chromium := newBrowser(t)
	alice, bob := chromium.newProfile(), chromium.newProfile()

	alice1 := enter(alice, a, "Alice Doe")
	alice2 := alice.open(a.URL + "/")
	alice2.waitText("#state", "online")
	bob1 := enter(bob, a, "bob")
	alice1.waitText(".notice", "bob came in.")
	alice1.waitText("#count", "3 online")
	bob1.waitText("#count", "3 online")

	say(alice1, "Good morning! Who is up for lunch at noon?")
	hears(bob1, "Alice Doe", "Good morning! Who is up for lunch at noon?")
	alice2.waitText(".message.own .text", "Good morning! Who is up for lunch at noon?")
	say(bob1, "I am in. The usual place?")
	hears(alice1, "bob", "I am in. The usual place?")
	hears(alice2, "bob", "I am in. The usual place?")

	resp, body := chatNotify(t, a, chatKey, "Alice Doe", "Your parcel has arrived.")
	if resp.StatusCode != 200 || body != `{"queued":2}`+"\n" {
		t.Errorf("notify: %s %q, want 2 queued", resp.Status, body)
	}
	alice1.waitText(".toast .text", "Your parcel has arrived.")
	alice2.waitText(".toast .text", "Your parcel has arrived.")
	if got := bob1.text("#toasts"); got != "" {
		t.Errorf("bob was shown %q, which was for Alice", got)
	}

	picture := filepath.Join(t.ArtifactDir(), "chat.png")
	if *update {
		picture = "../docs/chat.png"
	}
	alice1.wait(`document.getAnimations().length === 0`)
	alice1.screenshot(picture)

	say(bob1, "<img src=x onerror=alert(1)> I am in :)")
	hears(alice1, "bob", "<img src=x onerror=alert(1)> I am in :)")
	hears(alice2, "bob", "<img src=x onerror=alert(1)> I am in :)")

	a.Stop()
	bob1.waitText("#state", "offline")
	a.options.Listen = a.Addr
	a.start()
	for _, b := range []*tab{alice1, alice2, bob1} {
		b.waitText("#state", "online")
	}
	say(bob1, "Back again, and nobody reloaded.")
	hears(alice1, "bob", "Back again, and nobody reloaded.")
	hears(alice2, "bob", "Back again, and nobody reloaded.")

	alice1.click("header form button")
	alice1.wait(`document.querySelector('#name')`)
	alice2.wait(`document.querySelector('#name')`)
	bob1.waitText(".notice", "Alice Doe left.")
	bob1.waitText("#count", "1 online")
}
