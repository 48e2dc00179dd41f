package kv

import "strings"

const everyone = forStrangers | noGate

var connectionCommands = []command{
	{"ping", -1, forSubscribers | noGate, keyRange{}, cmdPing},
	{"echo", 2, noGate, keyRange{}, func(c *client, args [][]byte) { c.reply.bulk(args[1]) }},
	{"select", 2, noGate, keyRange{}, cmdSelect},
	{"quit", -1, everyone | forSubscribers | atOnce, keyRange{}, cmdQuit},
	{"reset", 1, everyone | forSubscribers | atOnce, keyRange{}, cmdReset},
	{"auth", -2, everyone | noTransaction | takesLong | secret, keyRange{}, cmdAuth},
	{"hello", -1, everyone | noTransaction | takesLong | secret, keyRange{}, cmdHello},
	{"client", -2, noGate, keyRange{}, cmdClient},
}

func cmdPing(c *client, args [][]byte) {
	switch {
	case len(args) > 2:
		c.reply.error("ERR wrong number of arguments for 'ping' command")
	case c.reply.resp == 2 && c.subscribed() > 0:
		c.reply.array(2)
		c.reply.text("pong")
		c.reply.bulk(append([]byte{}, lastOf(args)...))
	case len(args) == 2:
		c.reply.bulk(args[1])
	default:
		c.reply.simple("PONG")
	}
}

// lastOf returns the argument of a command that may have one.
func lastOf(args [][]byte) []byte {
	if len(args) < 2 {
		return nil
	}
	return args[len(args)-1]
}

func cmdSelect(c *client, args [][]byte) {
	n, ok := parseInt(args[1])
	switch {
	case !ok:
		c.reply.error("ERR value is not an integer or out of range")
	case n != 0:
		c.reply.error("ERR DB index is out of range")
	default:
		c.reply.ok()
	}
}

func cmdQuit(c *client, args [][]byte) {
	c.reply.ok()
	c.closing = true
}

func cmdReset(c *client, args [][]byte) {
	c.unsubscribeAll()
	c.endMonitor()
	c.tx = transaction{}
	c.reply.resp = 2
	c.user, c.store = "", nil
	c.site.Store(nil)
	c.parser.limits = strangerLimits
	if s := c.server.opts.Default; s != nil {
		c.enter(s)
	}
	c.setName("")
	c.reply.simple("RESET")
}

const (
	textWrongPass = "WRONGPASS invalid username-password pair or user is disabled."
	textNoPass    = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
)

func cmdAuth(c *client, args [][]byte) {
	user := "default"
	switch len(args) {
	case 2:
	case 3:
		user = string(args[1])
	default:
		c.reply.error(textSyntax)
		return
	}
	if c.login(user, string(args[len(args)-1])) {
		c.reply.ok()
	}
}

// login gives the client the Store of a user, or writes an error.
func (c *client) login(user, password string) bool {
	if c.server.opts.Authenticate == nil {
		c.reply.error(textNoPass)
		return false
	}
	s := c.server.opts.Authenticate(user, password)
	if s == nil {
		c.server.opts.Log.Info("Redis client refused", "address", c.address, "reason", "wrong user or password")
		c.reply.error(textWrongPass)
		return false
	}
	if s != c.store {
		c.unsubscribeAll() // they were another site's
		c.endMonitor()
		c.tx = transaction{}
	}
	c.user = user
	c.enter(s)
	return true
}

func cmdHello(c *client, args [][]byte) {
	resp := c.reply.resp
	rest := args[1:]
	if len(rest) > 0 {
		n, ok := parseInt(rest[0])
		if !ok {
			c.reply.error("ERR Protocol version is not an integer or out of range")
			return
		}
		if n != 2 && n != 3 {
			c.reply.error("NOPROTO unsupported protocol version")
			return
		}
		resp, rest = int(n), rest[1:]
	}
	var name []byte
	for len(rest) > 0 {
		switch {
		case is(rest[0], "auth") && len(rest) >= 3:
			if !c.login(string(rest[1]), string(rest[2])) {
				return
			}
			rest = rest[3:]
		case is(rest[0], "setname") && len(rest) >= 2:
			if name = rest[1]; !isName(name) {
				c.reply.error(textBadName)
				return
			}
			rest = rest[2:]
		default:
			c.reply.error("ERR Syntax error in HELLO option '" + short(rest[0]) + "'")
			return
		}
	}
	if c.store == nil {
		c.reply.error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	if name != nil {
		c.setName(string(name))
	}
	c.reply.resp = resp
	c.subscriber.resp.Store(int32(resp))
	c.greet()
}

// greet answers HELLO.
func (c *client) greet() {
	c.reply.pairs(7)
	for _, p := range [][2]string{{"server", "redis"}, {"version", redisVersion}} {
		c.reply.text(p[0])
		c.reply.text(p[1])
	}
	c.reply.text("proto")
	c.reply.integer(int64(c.reply.resp))
	c.reply.text("id")
	c.reply.integer(c.id)
	for _, p := range [][2]string{{"mode", "standalone"}, {"role", "master"}} {
		c.reply.text(p[0])
		c.reply.text(p[1])
	}
	c.reply.text("modules")
	c.reply.array(0)
}

const textBadName = "ERR Client names cannot contain spaces, newlines or special characters."

// isName reports whether CLIENT LIST can show a name.
func isName(name []byte) bool {
	for _, b := range name {
		if b < '!' || b > '~' {
			return false
		}
	}
	return len(name) <= 1024
}

func (c *client) setName(name string) {
	c.nameMu.Lock()
	defer c.nameMu.Unlock()
	c.name = name
}

func cmdClient(c *client, args [][]byte) {
	sub, rest := args[1], args[2:]
	switch {
	case is(sub, "id") && len(rest) == 0:
		c.reply.integer(c.id)
	case is(sub, "info") && len(rest) == 0:
		c.reply.text(c.info() + "\n")
	case is(sub, "list"):
		c.reply.text(c.list())
	case is(sub, "getname") && len(rest) == 0:
		c.nameMu.Lock()
		name := []byte(c.name)
		c.nameMu.Unlock()
		if len(name) == 0 {
			name = nil
		}
		c.reply.value(name)
	case is(sub, "setname") && len(rest) == 1:
		if !isName(rest[0]) {
			c.reply.error(textBadName)
			return
		}
		c.setName(string(rest[0]))
		c.reply.ok()
	case is(sub, "setinfo") && len(rest) == 2:
		c.setInfo(rest[0], rest[1])
	case (is(sub, "no-evict") || is(sub, "no-touch")) && len(rest) == 1 && (is(rest[0], "on") || is(rest[0], "off")):
		c.reply.ok() // there is nothing to keep from eviction
	default:
		c.reply.error(unknownSub("client", sub))
	}
}

func (c *client) setInfo(what, value []byte) {
	if !is(what, "lib-name") && !is(what, "lib-ver") {
		c.reply.error("ERR Unrecognized option '" + short(what) + "'")
		return
	}
	if !isName(value) {
		c.reply.error("ERR " + strings.ToLower(string(what)) + " cannot contain spaces, newlines or special characters.")
		return
	}
	if is(what, "lib-name") {
		c.nameMu.Lock()
		c.library = string(value)
		c.nameMu.Unlock()
	}
	c.reply.ok()
}

// list returns the clients of the same Store, a line each.
func (c *client) list() string {
	c.server.mu.Lock()
	var same []*client
	for _, other := range c.server.clients {
		if other.site.Load() == c.store {
			same = append(same, other)
		}
	}
	c.server.mu.Unlock()
	var b strings.Builder
	for _, other := range same {
		b.WriteString(other.info() + "\n")
	}
	return b.String()
}
