// Package server is the front: it owns every listener, socket, queue, timer and
// decision, and lets PHP run in the workers of package phpbridge.
//
// # One HTTP request
//
// net/http reads the header and calls Server.ServeHTTP (handler.go). The request
// target is decoded strictly (path.go), the server's own endpoints are answered,
// hidden paths refused, and the site's route is found (route.go): the fallback
// list is walked until an entry names a file, a script, a status. Files below the
// document root are looked up through root.go, which never leaves it.
//
//   - A file is sent in the form that the client likes best (static.go): as it is,
//     as somebody encoded it beside the file (precompressed.go), or encoded here
//     (compress.go). What is small is kept in memory (filememory.go).
//   - A script is run (php.go): first its body is read completely, to memory or
//     to an unlinked file (body.go), so that a slow upload holds no worker. Then
//     the CGI variables are written (vars.go) and the pool runs the script,
//     which writes into the response (response.go) as it prints. What can go
//     wrong has a status: 503 no worker came free, 504 over the time limit, 502
//     the worker died; once the response has begun it is cut instead, never
//     completed as if it were whole. A script may also name a file, which is
//     sent when it has ended (sendfile.go).
//
// # One WebSocket message
//
// An upgrade request passes the same checks and goes to the site's sockets
// (socket.go), which run the connect event before the handshake and then start
// one reader. For each whole message the reader runs the message event (event.go):
// the site's WebSocket script with the variables of the upgrade request and
// WS_EVENT=message, the payload as php://input. One script runs at a time for a
// socket: that is the order of messages. Meanwhile the socket is read ahead, so
// that pings are answered, but only by a few messages; then TCP stops the client:
// that is the back-pressure.
// The script answers by host calls such as ephpm_ws_send (host.go), which put
// frames into the queues of this or other sockets; each socket's writer sends
// them while scripts run.
//
// # Words
//
// One word per thing, in code, comments and logs.
//
//	front        this process: everything in Go
//	zygote       the C process that loaded PHP once and forks the workers
//	worker       a C process that runs one script at a time
//	slot         a numbered place in a pool; outlives the worker in it
//	job          one request in shared memory
//	ring         the jobs that wait; any idle worker takes the next
//	pool         slots, ring and backlog
//	backlog      the requests that wait for a job
//	recycle      replace a worker that did its share of requests
//	crash        the death of a worker that nobody asked for
//	drain        let what runs finish and start nothing new
//	shed         refuse a page because all workers are busy
//	refuse       answer without running anything
//	record       one unit between front and worker
//	exchange     all records of one request
//	host call    PHP asks the front, answered in the same job
//	site         one virtual host: names, root, limits, registry
//	name         a host name that a site answers to
//	root         a site's document root
//	form         a file in one of its encodings
//	sibling      a form that lies beside the file
//	script       a PHP file that is run
//	visit        one HTTP request on its way through a site
//	route        what a request path leads to: a script, a file, a status
//	connection   one WebSocket, as PHP knows it
//	ID           a connection's unguessable 128-bit name
//	channel      a name that connections subscribe to; PHP's word
//	subscribe    join a channel; unsubscribe: leave it
//	broadcast    send one payload to all of a channel
//	frame        RFC 6455's unit on the wire
//	message      one or more frames: what PHP gets and sends
//	control frame  ping, pong or close
//	event        a script run for a connection: connect, message, disconnect
//	sink         where frames for a connection go; its queue
//	queue        what waits to be sent; always bounded
//	store        the keys and values of one site
//	key, value, expire, evict  the words of the store
//	snapshot     a file with all of a store
package server
