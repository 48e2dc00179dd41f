/* What a process of this binary becomes: the front, unless its environment says
 * otherwise. It is decided before the Go runtime starts, and the other roles never
 * start it. */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "cli.h"
#include "wire.h"
#include "zygote.h"

/* The variables are removed so that no program that PHP starts inherits them. */
static void restore_environment(void)
{
	const char *preload = getenv(EPHPM_PRELOAD_VARIABLE);

	if (preload && *preload) {
		setenv("LD_PRELOAD", preload, 1);
	} else {
		unsetenv("LD_PRELOAD");
	}
	unsetenv(EPHPM_PRELOAD_VARIABLE);
	unsetenv(EPHPM_ROLE_VARIABLE);
}

/* Returns a copy of a variable and removes it. */
static const char *take_variable(const char *name)
{
	const char *value = getenv(name);

	value = strdup(value ? value : "");
	unsetenv(name);
	return value;
}

/*
 * How late the kernel may be when a thread sleeps for a time (prctl(2)), in
 * nanoseconds. Go's runtime has a thread that looks after the others every 20
 * microseconds; more often than once a millisecond, it takes a tenth of the front's
 * time, and has more threads run than there are processors. Timers of Go are late by
 * as much. Scripts keep what the kernel gives by default.
 */
#define FRONT_TIMER_SLACK 1000000UL
#define KERNEL_TIMER_SLACK 50000UL

__attribute__((constructor)) static void choose_role(int argc, char **argv)
{
	const char *role = getenv(EPHPM_ROLE_VARIABLE);

	prctl(PR_SET_TIMERSLACK, role ? KERNEL_TIMER_SLACK : FRONT_TIMER_SLACK, 0, 0, 0);
	if (role && !strcmp(role, "zygote")) {
		restore_environment();
		ephpm_zygote_main(argc, argv);
	} else if (role && !strcmp(role, "cli")) {
		struct ephpm_cli_place place = {
			.binary = take_variable(EPHPM_CLI_BINARY_VARIABLE),
			.server = take_variable(EPHPM_CLI_SERVER_VARIABLE),
			.site = take_variable(EPHPM_CLI_SITE_VARIABLE),
		};
		restore_environment();
		ephpm_cli_main(argc, argv, &place);
	}
	ephpm_cli_note_signals();
}
