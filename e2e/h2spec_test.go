package e2e

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	h2specs "github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

// h2specKnown are the cases of h2spec that net/http fails by choice, with what it
// does instead. None of them lets anything through.
var h2specKnown = map[string]string{
	"http2/6.5.3/1":   "a setting that is there twice ends the connection",
	"http2/8.1.2.2/1": "a Connection field is answered with 400, not with a reset",
	"http2/8.1.2.2/2": "the same for a TE field that is not trailers",
}

// An h2specCase is one case of h2spec, by its name such as "http2/6.5.3/1".
type h2specCase struct {
	name string
	*spec.TestCase
}

// h2specCases are the cases of a group and those below it.
func h2specCases(g *spec.TestGroup) []h2specCase {
	var cases []h2specCase
	for i, c := range append(g.Tests, g.StrictTests...) {
		if !g.Strict && !c.Strict {
			cases = append(cases, h2specCase{fmt.Sprintf("%s/%d", g.ID(), i+1), c})
		}
	}
	for _, sub := range g.Groups {
		cases = append(cases, h2specCases(sub)...)
	}
	return cases
}

// run runs a case on a connection of its own.
func (c h2specCase) run(port int) error {
	limit := patience
	if h2specKnown[c.name] != "" {
		limit = time.Second // it waits for what never comes
	}
	conf := &config.Config{Host: "127.0.0.1", Port: port, Path: "/", Timeout: limit, MaxHeaderLen: 4000, TLS: true, Insecure: true}
	conn, err := spec.Dial(conf)
	if err != nil {
		return err
	}
	defer conn.Close()
	return c.Run(conf, conn)
}

func TestH2Spec(t *testing.T) {
	t.Parallel()
	a, _ := startTLS(t, appOptions{Files: map[string]string{"index.php": `<?php echo str_repeat("0123456789", 100);`}})
	port := portIn(t, a.Addr)
	var cases []h2specCase
	for _, g := range []*spec.TestGroup{generic.Spec(), h2specs.Spec(), hpack.Spec()} {
		cases = append(cases, h2specCases(g)...)
	}
	if len(cases) != 145 {
		t.Errorf("h2spec has %d cases, want the 145 that are known", len(cases))
	}
	errs := make([]error, len(cases))
	var wg sync.WaitGroup
	turns := make(chan struct{}, 8)
	for i, c := range cases {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			errs[i] = c.run(port)
		})
	}
	wg.Wait()
	for i, c := range cases {
		switch err := errs[i]; {
		case h2specKnown[c.name] != "":
			if err == nil {
				t.Errorf("%s, %s: passed, although it was known that %s", c.name, c.Desc, h2specKnown[c.name])
			}
		case errors.Is(err, spec.ErrSkipped):
			t.Errorf("%s, %s: skipped", c.name, c.Desc)
		case err != nil:
			t.Errorf("%s, %s: %v", c.name, c.Desc, err)
		}
	}
}
