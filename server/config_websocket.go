package server

import "ephpm/websocket"

// WebSocketConfig is [server.websocket].
type WebSocketConfig struct {
	// Enabled turns WebSockets on: a site with one of WebSocketFiles has
	// sockets, one without answers every upgrade with 404. Off, an upgrade
	// request is an ordinary GET and the ephpm_ws functions throw.
	Enabled bool `toml:"enabled"`
	// MaxConnections limits the sockets of the server; one more is answered
	// with 503. Zero means no limit.
	MaxConnections int `toml:"max_connections"`
	// MaxConnectionsPerSite limits the sockets of one site; one more is
	// answered with 503. Zero means no limit of its own.
	MaxConnectionsPerSite int `toml:"max_connections_per_site"`
	// MaxConnectionsPerIP limits the sockets of one client address, or of one /64
	// of IPv6, on all sites together; one more is answered with 503. Trusted
	// proxies are exempt, their clients are not. Zero means no limit.
	MaxConnectionsPerIP int `toml:"max_connections_per_ip"`
	// MaxMessagesPerSec limits the messages of one socket; one more closes it
	// with 1008. Zero means no limit.
	MaxMessagesPerSec Rate `toml:"max_messages_per_sec"`
	// MessageBurst is how many may come at once. It must be at least 1.
	MessageBurst int `toml:"message_burst"`
	// MaxMessageSize limits a message in bytes, both ways: a longer one from
	// the client closes the socket with 1009, a longer one from PHP is not sent
	// and the call returns false. Zero means no limit.
	MaxMessageSize Size `toml:"max_message_size"`
	// MaxFrameSize limits one frame from the client in bytes; a longer one
	// closes the socket with 1009. Zero means no limit of its own.
	MaxFrameSize Size `toml:"max_frame_size"`
	// SendQueue limits, in frames, what waits for a client that does not read.
	// It must be at least 1. A full queue closes the socket with 1013.
	SendQueue int `toml:"send_queue"`
	// SendQueueBytes is the same limit in bytes; a frame that is larger by
	// itself passes when nothing else waits. Zero means no limit in bytes.
	SendQueueBytes Size `toml:"send_queue_bytes"`
	// SendWait is how long one event or page may wait in all for room in full
	// queues whose clients still read. Zero means that it never waits.
	SendWait Millis `toml:"send_wait_ms"`
	// HistoryMemory limits what the channels of one site remember of their
	// broadcasts, in bytes; the channel that was used least recently is forgotten
	// first. Zero means that none is remembered.
	HistoryMemory Size `toml:"history_memory"`
	// PresenceMemory limits what is kept of the users in the channels of one site,
	// in bytes; a subscription with a user for whom there is no room is refused.
	// Zero means that all are.
	PresenceMemory Size `toml:"presence_memory"`
	// WriteTimeout cuts a socket to which nothing could be written for this
	// long. Zero means never.
	WriteTimeout Duration `toml:"write_timeout_secs"`
	// PingInterval is the time between two pings. Zero means none.
	PingInterval Duration `toml:"ping_interval_secs"`
	// IdleTimeout closes a socket with 1001 that sent nothing, not even a pong,
	// for this long. Zero means never.
	IdleTimeout Duration `toml:"idle_timeout_secs"`
	// Subprotocols are those the server speaks, best first: the first that the
	// client offered is chosen unless the script chose. Empty means that only
	// the script chooses.
	Subprotocols []string `toml:"subprotocols"`
	// AllowedOrigins refuses, with 403 and before PHP, an upgrade whose Origin
	// is not listed: "same-origin" or origins such as "https://app.example".
	// Empty means that the script decides.
	AllowedOrigins []string `toml:"allowed_origins"`
	// Compression says whether messages are compressed with clients that offer
	// permessage-deflate: SocketsPlain, SocketsNoContext or SocketsContext.
	Compression string `toml:"compression"`
	// CompressionThreshold is the smallest payload that is compressed, in bytes.
	CompressionThreshold Size `toml:"compression_threshold"`
	// CompressionMemory limits what SocketsContext keeps of earlier messages, for
	// all sockets together, in bytes, up to 64 KiB each; a socket for which there
	// is no room gets SocketsNoContext. Zero means that none has room.
	CompressionMemory Size `toml:"compression_memory"`
	// SSE opens connections without a socket to clients whose network breaks sockets:
	// as the events of a response, or by polls.
	SSE bool `toml:"sse"`
	// SSEHistory is how many broadcasts each channel that an event stream joins
	// remembers at least, 0 to 100, for clients that come back with a Last-Event-ID.
	// HistoryMemory bounds it too. Zero means that what they missed is lost.
	SSEHistory int `toml:"sse_history"`
	// PollWait is how long a poll waits for a frame. It must be more than 0.
	PollWait Duration `toml:"poll_wait_secs"`
	// PollIdle is how long after a poll the next must come; without it the client has
	// gone. It must be more than 0.
	PollIdle Duration `toml:"poll_idle_secs"`
}

// SameOrigin, in WebSocketConfig.AllowedOrigins, stands for the site's own
// origin.
const SameOrigin = "same-origin"

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
