package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ephpm/kv"
	"ephpm/phpbridge"
)

// A KVClient reaches the key-value store of one site of a server that runs, over
// its control socket. One goroutine may use it at a time.
type KVClient struct {
	host *phpbridge.RemoteHost
}

// MaxKVCall is the most bytes of one call of a KVClient: keys, the value and what
// tells them apart.
const MaxKVCall = phpbridge.MaxCall

// Errors of a KVClient.
var (
	ErrNoKey  = errors.New("the key is not there")
	ErrHasKey = errors.New("the key is there already")

	errKVFull     = errors.New("the value does not fit in the store's memory_limit")
	errKVNumber   = errors.New("the value is no whole number of 64 bits")
	errKVOverflow = errors.New("the sum would leave 64 bits")
)

// DialKV connects to the server of a control socket, for one of its sites; an empty
// name means the only one. The caller closes the KVClient.
func DialKV(ctx context.Context, socket, site string) (*KVClient, error) {
	host, err := phpbridge.DialHost(ctx, socket, site)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the server at %s: %w", socket, err)
	}
	return &KVClient{host}, nil
}

// Close ends the connection.
func (c *KVClient) Close() error { return c.host.Close() }

// Ping returns nil if the store answers.
func (c *KVClient) Ping(ctx context.Context) error {
	_, err := kvCall[bool](ctx, c, phpbridge.KVExists, "")
	return err
}

// Get returns a string's value, or ErrNoKey.
func (c *KVClient) Get(ctx context.Context, key string) ([]byte, error) {
	v, err := c.call(ctx, phpbridge.KVGet, key)
	if err == nil && v == nil {
		return nil, ErrNoKey
	}
	return kvResult[[]byte](v, err)
}

// Set stores a value for some seconds; 0: until it is deleted.
func (c *KVClient) Set(ctx context.Context, key string, value []byte, seconds int64) error {
	ok, err := kvCall[bool](ctx, c, phpbridge.KVSet, key, value, seconds)
	if err == nil && !ok {
		return errKVFull
	}
	return err
}

// SetNX is Set if the key is not there, else ErrHasKey.
func (c *KVClient) SetNX(ctx context.Context, key string, value []byte, seconds int64) error {
	ok, err := kvCall[bool](ctx, c, phpbridge.KVSetNX, key, value, seconds)
	if err != nil || ok {
		return err
	}
	// The answer is the same for a value that does not fit.
	exists, err := kvCall[bool](ctx, c, phpbridge.KVExists, key)
	if err == nil && exists {
		return ErrHasKey
	}
	return cmp.Or(err, errKVFull)
}

// delAtOnce is how many keys one call deletes: no call holds up others for long.
const delAtOnce = 1000

// Del deletes keys and returns how many of them there were.
func (c *KVClient) Del(ctx context.Context, keys ...string) (deleted int64, err error) {
	for some := range slices.Chunk(keys, delAtOnce) {
		arguments := make([]any, len(some))
		for i, key := range some {
			arguments[i] = key
		}
		n, err := kvCall[int64](ctx, c, phpbridge.KVDel, arguments...)
		if err != nil {
			return deleted, err
		}
		deleted += n
	}
	return deleted, nil
}

// TTL returns the seconds that a key has left, one that has begun included, and -1
// for a key that never expires; or ErrNoKey.
func (c *KVClient) TTL(ctx context.Context, key string) (int64, error) {
	ms, err := kvCall[int64](ctx, c, phpbridge.KVTTL, key)
	switch {
	case err != nil:
		return 0, err
	case ms == -2:
		return 0, ErrNoKey
	case ms < 0:
		return -1, nil
	}
	return ms/1000 + min(1, ms%1000), nil
}

// IncrBy adds to a counter, which is zero where there is none, and returns it.
func (c *KVClient) IncrBy(ctx context.Context, key string, by int64) (int64, error) {
	v, err := c.call(ctx, phpbridge.KVIncrBy, key, by)
	if err == nil && v == false {
		return 0, c.whyNoSum(ctx, key, by)
	}
	return kvResult[int64](v, err)
}

// whyNoSum returns why a counter could not be changed: the answer is false for
// whatever reason.
func (c *KVClient) whyNoSum(ctx context.Context, key string, by int64) error {
	value, err := c.Get(ctx, key)
	if errors.Is(err, ErrNoKey) {
		return errKVFull
	}
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case err != nil || strconv.FormatInt(n, 10) != string(value):
		return errKVNumber
	case (n+by < n) != (by < 0):
		return errKVOverflow
	}
	return errKVFull
}

// scanAtOnce is how many keys Keys asks for at a time: the longest fit in an answer.
const scanAtOnce = 500

// Keys calls each with every key that starts with a prefix or, where pattern has
// one of *?[\, matches a glob of Redis; it may call it twice with a key if the
// store grows meanwhile. It ends with the first error of each.
func (c *KVClient) Keys(ctx context.Context, pattern string, each func(key []byte) error) error {
	prefix, glob := pattern, []byte(nil)
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		prefix, glob = pattern[:i], []byte(pattern)
	}
	for cursor := int64(0); ; {
		page, err := kvCall[[]phpbridge.Entry](ctx, c, phpbridge.KVScan, prefix, cursor, scanAtOnce)
		if err != nil {
			return err
		}
		var keys []phpbridge.Entry
		if keys, cursor, err = scanPage(page); err != nil {
			return err
		}
		for _, e := range keys {
			key, ok := e.Value.([]byte)
			if !ok {
				return errKVAnswer
			}
			if glob == nil || kv.Match(glob, key) {
				if err := each(key); err != nil {
					return err
				}
			}
		}
		if cursor == 0 {
			return nil
		}
	}
}

// scanPage takes the answer to a scan apart.
func scanPage(page []phpbridge.Entry) (keys []phpbridge.Entry, cursor int64, err error) {
	var gotKeys, gotCursor bool
	for _, e := range page {
		switch {
		case bytes.Equal(e.Key, []byte("keys")):
			keys, gotKeys = e.Value.([]phpbridge.Entry)
		case bytes.Equal(e.Key, []byte("cursor")):
			cursor, gotCursor = e.Value.(int64)
		}
	}
	if !gotKeys || !gotCursor {
		return nil, 0, errKVAnswer
	}
	return keys, cursor, nil
}

var errKVAnswer = errors.New("the server's answer is of another type than expected")

// call makes a host call. Its exceptions name a function of PHP, which is none of
// the caller's business.
func (c *KVClient) call(ctx context.Context, f phpbridge.Func, arguments ...any) (any, error) {
	v, err := c.host.Call(ctx, f, arguments...)
	if thrown := new(phpbridge.Thrown); errors.As(err, &thrown) {
		return nil, errors.New(strings.TrimPrefix(thrown.Message, kvNames[f]+"(): "))
	}
	return v, err
}

func kvCall[T any](ctx context.Context, c *KVClient, f phpbridge.Func, arguments ...any) (T, error) {
	return kvResult[T](c.call(ctx, f, arguments...))
}

func kvResult[T any](v any, err error) (T, error) {
	result, ok := v.(T)
	if err == nil && !ok {
		err = errKVAnswer
	}
	return result, err
}
