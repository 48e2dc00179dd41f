// Package eventstream is a connection without a socket, for networks that break
// sockets: its frames go out as the events of one long response (Server-Sent Events,
// WHATWG HTML §9.2), or as the answers to polls; what the client sends comes by
// requests of its own.
//
// A Conn is opened in two steps, like a WebSocket, because an application decides in
// between whether the client may connect:
//
//	c := eventstream.New(&options) // frames may be queued from here on
//	c.Open(handler, polled, seq)   // handler is told of the end
//	c.Serve(ctx, w, hello)         // until the end; or, without it:
//	answer, err := c.Poll(ctx, cursor, wait)
//
// While Serve runs, its goroutine is the only one that writes. Between two polls
// nothing runs but one timer: a client that does not come back in time has gone.
//
// What a client sends is handled one message at a time, in order, on the goroutines
// of the requests that bring it (Handle).
//
// A frame can have a sequence number, which the client is told as the event's ID. One
// that has lost its connection says the last it has seen, as Last-Event-ID, and can
// be sent what it missed: see Mark.
package eventstream
