// Package server is the front: it owns every listener, socket, queue, timer and
// decision, and lets PHP run in the workers of package phpbridge.
//
// # One HTTP request
//
// A gate (gate.go) accepts the connection: it reads what the PROXY protocol says of
// the client (proxyprotocol.go), and takes it in or refuses it by the limits
// (limitconn.go). Above it is TLS, if the endpoint has it, with the certificate for
// the name that the client asks for (certs.go, certdir.go, acme.go, acmesites.go).
// HTTP/3 comes by UDP, through package quic (http3.go). net/http, or http3.Server,
// reads the header and calls Server.ServeHTTP (handler.go), which is the same for all
// versions.
//
// Who the client is, behind proxies that are trusted, is worked out once (peer.go,
// forwarded.go). A client that asks too often gets 429 (limitrate.go). The request
// target is decoded strictly (path.go), the server's own endpoints and ACME
// challenges are answered, and the host name leads to a site (sites.go, and
// sitesdir.go for those that are directories). From there on nothing knows of other
// sites: the site has its document root, rules, registry, store and tenant (site.go,
// tenant.go). It refuses hidden paths, applies its rules (rules.go: addresses,
// passwords, redirects, rewrites) and finds its route (route.go): the fallback list is
// walked until an entry names a file, a script, a status. Files below the document
// root are looked up through root.go, which never leaves it.
//
//   - A file is sent in the form that the client likes best (static.go): as it is,
//     as somebody encoded it beside the file (precompressed.go), or encoded here
//     (compress.go). What is small is kept in memory (filememory.go).
//   - A script is run (php.go): first its body is read completely, to memory or
//     to an unlinked file (body.go), so that a slow upload holds no worker. Then
//     the CGI variables are written (vars.go). The tenant says who runs it: the pool
//     that sites share, in which it has a share (share.go), or a pool of its own
//     (ownpool.go). The script writes into the response (response.go) as it prints,
//     compressed if that is worth it (compress_body.go). What can go wrong has a
//     status: 503 no worker came free, 504 over the time limit, 502 the worker died;
//     once the response has begun it is cut instead, never completed as if it were
//     whole. A script may also name a file, which is sent when it has ended
//     (sendfile.go).
//
// An error may have a page of the site's own (errorpage.go). At the end the request
// is counted (metrics.go) and written to its access log (accesslogs.go). A client that
// takes or sends too little for too long is cut: by the watch over connections
// (slowread.go), or on streams of HTTP/2 and HTTP/3 by a deadline.
//
// # One WebSocket message
//
// An upgrade request passes the same checks and goes to the site's sockets
// (socket.go), which run the connect event before the handshake. An extended CONNECT
// of HTTP/2 or HTTP/3 is made to look like one (http2socket.go, http3socket.go).
// Then package websocket parks the socket: over TCP, with TLS or without, it is a bare
// descriptor among those that a poller watches, without a goroutine or a buffer, and
// keeps the place of its connection in the limits. Over HTTP/2 and HTTP/3 it is a
// stream, which a goroutine reads. For each whole message a goroutine runs the message
// event (event.go): the site's WebSocket script with the variables of the upgrade
// request and WS_EVENT=message, the payload as php://input. One script runs at a time
// for a socket: that is the order of messages. Meanwhile the socket is read ahead, so
// that pings are answered, but only by a few messages; then TCP stops the client:
// that is the back-pressure.
// The script answers by host calls such as ephpm_ws_send (host.go), which put
// frames into the queues of this or other sockets and hand the kernel what it takes;
// a broadcast does so in batches. What the kernel does not take waits in the queue,
// while scripts run. A channel may remember what was sent to it (history.go)
// and tell its members who is there (presence.go).
//
// Where networks break sockets, a connection is an event stream (sse.go): its frames
// are the events of one response, or the answers to polls (ssepoll.go), by package
// eventstream, and messages come by requests of their own (ssesend.go). To the
// registry both are sinks (sink.go), and events are the same. A client that lost its
// event stream gets from the histories what it missed (resume.go).
//
// # Keys and values
//
// Each site has a store (kv.go), which outlives its workers and, by snapshots, the
// server. Workers read most keys in its memory, which they map for reading only;
// everything else is a host call (kvhost.go), and so are sessions (session.go).
// Clients of Redis reach the store of the site whose password they have (kvserve.go).
//
// # Other ways in
//
// Scripts on the command line make host calls over the control socket (control.go).
// An admin listener keeps metrics and what runs (running.go) from the public
// (admin.go).
//
// # Files
//
// Every file is here, by what it is about. A * is any rest of a name.
//
//	Life and configuration
//	  server.go           New, Run, Reload, and what a server consists of
//	  config.go           Config and [server] itself; config_*.go: one table each
//	  value.go            sizes, durations, rates as the file writes them
//	  validate*.go        what is wrong with a configuration, by key
//	  autotune.go         defaults that follow from processors and memory
//	  runtime.go          how Go's runtime shares the machine with PHP
//	  version.go          what the program was built from
//	Connections
//	  endpoint.go         what listens, and what is spoken there
//	  gate.go             accepts
//	  proxyprotocol.go    the client as a proxy in front tells it
//	  limitconn.go        how many there may be, and who goes for a new one
//	  slowread.go         cuts who takes or sends too slowly
//	  readdeadline.go     deadlines that seldom reach the kernel
//	  quietread.go        the look whether a client leaves, begun late
//	  accessconn.go       requests that end before there is a handler
//	TLS
//	  certs.go            the certificate for a name
//	  certdir.go          those of cert_dir
//	  certwatch.go        takes up files that have changed
//	  keypair.go          reads and checks them
//	  acme.go             obtains them; acmesites.go: for directories of sites
//	  zap.go              what certmagic logs
//	HTTP
//	  httpserver.go       net/http's server: versions, time limits, HTTP/2
//	  http3*.go           HTTP/3: endpoints, connections, requests, sockets, metrics
//	  streams.go          what differs where a connection has several requests
//	  handler.go          ServeHTTP: from a request to its site, and to the logs
//	  malformed.go        requests of HTTP/2 and HTTP/3 that must not pass
//	  saidlength.go       chunked requests that said a length as well
//	  path.go             request targets and paths
//	  hostname.go         host names and ports
//	  peer.go             who asks; forwarded.go: behind proxies
//	  limit.go            429 and 503 before a site; limitrate.go: rates
//	  response.go         the answer as a handler writes it
//	Sites
//	  sites.go            the site of a host name; sitesdir.go: directories
//	  site.go             what a site has, and its answer to a request
//	  rules.go            what comes before a route: addresses, passwords, …
//	  redirect.go         redirects; rewrite.go: rewrites; glob.go: patterns
//	  basicauth.go        names and passwords
//	  route.go            the fallback list
//	  root.go             the document root, which no path leaves
//	  extensions.go       which names are scripts
//	  headers.go          header fields of every answer
//	  errorpage.go        pages of the site's own for errors
//	Files
//	  static.go           sends one; ranges.go: the parts that are asked for
//	  autoindex.go        lists a directory
//	  mime.go             types
//	  filememory.go       small files in memory
//	  coding.go           gzip, br, zstd, and who likes which
//	  compress*.go        encoding of files and of bodies; precompressed.go: siblings
//	  sendfile.go         files that a script names
//	Scripts
//	  php.go              runs the script of a route
//	  body.go             request bodies; vars.go: CGI variables
//	  pools.go            all workers; ownpool.go: those of one site
//	  tenant.go           a site's hold on workers; share.go: how many at once
//	  shed.go             overload_policy
//	  hardening.go        settings that keep sites apart
//	  account.go          run_as; statedir.go: directories of a site's own
//	  session.go          sessions in the store
//	  running.go          what runs now; workerlist.go: and the workers
//	  phpcli.go           PHP on the command line
//	Sockets
//	  socket.go           the sockets of a site, from upgrade to shutdown
//	  admission.go        who may come in; socketlimit.go: how many, and how fast
//	  origin.go           from which pages
//	  connect.go          the connect event and what it lets in
//	  event.go            runs events; errands.go: many in order
//	  host.go             ephpm_ws_*
//	  sink.go             where frames go; transport.go: and how they travel
//	  subscription.go     the options of ephpm_ws_subscribe
//	  history.go          what a channel remembers
//	  presence*.go        who is there, and rounds and frames that tell
//	  http2socket.go      over HTTP/2; http3socket.go: over HTTP/3
//	  calm.go             gives memory back after a crowd
//	Event streams
//	  sse*.go             requests, streams, polls, messages, keys, other origins
//	  resume.go           what a client has missed
//	Keys and values
//	  kv.go               the stores of the sites
//	  kvhost.go           ephpm_kv_*
//	  kvserve.go          Redis clients
//	  kvmonitor.go        ephpm kv monitor; kvclient.go: ephpm kv
//	Who runs the server
//	  admin.go            the listener for health, metrics, profiles
//	  control*.go         the control socket, and where it is
//	  access*.go          the access log
//	  log.go              what of PHP and net/http is logged
//	  metrics.go          of HTTP; *metrics.go: of all else
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
//	looker       an idle worker that looks for work for a moment before it sleeps
//	site         one virtual host: names, root, limits, registry, store
//	tenant       a site's hold on workers, and what only its scripts find there
//	share        how many workers of a pool a site may have at once
//	name         a host name that a site answers to
//	root         a site's document root
//	form         a file in one of its encodings
//	sibling      a form that lies beside the file
//	script       a PHP file that is run
//	visit        one HTTP request on its way through a site
//	peer         who sent a request, and how
//	route        what a request path leads to: a script, a file, a status
//	rule         what a site does with a path before it has a route
//	endpoint     an address that the server listens on
//	gate         accepts the connections of an endpoint
//	place        what a connection takes of the limits; a socket keeps it as a seat
//	connection   one WebSocket, or event stream, as PHP knows it
//	socket       the same, as the server has it
//	event stream a connection without a socket
//	poll         a request for the frames of an event stream that has no response
//	transport    which of these it is
//	key          of an event stream: proves who opened it (in the store: a name)
//	park         keep a socket as a bare descriptor while nothing comes
//	poller       reads the parked sockets
//	batch        a broadcast on its way to many sockets
//	ID           a connection's unguessable 128-bit name
//	channel      a name that connections subscribe to; PHP's word
//	subscribe    join a channel; unsubscribe: leave it
//	broadcast    send one payload to all of a channel
//	history      the last messages of a channel
//	user         whose connection it is, as the script says; in channels alone
//	presence     the users in a channel: its attendees
//	round        tells the members of a channel what changed of its presence
//	frame        RFC 6455's unit on the wire
//	message      one or more frames: what PHP gets and sends
//	control frame  ping, pong or close
//	event        a script run for a connection: connect, message, disconnect
//	sink         where frames for a connection go; its queue
//	queue        what waits to be sent; always bounded
//	store        the keys and values of one site, in memory that workers read
//	key, value, expire, evict  the words of the store
//	snapshot     a file with all of a store
package server
