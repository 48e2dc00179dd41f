/* The programs of the command line: a file, a string, or a string for each line
 * of stdin. */
#include "cli_parts.h"

#include <stdio.h>

#include <ext/standard/basic_functions.h>
#include <zend_highlight.h>
#include <zend_language_scanner.h>

FILE *ephpm_cli_open(const char *file)
{
	FILE *script = fopen(file, "rbe");

	if (!script) {
		fprintf(EPHPM_COMPAT_CLI_COMPLAINTS, "Could not open input file: %s\n", file);
		fflush(EPHPM_COMPAT_CLI_COMPLAINTS);
	}
	return script;
}

static void run_code(char *code, const char *name)
{
	if (code) {
		zend_eval_string_ex(code, NULL, name, true);
	}
}

/* Sets what the program for a line finds: $argn, the line, and $argi. */
static void set_line(const char *line, size_t len, zend_long number)
{
	zval value;

	while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r')) {
		len--;
	}
	ZVAL_STRINGL(&value, line, len);
	zend_hash_str_update(&EG(symbol_table), ZEND_STRL("argn"), &value);
	ZVAL_LONG(&value, number);
	zend_hash_str_update(&EG(symbol_table), ZEND_STRL("argi"), &value);
}

/* The handle keeps the stream and closes it when it is destroyed. */
static void run_file(const char *name, FILE *script)
{
	zend_file_handle file;

	zend_stream_init_fp(&file, script, name);
	file.primary_script = true;
	CG(skip_shebang) = true;
	php_execute_script(&file);
	zend_destroy_file_handle(&file);
}

static void run_lines(const struct ephpm_cli_options *o, FILE *script)
{
	php_stream *in = ephpm_cli_open_streams();
	zend_long number = 0;
	size_t len;
	char *line;

	run_code(o->begin_code, "Command line begin code");
	while (in && EG(exit_status) == SUCCESS && (line = php_stream_get_line(in, NULL, 0, &len))) {
		set_line(line, len, ++number);
		efree(line);
		run_code(o->code, "Command line run code");
		if (o->file) {
			script = script ? script : ephpm_cli_open(o->file);
			if (script) {
				run_file(o->file, script);
			}
			script = NULL;
		}
	}
	run_code(o->end_code, "Command line end code");
}

static void check(zend_file_handle *file)
{
	if (php_lint_script(file) == SUCCESS) {
		php_printf("No syntax errors detected in %s\n", ZSTR_VAL(file->filename));
	} else {
		php_printf("Errors parsing %s\n", ZSTR_VAL(file->filename));
		EG(exit_status) = 255;
	}
}

static void highlight(void)
{
	zend_syntax_highlighter_ini colours;

	php_get_highlight_struct(&colours);
	zend_highlight(&colours);
}

/* Does something with the text of a script without running it. */
static void read_file(enum ephpm_cli_mode mode, const char *name, FILE *script)
{
	zend_file_handle file;

	zend_stream_init_fp(&file, script, name);
	file.primary_script = true;
	CG(skip_shebang) = true;
	if (mode == EPHPM_CLI_LINT) {
		check(&file);
	} else if (open_file_for_scanning(&file) == SUCCESS) {
		if (mode == EPHPM_CLI_STRIP) {
			zend_strip();
		} else {
			highlight();
		}
	}
	zend_destroy_file_handle(&file);
}

void ephpm_cli_run(const struct ephpm_cli_options *o, FILE *script)
{
	switch (o->mode) {
	case EPHPM_CLI_STANDARD:
		if (script || EPHPM_COMPAT_CLI_ALWAYS_STREAMS) {
			ephpm_cli_open_streams();
		}
		run_file(o->argv[0], script ? script : stdin);
		break;
	case EPHPM_CLI_DIRECT:
		ephpm_cli_open_streams();
		run_code(o->code, "Command line code");
		break;
	case EPHPM_CLI_LINES:
		run_lines(o, script);
		break;
	case EPHPM_CLI_LINT:
	case EPHPM_CLI_HIGHLIGHT:
	case EPHPM_CLI_STRIP:
		read_file(o->mode, o->argv[0], script ? script : stdin);
		break;
	default:
		ephpm_cli_show(o->mode);
	}
}
