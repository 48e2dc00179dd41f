package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A socketReport is what -sockets has measured of ephpm, against its bars.
type socketReport struct {
	o   options
	dir string

	bars []socketBar
}

// A socketBar is a figure and what it should be: at most, or at least.
type socketBar struct {
	what      string
	got, want float64
	atLeast   bool
}

func (r *socketReport) atMost(what string, got, want float64) {
	r.bars = append(r.bars, socketBar{what, got, want, false})
}

func (r *socketReport) atLeast(what string, got, want float64) {
	r.bars = append(r.bars, socketBar{what, got, want, true})
}

func (r *socketReport) printBars() {
	fmt.Println()
	for _, b := range r.bars {
		verdict, sign := "ok", "≤"
		if b.atLeast {
			sign = "≥"
		}
		if b.atLeast && b.got < b.want || !b.atLeast && b.got > b.want {
			verdict = "missed"
		}
		fmt.Printf("bar %s %g: %.2f %s (%s)\n", sign, b.want, b.got, verdict, b.what)
	}
}

// settle is how long memory gets to come to rest.
const settle = 6 * time.Second

const few = 1000 // sockets, that a server has before it is compared with a crowd

// measureMemory prints what an idle socket costs.
func measureMemory(ctx context.Context, r *socketReport) error {
	fmt.Println("memory: PSS of all processes, growth from 1,000 idle sockets on")
	err := r.both(ctx, func(s *wsServer) error {
		var c *swarm
		per, after, err := r.growth(s, func(n int) (err error) {
			if c == nil {
				if c, err = newSwarm(func(*peer, byte, uint64) {}); err != nil {
					return err
				}
			}
			return c.open(s.addr, "/", n, 32)
		}, func() { c.close() })
		if err == nil && s.name == "ephpm" {
			r.atMost("KB an idle socket", per/1024, 5)
			r.atMost("memory after a crowd has left, times before", after, 1.2)
		}
		return err
	})
	if err != nil {
		return err
	}
	s, err := startSockets(ctx, r, true)
	if err != nil {
		return err
	}
	defer s.stop()
	var conns []net.Conn
	per, _, err := r.growth(s, func(n int) error {
		more, err := openSecure(s.addr, len(conns), n, 32)
		conns = append(conns, more...)
		return err
	}, func() {
		for _, c := range conns {
			_ = c.Close() // nobody is told
		}
	})
	r.atMost("KB an idle socket with TLS", per/1024, 14)
	return err
}

// growth returns the bytes that each socket above the first few costs, and the
// memory when all have gone as a multiple of that with few.
func (r *socketReport) growth(s *wsServer, open func(n int) error, leave func()) (per, after float64, err error) {
	if err := open(few); err != nil {
		return 0, 0, err
	}
	at := func() float64 {
		time.Sleep(settle)
		n, e := memory(s.pids()...)
		err = errors.Join(err, e)
		return float64(n)
	}
	before := at()
	if err := open(r.o.crowd - few); err != nil {
		return 0, 0, err
	}
	crowded := at()
	leave()
	end := at()
	per = (crowded - before) / float64(r.o.crowd-few)
	fmt.Printf("  %-18s %6.1f MB with %d, %6.1f MB with %d: %6.0f B each; %6.1f MB when all have gone\n",
		s.name, before/(1<<20), few, crowded/(1<<20), r.o.crowd, per, end/(1<<20))
	return per, end / before, err
}

// measureOpening prints how fast sockets open, each with its connect event.
func measureOpening(ctx context.Context, r *socketReport) error {
	fmt.Println("opening, with 64 clients at it")
	return r.both(ctx, func(s *wsServer) error {
		hello, err := runWrk(ctx, r.dir, s.url, "hello", 64, r.o.duration)
		if err != nil {
			return err
		}
		c, err := newSwarm(func(*peer, byte, uint64) {})
		if err != nil {
			return err
		}
		defer c.close()
		if err := c.open(s.addr, "/", few, 64); err != nil {
			return err
		}
		begun, before := time.Now(), cpuTime(s.pids())
		if err := c.open(s.addr, "/", r.o.crowd-few, 64); err != nil {
			return err
		}
		rate := float64(r.o.crowd-few) / time.Since(begun).Seconds()
		cpu := float64(cpuTime(s.pids())-before) / float64(r.o.crowd-few)
		fmt.Printf("  %-18s %6.0f/s, %3.0f µs of CPU each; hello, 64 connections: %6.0f/s\n", s.name, rate, cpu/1e3, hello.rate())
		if s.name == "ephpm" {
			r.atLeast("sockets opened, times hello requests", rate/hello.rate(), 0.7)
		}
		return nil
	})
}

// measureFanOut prints what a broadcast to all takes.
func measureFanOut(ctx context.Context, r *socketReport) error {
	fmt.Println("broadcast of 100 bytes: until the last has it, server CPU a delivery, time in the call a member")
	return r.both(ctx, func(s *wsServer) error {
		var want, got atomic.Int64
		all := make(chan struct{}, 1)
		c, err := newSwarm(func(*peer, byte, uint64) {
			if got.Add(1) == want.Load() {
				all <- struct{}{}
			}
		})
		if err != nil {
			return err
		}
		defer c.close()
		for _, n := range []int{1000, 5000, 10_000, 15_000} {
			if n > r.o.crowd {
				break
			}
			if err := c.open(s.addr, "/", n-c.count, 64); err != nil {
				return err
			}
			time.Sleep(time.Second)
			if err := r.fanOut(ctx, s, n, &want, &got, all); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *socketReport) fanOut(ctx context.Context, s *wsServer, n int, want, got *atomic.Int64, all chan struct{}) error {
	const warm = 2
	rounds := 10 * r.o.rounds
	var last []time.Duration
	var inCall time.Duration
	var before time.Duration
	want.Store(int64(n))
	for round := range warm + rounds {
		time.Sleep(50 * time.Millisecond)
		if round == warm {
			before = cpuTime(s.pids())
			inCall = 0
		}
		got.Store(0)
		begun := time.Now()
		took, err := s.trigger(ctx, 100, 1)
		if err != nil {
			return err
		}
		select {
		case <-all:
		case <-time.After(10 * time.Second):
			fmt.Printf("  %-18s %6d members: only %d got a broadcast\n", s.name, n, got.Load())
			if s.name == "ephpm" {
				return errors.New("a broadcast did not reach all")
			}
			return nil
		}
		if inCall += took; round >= warm {
			last = append(last, time.Since(begun))
		}
	}
	cpu := float64(cpuTime(s.pids())-before) / float64(rounds) / float64(n)
	slices.Sort(last)
	median, call := last[len(last)/2], float64(inCall)/float64(rounds)/float64(n)
	fmt.Printf("  %-18s %6d members: %6.1f ms (%.1f to %.1f), %5.2f µs, %6.3f µs\n", s.name, n,
		ms(median), ms(last[0]), ms(last[len(last)-1]), cpu/1e3, call/1e3)
	if s.name == "ephpm" && n == 15_000 {
		r.atMost("ms of a broadcast to 15,000", ms(median), 86)
		r.atMost("µs of CPU a delivery", cpu/1e3, 7.2)
		r.atMost("µs a member in the PHP call", call/1e3, 0.3)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// measureEcho prints how many messages are answered, one at a time by client.
func measureEcho(ctx context.Context, r *socketReport) error {
	fmt.Println("echo of 64 bytes, one event of PHP for each message")
	return r.both(ctx, func(s *wsServer) error {
		hello, err := runWrk(ctx, r.dir, s.url, "hello", 64, r.o.duration)
		if err != nil {
			return err
		}
		for _, n := range []int{100, 1000} {
			e, err := newEcho(s, n)
			if err != nil {
				return err
			}
			rate, p50, p99, cpu := e.measure(s, r.o.duration)
			e.close()
			fmt.Printf("  %-18s %4d clients: %6.0f/s, p50 %.2f ms, p99 %.2f ms, %.1f µs of CPU each\n", s.name, n, rate, ms(p50), ms(p99), cpu/1e3)
			if s.name == "ephpm" && n == 100 {
				r.atLeast("echoes, times hello requests", rate/hello.rate(), 0.9)
			}
		}
		return nil
	})
}

// An echo is clients that send a message whenever they have the answer to the one
// before.
type echo struct {
	*swarm
	count atomic.Int64
	taken chan time.Duration // latencies, while somebody wants them
}

func newEcho(s *wsServer, n int) (*echo, error) {
	frame := clientFrame(1, []byte(strings.Repeat("0123456789abcdef", 4)))
	e := &echo{taken: make(chan time.Duration, 1<<21)}
	var err error
	e.swarm, err = newSwarm(func(p *peer, _ byte, _ uint64) {
		now := time.Now()
		e.count.Add(1)
		select {
		case e.taken <- now.Sub(p.sentAt):
		default:
		}
		p.sentAt = now
		_ = writeAll(p.fd, frame) // 70 bytes always fit; an end is seen by read
	})
	if err != nil {
		return nil, err
	}
	if err := e.open(s.addr, "/", n, 32); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.peers {
		if p != nil {
			p.sentAt = time.Now()
			if err := writeAll(p.fd, frame); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}

func (e *echo) measure(s *wsServer, d time.Duration) (rate float64, p50, p99 time.Duration, cpu float64) {
	time.Sleep(time.Second) // pools grow
	for len(e.taken) > 0 {
		<-e.taken
	}
	before, begun, count := cpuTime(s.pids()), time.Now(), e.count.Load()
	time.Sleep(d)
	n := e.count.Load() - count
	rate = float64(n) / time.Since(begun).Seconds()
	cpu = float64(cpuTime(s.pids())-before) / float64(max(1, n))
	var all []time.Duration
	for len(e.taken) > 0 {
		all = append(all, <-e.taken)
	}
	if len(all) == 0 {
		return rate, 0, 0, cpu
	}
	slices.Sort(all)
	return rate, all[len(all)/2], all[len(all)*99/100], cpu
}

// measureDeaf broadcasts much to 200 of whom one never reads.
func measureDeaf(ctx context.Context, r *socketReport) error {
	const members, count, size = 200, 600, 60 << 10
	fmt.Printf("%d broadcasts of %d bytes to %d members, one of whom never reads\n", count, size, members)
	return r.both(ctx, func(s *wsServer) error {
		var bytes atomic.Int64
		c, err := newSwarm(func(_ *peer, _ byte, size uint64) { bytes.Add(int64(size)) })
		if err != nil {
			return err
		}
		defer c.close()
		deaf, err := net.Dial("tcp", s.addr)
		if err != nil {
			return err
		}
		defer deaf.Close()
		if _, err := deaf.Write([]byte(handshake(s.addr, "/", "dGhlIHNhbXBsZSBub25jZQ=="))); err != nil {
			return err
		}
		if err := c.open(s.addr, "/", members-1, 16); err != nil {
			return err
		}
		begun := time.Now()
		if _, err := s.trigger(ctx, size, count); err != nil {
			return err
		}
		const want = (members - 1) * count * size
		for bytes.Load() < want && time.Since(begun) < 60*time.Second {
			runtime.Gosched()
			time.Sleep(5 * time.Millisecond)
		}
		got := float64(bytes.Load()) / want
		fmt.Printf("  %-18s the others got %.2f %% in %.1f s, %d were closed\n", s.name, 100*got, time.Since(begun).Seconds(), c.lost.Load())
		if s.name == "ephpm" {
			r.atLeast("of a burst that those get who read", got, 1)
		}
		return nil
	})
}

// measureShare prints what is left of either load beside the other.
func measureShare(ctx context.Context, r *socketReport) error {
	fmt.Println("1,000 chatty sockets and 64 connections of pages together, times alone")
	return r.both(ctx, func(s *wsServer) error {
		pages, err := runWrk(ctx, r.dir, s.url, "hello", 64, r.o.duration)
		if err != nil {
			return err
		}
		e, err := newEcho(s, 1000)
		if err != nil {
			return err
		}
		defer e.close()
		messages, _, _, _ := e.measure(s, r.o.duration)
		done := make(chan struct{})
		var beside load
		go func() { // ends by itself; waited for below
			defer close(done)
			beside, err = runWrk(ctx, r.dir, s.url, "hello", 64, r.o.duration+time.Second)
		}()
		both, _, _, _ := e.measure(s, r.o.duration)
		<-done
		if err != nil {
			return err
		}
		left, stays := beside.rate()/pages.rate(), both/messages
		fmt.Printf("  %-18s pages %.2f of %.0f/s, messages %.2f of %.0f/s\n", s.name, left, pages.rate(), stays, messages)
		if s.name == "ephpm" {
			r.atLeast("pages beside sockets, times alone", left, 0.33)
			r.atLeast("messages beside pages, times alone", stays, 0.33)
		}
		return nil
	})
}
