package phpbridge

import (
	"encoding/binary"
	"io"
	"iter"
	"time"
)

// A Class says which share of the pool a request draws on, so that a flood of
// one kind cannot starve the other.
type Class uint8

// The classes of work.
const (
	Page  Class = iota // an HTTP request
	Event              // a WebSocket event
	classes
)

// String returns the class's name as used in metric labels.
func (c Class) String() string {
	if c == Event {
		return "event"
	}
	return "page"
}

// A Request is one run of one script. The pool only reads it.
type Request struct {
	// ID names the request in logs.
	ID string
	// Site is the site's name in logs.
	Site string
	// Method and URI are what Pool.Running shows; nothing else depends on them.
	Method, URI string
	// Class chooses the share of the pool.
	Class Class
	// Script is the absolute path of the PHP file. It must exist when the
	// worker opens it; a file that has gone is PHP's own fatal error.
	Script string
	// Vars is the CGI environment, $_SERVER (RFC 3875 §4.1). The worker takes
	// REQUEST_METHOD, QUERY_STRING, REQUEST_URI, CONTENT_TYPE, HTTP_COOKIE and
	// HTTP_AUTHORIZATION from it.
	Vars Vars
	// Env are environment variables for this request alone, which scripts find in
	// $_SERVER and by getenv() as those of Options.Env, and programs that they
	// start. Name and value as in Vars.
	Env Vars
	// INI are ini settings for this request alone, which php.ini may set: with
	// those that PHP reads only at its start nothing happens.
	INI Vars
	// Tenant tells the requests apart of those who share the pool and must not
	// see one another's uploads: each has directories of its own for them, which
	// open_basedir of INI grants on top. Zero means that nobody shares it.
	Tenant uint32
	// Body is what php://input reads: exactly BodyLen bytes, from memory or a
	// file. It must not wait for the network: a worker is held meanwhile.
	Body io.Reader
	// BodyLen is the length of Body in bytes.
	BodyLen int64
	// Host answers the script's host calls. With nil every one of them throws.
	Host Host
	// Posts lets the script send to the socket of its event without waiting for
	// Host. Nil: it always waits.
	Posts *Posts
	// Store is 1 + the index in Options.Stores of the store that ephpm_kv_get reads
	// without asking Host. Zero means that Host is asked.
	Store int
	// Wait limits how long the request waits for a worker, after which Serve
	// returns ErrBusy. Zero means Options.BacklogWait.
	Wait time.Duration
	// Timeout limits the run in wall-clock time, counted from the moment a
	// worker took the request. Over it the worker is killed and Serve returns
	// ErrTimeout. Zero means no limit.
	Timeout time.Duration
}

// A Result tells how a request was run.
type Result struct {
	Queued time.Duration // from Serve to the moment a worker took it
	Ran    time.Duration // in the worker, to the end of request shutdown
	Fatal  bool          // PHP ended the script by a fatal error, whatever the status
}

// Vars is a list of names and values in the form that the worker reads: one
// slice, cheap to keep for the life of a socket and to extend by append.
type Vars []byte

// varHeader is the two lengths in front of a name and its value; both strings
// are followed by a NUL for C that the lengths leave out.
const varHeader = 2 + 4

// Add appends a variable. A name of more than 64 KiB - 1 is left out: no CGI
// name is that long, and the front's header limit is smaller.
func (v Vars) Add(name, value string) Vars {
	if len(name) > 1<<16-1 {
		return v
	}
	v = binary.LittleEndian.AppendUint16(v, uint16(len(name)))
	v = binary.LittleEndian.AppendUint32(v, uint32(len(value)))
	v = append(v, name...)
	v = append(v, 0)
	v = append(v, value...)
	return append(v, 0)
}

// All returns the variables in order.
func (v Vars) All() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for rest := v; len(rest) >= varHeader; {
			n := int(binary.LittleEndian.Uint16(rest))
			m := int(binary.LittleEndian.Uint32(rest[2:]))
			rest = rest[varHeader:]
			if !yield(string(rest[:n]), string(rest[n+1:n+1+m])) {
				return
			}
			rest = rest[n+m+2:]
		}
	}
}
