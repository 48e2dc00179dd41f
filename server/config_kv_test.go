package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestValidateChecksTheStore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	on := func(change func(*RedisConfig)) func(*Config) {
		return func(c *Config) {
			c.KV.Redis.Enabled = true
			change(&c.KV.Redis)
		}
	}
	for _, test := range []struct {
		key, text string
		spoil     func(c *Config)
	}{
		{"kv.memory_limit", "1MiB", func(c *Config) { c.KV.MemoryLimit = 1000 }},
		{"kv.memory_limit", "12GiB", func(c *Config) { c.KV.MemoryLimit = 13 << 30 }},
		{"kv.eviction_policy", "allkeys-lru", func(c *Config) { c.KV.EvictionPolicy = "allkeys-lur" }},
		{"kv.compression", "zstd", func(c *Config) { c.KV.Compression = "lz4" }},
		{"kv.compression_level", "from 1 to 9", func(c *Config) { c.KV.CompressionLevel = 10 }},
		{"kv.compression_min_size", "at least 1", func(c *Config) { c.KV.CompressionMinSize = 0 }},
		{"kv.snapshot", "make the directory", func(c *Config) { c.KV.Snapshot = filepath.Join(dir, "missing") }},
		{"kv.snapshot", "not a directory", func(c *Config) { c.KV.Snapshot = file }},
		{"kv.snapshot", "below the document root", func(c *Config) { c.KV.Snapshot = c.Server.DocumentRoot }},
		{"kv.snapshot_interval_secs", "less than 0", func(c *Config) { c.KV.SnapshotInterval = -1 }},
		{"kv.redis_compat.listen", "6379", on(func(r *RedisConfig) { r.Listen = "6379" })},
		{"kv.redis_compat.listen", "is empty", on(func(r *RedisConfig) { r.Listen = "" })},
		{"kv.redis_compat.socket", "108", on(func(r *RedisConfig) { r.Socket = "/" + strings.Repeat("x", 107) })},
		{"kv.redis_compat.max_connections", "at least 1", on(func(r *RedisConfig) { r.MaxConnections = 0 })},
		{"kv.redis_compat.max_input_buffer", "1KiB", on(func(r *RedisConfig) { r.MaxInputBuffer = 1 })},
		{"kv.redis_compat.clients_memory_limit", "2MiB", on(func(r *RedisConfig) { r.ClientsMemoryLimit = 2<<20 - 1 })},
		{"kv.redis_compat.clients_memory_limit", "1MiB", on(func(r *RedisConfig) { r.ClientsMemoryLimit, r.MaxInputBuffer = 4096, 1024 })},
		{"kv.secret", "several sites", func(c *Config) {
			c.KV.Redis.Enabled = true
			c.Sites = []SiteConfig{{Names: []string{"a.example"}, Root: dir}}
		}},
	} {
		c := goodConfig(t)
		test.spoil(&c)
		err := c.Validate()
		var key *KeyError
		if !errors.As(err, &key) || key.Key != test.key || !strings.Contains(key.Text, test.text) {
			t.Errorf("%s: %v, want a word of %q", test.key, err, test.text)
		}
	}
	c := goodConfig(t)
	c.KV.Redis.Listen, c.KV.Redis.MaxConnections = "nonsense", 0 // off, so nobody minds
	if err := c.Validate(); err != nil {
		t.Errorf("with redis_compat off: %v", err)
	}
}
