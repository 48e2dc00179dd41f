/* Empties OPcache only when nobody can be hurt by it. */
#ifndef EPHPM_OPCACHE_EMPTY_H
#define EPHPM_OPCACHE_EMPTY_H

#include <stdbool.h>
#include <stdint.h>

/* What became of an attempt to empty the cache. */
enum ephpm_opcache_result {
	EPHPM_OPCACHE_USED,    /* scripts still use it: try again */
	EPHPM_OPCACHE_EMPTIED, /* it was emptied, if that was still to be done */
	EPHPM_OPCACHE_STUCK,   /* they use it for longer than they may: only PHP anew helps */
};

/* Takes over from OPcache when it is emptied. Once, in the zygote, when PHP has
 * started; without OPcache it does nothing. */
void ephpm_opcache_start(void);

/* In the zygote: a descriptor that is readable when a worker wants the cache
 * emptied, or -1. */
int ephpm_opcache_bell(void);

/* In the zygote: in how many ms the next attempt is due, or -1. */
int ephpm_opcache_delay(void);

/* In the zygote: tries to empty the cache, which takes a few ms at most. */
enum ephpm_opcache_result ephpm_opcache_empty(void);

/* In the zygote: the slot has no worker any more, or not yet one. */
void ephpm_opcache_forget(uint32_t slot);

/* In a worker, around each request: enter before PHP's start-up of it, begun right
 * after that, leave when it is shut down. */
void ephpm_opcache_enter(uint32_t slot);
void ephpm_opcache_begun(void);
void ephpm_opcache_leave(void);

#endif
