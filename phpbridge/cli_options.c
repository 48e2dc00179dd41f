/* The options of the command line, which are php-cli's. */
#include "cli_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <php_getopt.h>

/* Long options without a short one. */
#define OPTION_INI 1

static const char usage[] =
	"Usage: ephpm php [options] [-f] FILE [--] [args...]\n"
	"       ephpm php [options] -r CODE [--] [args...]\n"
	"       ephpm php [options] [-B CODE] -R CODE [-E CODE] [--] [args...]\n"
	"       ephpm php [options] [-B CODE] -F FILE [-E CODE] [--] [args...]\n"
	"       ephpm php [options] [--] [args...] < FILE\n"
	"\n"
	"  -r CODE          run CODE, without <?php\n"
	"  -f FILE          run FILE\n"
	"  -l               check the syntax of the file only\n"
	"  -d NAME[=VALUE]  set an entry of php.ini\n"
	"  -c FILE          use this php.ini, or the one in this directory\n"
	"  -n               use no php.ini\n"
	"  -i               show what phpinfo() shows\n"
	"  -m               list the modules\n"
	"  -v               show the version\n"
	"  --ini            show which configuration files are used\n"
	"  -B CODE          run CODE before the lines of stdin\n"
	"  -R CODE          run CODE for each line of stdin, which is in $argn\n"
	"  -F FILE          run FILE for each line of stdin\n"
	"  -E CODE          run CODE after the lines of stdin\n"
	"  -s               print the file with syntax highlighting, as HTML\n"
	"  -w               print the file without comments and blanks\n"
	"  -e               compile code for debuggers and profilers\n"
	"  -h               show this\n"
	"\n"
	"  --               what follows is for the script, also with a dash in front\n";

/* clang-format off */
static const opt_struct known[] = {
	{'a', 0, "interactive"},
	{'B', 1, "process-begin"},
	{'C', 0, "no-chdir"},
	{'c', 1, "php-ini"},
	{'d', 1, "define"},
	{'E', 1, "process-end"},
	{'e', 0, "profile-info"},
	{'F', 1, "process-file"},
	{'f', 1, "file"},
	{'h', 0, "help"},
	{'?', 0, "usage"},
	{'i', 0, "info"},
	{'l', 0, "syntax-check"},
	{'m', 0, "modules"},
	{'n', 0, "no-php-ini"},
	{'q', 0, "no-header"},
	{'R', 1, "process-code"},
	{'r', 1, "run"},
	{'S', 1, "server"},
	{'s', 0, "syntax-highlight"},
	{'s', 0, "syntax-highlighting"},
	{'v', 0, "version"},
	{'w', 0, "strip"},
	{'z', 1, "zend-extension"},
	{OPTION_INI, 0, "ini"},
	{'-', 0, NULL},
};
/* clang-format on */

static const char conflict[] = "Either execute direct code, process stdin or use a file.";

/* Adds what -d says as a line of php.ini. A value that is not plainly a word or
 * quoted already is quoted. */
static void define(smart_str *ini, const char *entry)
{
	const char *value = strchr(entry, '=');

	if (!value) {
		smart_str_appendl_ex(ini, entry, strlen(entry), 1);
		smart_str_appendl_ex(ini, "=1\n", 3, 1);
		return;
	}
	value++;
	bool quote = *value && !isalnum((unsigned char)*value) && *value != '"' && *value != '\'';
	smart_str_appendl_ex(ini, entry, value - entry, 1);
	smart_str_appendl_ex(ini, "\"", quote, 1);
	smart_str_appendl_ex(ini, value, strlen(value), 1);
	smart_str_appendl_ex(ini, "\"\n", 2, 1);
	if (!quote) {
		ZSTR_VAL(ini->s)[ZSTR_LEN(ini->s) - 2] = '\n';
	}
}

static const char *set_mode(struct ephpm_cli_options *o, enum ephpm_cli_mode mode)
{
	if (o->mode != EPHPM_CLI_STANDARD && o->mode != mode) {
		return conflict;
	}
	o->mode = mode;
	return NULL;
}

/* Takes the value of an option that may be there once. */
static const char *take(char **to, char *value, const char *twice)
{
	if (*to) {
		return twice;
	}
	*to = value;
	return NULL;
}

static const char *take_code(struct ephpm_cli_options *o, enum ephpm_cli_mode mode, char **to,
	char *value, const char *twice)
{
	const char *error = set_mode(o, mode);

	return error ? error : take(to, value, twice);
}

static const char *take_line_program(struct ephpm_cli_options *o, char **to, char *value)
{
	static const char twice[] = "You can use -R or -F only once.";

	if (o->mode == EPHPM_CLI_LINES && (o->code || o->file)) {
		return twice;
	}
	return take_code(o, EPHPM_CLI_LINES, to, value, twice);
}

/* Takes one option. Returns what is wrong with it, or NULL. */
static const char *take_option(struct ephpm_cli_options *o, int option, char *value)
{
	switch (option) {
	case 'c':
		o->ini_file = value;
		return NULL;
	case 'n':
		o->no_ini = true;
		return NULL;
	case 'd':
		define(&o->ini, value);
		return NULL;
	case 'e':
		o->extended = true;
		return NULL;
	case 'f':
		if (o->mode == EPHPM_CLI_DIRECT || o->mode == EPHPM_CLI_LINES) {
			return conflict;
		}
		return take(&o->file, value, "You can use -f only once.");
	case 'r':
		return take_code(o, EPHPM_CLI_DIRECT, &o->code, value, "You can use -r only once.");
	case 'B':
		return take_code(o, EPHPM_CLI_LINES, &o->begin_code, value, "You can use -B only once.");
	case 'E':
		return take_code(o, EPHPM_CLI_LINES, &o->end_code, value, "You can use -E only once.");
	case 'R':
		return take_line_program(o, &o->code, value);
	case 'F':
		return take_line_program(o, &o->file, value);
	case 'l':
		return set_mode(o, EPHPM_CLI_LINT);
	case 's':
		return set_mode(o, EPHPM_CLI_HIGHLIGHT);
	case 'w':
		return set_mode(o, EPHPM_CLI_STRIP);
	case 'a':
		return "There is no interactive shell here.";
	case 'S':
		return "There is no -S here: use ephpm serve -l ADDR -d DIR.";
	case 'z':
		return "There is no -z here: use -d zend_extension=FILE.";
	default: /* -C and -q: it is so anyway */
		return NULL;
	}
}

/* True for the options that show something, whatever else is said. */
static bool shows(int option, enum ephpm_cli_mode *mode)
{
	switch (option) {
	case 'v':
		*mode = EPHPM_CLI_VERSION;
		return true;
	case 'm':
		*mode = EPHPM_CLI_MODULES;
		return true;
	case 'i':
		*mode = EPHPM_CLI_INFO;
		return true;
	case OPTION_INI:
		*mode = EPHPM_CLI_INI;
		return true;
	default:
		return false;
	}
}

static bool has_script(const struct ephpm_cli_options *o)
{
	return o->mode != EPHPM_CLI_DIRECT && o->mode != EPHPM_CLI_LINES;
}

/* What is left behind the options: a script, unless there is one or "--" says
 * otherwise, and its arguments. The place in front of them gets its name. */
static void take_arguments(struct ephpm_cli_options *o, int argc, char **argv, int next)
{
	if (next < argc && !o->file && has_script(o) && strcmp(argv[next - 1], "--") != 0) {
		o->file = argv[next++];
	}
	if (o->file && !strcmp(o->file, "-")) {
		o->file = NULL;
	}
	o->argc = argc - next + 1;
	o->argv = argv + next - 1;
	o->argv[0] = o->file ? o->file : EPHPM_CLI_STDIN_NAME;
}

bool ephpm_cli_parse(struct ephpm_cli_options *o, int argc, char **argv, int *status)
{
	char *value = NULL;
	int next = 1, option;

	*status = 1;
	while ((option = php_getopt(argc, argv, known, &value, &next, 1, 2)) != -1) {
		if (option == PHP_GETOPT_INVALID_ARG) {
			fputs(usage, stdout);
			return false;
		}
		if (option == 'h' || option == '?') {
			fputs(usage, stdout);
			*status = 0;
			return false;
		}
		if (shows(option, &o->mode)) {
			o->file = NULL;
			o->argc = 1;
			o->argv = argv;
			return true;
		}
		const char *error = take_option(o, option, value);
		if (error) {
			puts(error);
			return false;
		}
	}
	take_arguments(o, argc, argv, next);
	return true;
}
