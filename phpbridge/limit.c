#include "limit.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "record.h"

/* PHP sets and clears a timer of the CPU time in every request, at about a
 * fifth of the cost of a small one. Here one timer ticks with each second of
 * CPU time that the worker uses, whatever it runs, and the ticks are counted
 * within a request. The limit is PHP's, its end is PHP's; it comes up to one
 * second later than asked for. */
struct limit {
	zend_ini_entry *entry; /* max_execution_time */
	zend_long seconds;     /* its value outside of requests; 0: none */
	volatile sig_atomic_t ticks;
	volatile sig_atomic_t told; /* the front has asked for the end of this request */
	timer_t nudge;              /* see nudge_again */
	bool nudges;                /* there is such a timer */
};

/* Between two nudges, in nanoseconds. */
#define NUDGE_EVERY 20000000

static struct limit limit;

static void on_tick(int number)
{
	(void)number;
	if (!ephpm_worker.in_request || !limit.seconds || limit.entry->modified) {
		return;
	}
	if (++limit.ticks > limit.seconds) {
		limit.ticks = 0;
		EG(timeout_seconds) = limit.seconds; /* for PHP's message */
		kill(getpid(), SIGPROF);             /* what PHP's timer does */
	}
}

/* PHP looks at its time limit when it comes back from a function. The signal ends a
 * system call, but it may have come just before one, and reads are tried once more:
 * so another follows, until PHP has looked. */
static void nudge_again(void)
{
	const struct itimerspec soon = {{0, 0}, {0, NUDGE_EVERY}};

	if (limit.nudges) {
		timer_settime(limit.nudge, 0, &soon, NULL);
	}
}

/* Nothing of the last request's end may interrupt this one. */
static void stop_nudges(void)
{
	const struct itimerspec never = {{0, 0}, {0, 0}};

	if (limit.told && limit.nudges) {
		timer_settime(limit.nudge, 0, &never, NULL);
	}
	limit.told = 0;
}

/* The front asks for the end of the script. It may have asked just as the script
 * ended: then the job says nothing of it. */
static void on_stop(int number)
{
	int before = errno;

	(void)number;
	if (!ephpm_worker.in_request || !ephpm_worker.work.job->stop) {
		return;
	}
	if (!limit.told) {
		limit.told = 1;
		EG(timeout_seconds) = ephpm_worker.work.job->seconds;
		kill(getpid(), SIGPROF);
		nudge_again();
	} else if (zend_atomic_bool_load_ex(&EG(timed_out))) {
		nudge_again();
	}
	errno = before;
}

static void start_ticks(void)
{
	const int number = SIGRTMAX - EPHPM_SIGNAL_TICK;
	struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
	struct itimerspec second = {{1, 0}, {1, 0}};
	timer_t timer;

	limit.entry = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("max_execution_time"));
	if (!limit.entry || sigaction(number, &action, NULL) != 0
		|| timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) != 0) {
		limit.entry = NULL; /* PHP's timers do it then */
		return;
	}
	limit.seconds = EG(timeout_seconds);
	timer_settime(timer, 0, &second, NULL);
	/* The body is complete before the worker gets the request, so there is no
	 * input to wait for and no second limit. */
	PG(max_input_time) = -1;
}

void ephpm_limit_start(void)
{
	struct sigaction action = {.sa_handler = on_stop}; /* no SA_RESTART: it shall interrupt */

	const int number = SIGRTMAX - EPHPM_SIGNAL_STOP;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};

	sigaction(number, &action, NULL);
	limit.nudges = timer_create(CLOCK_MONOTONIC, &event, &limit.nudge) == 0;
	start_ticks();
}

void ephpm_limit_begin(void)
{
	stop_nudges();
	if (limit.entry) {
		limit.ticks = 0;
		EG(timeout_seconds) = 0;
	}
}
