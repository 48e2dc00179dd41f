/* A worker process: takes one job after the other until it is told to end. */
#ifndef EPHPM_WORKER_H
#define EPHPM_WORKER_H

#include <stdint.h>

#include "shared.h"

/* Runs the worker in a fresh child of the zygote; never returns. uploads is where
 * PHP shall put uploaded files, "" for where it is configured to. */
void ephpm_worker_main(const struct ephpm_shared *shared, uint32_t slot, const char *uploads)
	__attribute__((noreturn));

#endif
