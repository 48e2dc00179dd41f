package kv

import "strings"

const subscribing = forSubscribers | noGate | noTransaction

var pubsubCommands = []command{
	{"subscribe", -2, subscribing | takesLong, keyRange{}, func(c *client, args [][]byte) { c.subscribe(args[1:], false, "subscribe") }},
	{"psubscribe", -2, subscribing | takesLong, keyRange{}, func(c *client, args [][]byte) { c.subscribe(args[1:], true, "psubscribe") }},
	{"unsubscribe", -1, subscribing, keyRange{}, func(c *client, args [][]byte) { c.unsubscribe(args[1:], false, "unsubscribe") }},
	{"punsubscribe", -1, subscribing, keyRange{}, func(c *client, args [][]byte) { c.unsubscribe(args[1:], true, "punsubscribe") }},
	{"publish", 3, noGate, keyRange{}, cmdPublish},
	{"pubsub", -2, noGate, keyRange{}, cmdPubSub},
	{"monitor", 1, noGate | noTransaction | takesLong, keyRange{}, cmdMonitor},
}

// cmdPublish answers with how many got the message, clients of Redis and
// whoever Publish reaches.
func cmdPublish(c *client, args [][]byte) { c.reply.integer(int64(c.publish(args[1], args[2]))) }

func (c *client) publish(channel, payload []byte) int {
	n := c.store.hub.publish(channel, payload)
	o := &c.server.opts
	if name, ok := strings.CutPrefix(string(channel), o.PublishPrefix); ok && o.Publish != nil {
		n += o.Publish(c.store, name, payload)
	}
	return n
}

func cmdPubSub(c *client, args [][]byte) {
	sub, rest := args[1], args[2:]
	switch {
	case is(sub, "channels") && len(rest) <= 1:
		names := c.store.hub.names(lastOf(args[1:]))
		c.reply.array(len(names))
		for _, name := range names {
			c.reply.text(name)
		}
	case is(sub, "numsub"):
		c.reply.array(2 * len(rest))
		for _, name := range rest {
			c.reply.bulk(name)
			c.reply.integer(int64(c.store.hub.count(string(name))))
		}
	case is(sub, "numpat") && len(rest) == 0:
		c.reply.integer(int64(c.store.hub.patternCount()))
	default:
		c.reply.error(unknownSub("pubsub", sub))
	}
}

// cmdMonitor shows the client every command of its Store. One that does not read
// is cut, as with messages.
func cmdMonitor(c *client, args [][]byte) {
	c.reply.ok()
	if !c.flush() {
		c.closing = true
		return
	}
	if c.unmonitor != nil {
		return
	}
	c.startWriter()
	c.unmonitor = c.store.monitor(watcher{"0", func(line []byte) {
		c.queue(append(append([]byte{'+'}, line...), "\r\n"...)) // or it is cut
	}})
	c.listens.Store(c.hears())
}
