package server

import (
	"net/http"
	"strings"
	"testing"
)

func TestAsksForParts(t *testing.T) {
	for value, want := range map[string]bool{
		"bytes=0-1": true, "bytes=-5": true, "bytes=5-": true, "bytes=0-0,-1": true, "bytes=nonsense": true, "bytes=": true, "bytes=-x": true,
		"bytes=" + strings.Repeat("0-0,", maxRanges-1) + "0-0": true,
		"bytes=" + strings.Repeat("0-0,", maxRanges) + "0-0":   false,
		"bytes=-0": false, "bytes=0-1, -00 ": false, "bytes=-": false,
		"lines=0-1": false, "0-1": false, "": false, "bytes =0-1": false,
	} {
		if got := asksForParts(&http.Request{Header: http.Header{"Range": {value}}}); got != want {
			t.Errorf("%.40q: %v, want %v", value, got, want)
		}
	}
	for _, lines := range [][]string{nil, {"bytes=0-1", "bytes=2-3"}} {
		if asksForParts(&http.Request{Header: http.Header{"Range": lines}}) {
			t.Errorf("%q: true, want false", lines)
		}
	}
}
