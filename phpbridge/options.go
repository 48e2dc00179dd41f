package phpbridge

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
)

// Errors of Serve. A worker's death is a *CrashError.
var (
	// ErrBusy means that no worker came free: the backlog was full, or the
	// request waited longer than Options.BacklogWait.
	ErrBusy = errors.New("phpbridge: no free worker")
	// ErrTimeout means that the script ran over Request.Timeout and its worker
	// was killed.
	ErrTimeout = errors.New("phpbridge: script over its time limit")
	// ErrTooLarge means that the request's variables do not fit a job.
	ErrTooLarge = errors.New("phpbridge: request variables too large")
	// ErrClosed is returned after Close began.
	ErrClosed = errors.New("phpbridge: pool is closed")
)

// A CrashError says that the worker died, or broke the protocol and was killed,
// before it had answered.
type CrashError struct {
	Slot   int
	Reason string // "signal 11 (segmentation fault)", "exit status 3", "protocol: …"
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("phpbridge: worker in slot %d died: %s", e.Slot, e.Reason)
}

// Options sizes a pool and configures its PHP.
type Options struct {
	// MinWorkers is how many general workers are kept ready, at least 1.
	MinWorkers int
	// MaxWorkers is how many general workers may run, at least MinWorkers.
	// Equal to MinWorkers the pool is static.
	MaxWorkers int
	// Reserve is how many workers of each class may be forked on top of
	// MaxWorkers while the class waits and all general workers are busy with
	// the other. Zero means a quarter of MaxWorkers, at least 1.
	Reserve int
	// SpawnAfter is how long a request waits before another worker is forked.
	// Zero means 10 milliseconds.
	SpawnAfter time.Duration
	// WorkerIdle ends a worker above MinWorkers that had nothing to do for
	// this long. Zero means 10 seconds.
	WorkerIdle time.Duration
	// Processors is how many the front and the workers have together. With one,
	// neither looks out for the other before it sleeps. Zero means more than one.
	Processors int
	// MaxRequests replaces a worker after this many requests. Zero means never.
	MaxRequests int
	// WorkerMaxMemory replaces a worker whose resident memory is over this many
	// bytes, after the request it runs. It is looked at once a second. Zero
	// means no limit.
	WorkerMaxMemory int64
	// Grace is how long a script over Request.Timeout may take for its end: it
	// gets PHP's fatal error for time limits, so that its shutdown functions
	// run, and is killed when they are not done then. Zero means at once.
	Grace time.Duration
	// SlowRequest logs the backtrace of a script that has run for this long in
	// wall-clock time, without disturbing it. Zero means never.
	SlowRequest time.Duration
	// Backlog is how many requests of a class may wait for a job; one more is
	// ErrBusy. Zero means none may wait.
	Backlog int
	// BacklogWait is how long a request may wait for a worker. Zero means 30
	// seconds.
	BacklogWait time.Duration

	// INIFile replaces the system's php.ini. Empty means the system's.
	INIFile string
	// INI is set after php.ini and conf.d and beats them, in order.
	INI []INI
	// Extensions are loaded at start, by name or path.
	Extensions []string
	// Env is added to the environment of scripts and of what they start:
	// getenv(), $_SERVER, and $_ENV if variables_order has an E.
	Env map[string]string
	// DisableFunctions are functions that scripts do not have, on top of those
	// that disable_functions of php.ini and INI name.
	DisableFunctions []string
	// User is whom the workers run as. Nil means the user of this process.
	User *User
	// UploadDir is where each worker gets a directory of its own for uploads, which
	// is removed with it. Empty means PHP's upload_tmp_dir; with User there are
	// none then. It must be writable for this process, and for no User.
	UploadDir string
	// SAPIName is what PHP_SAPI and php_sapi_name() say. Empty means "ephpm".
	SAPIName string

	// Stores are key-value stores of sites whose memory workers read, open for
	// reading only; Request.Store names one. They are not closed.
	Stores []*os.File

	// StderrRate limits the lines a second that are logged of what one worker
	// prints on stderr; ten times as many may come at once. Zero means no limit.
	StderrRate int
	// Log gets life cycle, crashes and what PHP logs. It must not be nil.
	Log *slog.Logger
}

// INI is one php.ini directive.
type INI struct{ Name, Value string }

// checked fills in defaults and refuses what cannot work.
func (o Options) checked() (Options, error) {
	if o.WorkerIdle == 0 {
		o.WorkerIdle = 10 * time.Second
	}
	if o.Reserve == 0 {
		o.Reserve = max(1, o.MaxWorkers/4)
	}
	if o.SpawnAfter == 0 {
		o.SpawnAfter = 10 * time.Millisecond
	}
	if o.BacklogWait == 0 {
		o.BacklogWait = 30 * time.Second
	}
	switch {
	case o.Log == nil:
		return o, errors.New("phpbridge: Options.Log is nil")
	case o.MinWorkers < 1:
		return o, fmt.Errorf("phpbridge: MinWorkers is %d, at least 1 is needed", o.MinWorkers)
	case o.MaxWorkers < o.MinWorkers:
		return o, fmt.Errorf("phpbridge: MaxWorkers is %d, less than MinWorkers %d", o.MaxWorkers, o.MinWorkers)
	case o.MaxWorkers > MaxWorkers:
		return o, fmt.Errorf("phpbridge: MaxWorkers is %d, at most %d are possible", o.MaxWorkers, MaxWorkers)
	case o.Reserve < 0 || o.Reserve > MaxReserve:
		return o, fmt.Errorf("phpbridge: Reserve is %d, 0 to %d are possible", o.Reserve, MaxReserve)
	case o.WorkerMaxMemory < 0 || o.Grace < 0 || o.SlowRequest < 0:
		return o, errors.New("phpbridge: WorkerMaxMemory, Grace and SlowRequest cannot be negative")
	case o.MaxRequests < 0 || o.Backlog < 0 || o.StderrRate < 0:
		return o, errors.New("phpbridge: MaxRequests, Backlog and StderrRate cannot be negative")
	}
	for name, value := range o.Env {
		if name == "" || strings.ContainsAny(name, "=\n\x00") || strings.Contains(value, "\x00") {
			return o, fmt.Errorf("phpbridge: environment variable %q = %q is impossible", name, value)
		}
	}
	for _, name := range o.DisableFunctions {
		if name == "" || strings.ContainsAny(name, ", \r\n\x00") {
			return o, fmt.Errorf("phpbridge: %q is not the name of a function", name)
		}
	}
	for _, e := range o.INI {
		if strings.ContainsAny(e.Name, "=\"'\r\n\x00[];") || strings.ContainsAny(e.Value, "\r\n\x00") {
			return o, fmt.Errorf("phpbridge: ini entry %q = %q: line breaks and quotes in names are impossible", e.Name, e.Value)
		}
	}
	return o, nil
}

// The largest possible Options.MaxWorkers and Options.Reserve.
const (
	MaxWorkers = 512
	MaxReserve = 128
)
