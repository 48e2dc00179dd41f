package server

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"ephpm/websocket"
)

// socketState reads what the sites have and what waits in their sockets when it is
// asked for. The zero value is empty; its methods may be called from any goroutine.
type socketState struct {
	mu    sync.Mutex // guards the following
	sites map[*sockets]struct{}
}

var (
	channelsDesc      = socketDesc("channels", "Channels that have a member.")
	subscriptionsDesc = socketDesc("subscriptions", "Members of all channels; a connection in two counts twice.")
	queueFramesDesc   = socketDesc("send_queue_frames", "Frames that clients of WebSockets did not take yet.")
	queueBytesDesc    = socketDesc("send_queue_bytes", "Bytes of those frames.")
	behindDesc        = socketDesc("send_queue_connections", "WebSockets that have such frames.")
	inboxDesc         = socketDesc("messages_waiting", "Messages that wait for the one before them on their WebSocket.")
)

func socketDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("ephpm_ws_"+name, help, nil, nil)
}

// enter adds a site, until leave.
func (t *socketState) enter(s *sockets) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sites == nil {
		t.sites = map[*sockets]struct{}{}
	}
	t.sites[s] = struct{}{}
}

func (t *socketState) leave(s *sockets) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sites, s)
}

// Describe implements prometheus.Collector.
func (t *socketState) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(t, out) }

// Collect implements prometheus.Collector. It looks at every socket once, and holds
// up none for longer than that.
func (t *socketState) Collect(out chan<- prometheus.Metric) {
	var channels, subscriptions, behind int
	var sum websocket.Backlog
	t.mu.Lock()
	for s := range t.sites {
		channels += s.members.Channels()
		subscriptions += s.members.Subscriptions()
		for _, one := range s.conns() {
			c, ok := one.(*websocket.Conn)
			if !ok {
				continue
			}
			waiting := c.Backlog()
			sum.Frames += waiting.Frames
			sum.Bytes += waiting.Bytes
			sum.Messages += waiting.Messages
			if waiting.Frames > 0 {
				behind++
			}
		}
	}
	t.mu.Unlock()
	for desc, n := range map[*prometheus.Desc]float64{
		channelsDesc: float64(channels), subscriptionsDesc: float64(subscriptions),
		queueFramesDesc: float64(sum.Frames), queueBytesDesc: float64(sum.Bytes), behindDesc: float64(behind),
		inboxDesc: float64(sum.Messages),
	} {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n)
	}
}
