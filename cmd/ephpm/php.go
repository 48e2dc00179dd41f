package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"ephpm/server"
)

// php makes PHP's command line out of this process. It returns only when that
// cannot be.
func php(name string, args []string, stderr io.Writer) int {
	path, argv, env, err := server.PHPCommand(name, args)
	if err == nil {
		err = fmt.Errorf("%s: %w", path, syscall.Exec(path, argv, env))
	}
	return fail(stderr, err)
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
	case strings.HasPrefix(first, "-"):
		return strings.HasPrefix(first, "-d") && strings.Contains(first, "=")
	}
	info, err := os.Stat(first)
	return err == nil && info.Mode().IsRegular()
}
