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
// What PHP promises a script under a web server is held by these; what belongs to
// one request is asked a hundred times at once (hundred):
//
//	superglobals_test, runtime_requests_test   what a request is to a script
//	paths_test, php_contract_test, rules_test  which script, and PATH_INFO, rewrites
//	php_sites_test, sites_test                 all that differs from site to site
//	responses_test, runtime_finish_test        status, headers, early hints, finish
//	streaming_test, runtime_abort_test         flush, clients that leave or stop reading
//	scripts_test, php_behaviour_test           order of a request's end, fibers, buffers
//	uploads_test, runtime_bodies_test          bodies, files, limits, slow senders
//	runtime_env_test, php_runtime_env_test     environment, ini, preload
//	opcache_test                               the cache of scripts, emptied under load
//	sessions_test, kv_php_test                 what outlives a request
//	limits_test, runtime_stuck_test            time, soft stop, locks, backtraces
//	php_memory_test                            memory_limit
//	crash_test, ws_kills_test                  workers that die
//	pool_test, stop_test, reload_test          who waits, for whom, and for how long
//	logs_test, accesslog*_test, metrics_test,
//	admin_test                                 what an operator sees
//	php_command_test                           PHP on the command line
//
// With the race detector (go test -race ./e2e) the server is built with it too.
package e2e
