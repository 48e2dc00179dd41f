/* Reading the backtrace of a script in another process. */
#ifndef EPHPM_TRACE_H
#define EPHPM_TRACE_H

#include <stddef.h>
#include <sys/types.h>

/* Writes the backtrace of the script that runs in a child of this process, a
 * line a frame, and returns its length. The child is not stopped: of a script
 * that computes, a frame may be missing or out of date. While PHP begins or ends
 * a request the only line is "{no script}". */
size_t ephpm_trace(pid_t pid, char *text, size_t size);

#endif
