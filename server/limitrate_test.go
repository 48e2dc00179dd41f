package server

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestPaceLetsABurstThroughAndThenOneAtATime(t *testing.T) {
	p := newPace(2, 3) // three at once, then one each 500ms
	var full, wait time.Duration
	for i := range 3 {
		if full, wait = p.take(full, 0); wait != 0 {
			t.Fatalf("request %d of the burst has to wait %v", i+1, wait)
		}
	}
	if full, wait = p.take(full, 0); wait != 500*time.Millisecond {
		t.Errorf("the next one has to wait %v, want 500ms", wait)
	}
	if full, wait = p.take(full, 500*time.Millisecond); wait != 0 {
		t.Errorf("after 500ms it has to wait %v more", wait)
	}
	if _, wait = p.take(full, 600*time.Millisecond); wait != 400*time.Millisecond {
		t.Errorf("100ms later one has to wait %v, want 400ms", wait)
	}
	if _, wait = p.take(full, time.Hour); wait != 0 {
		t.Errorf("after an hour one has to wait %v", wait)
	}
}

func TestPaceOfExtremes(t *testing.T) {
	for _, test := range []struct {
		rate  Rate
		burst int
	}{{1e-300, 1}, {1e-9, 1 << 30}, {1e300, 1 << 30}, {1e9, 1}} {
		p := newPace(test.rate, test.burst)
		if p.every < 1 || p.slack < 0 {
			t.Errorf("%v with burst %d: %+v", test.rate, test.burst, p)
		}
		if full, wait := p.take(0, time.Hour); wait != 0 || full < time.Hour {
			t.Errorf("%v: the first request has to wait %v", test.rate, wait)
		}
	}
}

func TestBucketsRefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBuckets(1, 2)
		one, other := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")
		for range 2 {
			if b.take(one) != 0 {
				t.Error("the burst is refused")
			}
		}
		if wait := b.take(one); wait != time.Second {
			t.Errorf("over the burst: wait %v, want 1s", wait)
		}
		if b.take(other) != 0 {
			t.Error("another client pays for it")
		}
		time.Sleep(time.Second)
		if b.take(one) != 0 {
			t.Error("after a second there is no token")
		}
	})
}

func TestOneCustomerOfIPv6IsOneClient(t *testing.T) {
	b := newBuckets(0.001, 1)
	if b.take(netip.MustParseAddr("2001:db8:1:2::1")) != 0 {
		t.Fatal("the first request is refused")
	}
	if b.take(netip.MustParseAddr("2001:db8:1:2:ffff::9")) == 0 {
		t.Error("another address of the same /64 has tokens of its own")
	}
	if b.take(netip.MustParseAddr("2001:db8:1:3::1")) != 0 {
		t.Error("another /64 has none")
	}
	if got := limitKey(netip.MustParseAddr("::ffff:192.0.2.1")); got != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("the key of a mapped address is %v", got)
	}
}

func TestBucketsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBuckets(0.001, 1) // none is full again soon
		count := func() (n int) {
			for i := range b.shards {
				n += len(b.shards[i].full)
			}
			return n
		}
		for i := range 2 * bucketsMax {
			b.take(client(i))
		}
		if n := count(); n > bucketsMax || n < bucketsMax*9/10 {
			t.Errorf("%d clients are remembered, want about %d", n, bucketsMax)
		}
		time.Sleep(time.Hour) // all are full again
		for i := range 10_000 {
			b.take(client(i))
		}
		if n := count(); n > bucketsMax/2 {
			t.Errorf("%d clients are remembered after all have been quiet for long", n)
		}
	})
}

func client(i int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(i))
	return netip.AddrFrom4(b)
}

func TestNoRateIsNoLimit(t *testing.T) {
	if newBucket(0, 1).take() != 0 || newBuckets(0, 1).take(netip.Addr{}) != 0 {
		t.Error("a rate of 0 limits")
	}
}

func TestRetryAfterIsWholeSeconds(t *testing.T) {
	for wait, want := range map[time.Duration]string{1: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60"} {
		if got := retryAfter(wait); got != want {
			t.Errorf("retryAfter(%v) = %s, want %s", wait, got, want)
		}
	}
}

func BenchmarkBuckets(b *testing.B) {
	r := newBuckets(1e9, 1000)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			r.take(client(i % 1000))
		}
	})
}
