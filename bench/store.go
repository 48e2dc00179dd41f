package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
)

// compareStore measures the ephpm_kv functions beside APCu and phpredis, in one
// worker, in turns.
func compareStore(ctx context.Context, dir string, o options) error {
	socket := filepath.Join(dir, "redis.sock")
	redis, err := startRedisSide(ctx, dir, "redis", func(addr string) (*exec.Cmd, error) {
		_, port, err := net.SplitHostPort(addr)
		return exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--unixsocket", socket, "--save", "", "--appendonly", "no"), err
	})
	if err != nil {
		return err
	}
	defer redis.stop()
	s, err := startEphpm(ctx, dir, o)
	if err != nil {
		return err
	}
	defer s.stop()

	all := map[string][]float64{}
	for range o.rounds {
		body, err := fetch(ctx, s.url+"/store.php?redis="+url.QueryEscape(socket))
		if err != nil {
			return err
		}
		var took map[string]float64
		if err := json.Unmarshal([]byte(body), &took); err != nil {
			return fmt.Errorf("store.php says %q: %w", body, err)
		}
		for what, ns := range took {
			all[what] = append(all[what], ns)
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "64 bytes, ns a call\tephpm_kv\ttheirs\tratio\tbar\t")
	for _, row := range []struct {
		name, ours, theirs string
		inverse            bool // how many times faster, not how many times the time
		bar                string
	}{
		{"get, times apcu_fetch", "get", "apcu", false, "at most 1.5"},
		{"get, faster than phpredis", "get", "redis get", true, "at least 30"},
		{"set, faster than phpredis", "set", "redis set", true, "at least 2"},
	} {
		a, b := middle(all[row.ours]), middle(all[row.theirs])
		ratio := a / b
		if row.inverse {
			ratio = b / a
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.2f\t%s\t\n", row.name, a, b, ratio, row.bar)
	}
	return w.Flush()
}
