package server

import (
	"time"

	"ephpm/kv"
)

// KVConfig is [kv]: the key-value store that each site has.
type KVConfig struct {
	// MemoryLimit is how much keys, values and what is needed to find them may
	// take, of each site. It must be from 1 MiB to 12 GiB.
	MemoryLimit Size `toml:"memory_limit"`
	// EvictionPolicy says what happens when something new does not fit: one of
	// kv.Policies.
	EvictionPolicy string `toml:"eviction_policy"`
	// Compression is how large values are kept in memory: one of
	// kv.Compressions.
	Compression string `toml:"compression"`
	// CompressionLevel is from 1, fast, to 9, small.
	CompressionLevel int `toml:"compression_level"`
	// CompressionMinSize is the length of the shortest value that is
	// compressed. It must be at least 1.
	CompressionMinSize Size `toml:"compression_min_size"`
	// Secret gives each site's Redis clients a password: in hexadecimal digits
	// the HMAC-SHA256 of the host name, which is the user, under this key. Empty
	// means none.
	Secret string `toml:"secret"`
	// Snapshot is the directory of the files to which the stores are written,
	// one for each site, and from which they are loaded at start. A relative
	// path in a configuration file starts at that file's directory. It must not
	// be served. Empty means that everything is lost at the end.
	Snapshot string `toml:"snapshot"`
	// SnapshotInterval is the time between two of them; there is one at every
	// graceful stop in any case. Zero means only then.
	SnapshotInterval Duration `toml:"snapshot_interval_secs"`

	Redis RedisConfig `toml:"redis_compat"`
}

// RedisConfig is [kv.redis_compat]: the listener for clients of Redis.
type RedisConfig struct {
	// Enabled serves the store to clients of Redis.
	Enabled bool `toml:"enabled"`
	// Listen is the address, "host:port"; port 0 means a free one. Empty means
	// none.
	Listen string `toml:"listen"`
	// Socket is the path of a Unix socket. A relative path in a configuration
	// file starts at that file's directory. Empty means none.
	Socket string `toml:"socket"`
	// Password is what clients without a user name must send: they get the
	// store of the document root. Empty means that they need none, unless there
	// is KVConfig.Secret.
	Password string `toml:"password"`
	// MaxConnections limits the connections; one more is refused. It must be at
	// least 1.
	MaxConnections int `toml:"max_connections"`
	// MaxInputBuffer limits one command with its values; a longer one cuts the
	// connection. It must be at least 1024.
	MaxInputBuffer Size `toml:"max_input_buffer"`
	// ClientsMemoryLimit limits what all clients together hold: of commands that
	// have not ended, of transactions, of replies and messages that they do not
	// read, and of subscriptions. Over it the client that holds most is cut. Zero
	// means KVConfig.MemoryLimit, at least 64 MiB and four times MaxInputBuffer;
	// else it must be at least 1 MiB and twice MaxInputBuffer.
	ClientsMemoryLimit Size `toml:"clients_memory_limit"`
	// IdleTimeout cuts a connection that sent nothing for this long. Zero means
	// never.
	IdleTimeout Duration `toml:"idle_timeout_secs"`
	// WebSocketPrefix lets PUBLISH reach the site's WebSocket channels: with
	// "ws:" a message to "ws:lobby" goes to the channel "lobby" too. Empty
	// means that they have nothing to do with each other.
	WebSocketPrefix string `toml:"websocket_prefix"`
}

func defaultKV() KVConfig {
	d := kv.DefaultOptions()
	return KVConfig{
		MemoryLimit:        Size(d.MemoryLimit),
		EvictionPolicy:     string(d.Policy),
		Compression:        string(d.Compression),
		CompressionLevel:   d.CompressLevel,
		CompressionMinSize: Size(d.CompressMin),
		SnapshotInterval:   Duration(5 * time.Minute),
		Redis: RedisConfig{
			Listen:         "127.0.0.1:6379",
			MaxConnections: 1000,
			MaxInputBuffer: 1 << 20,
			IdleTimeout:    Duration(300 * time.Second),
		},
	}
}

// clientsMemory is KVConfig.Redis.ClientsMemoryLimit or what stands for zero: every
// value that a store has can be read.
func (c KVConfig) clientsMemory() int64 {
	if n := c.Redis.ClientsMemoryLimit; n != 0 {
		return int64(n)
	}
	return int64(max(c.MemoryLimit, 64<<20, 4*c.Redis.MaxInputBuffer))
}

func (k *checks) kv(c Config) {
	s := c.KV
	if n := int64(s.MemoryLimit); n < kv.MinMemoryLimit || n > kv.MaxMemoryLimit {
		k.add("kv.memory_limit", "%v is not from %v to %v", s.MemoryLimit, Size(kv.MinMemoryLimit), Size(kv.MaxMemoryLimit))
	}
	k.oneOf("kv.eviction_policy", s.EvictionPolicy, texts(kv.Policies)...)
	k.oneOf("kv.compression", s.Compression, texts(kv.Compressions)...)
	if s.CompressionLevel > 9 || s.CompressionLevel < 1 {
		k.add("kv.compression_level", "%d is not from 1 to 9", s.CompressionLevel)
	}
	if s.CompressionMinSize < 1 {
		k.add("kv.compression_min_size", "must be at least 1")
	}
	if s.Snapshot != "" {
		k.directory("kv.snapshot", s.Snapshot)
		k.private("kv.snapshot", s.Snapshot, c.roots())
	}
	if s.Redis.Enabled {
		k.redis(c)
	}
}

func texts[T ~string](list []T) []string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = string(v)
	}
	return texts
}

func (k *checks) redis(c Config) {
	const table = "kv.redis_compat."
	r := c.KV.Redis
	switch {
	case r.Listen != "":
		k.address(table+"listen", r.Listen)
	case r.Socket == "":
		k.add(table+"listen", "is empty, as socket is; set one of them, or enabled = false")
	}
	k.inDirectory(table+"socket", r.Socket)
	if len(r.Socket) > maxSocketPath {
		k.add(table+"socket", "is %d bytes long, at most %d are possible for a socket", len(r.Socket), maxSocketPath)
	}
	if r.MaxConnections < 1 {
		k.add(table+"max_connections", "must be at least 1")
	}
	if r.MaxInputBuffer < 1024 || r.MaxInputBuffer > 2*kv.MaxValue {
		k.add(table+"max_input_buffer", "%v is not from 1KiB to %v", r.MaxInputBuffer, Size(2*kv.MaxValue))
	}
	if n := r.ClientsMemoryLimit; n != 0 && (n < 1<<20 || n < 2*r.MaxInputBuffer) {
		k.add(table+"clients_memory_limit", "%v is less than %v, which one command may take", n, max(1<<20, 2*r.MaxInputBuffer))
	}
	if c.hasSites() && c.KV.Secret == "" {
		k.add("kv.secret", "is empty: with several sites, redis_compat needs it to tell whose clients they are")
	}
}
