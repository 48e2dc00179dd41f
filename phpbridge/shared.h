/* The worker's side of the shared memory: taking jobs, waiting, and the bytes
 * of a job. See wire.h for the layout. */
#ifndef EPHPM_SHARED_H
#define EPHPM_SHARED_H

#include <stdbool.h>
#include <stddef.h>

#include "wire.h"

/* The shared memory as one process has it mapped. */
struct ephpm_shared {
	struct ephpm_pool *pool;
	struct ephpm_slot *slots;
	struct ephpm_job *jobs;
	uint8_t *areas;
	int doorbell;         /* eventfd of the front's completer */
	uint32_t short_waits; /* for work, in a row: the worker's own count */
};

/* A job in the hands of this worker. */
struct ephpm_work {
	struct ephpm_job *job;
	uint32_t index;
	const uint8_t *request;
	uint8_t *response;
	const uint8_t *answer;
	uint64_t tail;       /* of the response ring; published by ephpm_work_publish */
	uint32_t answers;    /* answers seen */
	uint32_t body_here;  /* bytes of the body in the request area */
	uint32_t body_taken; /* of which PHP has read */
	int64_t body_ahead;  /* bytes of the body that the front still has */
};

/* Maps the pool's memory. False if it is not what this program expects. */
bool ephpm_shared_map(struct ephpm_shared *s, int fd, int doorbell);

/* Waits for the next job of the slot's classes. False: the worker shall end. */
bool ephpm_shared_take(struct ephpm_shared *s, uint32_t slot, uint32_t *turn, struct ephpm_work *w);

/* Appends bytes to the response ring, waiting for room when it is full. */
void ephpm_work_write(struct ephpm_shared *s, struct ephpm_work *w, const void *data, size_t len);

/* Says that the job is through. If the front has decided to kill this worker
 * for it, waits for that end. */
void ephpm_work_done(struct ephpm_work *w, uint32_t slot);

/* Makes what was written visible to the front. */
void ephpm_work_publish(struct ephpm_work *w);

/* Publishes and wakes the front's goroutine if it sleeps. */
void ephpm_work_notify(struct ephpm_shared *s, struct ephpm_work *w);

/* Waits for the front's next answer and returns its length. */
uint32_t ephpm_work_answer(const struct ephpm_shared *s, struct ephpm_work *w);

/* The longest payload that may be posted, in bytes; 0: none may. */
uint32_t ephpm_work_post_max(const struct ephpm_work *w);

/* True if the client has gone. */
bool ephpm_work_aborted(const struct ephpm_work *w);

#endif
