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

// options are the flags.
type options struct {
	binary   string
	workers  int
	rounds   int
	duration time.Duration
	conns    []int
	scripts  []string
	leak     bool
	redis    bool
	store    bool
	worker   bool
	sockets  bool
	tls      bool
	http3    bool
	files    bool
	crowd    int
	parts    string
	requests int
}

func parseOptions() (options, error) {
	o := options{}
	flag.StringVar(&o.binary, "ephpm", "bin/ephpm", "the ephpm to measure")
	flag.IntVar(&o.workers, "workers", 4, "PHP workers of every server")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds")
	flag.DurationVar(&o.duration, "duration", 5*time.Second, "length of one measurement")
	conns := flag.String("conns", "1,64", "connections of wrk")
	scripts := flag.String("scripts", "hello,page30k,post16k", "scripts to measure")
	flag.BoolVar(&o.leak, "leak", false, "measure memory over many requests instead")
	flag.BoolVar(&o.worker, "worker", false, "measure what a worker costs instead")
	flag.BoolVar(&o.sockets, "sockets", false, "measure WebSockets instead")
	flag.BoolVar(&o.files, "files", false, "measure files instead")
	flag.BoolVar(&o.tls, "tls", false, "measure TLS instead")
	flag.BoolVar(&o.http3, "http3", false, "measure HTTP/3 instead")
	flag.StringVar(&o.parts, "parts", "", "of -sockets, only these: memory,opening,broadcast,echo,deaf,share")
	flag.IntVar(&o.crowd, "crowd", 15_000, "most sockets of -sockets")
	flag.BoolVar(&o.store, "store", false, "compare the ephpm_kv functions with APCu and phpredis instead")
	flag.BoolVar(&o.redis, "redis", false, "compare the key-value store with Redis instead")
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
	needed := []string{"wrk", o.binary}
	switch {
	case o.store:
		needed = []string{"redis-server", o.binary}
	case o.redis:
		needed = []string{"redis-server", "redis-benchmark", o.binary}
	}
	for _, name := range needed {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w (make bench installs and builds what is needed)", err)
		}
	}
	dir, err := newSite()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.sockets {
		return measureSockets(ctx, dir, o)
	}
	if o.files {
		return measureFiles(ctx, dir, o)
	}
	if o.tls {
		return measureTLS(ctx, dir, o)
	}
	if o.http3 {
		return measureHTTP3(ctx, dir, o)
	}
	if o.redis {
		return compareRedis(ctx, dir, o)
	}
	if o.store {
		return compareStore(ctx, dir, o)
	}
	if o.leak {
		return measureLeak(ctx, dir, o)
	}
	if o.worker {
		return measureWorker(ctx, dir, o)
	}
	return compare(ctx, dir, o)
}
