#include "limit.h"

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
};

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

/* The front asks for the end of the script. It may have asked just as the script
 * ended: then the job says nothing of it. */
static void on_stop(int number)
{
	(void)number;
	if (ephpm_worker.in_request && ephpm_worker.work.job->stop) {
		EG(timeout_seconds) = ephpm_worker.work.job->seconds;
		kill(getpid(), SIGPROF);
	}
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

	sigaction(SIGRTMAX - EPHPM_SIGNAL_STOP, &action, NULL);
	start_ticks();
}

void ephpm_limit_begin(void)
{
	if (limit.entry) {
		limit.ticks = 0;
		EG(timeout_seconds) = 0;
	}
}
