package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"
)

// signal sends a signal to the front.
func (a *app) signal(sig syscall.Signal) {
	a.t.Helper()
	if err := a.cmd.Process.Signal(sig); err != nil {
		a.t.Fatal(err)
	}
}

// waitClosed waits until the server does not listen any more.
func (a *app) waitClosed() {
	a.t.Helper()
	err := eventually(func() error {
		conn, err := net.DialTimeout("tcp", a.Addr, patience)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		if err == nil {
			_ = conn.Close() // it was only opened
			err = errors.New("it listens")
		}
		return err
	})
	if err != nil {
		a.t.Errorf("the listener does not close: %v", err)
	}
}

// waitExit waits until the front has ended and returns its exit status.
func (a *app) waitExit() int {
	a.t.Helper()
	select {
	case <-a.exited:
	case <-time.After(patience):
		a.t.Fatalf("the server does not end")
	}
	return a.cmd.ProcessState.ExitCode()
}

// Everything that SIGTERM promises, while one request is held: what is idle ends
// before it, and it is answered.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a := startApp(t, appOptions{Files: map[string]string{
				"hold.php":  `<?php register_shutdown_function(fn () => print(" to the end")); file_get_contents($_GET['gate']); echo "answered";`,
				"index.php": `<?php echo "fine";`,
				"websocket.php": `<?php
					if ($_SERVER['WS_EVENT'] === 'disconnect') file_put_contents($_GET['mark'], $_SERVER['WS_CLOSE_CODE'] . ' ' . $_SERVER['WS_CLOSE_CAUSE']);`,
			}})
			silent := a.connect() // a browser's connection in advance
			idle := a.connect()   // is accepted behind it
			idle.send(getText("/"))
			idle.answer()
			var sockets []*socket
			for i := range 3 {
				sockets = append(sockets, a.dial(fmt.Sprintf("/?mark=%s/%d", dir, i), nil))
			}
			g := newGate(t)
			busy := a.connect()
			busy.send(getText("/hold.php?gate=" + g.path))
			g.wait()

			a.signal(sig)
			a.waitClosed()
			for name, w := range map[string]*wire{"idle": idle, "silent": silent} {
				if rest, err := w.rest(); rest != "" || err != nil {
					t.Errorf("the %s connection got %q, %v; want it closed", name, rest, err)
				}
			}
			for i, s := range sockets {
				if code, _, _ := s.recvClose(); code != 1001 {
					t.Errorf("a socket was closed with %d, want 1001", code)
				}
				waitFile(t, fmt.Sprintf("%s/%d", dir, i), "1001 shutdown")
			}
			select {
			case <-a.exited:
				t.Fatal("the server ended before the request did")
			default:
			}
			g.open()
			if resp, body := busy.answer(); resp.StatusCode != 200 || body != "answered to the end" {
				t.Errorf("the request in flight: %s %q", resp.Status, body)
			}
			if rest, err := busy.rest(); rest != "" || err != nil {
				t.Errorf("its connection got %q, %v; want it closed", rest, err)
			}
			if status := a.waitExit(); status != 0 {
				t.Errorf("exit status %d, want 0", status)
			}
			a.waitLog(`msg=stopped`)
		})
	}
}

func TestRequestsThatWaitAreAnsweredOnStop(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: metricsOn + waitLong + "workers = 1\n", Files: holdFiles})
	g, held := hold(a)
	waiting := a.queueUp(10)
	a.signal(syscall.SIGTERM)
	a.waitClosed()
	g.open()
	held.wait()
	wantServed(t, waiting)
	if status := a.waitExit(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
}

func TestSecondSIGTERMStopsAtOnce(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: holdFiles})
	g := newGate(t)
	w := a.connect()
	w.send(getText("/hold.php?gate=" + g.path))
	g.wait()
	a.signal(syscall.SIGTERM)
	a.waitClosed()
	a.signal(syscall.SIGTERM)
	if status := a.waitExit(); status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	if rest, err := w.rest(); rest != "" {
		t.Errorf("the request in flight got %q, %v; want nothing", rest, err)
	}
	a.checkNobodyIsLeft()
}

func TestStopTakesNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	mark := t.TempDir() + "/mark"
	a := startApp(t, appOptions{
		TOML:  "[server.timeouts]\nshutdown = \"200ms\"\n",
		Files: map[string]string{"hold.php": `<?php ignore_user_abort(true); file_get_contents($_GET['gate']); file_put_contents($_GET['mark'], 'x');`},
	})
	g := newGate(t)
	w := a.connect()
	w.send(getText("/hold.php?gate=" + g.path + "&mark=" + mark))
	g.wait()
	a.signal(syscall.SIGTERM)
	if status := a.waitExit(); status != 0 {
		t.Errorf("exit status %d, want 0: it was asked to stop", status)
	}
	if rest, err := w.rest(); rest != "" {
		t.Errorf("the request in flight got %q, %v; want nothing", rest, err)
	}
	a.waitLog(`level=WARN msg="cut the requests that were still running"`)
	g.open() // nobody is there to go on
	a.checkNobodyIsLeft()
	if _, err := os.Stat(mark); err == nil {
		t.Error("the script went on")
	}
}

func TestServerStartsAgainAtOnce(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: holdFiles})
	for i := range 3 {
		if err := wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprint(i)); err != nil {
			t.Error(err)
		}
		a.Restart()
	}
}

// Clients that keep asking never see a broken answer: either a whole one, or no
// connection.
func TestStopUnderLoadBreaksNoAnswer(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php usleep(random_int(0, 2000)); echo str_repeat($_GET['i'] . " ", 2000);`}})
	started := make(chan bool, 100)
	ended := make(chan error, 1)
	go func() {
		for range 100 {
			<-started
		}
		ended <- a.cmd.Process.Signal(syscall.SIGTERM)
	}()
	hundred(t, func(i int) error {
		client := http.Client{Transport: &http.Transport{}, Timeout: patience}
		defer client.CloseIdleConnections()
		want := fmt.Sprint(i, " ")
		for n := 0; ; n++ {
			body, err := visit(&client, fmt.Sprintf("%s/?i=%d", a.URL, i))
			if n == 0 {
				started <- true
			}
			if body == "" && err != nil {
				if n == 0 {
					return err
				}
				return nil // no connection any more
			}
			if err != nil || len(body) != 2000*len(want) || body[:len(want)] != want {
				return fmt.Errorf("visit %d: %d bytes, %v", n, len(body), err)
			}
		}
	})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if status := a.waitExit(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
}
