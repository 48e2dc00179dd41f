package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// go-redis speaks RESP3 unless it is told otherwise.
func TestGoRedis(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: redisTOML(t), Files: map[string]string{"index.php": ""}})
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			useGoRedis(t, redis.NewClient(&redis.Options{Addr: a.redisAddr(), Protocol: protocol, ClientName: "test"}))
		})
	}
}

func useGoRedis(t *testing.T, c *redis.Client) {
	t.Cleanup(func() { _ = c.Close() })
	ctx := t.Context()
	check := func(what string, got, want any, err error) {
		t.Helper()
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s = %v, %v, want %v", what, got, err, want)
		}
	}
	check("FLUSHDB", "", "", c.FlushDB(ctx).Err())
	check("SET", "", "", c.Set(ctx, "k", "v", time.Hour).Err())
	got, err := c.Get(ctx, "k").Result()
	check("GET", got, "v", err)
	if _, err := c.Get(ctx, "none").Result(); !errors.Is(err, redis.Nil) {
		t.Errorf("GET of no key: %v", err)
	}
	ttl, err := c.TTL(ctx, "k").Result()
	check("TTL", ttl > 0 && ttl <= time.Hour, true, err)
	nx, err := c.SetNX(ctx, "k", "w", 0).Result()
	check("SETNX", nx, false, err)
	old, err := c.SetArgs(ctx, "k", "w", redis.SetArgs{Get: true, KeepTTL: true}).Result()
	check("SET GET", old, "v", err)
	all, err := c.MGet(ctx, "k", "none").Result()
	check("MGET", all, []any{"w", nil}, err)
	check("HSET", "", "", c.HSet(ctx, "h", "a", 1, "b", 2).Err())
	h, err := c.HGetAll(ctx, "h").Result()
	check("HGETALL", h, map[string]string{"a": "1", "b": "2"}, err)
	n, err := c.HIncrBy(ctx, "h", "a", 4).Result()
	check("HINCRBY", n, 5, err)
	f, err := c.IncrByFloat(ctx, "f", 1.25).Result()
	check("INCRBYFLOAT", f, 1.25, err)
	check("WRONGTYPE", c.Get(ctx, "h").Err(), "WRONGTYPE Operation against a key holding the wrong kind of value", nil)

	results, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range 100 {
			p.Incr(ctx, "n")
		}
		return nil
	})
	check("pipeline", results[99].(*redis.IntCmd).Val(), 100, err)
	results, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, "n")
		p.Get(ctx, "n")
		return nil
	})
	check("transaction", results[1].(*redis.StringCmd).Val(), "101", err)
	err = c.Watch(ctx, func(tx *redis.Tx) error {
		if err := c.Set(ctx, "n", "0", 0).Err(); err != nil { // by somebody else
			return err
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Incr(ctx, "n").Err() })
		return err
	}, "n")
	if !errors.Is(err, redis.TxFailedErr) {
		t.Errorf("a transaction on a key that changed: %v", err)
	}
	for i := range 500 {
		check("SET", "", "", c.Set(ctx, fmt.Sprint("scan", i), i, 0).Err())
	}
	seen := map[string]bool{}
	for it := c.Scan(ctx, 0, "scan*", 20).Iterator(); it.Next(ctx); {
		seen[it.Val()] = true
	}
	check("SCAN", len(seen), 500, nil)

	sub := c.Subscribe(ctx, "news")
	defer sub.Close() //nolint:errcheck // the connection goes with the client
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	count, err := c.Publish(ctx, "news", "hello").Result()
	check("PUBLISH", count, 1, err)
	message, err := sub.ReceiveMessage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	check("message", message.Payload, "hello", nil)
	name, err := c.ClientGetName(ctx).Result()
	check("CLIENT GETNAME", name, "test", err)
}
