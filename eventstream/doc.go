// Package eventstream is a connection without a socket, for networks that break
// sockets: its frames go out as the events of one long response (Server-Sent Events,
// WHATWG HTML §9.2), or as the answers to polls; what the client sends comes by
// requests of its own.
//
// A Conn is opened in two steps, like a WebSocket, because an application decides in
// between whether the client may connect:
//
//	c := loop.New(&options)             // frames may be queued from here on
//	c.Open(handler, polled, settled)    // handler is told of the end
//	err := c.Park(conn, chunked, hello) // sends until the end; or:
//	c.Serve(ctx, w, hello)              // the same; or, any number of times:
//	answer, err := c.Poll(ctx, cursor, wait)
//
// A Loop serves all connections of a server. One of HTTP/1.1 is parked: its descriptor
// is in an epoll set, and one goroutine for many writes what they are sent, without
// waiting, and notices when they break, so an idle one has no goroutine, no buffer and
// no timer. A stream of HTTP/2 or HTTP/3 has no descriptor: Serve's goroutine, which
// the server has for it anyway, is the only one that writes. Between two polls nothing
// runs. One timing wheel has the comments that keep proxies awake, and the limits, of
// all.
//
// What a client sends is handled one message at a time, in order, on the goroutines
// of the requests that bring it (Handle).
//
// A frame can have a place among all that is broadcast (Stamp). The client is told, as
// the event's ID, what it has of that. One that has lost its connection says the last
// ID it has seen, as Last-Event-ID, and can be sent what it missed: see Mark.
package eventstream
