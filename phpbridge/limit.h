/* Time limits: max_execution_time without a system call per request, and the
 * end that the front asks for. */
#ifndef EPHPM_LIMIT_H
#define EPHPM_LIMIT_H

/* Makes this worker ready for both. */
void ephpm_limit_start(void);

/* Counts from zero for a new request, and keeps PHP from setting its timers. A
 * script that calls set_time_limit() gets PHP's own timer. */
void ephpm_limit_begin(void);

#endif
