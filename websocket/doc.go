// Package websocket is one WebSocket connection after the upgrade: its frames,
// queue, pings and close (RFC 6455).
//
// A Conn is opened in two steps, because an application decides in between
// whether the client may connect:
//
//	c := loop.New(&options)  // frames may be queued from here on
//	err := c.Accept(w, r, "") // writes the 101
//	c.Start(handler)          // which is told of messages and of the end
//
// A Loop serves all connections of a server. An idle connection has no goroutine,
// no buffer and no timer: Accept duplicates the descriptor, closes Go's own
// connection and parks the bare descriptor in an epoll set. A poller reads what
// comes into one buffer that all its connections share, and nothing of a frame
// that is not there yet makes it wait. Frames go out at once, by whoever sends
// them, without waiting; what the kernel does not take stays in the queue for the
// poller. One timing wheel has the pings and limits of all. With TLS it is the
// same below crypto/tls, if the listener is a descriptor.Parkable; on anything else, a
// stream of HTTP/2 for instance, a connection has a goroutine that reads.
//
// Messages are handled one at a time, in order, by a goroutine that lives while
// there are any. Reading goes on meanwhile, as far as the bounds of the inbox, so
// pings are answered. Whatever ends a connection by the client's doing waits for
// the messages that came before it.
//
// The protocol is ours rather than a library's: libraries read by blocking in a
// goroutine, and check text only when a message is complete.
package websocket
