package server

import "ephpm/phpbridge"

// A PHPServer says which server ephpm_* functions of the command line talk to.
type PHPServer = phpbridge.CLIServer

// PHPCommand returns what makes PHP's command line out of this process by
// syscall.Exec. name is how this program was called, args are php-cli's.
func PHPCommand(name string, args []string, to PHPServer) (path string, argv, env []string, err error) {
	return phpbridge.CLICommand(name, args, to)
}

// CalledPHP reports whether a program called by this name shall be PHP's command
// line.
func CalledPHP(name string) bool { return phpbridge.CalledPHP(name) }
