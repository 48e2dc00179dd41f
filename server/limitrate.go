package server

import (
	"hash/maphash"
	"math"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// A pace is a token bucket that is told by one moment, the one at which it is full
// again (the generic cell rate algorithm).
type pace struct {
	every time.Duration // for one token to come
	slack time.Duration // how far ahead of now the moment may be: all tokens but one
}

func newPace(rate Rate, burst int) pace {
	every := max(1, time.Duration(min(float64(time.Second)/float64(rate), math.MaxInt32*float64(time.Second))))
	return pace{every: every, slack: every * time.Duration(min(int64(burst-1), int64(math.MaxInt64/4/every)))}
}

// take takes a token at now from a bucket that is full at full. It returns the
// moment after that, or how long there will be none.
func (p pace) take(full, now time.Duration) (after, wait time.Duration) {
	if ahead := full - now; ahead > p.slack {
		return full, ahead - p.slack
	}
	return max(full, now) + p.every, 0
}

// A bucket is one pace for everybody. A nil *bucket never runs dry. Its method may
// be called from any goroutine.
type bucket struct {
	pace  pace
	start time.Time

	mu   sync.Mutex // guards the following
	full time.Duration
}

// newBucket returns nil when rate is 0.
func newBucket(rate Rate, burst int) *bucket {
	if rate == 0 {
		return nil
	}
	return &bucket{pace: newPace(rate, burst), start: time.Now()}
}

// take returns 0, or how long to wait for another try.
func (b *bucket) take() (wait time.Duration) {
	if b == nil {
		return 0
	}
	now := time.Since(b.start)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.full, wait = b.pace.take(b.full, now)
	return wait
}

// bucketsMax bounds how many clients are remembered, about 6 MB of them.
const bucketsMax = 100_000

// buckets are one for each client. Their number is bounded: at the limit those
// that are full again are forgotten, which changes nothing, or else any one. A nil
// *buckets never runs dry. The methods may be called from any goroutine.
type buckets struct {
	pace   pace
	start  time.Time
	seed   maphash.Seed
	shards [16]bucketShard
}

type bucketShard struct {
	mu    sync.Mutex // guards the following
	full  map[netip.Addr]time.Duration
	swept time.Duration
}

// newBuckets returns nil when rate is 0.
func newBuckets(rate Rate, burst int) *buckets {
	if rate == 0 {
		return nil
	}
	b := &buckets{pace: newPace(rate, burst), start: time.Now(), seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].full = map[netip.Addr]time.Duration{}
	}
	return b
}

// take returns 0, or how long to wait for another try.
func (b *buckets) take(client netip.Addr) (wait time.Duration) {
	if b == nil {
		return 0
	}
	client = limitKey(client)
	now := time.Since(b.start)
	s := &b.shards[maphash.Comparable(b.seed, client)%uint64(len(b.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	full, known := s.full[client]
	if !known && len(s.full) >= bucketsMax/len(b.shards) {
		s.makeRoomLocked(now)
	}
	full, wait = b.pace.take(full, now)
	s.full[client] = full
	return wait
}

// makeRoomLocked forgets the full ones, but looks for them only once a second, and
// at least one.
func (s *bucketShard) makeRoomLocked(now time.Duration) {
	before := len(s.full)
	if now-s.swept >= time.Second {
		s.swept = now
		for client, full := range s.full {
			if full <= now {
				delete(s.full, client)
			}
		}
	}
	if len(s.full) < before {
		return
	}
	for client := range s.full {
		delete(s.full, client)
		return
	}
}

// limitKey is whom a limit counts: an IPv4 address, or the /64 of an IPv6 one,
// which is what one customer of a provider has.
func limitKey(ip netip.Addr) netip.Addr {
	if !ip.Is6() || ip.Is4In6() {
		return ip.Unmap()
	}
	p, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return ip // no IPv6 address has fewer bits
	}
	return p.Addr()
}

// retryAfter is the value of Retry-After: whole seconds, at least one.
func retryAfter(wait time.Duration) string {
	return strconv.FormatInt(max(1, int64(math.Ceil(wait.Seconds()))), 10)
}
