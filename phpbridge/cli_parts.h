/* What the files of the command line share; each file says what it is for. */
#ifndef EPHPM_CLI_PARTS_H
#define EPHPM_CLI_PARTS_H

#include "call.h"
#include "compat.h"

/* What a program has for a name that is not in a file. */
#define EPHPM_CLI_STDIN_NAME "Standard input code"

enum ephpm_cli_mode {
	EPHPM_CLI_STANDARD,  /* a file, or a program on stdin */
	EPHPM_CLI_DIRECT,    /* -r */
	EPHPM_CLI_LINES,     /* -B, -R, -F, -E: once for each line of stdin */
	EPHPM_CLI_LINT,      /* -l */
	EPHPM_CLI_HIGHLIGHT, /* -s */
	EPHPM_CLI_STRIP,     /* -w */
	EPHPM_CLI_VERSION,   /* -v */
	EPHPM_CLI_MODULES,   /* -m */
	EPHPM_CLI_INFO,      /* -i */
	EPHPM_CLI_INI,       /* --ini */
};

/* What the command line says. The strings live as long as the process. */
struct ephpm_cli_options {
	enum ephpm_cli_mode mode;
	bool extended;                      /* -e: code for debuggers */
	bool no_ini;                        /* -n */
	char *ini_file;                     /* -c */
	smart_str ini;                      /* -d, in the syntax of php.ini; malloc'ed */
	char *file;                         /* the script, or of -F; NULL: stdin */
	char *code, *begin_code, *end_code; /* of -r or -R, -B, -E */
	int argc;
	char **argv;        /* for the script; [0] is its name */
	const char *binary; /* PHP_BINARY */
	char *real_file;    /* file with links resolved, or NULL */
};

/* cli_options.c: reads the command line. False: the process shall end with
 * *status, all was said. */
bool ephpm_cli_parse(struct ephpm_cli_options *o, int argc, char **argv, int *status);

/* cli_sapi.c: starts PHP with these options, which must stay in place. */
bool ephpm_cli_startup(struct ephpm_cli_options *o);

/* cli_sapi.c: defines STDIN, STDOUT and STDERR; returns the first, or NULL. */
php_stream *ephpm_cli_open_streams(void);

/* cli_run.c: opens a script. NULL: it cannot be opened, which was said. */
FILE *ephpm_cli_open(const char *file);

/* cli_run.c: runs one program between the start and the end of a request.
 * script is open, or NULL when there is no file; it is closed. May bail out. */
void ephpm_cli_run(const struct ephpm_cli_options *o, FILE *script);

/* cli_show.c: prints what -v, -m, -i or --ini ask for. */
void ephpm_cli_show(enum ephpm_cli_mode mode);

/* cli_functions.c: functions for PHP code; the table is made at run time. */
const zend_function_entry *ephpm_cli_functions(void);

/* cli_server.c: brings host calls to a server: where is the path of its socket, or
 * why there is none. Both strings live as long as the process. */
void ephpm_cli_server_start(const char *where, const char *site);
bool ephpm_cli_server_call(
	struct ephpm_call *c, uint16_t function, const uint8_t **answer, size_t *len);

/* cli_title.c: takes the memory that ps shows, and returns copies of argv. */
char **ephpm_cli_title_start(int argc, char **argv);
void ephpm_cli_title_set(const char *title, size_t len);
const char *ephpm_cli_title(void);

#endif
