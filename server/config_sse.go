package server

import (
	"time"

	"ephpm/eventstream"
)

// streamOptions returns what the event streams of a site are made of, nil when it has
// none.
func (c WebSocketConfig) streamOptions() *streamOptions {
	if !c.SSE {
		return nil
	}
	return &streamOptions{
		conn: eventstream.Options{
			QueueFrames:  c.SendQueue,
			QueueBytes:   int64(c.SendQueueBytes),
			PingInterval: time.Duration(c.PingInterval),
			WriteTimeout: time.Duration(c.WriteTimeout),
			AckTimeout:   time.Duration(c.IdleTimeout),
			PollIdle:     time.Duration(c.PollIdle),
		},
		history:  c.SSEHistory,
		pollWait: time.Duration(c.PollWait),
	}
}

func (k *checks) eventStreams(c WebSocketConfig) {
	if c.SSEHistory > maxHistory {
		k.add("server.websocket.sse_history", "must be 0 to %d", maxHistory)
	}
	if c.PollWait == 0 {
		k.add("server.websocket.poll_wait_secs", "must be more than 0")
	}
	if c.PollIdle == 0 {
		k.add("server.websocket.poll_idle_secs", "must be more than 0")
	}
}
