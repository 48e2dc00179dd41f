/* Temporary files of a worker that is about to be killed. */
#ifndef EPHPM_LEFTOVER_H
#define EPHPM_LEFTOVER_H

#include <sys/types.h>

/* Removes the files that PHP would remove itself when it closes them: those of
 * tmpfile() and php://temp that a process has open. It must still run, and be a
 * child of this process that nobody has waited for. */
void ephpm_leftover_remove(pid_t pid);

#endif
