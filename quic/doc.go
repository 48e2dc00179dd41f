// Package quic is what lies between UDP and github.com/quic-go/quic-go: the
// sockets of one address and how packets find theirs, the keys that outlive the
// process, and how many strangers may shake hands at a time. It knows nothing of
// HTTP.
//
//	e, err := quic.Open(quic.Options{Network: "udp", Addr: ":443", Sockets: 2, Keys: keys, Log: log})
//	listeners, err := e.Listen(tlsConfig, quicConfig)
//	conn, err := listeners[0].Accept(ctx)
//	e.Close()
//
// # Several sockets
//
// One socket is read by one goroutine. With several on one address
// (SO_REUSEPORT) the kernel would pick by the client's address, and a client
// whose address changes (a phone that leaves the house, a router that forgets
// its mapping) would end at a socket that does not know the connection. So the
// first byte of every connection ID that a socket gives out names that socket
// (connid.go). A program in the kernel sends packets by it (steer.go), and what
// arrives at the wrong socket all the same is handed over here (socket.go).
package quic
