// Ephpm serves PHP applications over HTTP and WebSocket. This command turns a
// command line, the environment and a TOML file into one server.Config and runs
// a server.Server with it. It is also PHP's own command line (php.go), as
// ephpm php or by a link to it that is named php.
//
// Exit status: 0 after a graceful stop, 1 for what went wrong, 2 for a command
// line that makes no sense. A second SIGINT or SIGTERM during a graceful stop
// ends the process at once with 1.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"ephpm/server"
)

const usage = `Usage:
  ephpm                                           the same as ephpm dev
  ephpm dev [-p PORT] [-l ADDR] [-d DIR] [-s DIR] [-v]
                                                  serve this directory for development
  ephpm serve [-c FILE] [-l ADDR] [-d DIR] [-v]   serve until SIGTERM or SIGINT
  ephpm reload [-c FILE]                          let the running server take up new code
  ephpm config check [-c FILE]                    check a configuration and exit
  ephpm php [--config FILE] [--site NAME] [ARGS]  run PHP as php-cli does; -h there
  ephpm kv COMMAND [-c FILE] [--site NAME] [ARGS] read and change the key-value store
                                                  of the running server; -h there
  ephpm version                                   print the versions
  ephpm help                                      print this

  --config and --site say which server ephpm_* functions of the script reach.

Flags:
  -c, -config FILE         the configuration; ephpm.toml here when left out
  -l, -listen ADDR         the address to listen on, such as 127.0.0.1:8080
  -d, -document-root DIR   the directory to serve; needs no configuration
  -p PORT                  the port for development on this machine; 8080, or the
                           next that is free
  -s, -sites-dir DIR       and each directory NAME in it as NAME.localhost
  -v                       log at level debug

A flag beats the environment, which beats the file. A variable is named after
its key: EPHPM_SERVER__LISTEN=:80 sets listen in [server]. All keys are in
ephpm.toml.example.
`

func main() {
	if server.CalledPHP(os.Args[0]) {
		os.Exit(php(os.Args[0], os.Args[1:], os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run runs one command line and returns the exit status.
func run(args, environ []string, stdout, stderr io.Writer) int {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "", "dev":
		return dev(args, environ, stderr)
	case "serve":
		return serve(args, environ, stderr)
	case "reload":
		return reload(args, environ, stdout, stderr)
	case "config":
		if len(args) > 0 && args[0] == "check" {
			return checkConfig(args[1:], environ, stdout, stderr)
		}
		return misuse(stderr, "ephpm config has one command: check")
	case "php":
		return php(os.Args[0], args, stderr)
	case "kv":
		return kvStore(args, environ, os.Stdin, stdout, stderr)
	case "version", "-version", "--version":
		b := server.Build()
		fmt.Fprintf(stdout, "ephpm %s\nPHP %s\n%s\n", b.Version, b.PHP, b.Go)
		return 0
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	}
	if advice, ok := plannedCommands[command]; ok {
		return misuse(stderr, fmt.Sprintf("ephpm %s is not available in this version; %s", command, advice))
	}
	if isForPHP(append([]string{command}, args...)) {
		return php(os.Args[0], append([]string{command}, args...), stderr)
	}
	text := fmt.Sprintf("unknown command %q", command)
	if near := nearest(command, []string{"dev", "serve", "reload", "config", "php", "kv", "version", "help"}); near != "" {
		text += "; did you mean " + near + "?"
	}
	return misuse(stderr, text)
}

// checkConfig reads a configuration as serve would.
func checkConfig(args, environ []string, stdout, stderr io.Writer) int {
	c, notes, status, ok := loadFor("config check", args, environ, stderr)
	if !ok {
		return status
	}
	for _, note := range notes {
		fmt.Fprintln(stderr, "warning:", note)
	}
	if c.File == "" {
		c.File = "the environment"
	}
	fmt.Fprintln(stdout, c.File, "is fine")
	return 0
}

// loadFor loads the configuration of a command whose only flag is -c. It reports
// whether to go on, and with which status to end otherwise.
func loadFor(command string, args, environ []string, stderr io.Writer) (c server.Config, notes []string, status int, ok bool) {
	r := request{environ: environ}
	flags := newFlags(command)
	configFlag(flags, &r)
	if status, ok := parseFlags(flags, args, stderr); !ok {
		return c, nil, status, false
	}
	c, notes, err := load(r)
	if err != nil {
		return c, nil, fail(stderr, err), false
	}
	return c, notes, 0, true
}

// newFlags returns a flag set that prints nothing itself.
func newFlags(command string) *flag.FlagSet {
	flags := flag.NewFlagSet("ephpm "+command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	return flags
}

func configFlag(flags *flag.FlagSet, r *request) {
	stringFlag(flags, &r.file, "c", "config")
}

// stringFlag declares a flag with a short and a long name that wants a value.
func stringFlag(flags *flag.FlagSet, value *string, names ...string) {
	for _, name := range names {
		flags.Func(name, "", func(s string) error {
			if s == "" {
				return errors.New("it is empty")
			}
			*value = s
			return nil
		})
	}
}

// parseFlags reports whether to go on, and with which status to end otherwise.
func parseFlags(flags *flag.FlagSet, args []string, stderr io.Writer) (status int, ok bool) {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, usage)
		return 0, false
	case err != nil:
		return misuse(stderr, flags.Name()+": "+err.Error()), false
	case flags.NArg() > 0:
		return misuse(stderr, fmt.Sprintf("%s: unexpected argument %q", flags.Name(), flags.Arg(0))), false
	}
	return 0, true
}

// misuse tells what is wrong with the command line, and how it goes.
func misuse(stderr io.Writer, text string) int {
	fmt.Fprintf(stderr, "error: %s\n\n%s", text, usage)
	return 2
}

// fail prints a line for each of the errors that err joins.
func fail(stderr io.Writer, err error) int {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(stderr, "error:", strings.TrimSuffix(line, "\n"))
	}
	return 1
}
