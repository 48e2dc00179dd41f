package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A redisLoad is one way in which redis-benchmark asks.
type redisLoad struct {
	command  string // SET or GET
	pipeline int    // commands that are sent at once
}

var redisLoads = []redisLoad{{"SET", 1}, {"GET", 1}, {"SET", 16}, {"GET", 16}}

// redisKeys and redisKeySize are of the measurement of memory.
const (
	redisKeys    = 1_000_000
	redisKeySize = 100
)

// compareRedis measures ephpm and Redis in turns and prints how they compare.
func compareRedis(ctx context.Context, dir string, o options) error {
	ours, err := startRedisSide(ctx, dir, "ephpm", func(addr string) (*exec.Cmd, error) { return ephpmForRedis(dir, o, addr) })
	if err != nil {
		return err
	}
	defer ours.stop()
	theirs, err := startRedisSide(ctx, dir, "redis", func(addr string) (*exec.Cmd, error) {
		_, port, err := net.SplitHostPort(addr)
		return exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no"), err
	})
	if err != nil {
		return err
	}
	defer theirs.stop()

	rates := map[redisLoad][2][]float64{}
	for round := range o.rounds {
		for _, l := range redisLoads {
			pair := rates[l]
			for i, s := range []*server{ours, theirs} {
				rate, err := redisBenchmark(ctx, s.url, l, o.duration)
				if err != nil {
					return err
				}
				pair[i] = append(pair[i], rate)
			}
			rates[l] = pair
		}
		fmt.Printf("round %d of %d\n", round+1, o.rounds)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "redis-benchmark -c 50\tephpm\tredis\tephpm ÷ redis\t")
	for _, l := range redisLoads {
		a, b := middle(rates[l][0]), middle(rates[l][1])
		fmt.Fprintf(w, "%s -P %d\t%.0f\t%.0f\t%.2f (bar 1.00)\t\n", l.command, l.pipeline, a, b, a/b)
	}
	var perKey [2]float64
	for i, s := range []*server{ours, theirs} {
		if perKey[i], err = redisMemory(s); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "bytes per key, %d keys of %d bytes\t%.0f\t%.0f\t%.2f (bar 1.30)\t\n",
		redisKeys, redisKeySize, perKey[0], perKey[1], perKey[0]/perKey[1])
	return w.Flush()
}

// startRedisSide starts a server whose url is the address for clients of Redis.
func startRedisSide(ctx context.Context, dir, name string, command func(addr string) (*exec.Cmd, error)) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	cmd, err := command(addr)
	if err != nil {
		return nil, err
	}
	cmd.Dir = dir
	p, err := startProcess(cmd)
	if err != nil {
		return nil, err
	}
	s := &server{name: name, url: addr, procs: []*process{p}}
	for ctx.Err() == nil {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close() // nothing was said
			return s, nil
		}
		select {
		case <-p.exited:
			return nil, fmt.Errorf("%s ended:\n%s", name, p.out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.stop()
	return nil, ctx.Err()
}

func ephpmForRedis(dir string, o options, addr string) (*exec.Cmd, error) {
	web, err := freeAddr()
	if err != nil {
		return nil, err
	}
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "kv.toml")
	config := fmt.Sprintf("[server]\nlisten = %q\ndocument_root = \"www\"\ncontrol_socket = \"\"\n[php]\nworkers = 1\nmin_workers = 1\n"+
		"[kv]\nmemory_limit = \"1GB\"\n[kv.redis_compat]\nenabled = true\nlisten = %q\n", web, addr)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return exec.Command(binary, "serve", "-c", file), nil
}

var redisRate = regexp.MustCompile(`([0-9.]+) requests per second`)

// redisBenchmark returns the requests a second.
func redisBenchmark(ctx context.Context, addr string, l redisLoad, d time.Duration) (float64, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	// About as long as asked for: both do some 100,000 round trips a second.
	n := int(d.Seconds()) * 60_000 * l.pipeline
	out, err := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-c", "50", "-r", "100000",
		"-P", strconv.Itoa(l.pipeline), "-n", strconv.Itoa(n), "-t", strings.ToLower(l.command), "-q").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w\n%s", err, out)
	}
	all := redisRate.FindAllSubmatch(out, -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("redis-benchmark printed no rate:\n%s", out)
	}
	return strconv.ParseFloat(string(all[len(all)-1][1]), 64)
}

// redisMemory returns what a key costs beside itself and its value of 3 bytes:
// how much the server grows by, all in all.
func redisMemory(s *server) (float64, error) {
	conn, err := net.Dial("tcp", s.url)
	if err != nil {
		return 0, err
	}
	defer conn.Close() //nolint:errcheck // all was read
	ask := func(w *bufio.Writer, n int) error {
		for i := range n {
			if _, err := fmt.Fprintf(w, "*3\r\n$3\r\nSET\r\n$%d\r\n%0*d\r\n$3\r\nxyz\r\n", redisKeySize, redisKeySize, i); err != nil {
				return err
			}
		}
		return w.Flush()
	}
	if _, err := fmt.Fprint(conn, "FLUSHALL\r\n"); err != nil {
		return 0, err
	}
	in := bufio.NewReader(conn)
	if _, err := in.ReadString('\n'); err != nil {
		return 0, err
	}
	before, err := memory(s.pids()...)
	if err != nil {
		return 0, err
	}
	sent := make(chan error, 1)
	go func() { sent <- ask(bufio.NewWriter(conn), redisKeys) }() // ends with the replies
	for range redisKeys {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if line != "+OK\r\n" {
			return 0, fmt.Errorf("%s: SET: %s", s.name, line)
		}
	}
	if err := <-sent; err != nil {
		return 0, err
	}
	after, err := memory(s.pids()...)
	return float64(after-before) / redisKeys, err
}
