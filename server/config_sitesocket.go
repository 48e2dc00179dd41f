package server

// SiteWebSocketConfig is [site.websocket]. Nil means what [server.websocket] says.
type SiteWebSocketConfig struct {
	// MaxConnections limits the sockets of the site; one more is answered with
	// 503. Zero means no limit of its own, nil what [server.websocket]
	// max_connections_per_site says.
	MaxConnections *int `toml:"max_connections"`
	// MaxConnectionsPerIP limits the sockets that one client address, or one /64
	// of IPv6, has on this site; one more is answered with 503. That of
	// [server.websocket] holds as well, for all sites together. Zero and nil mean no
	// limit of its own.
	MaxConnectionsPerIP *int `toml:"max_connections_per_ip"`
	// MaxMessagesPerSec and MessageBurst are those of [server.websocket], for the
	// sockets of this site.
	MaxMessagesPerSec *Rate `toml:"max_messages_per_sec"`
	MessageBurst      *int  `toml:"message_burst"`
	// MaxMessageSize and MaxFrameSize are those of [server.websocket].
	MaxMessageSize *Size `toml:"max_message_size"`
	MaxFrameSize   *Size `toml:"max_frame_size"`
	// HistoryMemory is that of [server.websocket].
	HistoryMemory *Size `toml:"history_memory"`
	// PresenceMemory is that of [server.websocket].
	PresenceMemory *Size `toml:"presence_memory"`
	// Subprotocols are those of [server.websocket].
	Subprotocols []string `toml:"subprotocols"`
	// AllowedOrigins are those of [server.websocket].
	AllowedOrigins []string `toml:"allowed_origins"`
	// Compression is that of [server.websocket].
	Compression *string `toml:"compression"`
	// SSE is that of [server.websocket].
	SSE *bool `toml:"sse"`
}

// of returns the keys of [server.websocket] as the site has them.
func (s SiteWebSocketConfig) of(c WebSocketConfig) WebSocketConfig {
	replace(&c.MaxConnectionsPerSite, s.MaxConnections)
	replace(&c.MaxMessagesPerSec, s.MaxMessagesPerSec)
	replace(&c.MessageBurst, s.MessageBurst)
	replace(&c.MaxMessageSize, s.MaxMessageSize)
	replace(&c.MaxFrameSize, s.MaxFrameSize)
	replace(&c.HistoryMemory, s.HistoryMemory)
	replace(&c.PresenceMemory, s.PresenceMemory)
	override(&c.Subprotocols, s.Subprotocols)
	override(&c.AllowedOrigins, s.AllowedOrigins)
	replace(&c.Compression, s.Compression)
	replace(&c.SSE, s.SSE)
	return c
}

// siteWebSocket checks [site.websocket].
func (k *checks) siteWebSocket(key string, s SiteWebSocketConfig) {
	if s.MessageBurst != nil {
		k.messageBurst(key, *s.MessageBurst)
	}
	k.subprotocols(key, s.Subprotocols)
	k.origins(key+".allowed_origins", s.AllowedOrigins)
	if s.Compression != nil {
		k.socketCompression(key, *s.Compression)
	}
}
