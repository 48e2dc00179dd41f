package phpbridge

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFinishRequestAnswersBeforeTheScriptEnds(t *testing.T) {
	p := testPool(t, nil)
	r := script(t, `
		ob_start(); echo "early";
		var_dump(fastcgi_finish_request());
		echo "late"; flush();
		file_put_contents($_SERVER['MARK'], json_encode([fastcgi_finish_request(), connection_status()]));
		while (!file_exists($_SERVER['GO'])) { usleep(1000); clearstatcache(); }
		ephpm_ws_send("still there");`)
	mark, goOn := r.Script+".mark", r.Script+".go"
	r.Vars = r.Vars.Add("MARK", mark).Add("GO", goOn)
	called := make(chan string, 1)
	r.Host = hostFunc(func(c *Call) { called <- c.String(0); c.ReturnBool(true) })
	w := run(t, p, r)
	if got := body(t, w); got != "early" || w.Header().Get("Content-Length") != "5" {
		t.Errorf("body %q, Content-Length %s", got, w.Header().Get("Content-Length"))
	}
	touch(t, goOn)
	if got := <-called; got != "still there" {
		t.Errorf("the host call after the answer said %q", got)
	}
	if got := read(t, mark); got != "[false,0]" {
		t.Errorf("after the answer [finish, connection_status()] is %s", got)
	}
}

func TestFinishRequestWithABodyThatIsNotRead(t *testing.T) {
	p := testPool(t, func(o *Options) { o.INI = []INI{{"enable_post_data_reading", "0"}} })
	r := post(script(t, `echo "x"; fastcgi_finish_request(); file_put_contents(__FILE__ . ".mark", strlen(file_get_contents("php://input")));`),
		"text/plain", strings.Repeat("y", 1_000_000))
	if got := body(t, run(t, p, r)); got != "x" {
		t.Errorf("body %q", got)
	}
	waitFor(t, "the end of the script", func() bool { return p.Stats().Busy == 0 })
	if got := read(t, r.Script+".mark"); got != "1000000" {
		t.Errorf("the script read %s bytes", got)
	}
}

func TestFinishRequestOfAnEventLeavesItsOrder(t *testing.T) {
	p := testPool(t, nil)
	r := script(t, `fastcgi_finish_request(); usleep(20000); touch(__FILE__ . ".mark");`)
	r.Class = Event
	run(t, p, r)
	if !exists(r.Script + ".mark") {
		t.Error("Serve returned before the event's script had ended")
	}
}

func TestAKillAfterTheAnswerIsLogged(t *testing.T) {
	var log syncBuffer
	p := testPool(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	r := script(t, `echo "x"; fastcgi_finish_request(); sleep(60);`)
	r.Timeout = 50 * time.Millisecond
	w := httptest.NewRecorder()
	_, err := p.Serve(t.Context(), w, r)
	for err == ErrTimeout { // on a busy machine the time may be over before the answer is finished
		r.Timeout *= 2
		w = httptest.NewRecorder()
		_, err = p.Serve(t.Context(), w, r)
	}
	if got := body(t, w); err != nil || got != "x" {
		t.Errorf("body %q, %v", got, err)
	}
	waitFor(t, "a line about the script", func() bool { return strings.Contains(log.String(), "after it finished") })
}

func TestEarlyHints(t *testing.T) {
	p := testPool(t, nil)
	r := script(t, `
		header("Link: </style.css>; rel=preload"); header("X-Early: 1");
		$sent = headers_send(103);
		header_remove("Link");
		echo $sent, " body";`)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if _, err := p.Serve(q.Context(), w, r); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}))
	defer srv.Close()
	var early http.Header
	q, err := http.NewRequestWithContext(withInformational(t.Context(), func(code int, h textproto.MIMEHeader) {
		if code == http.StatusEarlyHints {
			early = http.Header(h)
		}
	}), "GET", srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read below
	var got bytes.Buffer
	if _, err := got.ReadFrom(answer.Body); err != nil {
		t.Fatal(err)
	}
	if early.Get("Link") == "" || early.Get("X-Early") != "1" {
		t.Errorf("early hints are %v", early)
	}
	if answer.Header.Get("Link") != "" || answer.Header.Get("X-Early") != "1" || got.String() != "0 body" {
		t.Errorf("answer %v %q", answer.Header, &got)
	}
}

func TestHeadersOfRequestAndAnswer(t *testing.T) {
	p := testPool(t, nil)
	r := script(t, `
		header("X-One: 1"); header("X-Two:two");
		echo json_encode([getallheaders(), apache_request_headers() === frankenphp_request_headers(),
			array_intersect_key(apache_response_headers(), ["X-One" => 1, "X-Two" => 1])]);`)
	r.Vars = r.Vars.Add("HTTP_ACCEPT_LANGUAGE", "de").Add("CONTENT_TYPE", "text/plain").Add("CONTENT_LENGTH", "").Add("HTTP_X_EMPTY", "")
	want := `[{"Accept-Language":"de","Content-Type":"text\/plain","X-Empty":""},true,{"X-One":"1","X-Two":"two"}]`
	if got := body(t, run(t, p, r)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLogFunctionPassesLevelAndContext(t *testing.T) {
	var log syncBuffer
	p := testPool(t, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	got := body(t, run(t, p, script(t, `
		ephpm_log("low", EPHPM_LOG_LEVEL_DEBUG);
		frankenphp_log("high", FRANKENPHP_LOG_LEVEL_ERROR, ["n" => 1, "s" => "two", "list" => [1, 2]]);
		try { ephpm_log("bad", 0, ["x" => "\xff"]); } catch (ValueError $e) { echo get_class($e); }`)))
	if got != "ValueError" {
		t.Errorf("a context that JSON cannot hold: %q", got)
	}
	for _, want := range []string{
		`"level":"DEBUG","msg":"PHP message","text":"low"`,
		`"level":"ERROR","msg":"PHP message","text":"high"`,
		`"context":{"list":[1,2],"n":1,"s":"two"}`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
}

// A syncBuffer is a bytes.Buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
