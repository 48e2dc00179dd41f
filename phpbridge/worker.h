/* A worker process: takes one job after the other until it is told to end. */
#ifndef EPHPM_WORKER_H
#define EPHPM_WORKER_H

#include <stdint.h>

#include "shared.h"

/* Runs the worker in a fresh child of the zygote; never returns. */
void ephpm_worker_main(const struct ephpm_shared *shared, uint32_t slot) __attribute__((noreturn));

#endif
