package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"ephpm/kv"
	"ephpm/phpbridge"
)

// A kvHost answers what PHP asks of the key-value store of its site.
type kvHost struct {
	site  string
	store *kv.Store
	// stopping ends when the site stops, and with it the waits of PHP for a change
	// or a lock. It is kept since each call has a context of its own.
	stopping context.Context
	stop     context.CancelFunc

	monitors kvMonitors
}

func newKVHost(site string, store *kv.Store) *kvHost {
	h := &kvHost{site: site, store: store}
	h.stopping, h.stop = context.WithCancel(context.Background())
	return h
}

// textNoStore is thrown where a request has no store.
const textNoStore = "ephpm_kv: no key-value store for this request"

// kvNames are the PHP names of the functions.
var kvNames = map[phpbridge.Func]string{
	phpbridge.KVGet: "ephpm_kv_get", phpbridge.KVSet: "ephpm_kv_set", phpbridge.KVSetNX: "ephpm_kv_setnx",
	phpbridge.KVDel: "ephpm_kv_del", phpbridge.KVExists: "ephpm_kv_exists", phpbridge.KVIncrBy: "ephpm_kv_incr_by",
	phpbridge.KVExpire: "ephpm_kv_expire", phpbridge.KVTTL: "ephpm_kv_ttl", phpbridge.KVFlushAll: "ephpm_kv_flush_all",
	phpbridge.KVWait: "ephpm_kv_wait", phpbridge.KVMGet: "ephpm_kv_mget", phpbridge.KVMSet: "ephpm_kv_mset",
	phpbridge.KVGetSet: "ephpm_kv_getset", phpbridge.KVAppend: "ephpm_kv_append", phpbridge.KVHSet: "ephpm_kv_hset",
	phpbridge.KVHGet: "ephpm_kv_hget", phpbridge.KVHDel: "ephpm_kv_hdel", phpbridge.KVHGetAll: "ephpm_kv_hgetall",
	phpbridge.KVHIncrBy: "ephpm_kv_hincrby", phpbridge.KVCAS: "ephpm_kv_cas", phpbridge.KVLock: "ephpm_kv_lock",
	phpbridge.KVUnlock: "ephpm_kv_unlock", phpbridge.KVScan: "ephpm_kv_scan",
}

// call answers one call.
func (h *kvHost) call(ctx context.Context, c *phpbridge.Call) {
	if h == nil || h.store == nil {
		c.Throw(phpbridge.ThrowException, textNoStore)
		return
	}
	var err error
	h.report(c)
	switch f := c.Func(); {
	case f == phpbridge.KVReads:
		h.reads(c)
	case f == phpbridge.KVMonitor:
		h.monitor(ctx, c)
	case f >= phpbridge.SessionOpen:
		err = h.session(ctx, c)
	case f == phpbridge.KVHSet, f == phpbridge.KVHGet, f == phpbridge.KVHDel, f == phpbridge.KVHGetAll, f == phpbridge.KVHIncrBy:
		err = h.hash(c)
	case f == phpbridge.KVWait, f == phpbridge.KVLock:
		err = h.waiting(ctx, c)
	case f == phpbridge.KVDel, f == phpbridge.KVExists, f == phpbridge.KVExpire, f == phpbridge.KVTTL,
		f == phpbridge.KVFlushAll, f == phpbridge.KVScan, f == phpbridge.KVUnlock:
		err = h.key(c)
	default:
		err = h.text(c)
	}
	if err != nil {
		throwStoreError(c, err)
	}
}

// throwStoreError answers with what went wrong. Not to fit, not to be a number and
// to have waited in vain are answers, not exceptions.
func throwStoreError(c *phpbridge.Call, err error) {
	name := kvNames[c.Func()]
	if c.Func() >= phpbridge.SessionOpen {
		name = "session_start"
	}
	switch {
	case errors.Is(err, kv.ErrFull), errors.Is(err, kv.ErrNotInteger), errors.Is(err, kv.ErrOverflow),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if c.Func() == phpbridge.KVGetSet {
			c.Throw(phpbridge.ThrowException, name+"(): the value does not fit in the store's memory_limit")
			return
		}
		c.ReturnBool(false)
	case errors.Is(err, kv.ErrWrongType):
		holds := "a hash"
		if c.Func() >= phpbridge.KVHSet && c.Func() <= phpbridge.KVHIncrBy {
			holds = "no hash"
		}
		c.Throw(phpbridge.ThrowException, fmt.Sprintf("%s(): the key holds %s", name, holds))
	case errors.Is(err, kv.ErrTooLong):
		c.Throw(phpbridge.ThrowValueError, fmt.Sprintf("%s(): a key may have %d bytes and a value %d", name, kv.MaxKey, kv.MaxValue))
	case errors.Is(err, kv.ErrReplyTooLong) && c.Func() == phpbridge.KVGetSet:
		c.Throw(phpbridge.ThrowException, fmt.Sprintf("%s(): the value before has more than %d bytes", name, maxText))
	case errors.Is(err, kv.ErrReplyTooLong):
		c.Throw(phpbridge.ThrowException, fmt.Sprintf("%s(): the values have more than %d bytes together", name, phpbridge.MaxAnswer))
	case errors.Is(err, kv.ErrInvalidTTL):
		c.Throw(phpbridge.ThrowValueError, name+"(): the TTL is out of range")
	default:
		c.Throw(phpbridge.ThrowException, fmt.Sprintf("%s(): %v", name, err))
	}
}

// ttlSeconds is a TTL that PHP gave. One that no clock can hold is invalid, not wrapped.
func ttlSeconds(n int64) (time.Duration, error) {
	if n < 0 || n > math.MaxInt64/int64(time.Second) {
		return 0, kv.ErrInvalidTTL
	}
	return time.Duration(n) * time.Second, nil
}

func millis(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// reads takes note of what a worker has read by itself.
func (h *kvHost) reads(c *phpbridge.Call) {
	h.store.AddReads(uint64(c.Int(0)), uint64(c.Int(1)))
	p := c.Bytes(2)
	if len(p) == 0 {
		return
	}
	hashes := make([]uint64, len(p)/8)
	for i := range hashes {
		hashes[i] = binary.LittleEndian.Uint64(p[8*i:])
	}
	h.store.Touch(hashes)
}

// maxText is the longest string that an answer can have, in bytes: its kind and its
// length are in the answer too.
const maxText = phpbridge.MaxAnswer - 5

// text answers the functions for strings and counters.
func (h *kvHost) text(c *phpbridge.Call) error {
	switch c.Func() {
	case phpbridge.KVGet:
		value, ok, err := h.store.Get(c.Bytes(0))
		return returnText(c, value, ok, err)
	case phpbridge.KVSet, phpbridge.KVSetNX:
		return h.set(c)
	case phpbridge.KVGetSet:
		r, err := h.store.SetWith(c.Bytes(0), c.Bytes(1), kv.SetOptions{WantOld: true, MaxOld: maxText})
		return returnText(c, r.Old, r.HadOld, err)
	case phpbridge.KVIncrBy:
		n, err := h.store.IncrBy(c.Bytes(0), c.Int(1))
		return returnInt(c, n, err)
	case phpbridge.KVAppend:
		n, err := h.store.Append(c.Bytes(0), c.Bytes(1))
		return returnInt(c, int64(n), err)
	case phpbridge.KVCAS:
		return h.cas(c)
	case phpbridge.KVMGet:
		return h.mget(c)
	case phpbridge.KVMSet:
		return h.mset(c)
	}
	return nil // not ours: the function returns null
}

func returnText(c *phpbridge.Call, value []byte, ok bool, err error) error {
	if err == nil && ok {
		c.ReturnString(value)
	}
	return err
}

func returnInt(c *phpbridge.Call, n int64, err error) error {
	if err == nil {
		c.ReturnInt(n)
	}
	return err
}

func returnBool(c *phpbridge.Call, ok bool, err error) error {
	if err == nil {
		c.ReturnBool(ok)
	}
	return err
}

func (h *kvHost) set(c *phpbridge.Call) error {
	ttl, err := ttlSeconds(c.Int(2))
	if err != nil {
		return err
	}
	if c.Func() == phpbridge.KVSetNX {
		ok, err := h.store.SetNX(c.Bytes(0), c.Bytes(1), ttl)
		return returnBool(c, ok, err)
	}
	return returnBool(c, true, h.store.Set(c.Bytes(0), c.Bytes(1), ttl))
}

func (h *kvHost) cas(c *phpbridge.Call) error {
	ttl, err := ttlSeconds(c.Int(3))
	if err != nil {
		return err
	}
	var ok bool
	if c.IsNull(1) {
		ok, err = h.store.SetNX(c.Bytes(0), c.Bytes(2), ttl)
	} else {
		ok, err = h.store.CAS(c.Bytes(0), c.Bytes(1), c.Bytes(2), ttl)
	}
	return returnBool(c, ok, err)
}

func (h *kvHost) mget(c *phpbridge.Call) error {
	values, err := h.store.MGet(phpbridge.MaxAnswer, c.Rest())
	if err != nil {
		return err
	}
	all := make([]phpbridge.Entry, len(values))
	for i, value := range values {
		all[i].Key = c.Rest()[i]
		if value != nil {
			all[i].Value = value
		}
	}
	c.ReturnArray(all)
	return nil
}

func (h *kvHost) mset(c *phpbridge.Call) error {
	ttl, err := ttlSeconds(c.Int(0))
	if err != nil {
		return err
	}
	rest := c.Rest()
	pairs := make([]kv.Pair, 0, len(rest)/2)
	for i := 0; i+1 < len(rest); i += 2 {
		pairs = append(pairs, kv.Pair{Key: rest[i], Value: rest[i+1]})
	}
	return returnBool(c, true, h.store.MSet(pairs, ttl))
}

// key answers the functions for keys of any type.
func (h *kvHost) key(c *phpbridge.Call) error {
	switch c.Func() {
	case phpbridge.KVDel:
		c.ReturnInt(int64(h.store.Del(c.Rest()...)))
	case phpbridge.KVExists:
		c.ReturnBool(h.store.Exists(c.Bytes(0)))
	case phpbridge.KVFlushAll:
		h.store.Flush()
		c.ReturnBool(true)
	case phpbridge.KVUnlock:
		c.ReturnBool(h.store.Unlock(kv.Token(c.String(0))))
	case phpbridge.KVTTL:
		c.ReturnInt(h.ttl(c.Bytes(0)))
	case phpbridge.KVExpire:
		if c.Int(1) <= 0 {
			c.ReturnBool(false)
			return nil
		}
		ttl, err := ttlSeconds(c.Int(1))
		if err != nil {
			return err
		}
		ok, err := h.store.Expire(c.Bytes(0), ttl)
		return returnBool(c, ok, err)
	case phpbridge.KVScan:
		return h.scan(c)
	}
	return nil
}

// ttl returns milliseconds, -1 for a key that never expires, -2 for none.
func (h *kvHost) ttl(key []byte) int64 {
	ttl, ok := h.store.TTL(key)
	switch {
	case !ok:
		return -2
	case ttl == 0:
		return -1
	}
	return max(1, ttl.Milliseconds())
}

// maxScan is the most entries that one ephpm_kv_scan looks at.
const maxScan = 10000

func (h *kvHost) scan(c *phpbridge.Call) error {
	limit := c.Int(2)
	if limit < 1 || limit > maxScan {
		c.Throw(phpbridge.ThrowValueError, fmt.Sprintf("ephpm_kv_scan(): Argument #3 ($limit) must be 1 to %d, %d given", maxScan, limit))
		return nil
	}
	if c.Int(1) < 0 {
		c.Throw(phpbridge.ThrowValueError, "ephpm_kv_scan(): Argument #2 ($cursor) must be one that a call returned")
		return nil
	}
	keys, next := h.store.Scan(c.Bytes(0), uint64(c.Int(1)), int(limit))
	if keys == nil {
		keys = [][]byte{}
	}
	c.ReturnArray([]phpbridge.Entry{
		{Key: []byte("keys"), Value: keys},
		{Key: []byte("cursor"), Value: int64(next)},
	})
	return nil
}

// hash answers the functions for hashes.
func (h *kvHost) hash(c *phpbridge.Call) error {
	key := c.Bytes(0)
	switch c.Func() {
	case phpbridge.KVHSet:
		_, err := h.store.HSet(key, kv.Pair{Key: c.Bytes(1), Value: c.Bytes(2)})
		return returnBool(c, true, err)
	case phpbridge.KVHGet:
		value, ok, err := h.store.HGet(key, c.Bytes(1))
		return returnText(c, value, ok, err)
	case phpbridge.KVHDel:
		n, err := h.store.HDel(key, c.Rest()...)
		return returnInt(c, int64(n), err)
	case phpbridge.KVHIncrBy:
		n, err := h.store.HIncrBy(key, c.Bytes(1), c.Int(2))
		return returnInt(c, n, err)
	}
	pairs, err := h.store.HGetAll(key)
	if err != nil {
		return err
	}
	all := make([]phpbridge.Entry, len(pairs))
	for i, p := range pairs {
		all[i] = phpbridge.Entry{Key: p.Key, Value: p.Value}
	}
	c.ReturnArray(all)
	return nil
}

// stoppingWait is the longest wait while the site stops: a script that waits
// again and again can end by itself, and does not spin until then.
const stoppingWait = 100 * time.Millisecond

// limitWait returns a context for a wait of PHP, which ends early when the site
// stops.
func (h *kvHost) limitWait(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if h.stopping.Err() != nil {
		return context.WithTimeout(ctx, min(most, stoppingWait))
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	forget := context.AfterFunc(h.stopping, cancel)
	return ctx, func() { forget(); cancel() }
}

// waiting answers the functions that wait, for no longer than they are told: the
// worker is held meanwhile. That the client has gone does not matter, for the
// script goes on.
func (h *kvHost) waiting(ctx context.Context, c *phpbridge.Call) error {
	if c.Func() == phpbridge.KVWait {
		return h.wait(ctx, c)
	}
	ttl := c.Int(1)
	if ttl < 1 || c.Int(2) < 0 {
		c.Throw(phpbridge.ThrowValueError, "ephpm_kv_lock(): $ttl must be above 0, and $wait not below")
		return nil
	}
	ctx, cancel := h.limitWait(ctx, millis(c.Int(2)))
	defer cancel()
	token, err := h.store.Lock(ctx, c.Bytes(0), millis(ttl))
	if err == nil {
		c.ReturnString([]byte(token))
	}
	return err
}

func (h *kvHost) wait(ctx context.Context, c *phpbridge.Call) error {
	var version uint64
	var value []byte
	var err error
	if c.Int(2) <= 0 {
		version, value, err = h.store.Current(c.Bytes(0))
	} else {
		ctx, cancel := h.limitWait(ctx, millis(c.Int(2)))
		defer cancel()
		version, value, err = h.store.Wait(ctx, c.Bytes(0), uint64(c.Int(1)))
	}
	if err != nil {
		return err
	}
	entry := phpbridge.Entry{Key: []byte("value")}
	if value != nil {
		entry.Value = value
	}
	c.ReturnArray([]phpbridge.Entry{{Key: []byte("version"), Value: int64(version)}, entry})
	return nil
}
