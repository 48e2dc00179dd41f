package phpbridge

// #include "wire.h"
import "C"

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A zygote is the process that has started PHP once and forks the workers. It
// ends when its control socket is closed, and the workers end with it.
type zygote struct {
	cmd     *exec.Cmd
	control *net.UnixConn
	waited  chan struct{} // closed when the process has gone
	php     string        // version of the library it loaded
	opcache bool
	uploads *uploads // nil when there is no room for it
}

// A message is one packet on the control socket.
type message struct {
	from       *zygote
	gone       bool // the zygote has ended; there is nothing else
	kind       uint32
	slot       int
	generation uint32
	value      int32
	text       []byte
}

const (
	messageHeader = int(unsafe.Sizeof(C.struct_ephpm_message{}))
	messageMax    = messageHeader + 16<<10
	configMax     = C.EPHPM_CONFIG_MAX
	controlWait   = 5 * time.Second  // a zygote that does not read is broken
	startWait     = 30 * time.Second // for php.ini, extensions and OPcache
)

// startZygote starts PHP and waits until it can fork. What it prints goes to
// stderr.
func startZygote(ctx context.Context, o *Options, m *memory, doorbell, stderr *os.File) (*zygote, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	control, err := fileConn(pair[0])
	if err != nil {
		_ = theirs.Close() // the first error counts
		return nil, fmt.Errorf("control socket: %w", err)
	}
	cmd := zygoteCommand()
	cmd.Env = roleEnvironment(o.User.environ(os.Environ()), "zygote")
	for name, value := range o.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = stderr, stderr
	cmd.ExtraFiles = append([]*os.File{theirs, m.file, doorbell}, o.Stores...)
	m.pool.stores = C.uint32_t(len(o.Stores))
	// Signals for the terminal's process group are the front's.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: o.User.credential()}
	err = cmd.Start()
	_ = theirs.Close() // the zygote has its own copy, and its end must be seen
	if err != nil {
		_ = control.Close() // the first error counts
		return nil, fmt.Errorf("start zygote: %w", err)
	}
	z := &zygote{cmd: cmd, control: control, waited: make(chan struct{})}
	go func() { // ends with the process, which close ends
		_ = cmd.Wait() // how it ended is in the message that comes before
		close(z.waited)
	}()
	hurry := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // it may have gone
	defer hurry()
	if err := z.configure(o); err != nil {
		z.close()
		return nil, err
	}
	return z, nil
}

// under is the command that runs every zygote, and with it the workers: valgrind
// and its options. Empty but in tests, and in a program that was built for them.
var under []string

func zygoteCommand() *exec.Cmd {
	const self = "/proc/self/exe"
	if len(under) > 0 {
		program, _ := os.Readlink(self) // there is none only if nothing can be started
		return exec.Command(under[0], append(under[1:], program)...)
	}
	cmd := exec.Command(self)
	// Room for the names of the workers in ps.
	cmd.Args = []string{"ephpm: zygote" + strings.Repeat(" ", 19)}
	return cmd
}

func fileConn(fd int) (*net.UnixConn, error) {
	file := os.NewFile(uintptr(fd), "control")
	defer file.Close() //nolint:errcheck // FileConn made a copy
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// roleEnvironment names the role that a start of this program shall have, and
// has the loader bring in libphp. The new process removes both.
func roleEnvironment(environ []string, role string) []string {
	preload := ""
	env := make([]string, 0, len(environ)+3)
	for _, e := range environ {
		if value, ok := strings.CutPrefix(e, "LD_PRELOAD="); ok {
			preload = value
			continue
		}
		env = append(env, e)
	}
	libraries := library()
	if preload != "" {
		libraries = preload + ":" + libraries
	}
	return append(env,
		C.EPHPM_ROLE_VARIABLE+"="+role,
		C.EPHPM_PRELOAD_VARIABLE+"="+preload,
		"LD_PRELOAD="+libraries)
}

// configure sends the configuration and waits for PHP to be ready.
func (z *zygote) configure(o *Options) error {
	text := strings.Join([]string{o.sapiName(), o.INIFile, o.iniEntries(), o.envNames(),
		strings.Join(o.DisableFunctions, ","), o.noNewPrivileges(), ""}, "\x00")
	if len(text) > configMax {
		return fmt.Errorf("the ini settings are %d bytes long, at most %d are possible", len(text), configMax)
	}
	if err := z.send(C.EPHPM_MSG_CONFIG, 0, 0, 0, []byte(text), nil); err != nil {
		return err
	}
	if err := z.control.SetReadDeadline(time.Now().Add(startWait)); err != nil {
		return err
	}
	m, err := z.receive()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("PHP did not start within %s", startWait)
	case err != nil:
		return errors.New("PHP ended while it started; its last messages are in the log")
	case m.kind == C.EPHPM_MSG_FAILED:
		return fmt.Errorf("%s (%s)", m.text, libraryAdvice())
	}
	facts := strings.Split(string(m.text), "\x00")
	if m.kind != C.EPHPM_MSG_READY || len(facts) != 3 {
		return fmt.Errorf("the zygote sent message %d instead of READY", m.kind)
	}
	z.php, z.opcache = facts[0], facts[1] == "1"
	base := o.UploadDir
	if base == "" && o.User == nil { // what a process of a user says is not trusted with more than that user's rights
		base = facts[2]
	}
	if base == "" {
		return z.control.SetReadDeadline(time.Time{})
	}
	if z.uploads, err = newUploads(base, o.User); err != nil {
		o.Log.Warn("uploads of killed scripts will stay where they are", "error", err)
	}
	return z.control.SetReadDeadline(time.Time{})
}

// fork asks for a worker in the slot; FORKED or its death answers.
func (z *zygote) fork(slot int, generation uint32, stderr *os.File) error {
	uploads := []byte(z.uploads.open(slot, generation))
	return z.send(C.EPHPM_MSG_FORK, slot, generation, 0, uploads, unix.UnixRights(int(stderr.Fd())))
}

// kill sends a signal to the worker, unless it has gone meanwhile. Only the
// zygote can do so without hitting a stranger with the same process id.
func (z *zygote) kill(slot int, generation uint32, sig syscall.Signal) error {
	return z.send(C.EPHPM_MSG_KILL, slot, generation, int32(sig), nil, nil)
}

// trace asks for the backtrace of the script in a slot, if it still has the job;
// TRACED answers.
func (z *zygote) trace(slot int, generation uint32, job int) error {
	return z.send(C.EPHPM_MSG_TRACE, slot, generation, int32(job), nil, nil)
}

func (z *zygote) send(kind, slot int, generation uint32, value int32, text, rights []byte) error {
	m := C.struct_ephpm_message{
		_type:      C.uint32_t(kind),
		slot:       C.uint32_t(slot),
		generation: C.uint32_t(generation),
		value:      C.int32_t(value),
	}
	packet := append(unsafe.Slice((*byte)(unsafe.Pointer(&m)), messageHeader), text...)
	if err := z.control.SetWriteDeadline(time.Now().Add(controlWait)); err != nil {
		return fmt.Errorf("zygote: %w", err)
	}
	if _, _, err := z.control.WriteMsgUnix(packet, rights, nil); err != nil {
		return fmt.Errorf("zygote: %w", err)
	}
	return nil
}

// receive waits for the next message; io.EOF when the zygote has gone.
func (z *zygote) receive() (message, error) {
	packet := make([]byte, messageMax)
	n, err := z.control.Read(packet)
	if err != nil {
		return message{}, err
	}
	if n < messageHeader {
		return message{}, io.EOF
	}
	m := (*C.struct_ephpm_message)(unsafe.Pointer(&packet[0]))
	return message{
		from:       z,
		kind:       uint32(m._type),
		slot:       int(m.slot),
		generation: uint32(m.generation),
		value:      int32(m.value),
		text:       bytes.Clone(packet[messageHeader:n]),
	}, nil
}

// close ends the zygote and its workers and waits for it.
func (z *zygote) close() {
	_ = z.control.Close()                     // tells it to end
	_ = z.cmd.Process.Signal(syscall.SIGCONT) // which one that is stopped would not hear
	select {
	case <-z.waited:
	case <-time.After(controlWait):
		_ = z.cmd.Process.Kill() // it may have gone just now
		<-z.waited
	}
	z.uploads.close()
}

// noNewPrivileges is "1" if the zygote shall give up the way to any other right.
func (o *Options) noNewPrivileges() string {
	if o.User != nil {
		return "1"
	}
	return ""
}

func (o *Options) sapiName() string {
	if o.SAPIName == "" {
		return "ephpm"
	}
	return o.SAPIName
}

// iniEntries renders Extensions and INI in the syntax of php.ini.
func (o *Options) iniEntries() string {
	var b strings.Builder
	for _, e := range o.Extensions {
		fmt.Fprintf(&b, "extension=%s\n", quoteINI(e))
	}
	for _, e := range o.INI {
		fmt.Fprintf(&b, "%s=%s\n", e.Name, quoteINI(e.Value))
	}
	return b.String()
}

// envNames lists the names of Env, a line each.
func (o *Options) envNames() string {
	names := slices.Sorted(maps.Keys(o.Env))
	return strings.Join(append(names, ""), "\n")
}

// quoteINI quotes a value, unless it is an expression of PHP's constants such
// as "E_ALL & ~E_DEPRECATED", which php.ini evaluates only without quotes.
func quoteINI(value string) string {
	if strings.HasPrefix(value, "E_") && strings.Trim(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789 &|~^()") == "" {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// describe says in words how a worker ended.
func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("signal %d (%s)", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
