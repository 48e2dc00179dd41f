// Package phpbridge runs PHP scripts for the front, in processes that may hang,
// crash or be killed at any moment without costing more than the request they
// run. Start with Pool: New starts PHP, Serve runs one script, Close ends all.
//
// # Three roles of one program
//
// The front is the Go process that imports this package. It starts its own
// binary again with a role in the environment; a C constructor (role.c) sees
// it before the Go runtime starts and becomes the zygote (zygote.c), which starts PHP once
// and forks. Its children are the workers (worker.c). Only the zygote loads
// libphp (weak.h): front and tests run without it. The same way the program
// becomes PHP's command line (CLICommand, cli.c), which has nothing to do with
// the rest.
//
//	front ── control socket ──▶ zygote          fork into slot 3 · slot 3 died
//	  ║                           │ fork
//	  ╚═ shared memory ═══════▶ workers         requests and answers
//
// # One request
//
//  1. Serve takes a job, a piece of the shared memory (backlog.go), or waits
//     for one in the order of arrival.
//  2. The exchange (exchange.go) writes the CGI variables and the start of the
//     body into it, and submit appends it to the queue of its class and wakes a
//     worker if one sleeps (pool.go, memory.go).
//  3. A worker claims the job by a compare-and-swap of its state (shared.c) and
//     runs the script (script.c) through PHP's SAPI (sapi.c).
//  4. What the script does comes back as records in a ring (record.c): headers,
//     output, flush, a question for more of the body, a host call, a line for
//     the log. The decoder (record.go) trusts none of it. The exchange acts on
//     each on the goroutine of Serve; host calls go to the request's Host
//     (call.go, functions_ws.c, functions_http.c).
//  5. END comes after PHP's request shutdown, so destructors and sessions are
//     done when the answer is complete.
//
// A sleeping worker is woken by a futex; the front by one eventfd for all jobs
// (completer.go), and only if it sleeps.
//
// # What can go wrong
//
// A worker that dies is seen by the zygote, which tells the front (manage.go,
// slot.go): the job it held is failed with a CrashError, another worker is
// forked, and whatever the dead one was about to wake is woken. A job over its
// time (limit.go) is killed by its state first, so that exactly that request is
// hit. A worker that writes nonsense is killed. A zygote that ends is replaced.
// OPcache is emptied when no worker looks into it (opcache_empty.c).
//
// wire.h is the one list of layouts and numbers that both languages compile.
package phpbridge
