package phpbridge

// #include "wire.h"
import "C"

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// postHead is what a POST has besides the payload: the function, the number of its
// arguments, and their kinds and lengths.
const postHead = 2 + 2 + (1 + 4) + 1

// Posts are the messages that the script of an event sends to its own socket and
// does not wait for: as far as anybody knows they will be taken, so ephpm_ws_send
// returns true at once, which saves the worker from falling asleep and being woken.
// They keep their place among all that the script calls. When one was not taken
// after all, and after Stop, the function asks again and says what is true. A Posts
// is for one request.
type Posts struct {
	most uint32

	mu   sync.Mutex // guards the following
	over bool
	word *uint32 // post_max of the job; nil before and after the request
}

// NewPosts returns the Posts of a socket that takes payloads of up to most bytes;
// zero is no limit.
func NewPosts(most int64) *Posts {
	if most <= 0 {
		most = C.EPHPM_POST_MAX
	}
	return &Posts{most: uint32(min(most, C.EPHPM_POST_MAX))}
}

// Stop says that the socket takes nothing any more. It may be called from any
// goroutine, at any time.
func (p *Posts) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.word != nil {
		atomic.StoreUint32(p.word, 0)
	}
}

// begin lets the script of a job post.
func (p *Posts) begin(word *uint32) {
	atomic.StoreUint32(word, 0)
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.word = word; !p.over {
		atomic.StoreUint32(word, p.most)
	}
}

// end is called before the job passes to another request.
func (p *Posts) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word = nil
}

// post takes a POST.
func (x *exchange) post(ctx context.Context, payload []byte) error {
	c, err := parseCall(payload)
	if err != nil {
		return err
	}
	if c.function != WSSend || x.request.Posts == nil {
		return fmt.Errorf("post of function %d", c.function)
	}
	x.hostCall(ctx, c)
	if !c.answersTrue() {
		x.request.Posts.Stop()
	}
	return nil
}

// answersTrue reports whether the call returns true.
func (c *Call) answersTrue() bool { return len(c.answer) == 1 && c.answer[0] == C.EPHPM_VAL_TRUE }
