// Package websocket is one WebSocket connection after the upgrade: its frames,
// queue, writer, pings and close.
//
// A Conn is opened in two steps, because an application decides in between
// whether the client may connect:
//
//	c := websocket.New(options)  // frames may be queued from here on
//	err := c.Accept(w, r, "")    // writes the 101
//	closed := c.Serve(ctx, func(ctx context.Context, m websocket.Message) error {
//		c.TrySend(websocket.Frame(m.Data, m.Binary))
//		return nil
//	})
//
// Reading is coder/websocket's: masking, fragments, control frames, limits.
// It reads through inbound, which watches the bytes go by, and it never
// writes: pongs, pings, closes and data are all written by the Conn's one
// writer, so that a frame is never torn and a slow client never holds up the
// reader.
//
// For an idle connection nothing runs but one goroutine parked in Read. The
// writer lives while there is something to write, the handler's goroutine
// while there is a message to handle; Serve owns and waits for both. The reader
// goes on while a message is handled, as far as the bounds of the inbox, so
// pings are answered meanwhile; messages are handled one at a time, in order.
package websocket
