package main

import (
	"slices"
	"strings"
	"testing"
)

func TestKVRefusesWrongCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"":                                "ephpm kv: a command is missing",
		"gte k":                           `ephpm kv: unknown command "gte"; did you mean get?`,
		"monitor k":                       "ephpm kv monitor: 1 arguments, want no arguments",
		"get":                             "ephpm kv get: 0 arguments, want KEY",
		"get a b":                         "ephpm kv get: 2 arguments, want KEY",
		"set":                             "ephpm kv set: 0 arguments, want KEY [VALUE]",
		"set k -5":                        "ephpm kv: flag provided but not defined: -5",
		"set k v --ttl 0":                 `-ttl: want a number of seconds from 1`,
		"set k v --ttl 1.5":               `-ttl: want a number of seconds from 1`,
		"set k v --by 2":                  "ephpm kv set has no flag -by",
		"incr k --by 9223372036854775808": `-by: want a whole number of 64 bits`,
		"get k --nx":                      "ephpm kv get has no flag -nx",
		"get k -0":                        "ephpm kv get has no flag -0",
		"del":                             "ephpm kv del: 0 arguments, want KEY...",
		"ping x":                          "ephpm kv ping: 1 arguments, want no arguments",
		"get k -site":                     "flag needs an argument: -site",
	} {
		status, stdout, stderr := command(append([]string{"kv"}, strings.Fields(line)...)...)
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, "error: ") || !strings.Contains(stderr, want) || !strings.HasSuffix(stderr, kvUsage) {
			t.Errorf("ephpm kv %s = %d, %q, stderr\n%s\nwant 2 and %q with the usage", line, status, stdout, stderr, want)
		}
	}
	if status, stdout, stderr := command("kv", "get", "-h"); status != 0 || stdout != kvUsage || stderr != "" {
		t.Errorf("ephpm kv get -h = %d, %q, %q, want the usage on stdout", status, stdout, stderr)
	}
}

func TestKVFlagsStandAnywhere(t *testing.T) {
	for line, want := range map[string][]string{
		"set k v --ttl 5 --site s":        {"k", "v"},
		"--site s set --ttl=5 k v":        {"k", "v"},
		"set --site=s --ttl 5 k -- -":     {"k", "-"},
		"set --site s --ttl 5 -- k --ttl": {"k", "--ttl"},
	} {
		l := &kvLine{}
		if _, err := l.parse(strings.Fields(line)); err != nil || !slices.Equal(l.args, want) || l.site != "s" || l.ttl != 5 {
			t.Errorf("%s: %+v, %v; want the arguments %q", line, l, err, want)
		}
	}
}
