package server

import "ephpm/websocket"

// The values of WebSocketConfig.Compression.
const (
	SocketsPlain     = "off"
	SocketsNoContext = "no_context_takeover" // each message by itself
	SocketsContext   = "context_takeover"    // messages refer to those before: smaller, for memory and time
)

// socketCompression are the same for a websocket.Conn.
var socketCompression = map[string]int{
	SocketsPlain:     websocket.CompressionOff,
	SocketsNoContext: websocket.CompressionNoContext,
	SocketsContext:   websocket.CompressionContext,
}
