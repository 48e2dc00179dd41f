// Command bench compares ephpm with nginx and php-fpm, and with a Go handler
// that runs no PHP, on this machine.
//
//	go run ./bench          the comparison
//	go run ./bench -leak    memory over many requests
//	go run ./bench -store   the ephpm_kv functions beside APCu and phpredis
//	go run ./bench -redis   the key-value store beside Debian's Redis
//	go run ./bench -worker  what a worker costs: its memory, its replacement
//	go run ./bench -sockets what WebSockets cost, beside a bare Go server
//	go run ./bench -files   files of 1 KB and 1 MB beside nginx
//	go run ./bench -tls     handshakes, HTTP/2 and idle connections over TLS
//	go run ./bench -http3   HTTP/3, beside a bare quic-go handler
//
// Every server gets the same scripts, the same number of PHP workers, OPcache,
// keep-alive connections and no access log. The load comes from wrk on the same
// machine and takes part of its CPUs, from every server alike. Rounds are
// interleaved, so that a machine that gets slower or faster meanwhile does not
// favour one of them; figures are medians of the rounds. The column "served"
// is how many of wrk's connections were being served at a time: with kept
// FastCGI connections php-fpm binds each worker to one of them and leaves the
// others waiting, and the latencies know nothing of those.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A mode is something that is measured.
type mode struct {
	name   string // of its flag; empty: what is done without one
	usage  string
	needed []string // programs besides ephpm
	run    func(ctx context.Context, dir string, o options) error
}

var comparison = mode{needed: []string{"wrk"}, run: compare}

var modes = []mode{
	{"leak", "measure memory over many requests instead", []string{"wrk"}, measureLeak},
	{"store", "compare the ephpm_kv functions with APCu and phpredis instead", []string{"redis-server"}, compareStore},
	{"redis", "compare the key-value store with Redis instead", []string{"redis-server", "redis-benchmark"}, compareRedis},
	{"worker", "measure what a worker costs instead", []string{"wrk"}, measureWorker},
	{"sockets", "measure WebSockets instead", []string{"wrk"}, measureSockets},
	{"files", "measure files instead", []string{"wrk"}, measureFiles},
	{"tls", "measure TLS instead", []string{"h2load"}, measureTLS},
	{"http3", "measure HTTP/3 instead", nil, measureHTTP3},
}

// chooseMode is the flag of a mode. There is one mode at a time.
func (o *options) chooseMode(m mode) func(string) error {
	return func(value string) error {
		on, err := strconv.ParseBool(value)
		switch {
		case err != nil || !on:
			return err
		case o.mode.name != "" && o.mode.name != m.name:
			return fmt.Errorf("-%s is asked for already", o.mode.name)
		}
		o.mode = m
		return nil
	}
}

// options are the flags.
type options struct {
	binary   string
	workers  int
	rounds   int
	duration time.Duration
	conns    []int
	scripts  []string
	mode     mode
	crowd    int
	parts    string
	requests int
}

func parseOptions() (options, error) {
	o := options{mode: comparison}
	flag.StringVar(&o.binary, "ephpm", "bin/ephpm", "the ephpm to measure")
	flag.IntVar(&o.workers, "workers", 4, "PHP workers of every server")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds")
	flag.DurationVar(&o.duration, "duration", 5*time.Second, "length of one measurement")
	conns := flag.String("conns", "1,64", "connections of wrk")
	scripts := flag.String("scripts", "hello,page30k,post16k", "scripts to measure")
	flag.StringVar(&o.parts, "parts", "", "of -sockets, only these: memory,streams,opening,broadcast,echo,deaf,share")
	flag.IntVar(&o.crowd, "crowd", 15_000, "most sockets of -sockets")
	for _, m := range modes {
		flag.BoolFunc(m.name, m.usage, o.chooseMode(m))
	}
	flag.IntVar(&o.requests, "requests", 100_000, "requests of -leak")
	flag.Parse()

	if o.crowd < 2000 {
		return o, errors.New("-crowd must be at least 2000")
	}
	if o.workers < 1 || o.rounds < 1 || o.duration < time.Second {
		return o, errors.New("-workers and -rounds must be at least 1, -duration 1s")
	}
	for _, s := range strings.Split(*conns, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-conns: %q is not a number of connections", s)
		}
		o.conns = append(o.conns, n)
	}
	for _, s := range strings.Split(*scripts, ",") {
		if _, err := scriptFiles.ReadFile("scripts/" + s + ".php"); err != nil {
			return o, fmt.Errorf("-scripts: there is no %q", s)
		}
		o.scripts = append(o.scripts, s)
	}
	return o, nil
}

func main() {
	if dir := os.Getenv(plainEnv); dir != "" {
		servePlain(dir)
	}
	if value := os.Getenv(bareEnv); value != "" {
		serveBare(value)
	}
	if addr := os.Getenv(floorEnv); addr != "" {
		serveFloor(addr)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	o, err := parseOptions()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, name := range append([]string{o.binary}, o.mode.needed...) {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w (make bench installs and builds what is needed)", err)
		}
	}
	dir, err := newSite()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return o.mode.run(ctx, dir, o)
}
