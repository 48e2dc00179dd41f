package server

import (
	"net/http"
	"testing"
)

func TestBestCodingIsTheOneTheClientLikesBest(t *testing.T) {
	all := []coding{brotliCoding, zstdCoding, gzipCoding}
	for _, test := range []struct {
		header  string
		offered []coding
		want    string // empty: nothing is acceptable
	}{
		{"", all, "identity"},
		{"gzip", all, "gzip"},
		{"x-gzip", all, "gzip"},
		{"GZIP", all, "gzip"},
		{"gzip, deflate, br, zstd", all, "br"},
		{"gzip, deflate, br, zstd", []coding{zstdCoding, brotliCoding, gzipCoding}, "zstd"},
		{"gzip;q=1.0, br;q=0.9", all, "gzip"},
		{"br;q=0.5, zstd;q=0.501", all, "zstd"},
		{"br;q=0, gzip", all, "gzip"},
		{"br ; q=0.000 ,\tgzip ; q=0.001", all, "gzip"},
		{"*", all, "br"},
		{"*;q=0", all, ""},
		{"*;q=0, identity", all, "identity"},
		{"*;q=0, gzip", all, "gzip"},
		{"*;q=0.5, br;q=0", all, "zstd"},
		{"identity;q=0", all, ""},
		{"identity;q=0, gzip;q=0.1", all, "gzip"},
		{"identity;q=0, gzip", nil, ""},
		{"identity, gzip;q=0.5", all, "identity"},
		{"identity;q=0.5, gzip;q=0.5", all, "gzip"},
		{"identity;q=0.5, *;q=0.6", all, "br"},
		{"identity", all, "identity"},
		{"deflate", all, "identity"},
		{"gzip;q=2", all, "identity"},
		{"gzip;q=0.0001", all, "identity"},
		{"gzip;q=", all, "identity"},
		{"gzip;level=3", all, "identity"},
		{"gzip;q=-1, br;q=a", all, "identity"},
		{",, ,gzip,,", all, "gzip"},
		{";q=1", all, "identity"},
	} {
		var lines []string
		if test.header != "" {
			lines = []string{test.header}
		}
		got := ""
		if c, ok := parseAccept(lines).best(test.offered...); ok {
			got = codingNames[c]
		}
		if got != test.want {
			t.Errorf("Accept-Encoding %q: %q, want %q", test.header, got, test.want)
		}
	}
	if c, _ := parseAccept([]string{"br;q=0.1", "gzip"}).best(all...); c != gzipCoding {
		t.Errorf("two lines: %s, want gzip", codingNames[c])
	}
}

func TestVaryIsNamedOnce(t *testing.T) {
	for _, test := range []struct{ before, want []string }{
		{nil, []string{"Accept-Encoding"}},
		{[]string{"Cookie"}, []string{"Cookie", "Accept-Encoding"}},
		{[]string{"Cookie, accept-encoding"}, []string{"Cookie, accept-encoding"}},
		{[]string{"*"}, []string{"*"}},
	} {
		h := http.Header{}
		if test.before != nil {
			h["Vary"] = test.before
		}
		addVary(h, "Accept-Encoding")
		if got := h["Vary"]; len(got) != len(test.want) || got[len(got)-1] != test.want[len(got)-1] {
			t.Errorf("%q became %q, want %q", test.before, got, test.want)
		}
	}
	if len(varyEncoding) != 1 {
		t.Error("the shared value was changed")
	}
}

func FuzzParseAccept(f *testing.F) {
	for _, seed := range []string{"gzip, br;q=0.5", "*;q=0", "identity;q=0.001,,;", "x-gzip;q=1.000", "br;q=0.9999", "gzip; q = 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		a := parseAccept([]string{header})
		for c, weight := range a {
			if weight > 1000 || weight < 0 && (coding(c) != identity || weight != implied) {
				t.Errorf("%q gives %s the weight %d", header, codingNames[c], weight)
			}
		}
		if c, ok := a.best(brotliCoding, zstdCoding, gzipCoding); ok && a[c] == 0 {
			t.Errorf("%q: %s was chosen and refused", header, codingNames[c])
		}
	})
}
