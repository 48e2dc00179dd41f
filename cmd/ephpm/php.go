package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ephpm/server"
)

// php makes PHP's command line out of this process. It returns only when that
// cannot be.
func php(name string, args []string, stderr io.Writer) int {
	to, args, err := phpServer(args, os.Environ())
	if err != nil {
		return fail(stderr, err)
	}
	path, argv, env, err := server.PHPCommand(name, args, to)
	if err == nil {
		err = fmt.Errorf("%s: %w", path, syscall.Exec(path, argv, env))
	}
	return fail(stderr, err)
}

// phpServer takes our own options from the front of php-cli's arguments and finds
// the server that ephpm_* functions shall reach. That there is none matters only
// to scripts that call one.
func phpServer(args, environ []string) (to server.PHPServer, rest []string, err error) {
	config := ""
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0], "=")
		if name != "--config" && name != "--site" {
			break
		}
		args = args[1:]
		if !joined && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		if value == "" {
			return to, nil, fmt.Errorf("ephpm php: %s needs a value", name)
		}
		if name == "--config" {
			config = value
		} else {
			to.Site = value
		}
	}
	to.Socket, err = serverSocket(config, environ)
	if err != nil && config == "" {
		to.Socket, err = err.Error(), nil // for who calls one
	}
	return to, args, err
}

// serverSocket returns the control socket of the server of a configuration, or of
// that which findServer finds without one.
func serverSocket(config string, environ []string) (string, error) {
	if config == "" {
		return findServer(environ)
	}
	c, err := loadServer(config, environ)
	if err != nil {
		return "", err
	}
	return controlOf(c)
}

// loadServer loads the configuration of a server that runs: of the file, else of the
// ephpm.toml here, else of the environment.
func loadServer(file string, environ []string) (server.Config, error) {
	r := request{file: file, environ: environ}
	if _, err := os.Stat(defaultFile); err != nil {
		r.alone = true
	}
	c, _, err := load(r)
	return c, err
}

// controlOf returns the absolute path of the control socket of a configuration.
func controlOf(c server.Config) (string, error) {
	path := c.FindControl()
	if path == "" {
		return "", errors.New("server.control_socket is empty, so it has none")
	}
	return filepath.Abs(path)
}

// findServer returns the control socket of the server that a script is most likely
// about: that of the ephpm.toml here or of the environment, that which serves this
// directory, or the only one.
func findServer(environ []string) (string, error) {
	_, err := os.Stat(defaultFile)
	if err == nil || slices.ContainsFunc(environ, namesControl) {
		c, err := loadServer("", environ)
		if err != nil {
			return "", err
		}
		return controlOf(c)
	}
	if path, ok := server.FindControlOf("."); ok {
		return path, nil
	}
	return server.RunningControl()
}

func namesControl(variable string) bool {
	return strings.HasPrefix(variable, envName("server.control_socket")+"=")
}

// isForPHP reports whether arguments that name no command of ours are php-cli's.
// Scripts run others as PHP_BINARY script.php or PHP_BINARY -d name=value
// script.php, and PHP_BINARY is this program when no link to it is named php.
func isForPHP(args []string) bool {
	first := args[0]
	switch {
	case first == "-r" || first == "-f" || first == "-n" || first == "-i" || first == "-m":
		return true
	case first == "-d" && len(args) > 1: // serve's -d wants a directory
		return strings.Contains(args[1], "=")
	case first == "-l" && len(args) > 1: // serve's -l wants an address
		return !strings.Contains(args[1], ":")
	case strings.HasPrefix(first, "-"):
		return strings.HasPrefix(first, "-d") && strings.Contains(first, "=")
	}
	info, err := os.Stat(first)
	if err != nil {
		return strings.HasSuffix(first, ".php") // PHP says that there is none
	}
	return info.Mode().IsRegular()
}
