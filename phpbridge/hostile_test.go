package phpbridge

import (
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What follows is what a script can do to the front that writes where it likes, or
// that has taken its zygote over, which runs as the same user.

// Pages that are gone would end the front with SIGBUS.
func TestScriptsCannotCutTheSharedMemoryOff(t *testing.T) {
	p := testPool(t, nil)
	r := script(t, `
		$zygote = explode(" ", file_get_contents("/proc/self/stat"))[3];
		exec("truncate -s 0 /proc/$zygote/fd/4 2>&1", $said, $status);
		echo $status ? implode($said) : "cut off";`)
	if got := body(t, run(t, p, r)); !strings.Contains(got, "Operation not permitted") {
		t.Errorf("truncate says %q", got)
	}
}

// A hostileBody overwrites where the body is as soon as a worker has the request.
type hostileBody struct {
	io.Reader
	overwrite func()
}

func (b hostileBody) Read(p []byte) (int, error) {
	b.overwrite()
	return b.Reader.Read(p)
}

func TestTheFrontKnowsByItselfWhereABodyIs(t *testing.T) {
	p := testPool(t, nil)
	r := post(script(t, `echo strlen(file_get_contents("php://input"));`), "text/plain", "")
	long := bytes.Repeat([]byte("x"), 4*requestSize)
	r.BodyLen = int64(len(long))
	r.Body = hostileBody{bytes.NewReader(long), func() {
		if j := jobOf(p, r); j != nil {
			j.c.body_off = requestSize + 1
		}
	}}
	if got := body(t, run(t, p, r)); got != "1048576" {
		t.Errorf("the script got %s bytes", got)
	}
}

func TestAQueueThatAWorkerOverwroteIsMadeAnew(t *testing.T) {
	p := testPool(t, nil)
	run(t, p, script(t, ``))
	q := &p.memory.pool.queue[Page]
	for name, overwrite := range map[string]func(){
		"the head is ahead":  func() { atomic.StoreUint64(u64(&q.head), 1<<40) },
		"the head is behind": func() { atomic.AddUint64(u64(&q.head), ^uint64(10_000)) },
		"the tail is ahead":  func() { atomic.StoreUint64(u64(&q.tail), 1<<40) },
		"the tail is behind": func() { atomic.AddUint64(u64(&q.tail), ^uint64(0)) },
	} {
		overwrite()
		for range 3 {
			if got := body(t, run(t, p, script(t, `echo "fine";`))); got != "fine" { // or fails after BacklogWait
				t.Errorf("%s: %q", name, got)
			}
		}
	}
	// A worker that is awake may run through to the tail from a head that is behind,
	// before the front looks.
	if n := p.Stats().Broken; n != 4 && n != 3 {
		t.Errorf("%d are counted, want 3 or 4", n)
	}
}

// Those that wait when it happens, too.
func TestJobsOfAQueueThatAWorkerOverwroteAreServed(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 1, 1 })
	release := block(t, p, Page, 3)
	waitFor(t, "two that wait", func() bool { s := p.Stats(); return s.Busy == 1 && s.Waiting[Page] == 2 })
	q := &p.memory.pool.queue[Page]
	atomic.StoreUint64(u64(&q.head), atomic.LoadUint64(u64(&q.tail))+1)
	release() // fails the test if one is not served
}

// A worker clears the word by which others know that the front sleeps, and does not
// ring. Nobody else would either.
func TestADoorbellThatIsKeptFromRingingIsRung(t *testing.T) {
	p := testPool(t, nil)
	run(t, p, script(t, ``))
	asleep := u32(&p.memory.pool.completer_asleep)
	waitFor(t, "a front that sleeps", func() bool { return atomic.LoadUint32(asleep) == 1 })
	atomic.StoreUint32(asleep, 0)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := httptest.NewRecorder()
	if _, err := p.Serve(ctx, w, script(t, `usleep(10000); echo "fine";`)); err != nil || w.Body.String() != "fine" {
		t.Errorf("%v, %q", err, w.Body)
	}
}

// A zygote that says more than there is to say keeps nobody from closing.
func TestCloseDoesNotHearOutAZygote(t *testing.T) {
	p := testPool(t, nil)
	p.mu.Lock()
	z := p.zygote
	p.mu.Unlock()
	p.listeners.Go(func() {
		<-z.waited
		for range cap(p.messages) + 1 {
			p.messages <- message{from: z, slot: maxSlots}
		}
	})
	closed := make(chan error, 1)
	go func() { closed <- p.Close(context.Background()) }()
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("Close: %v", err)
		}
	case <-time.After(patience):
		t.Error("Close does not return")
	}
}
