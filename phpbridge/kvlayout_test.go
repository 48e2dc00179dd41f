package phpbridge

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// layoutNames are the numbers of the store's memory as kvread.c and kv/layout.go
// call them.
var layoutNames = map[string]string{
	"MAGIC": "layoutMagic", "OFF_MAGIC": "offMagic", "OFF_K0": "offK0", "OFF_K1": "offK1", "OFF_BUCKETS": "offBuckets",
	"OFF_TOUCH": "offTouch", "OFF_MONITORED": "offMonitored", "STRIPES": "stripeCount", "ENTRY_HEADER": "entryHeader", "ENT_NEXT": "entNext",
	"ENT_HASH": "entHash", "ENT_VALUE": "entValue", "ENT_KEY": "entKey", "ENT_KIND": "entKind", "ENT_CODING": "entCoding",
	"ENT_EXPIRY": "entExpiry", "MAX_CHAIN": "maxChain", "STRIPES_AT": "headerSize",
}

// The memory of a store is written by one package and read by another, which know
// nothing of each other.
func TestWorkersReadTheLayoutThatTheStoreWrites(t *testing.T) {
	read := numbers(t, "kvread.c", regexp.MustCompile(`(?m)^#define (\w+) (\w+)$`))
	written := numbers(t, filepath.Join("..", "kv", "layout.go"), regexp.MustCompile(`(?m)^\t(\w+)\s+= (\w+)$`))
	for c, golang := range layoutNames {
		got, ok := read[c]
		want, there := written[golang]
		if !ok || !there || got != want {
			t.Errorf("%s is %#x in kvread.c (%v), %s is %#x in layout.go (%v)", c, got, ok, golang, want, there)
		}
	}
}

func numbers(t *testing.T, file string, line *regexp.Regexp) map[string]uint64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]uint64{}
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		if n, err := strconv.ParseUint(strings.TrimSuffix(m[2], "ull"), 0, 64); err == nil {
			all[m[1]] = n
		}
	}
	return all
}
