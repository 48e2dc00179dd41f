package websocket

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// ways are how a batch can be sent. A kernel or container without io_uring runs
// the first alone, which is said.
func ways(t *testing.T, f func(t *testing.T, l *Loop)) {
	t.Run("one by one", func(t *testing.T) { f(t, newLoop(t)) })
	t.Run("io_uring", func(t *testing.T) {
		l := newLoop(t)
		if err := l.ProbeRings(); err != nil {
			t.Skipf("the kernel refuses io_uring: %v", err)
		}
		f(t, l)
	})
}

// crowd opens n connections of one Loop.
func crowd(t *testing.T, l *Loop, o Options, n int) (clients []*client, conns []*Conn) {
	t.Helper()
	for range n {
		cl, c, _ := openOn(t, l, o, nil, func(*Conn) handler { return ignore })
		clients, conns = append(clients, cl), append(conns, c)
	}
	return clients, conns
}

func batch(l *Loop, conns []*Conn, m *Prepared) (queued int) {
	b := l.Batch(m)
	for _, c := range conns {
		if b.Add(c) {
			queued++
		}
	}
	b.Send()
	return queued
}

func TestBatchReachesAllInOrder(t *testing.T) {
	ways(t, func(t *testing.T, l *Loop) {
		clients, conns := crowd(t, l, DefaultOptions(), 300)
		for i := range 20 {
			text := fmt.Sprint(i) + strings.Repeat("x", i*50)
			if n := batch(l, conns, Prepare([]byte(text), false)); n != len(conns) {
				t.Errorf("batch %d was queued for %d of %d", i, n, len(conns))
			}
			if !conns[i].TrySend(Prepare([]byte("private"), false)) {
				t.Error("TrySend behind a batch was refused")
			}
		}
		for k, cl := range clients {
			for i := range 20 {
				cl.want(opText, fmt.Sprint(i)+strings.Repeat("x", i*50))
				if k == i {
					cl.want(opText, "private")
				}
			}
		}
	})
}

// A burst is more than the queue holds, and what the senders have not come to
// does not count against a client that reads.
func TestBurstOfBatchesIsNotShed(t *testing.T) {
	ways(t, func(t *testing.T, l *Loop) {
		o := DefaultOptions()
		o.QueueFrames = 2
		clients, conns := crowd(t, l, o, 20)
		const bursts = 500
		var wg sync.WaitGroup
		for _, cl := range clients {
			wg.Go(func() {
				for i := range bursts {
					if _, got, err := cl.next(); err != nil || string(got) != fmt.Sprint(i) {
						t.Errorf("got %q, %v, want %d", got, err, i)
						return
					}
				}
			})
		}
		for i := range bursts {
			m := Prepare(fmt.Append(nil, i), false)
			b := l.Batch(m)
			for _, c := range conns {
				if !b.Add(c) && !c.SendWait(context.Background(), m) {
					t.Errorf("message %d was refused", i)
				}
			}
			b.Send()
		}
		wg.Wait()
	})
}

// One that never reads delays nobody and loses only its own.
func TestDeafMemberDelaysNobody(t *testing.T) {
	ways(t, func(t *testing.T, l *Loop) {
		clients, conns := crowd(t, l, DefaultOptions(), 10)
		deaf, healthy := conns[0], clients[1:]
		text := strings.Repeat("x", 60<<10)
		var wg sync.WaitGroup
		const count = 200
		for _, cl := range healthy {
			wg.Go(func() {
				for i := range count {
					if _, got, err := cl.next(); err != nil || len(got) != len(text) {
						t.Errorf("message %d: %d bytes, %v", i, len(got), err)
						return
					}
				}
			})
		}
		m := Prepare([]byte(text), false)
		for range count {
			b := l.Batch(m)
			for _, c := range conns {
				if !b.Add(c) && c != deaf && !c.SendWait(context.Background(), m) {
					t.Error("a client that reads was refused")
				}
			}
			b.Send()
		}
		wg.Wait()
		if deaf.TrySend(m) {
			t.Error("the queue of who never reads is not full")
		}
	})
}

// Random sends, batches, closes, kills and departures at once, from all sides.
func TestRandomSchedule(t *testing.T) {
	ways(t, func(t *testing.T, l *Loop) {
		o := DefaultOptions()
		o.QueueFrames, o.PingInterval, o.WriteTimeout = 4, 20*time.Millisecond, 5*time.Second
		clients, conns := crowd(t, l, o, 40)
		var wg sync.WaitGroup
		for i, cl := range clients {
			wg.Go(func() { // reads, or does not, and writes
				r := rand.New(rand.NewPCG(1, uint64(i)))
				for range 30 {
					switch r.IntN(5) {
					case 0:
						_, _ = cl.Conn.Write(text("hi"))
					case 1:
						_, _ = cl.Conn.Write(masked(fin|opPing, []byte("p")))
					case 2:
						frame := text("torn")
						_, _ = cl.Conn.Write(frame[:r.IntN(len(frame))])
						if r.IntN(4) == 0 {
							_ = cl.Close()
							return
						}
					case 3:
						_ = cl.SetReadDeadline(time.Now().Add(time.Millisecond))
						_, _, _ = cl.next()
					default:
						time.Sleep(time.Duration(r.IntN(1000)) * time.Microsecond)
					}
				}
				if r.IntN(2) == 0 {
					_ = cl.Conn.(*net.TCPConn).SetLinger(0) // a reset
				}
				_ = cl.Close()
			})
		}
		for i := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(2, uint64(i)))
				for range 200 {
					c := conns[r.IntN(len(conns))]
					switch r.IntN(20) {
					case 0:
						c.Close(1000, "", CauseServer)
					case 1:
						c.Kill(1013, "", CauseSlow)
					case 2:
						c.Cut(CauseShutdown)
					case 3, 4, 5, 6:
						c.TrySend(Prepare(make([]byte, r.IntN(70000)), true))
					case 7:
						ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
						c.SendWait(ctx, Prepare([]byte("wait"), false))
						cancel()
					default:
						batch(l, conns, Prepare(make([]byte, r.IntN(2000)), true))
					}
				}
			})
		}
		wg.Wait() // newLoop then waits until all have ended
	})
}

func TestRingReportsErrors(t *testing.T) {
	r, err := newRing(8)
	if err != nil {
		t.Skipf("the kernel refuses io_uring: %v", err)
	}
	defer r.close()
	for range 3 {
		results := map[int]int{}
		r.push(-1, []byte("x"), 7)
		if err := r.submit(func(tag, n int) { results[tag] = n }); err != nil || len(results) != 1 || results[7] >= 0 {
			t.Errorf("a send to no descriptor: %v, %v", results, err)
		}
	}
	if err := r.submit(func(int, int) { t.Error("a result of nothing") }); err != nil {
		t.Error(err)
	}
}
