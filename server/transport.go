package server

// A transport is how the frames of a connection travel.
type transport uint8

const (
	overSocket transport = iota
	overSSE              // as the events of a response
	overPoll             // as the answers to polls
	transports
)

// String returns WS_TRANSPORT, and the label "transport".
func (t transport) String() string {
	return [transports]string{"websocket", "sse", "poll"}[t]
}

// noun is what a log calls a connection.
func (t transport) noun() string {
	if t == overSocket {
		return "socket"
	}
	return "event stream"
}
