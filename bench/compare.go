package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// A subject is what is measured together: one script under one load.
type subject struct {
	script string
	conns  int
}

// A sample is one round of one server.
type sample struct {
	load
	cpu    time.Duration // of the server, per request
	memory int64         // of the server at the end, in bytes
}

// results are the samples of every server, by its name.
type results map[subject]map[string][]sample

// compare measures all servers and prints the tables.
func compare(ctx context.Context, dir string, o options) error {
	servers, err := startAll(ctx, dir, o)
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	if err != nil {
		return err
	}
	var subjects []subject
	for _, script := range o.scripts {
		for _, conns := range o.conns {
			subjects = append(subjects, subject{script, conns})
		}
	}
	all := results{}
	for _, sub := range subjects {
		all[sub] = map[string][]sample{}
		for _, s := range servers { // not counted: caches fill, pools grow
			if _, err := measure(ctx, dir, s, sub, time.Second); err != nil {
				return err
			}
		}
		for round := range o.rounds {
			fmt.Fprintf(os.Stderr, "\r%s, %d connections, round %d of %d ", sub.script, sub.conns, round+1, o.rounds)
			for _, s := range servers {
				got, err := measure(ctx, dir, s, sub, o.duration)
				if err != nil {
					return err
				}
				all[sub][s.name] = append(all[sub][s.name], got)
			}
		}
		fmt.Fprintf(os.Stderr, "\r%60s\r", "")
		printTable(sub, servers, all[sub])
	}
	printBars(all)
	return nil
}

// startAll starts the servers. On an error those that run are returned with it.
func startAll(ctx context.Context, dir string, o options) ([]*server, error) {
	var servers []*server
	for _, start := range []func() (*server, error){
		func() (*server, error) { return startEphpm(ctx, dir, o) },
		func() (*server, error) { return startFPM(ctx, dir, o, false) },
		func() (*server, error) { return startFPM(ctx, dir, o, true) },
		func() (*server, error) { return startPlain(ctx, dir, o, servers[0]) },
	} {
		s, err := start()
		if err != nil {
			return servers, err
		}
		servers = append(servers, s)
	}
	// A server that prints something else is not compared.
	for _, script := range o.scripts {
		var want string
		for i, s := range servers {
			got, err := fetch(ctx, s.url+"/"+script+".php")
			if err != nil {
				return servers, fmt.Errorf("%s: %w", s.name, err)
			}
			if i == 0 {
				want = got
			}
			if got != want {
				return servers, fmt.Errorf("%s answers %s with %d bytes, %s with %d others",
					s.name, script, len(got), servers[0].name, len(want))
			}
		}
	}
	return servers, nil
}

func measure(ctx context.Context, dir string, s *server, sub subject, d time.Duration) (sample, error) {
	pids := s.pids()
	before := cpuTime(pids)
	l, err := runWrk(ctx, dir, s.url, sub.script, sub.conns, d)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w", s.name, err)
	}
	pids = s.pids()
	used := cpuTime(pids) - before
	mem, err := memory(pids...)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w", s.name, err)
	}
	return sample{load: l, cpu: used / time.Duration(l.Requests), memory: mem}, nil
}
