/* Changes of a worker process that outlive the request which made them. */
#ifndef EPHPM_LASTING_H
#define EPHPM_LASTING_H

#include <stdbool.h>
#include <stdint.h>

/* Watches the functions of PHP that make such changes. Once, before the fork. */
void ephpm_lasting_watch(void);

/* Takes down how the worker was born. */
void ephpm_lasting_start(void);

/* Reports whether the process is not as it was born, so that it must not take
 * another request. now is CLOCK_MONOTONIC in ns. */
bool ephpm_lasting_changed(uint64_t now);

#endif
