package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ephpm/server"
)

// Where ephpm dev listens.
const (
	devHost  = "127.0.0.1" // for this machine alone
	devPort  = 8080
	devPorts = 50 // are tried, one after the other
)

// dev serves a directory to who works on it: on this machine alone, with edits
// that show at once, errors in the page and a line for each request, without a
// configuration file.
func dev(args, environ []string, stderr io.Writer) int {
	r := request{environ: environ, alone: true, defaults: devDefaults}
	port := devPort
	chosen := slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, envName("server.listen")+"=") })
	flags := newFlags("dev")
	stringFlag(flags, &r.listen, "l", "listen")
	stringFlag(flags, &r.root, "d", "document-root")
	sites := ""
	stringFlag(flags, &sites, "s", "sites-dir")
	flags.BoolVar(&r.verbose, "v", false, "")
	flags.Func("p", "", func(s string) (err error) {
		if port, err = strconv.Atoi(s); err != nil || port < 0 || port > 65535 {
			return errors.New("want a port, 0 to 65535")
		}
		chosen = false
		return nil
	})
	if status, ok := parseFlags(flags, args, stderr); !ok {
		return status
	}
	if sites != "" {
		r.defaults = func(c *server.Config) {
			devDefaults(c)
			c.Server.SitesDir, c.Server.SitesDomainSuffix = sites, ".localhost"
		}
		if r.root == "" && !slices.ContainsFunc(environ, namesRoot) {
			r.root = "." // sites alone would leave it out
		}
	}
	ports := devPorts
	if r.listen != "" || chosen {
		ports = 1
	} else {
		r.listen = devAddress(port)
	}
	c, notes, err := load(r)
	if err != nil {
		return fail(stderr, err)
	}
	announce := func(s *server.Server) {
		if banner(stderr, c.Server.DocumentRoot, s.Addrs()); c.Server.SitesDir != "" {
			fmt.Fprintf(stderr, "  Each directory NAME of %s is NAME.localhost at the same port.\n\n", c.Server.SitesDir)
		}
	}
	return runServer(c, notes, stderr, func(ctx context.Context, log *slog.Logger) error {
		for {
			err := serveUntil(ctx, c, log, announce)
			if ports--; ports == 0 || port == 65535 || !errors.Is(err, server.ErrPortTaken) {
				return err
			}
			port++
			c.Server.Listen = server.Addresses{devAddress(port)}
		}
	})
}

func devAddress(port int) string { return devHost + ":" + strconv.Itoa(port) }

// devDefaults changes what is not good for development. The environment beats it.
func devDefaults(c *server.Config) {
	c.PHP.OPcacheRevalidate = 0 // every request looks
	c.Server.Logging.Access, c.Server.Logging.AccessFormat = server.AccessStdout, server.AccessBrief
	c.PHP.INIOverrides = []server.INI{{Name: "display_errors", Value: "1"}, {Name: "display_startup_errors", Value: "1"}, {Name: "error_reporting", Value: "E_ALL"}}
	c.Server.Timeouts.Shutdown = server.Duration(2 * time.Second)
}

// banner tells where to look.
func banner(w io.Writer, root string, addrs []string) {
	if abs, err := filepath.Abs(root); err == nil { // fails only without a working directory
		root = abs
	}
	for _, addr := range addrs {
		if port, ok := strings.CutPrefix(addr, devHost+":"); ok {
			addr = "localhost:" + port
		}
		b := server.Build()
		fmt.Fprintf(w, "\n  ephpm %s with PHP %s serves %s\n\n  http://%s\n\n  Edits show at once. Ctrl+C stops.\n\n", b.Version, b.PHP, root, addr)
	}
}
