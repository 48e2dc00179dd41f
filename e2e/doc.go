// Package e2e tests what users see: it builds the ephpm binary once, starts it
// with a configuration file as a user would, and talks to it with clients that
// are not ours (net/http, coder/websocket, curl, Chromium). It imports nothing
// of this module.
//
// A test starts a server and asks it:
//
//	a := startApp(t, appOptions{Root: "testdata/echo"})
//	resp, body := a.get("/hello.php")
//	s := a.dial("/", nil)
//	s.send("hi")
//	got := s.recv()
//
// The tests of sockets say in PHP what an event does (startPlay), and see every
// frame where a library would hide it (dialWire):
//
//	a := startPlay(t, "[server.websocket]\nsend_queue = 1\n")
//	s := a.join("ephpm_ws_subscribe('lobby');", "")
//	s.wantRun("return ephpm_ws_count('lobby');", "1")
//
// and of connections without one:
//
//	a := startPlay(t, sseOn)
//	s := a.listen("ephpm_ws_subscribe('lobby');")
//	s.wantRun("return ephpm_ws_count('lobby');", "1")
//	p := a.poll("")
//
// Every helper fails the test by itself, every wait has a limit, and everything
// that was started is gone when the test ends: a server that leaves a process
// behind, panics or has a data race fails the test that started it.
//
// With the race detector (go test -race ./e2e) the server is built with it too.
package e2e
