/* The command line from start to end. The process began as the front's program;
 * it has become PHP before the Go runtime started, and ends here. */
#include "cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "cli_parts.h"

static struct ephpm_cli_options options;

/* The Go runtime itself leaves SIGHUP and SIGINT ignored. */
static const int signals[] = {SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))
static bool ignored[SIGNALS];

void ephpm_cli_note_signals(void)
{
	struct sigaction action;

	for (size_t i = 0; i < SIGNALS; i++) {
		ignored[i] = !sigaction(signals[i], NULL, &action) && action.sa_handler == SIG_IGN;
	}
}

int ephpm_cli_restore_signals(void)
{
	int n = 0;

	for (size_t i = 0; i < SIGNALS; i++) {
		if (ignored[i]) {
			signal(signals[i], SIG_IGN);
			n++;
		}
	}
	return n;
}

/* The name that ps -o comm and pgrep show: php or ephpm, not "exe". */
static void name_process(const char *called)
{
	const char *slash = strrchr(called, '/');
	const char *base = slash ? slash + 1 : called;
	char name[16];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, " "), base);
	prctl(PR_SET_NAME, name, 0, 0, 0);
}

/* What the script finds about itself before its first line runs. */
static void fill_request_info(void)
{
	SG(request_info).argc = options.argc;
	SG(request_info).argv = options.argv;
	SG(request_info).path_translated = options.real_file ? options.real_file : options.argv[0];
	SG(options) |= SAPI_OPTION_NO_CHDIR; /* the working directory is the user's */
	if (options.extended) {
		CG(compiler_options) |= ZEND_COMPILE_EXTENDED_INFO;
	}
}

/* One request, from start-up to shutdown. */
static void serve(FILE *script)
{
	fill_request_info();
	zend_first_try
	{
		if (php_request_startup() == FAILURE) {
			fprintf(stderr, "error: PHP could not start a request\n");
			exit(1);
		}
		PG(during_request_startup) = 0;
		zend_is_auto_global_str(ZEND_STRL("_SERVER"));
		ephpm_cli_run(&options, script);
	}
	zend_end_try();
	php_request_shutdown(NULL);
}

void ephpm_cli_main(int argc, char **argv, const struct ephpm_cli_place *place)
{
	FILE *script = NULL;
	int status;

	if (!php_module_startup) {
		fprintf(stderr,
			"error: the PHP library " EPHPM_LIBPHP
			" cannot be loaded (Debian: apt-get install lib" EPHPM_PHP_NAME "-embed)\n");
		exit(1);
	}
	name_process(argv[0]);
	/* A closed pipe is an error that scripts see, as under php-cli. */
	signal(SIGPIPE, SIG_IGN);
	options.binary = place->binary;
	ephpm_cli_server_start(place->server, place->site);
	argv = ephpm_cli_title_start(argc, argv);
	if (!ephpm_cli_parse(&options, argc, argv, &status)) {
		exit(status);
	}
	if (options.file) {
		script = ephpm_cli_open(options.file);
		if (!script) {
			exit(1);
		}
		options.real_file = realpath(options.file, NULL);
	}
	if (!ephpm_cli_startup(&options)) {
		exit(1); /* PHP has said why */
	}
	serve(script);
	status = EG(exit_status);
	php_module_shutdown();
	sapi_shutdown();
	exit(status);
}
