package e2e

import (
	"fmt"
	"testing"
)

func TestHistoryIsSentOnSubscribe(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	first := a.join(`ephpm_ws_subscribe('chat', ['history' => 3]);`, "")
	plain := a.join(`ephpm_ws_subscribe('chat');`, "")
	a.wantPage(`$n = 0; for ($i = 1; $i <= 5; $i++) $n += ephpm_ws_broadcast('chat', "m$i"); return $n;`, `10`)
	a.wantPage(`return ephpm_ws_broadcast('chat', "\xff\0", true);`, `2`)
	for _, s := range []*socket{first, plain} {
		for i := 1; i <= 5; i++ {
			if got := s.recv(); got != fmt.Sprintf("m%d", i) {
				t.Errorf("received %q, want m%d", got, i)
			}
		}
		s.recvFrame()
	}
	// In connect, behind the 101; in a message; from a page.
	wantPast := func(s *socket) {
		t.Helper()
		for _, want := range []string{"m4", "m5"} {
			if got := s.recv(); got != want {
				t.Errorf("the past is %q, want %q", got, want)
			}
		}
		if _, data := s.recvFrame(); string(data) != "\xff\x00" {
			t.Errorf("the past ends with %q, want the binary message", data)
		}
	}
	late := a.join(`ephpm_ws_subscribe('chat', ['history' => 50]);`, "")
	wantPast(late)
	late.wantRun(`return 'nothing more';`, `"nothing more"`)
	other := a.join("", "")
	other.send(`return ephpm_ws_subscribe('chat', ['history' => 3]);`)
	wantPast(other)
	if got := other.recv(); got != "true" {
		t.Errorf("subscribe returned %s, want true", got)
	}
	pushed := a.join("", "")
	id := pushed.id()
	a.wantPage(`return ephpm_ws_connection_subscribe('`+id+`', 'chat', ['history' => 3]);`, `true`)
	wantPast(pushed)
	plain.wantRun(`return 'no past for who did not ask';`, `"no past for who did not ask"`)
	a.wantPage(`return ephpm_ws_connection_subscribe(str_repeat('0', 32), 'chat', ['history' => 3]);`, `false`)
}

// A channel remembers while nobody is in it.
func TestLastValueOutlivesItsMembers(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	a.join(`ephpm_ws_subscribe('price', ['history' => 1]);`, "").close()
	a.trail(1)
	a.wantPage(`return [ephpm_ws_broadcast('price', '41'), ephpm_ws_broadcast('price', '42'), ephpm_ws_count('price')];`, `[0,0,0]`)
	s := a.join(`ephpm_ws_subscribe('price', ['history' => 1]);`, "")
	if got := s.recv(); got != "42" {
		t.Errorf("received %q, want the last value", got)
	}
	s.wantRun(`return ephpm_ws_subscribe('price');`, `true`)

	none := startPlay(t, "[server.websocket]\nhistory_memory = 0\n")
	none.join(`ephpm_ws_subscribe('price', ['history' => 1]);`, "")
	none.wantPage(`return ephpm_ws_broadcast('price', '41');`, `1`)
	none.join(`ephpm_ws_subscribe('price', ['history' => 1]);`, "").wantRun(`return 'no past';`, `"no past"`)
}

// Who joins while others broadcast misses nothing and gets nothing twice.
func TestHistoryJoinsThePresent(t *testing.T) {
	t.Parallel()
	a := startPlay(t, patientSends)
	a.join(`ephpm_ws_subscribe('chat', ['history' => 100]);`, "").close()
	page := a.later(a.request("POST", "/page.php", `for ($i = 1; $i <= 60; $i++) { ephpm_ws_broadcast('chat', "$i"); usleep(1000); } return 'done';`))
	var late []*socket
	for range 5 {
		late = append(late, a.join(`ephpm_ws_subscribe('chat', ['history' => 60]);`, ""))
	}
	if _, body := page.wait(); body != `"done"` {
		t.Fatalf("the page printed %s", body)
	}
	for _, s := range late {
		for i := 1; i <= 60; i++ {
			if got := s.recv(); got != fmt.Sprint(i) {
				t.Fatalf("received %q, want %d", got, i)
			}
		}
	}
}

func TestSubscribeOptionsAreChecked(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join("", "")
	const class = `["ValueError","ephpm_ws_subscribe(): Argument #2 ($options) `
	for options, want := range map[string]string{
		`['history' => 101]`:    class + `must have 0 to 100 as \"history\", 101 given",0]`,
		`['history' => '1']`:    class + `must have 0 to 100 as \"history\", \"1\" given",0]`,
		`['histroy' => 1]`:      class + `must not have \"histroy\"; there are \"history\", \"user\", \"info\" and \"list\"",0]`,
		`['history']`:           class + `must not have \"0\"; there are \"history\", \"user\", \"info\" and \"list\"",0]`,
		`['history' => "\xff"]`: class + `must have as \"history\" what json_encode() takes",0]`,
		`range(0, 16)`:          class + `must have at most 16 elements",0]`,
		`['history' => new class implements JsonSerializable { function jsonSerialize(): mixed { throw new DomainException('mine'); } }]`: `["DomainException","mine",0]`,
		`[]`:               `true`,
		`['history' => 0]`: `true`,
	} {
		s.wantRun(`return ephpm_ws_subscribe('chat', `+options+`);`, want)
	}
	s.wantRun(`return ephpm_ws_subscribe('', ['history' => 1]);`, `false`)
	a.wantPage(`return ephpm_ws_connection_subscribe('x', 'chat', ['history' => -1]);`,
		`["ValueError","ephpm_ws_connection_subscribe(): Argument #3 ($options) must have 0 to 100 as \"history\", -1 given",0]`)
}
