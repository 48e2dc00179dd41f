/* How PHP sees the command line: the SAPI module "cli". */
#include "cli_parts.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sapi.h"
#include "session.h"

static const struct ephpm_cli_options *options;

/* These cannot be set in php.ini, but by -d. */
static const char fixed_ini[] = "html_errors=0\n"
								"register_argc_argv=1\n"
								"implicit_flush=1\n"
								"output_buffering=0\n"
								"max_execution_time=0\n"
								"max_input_time=-1\n";

/* Writes some of it; a descriptor that does not block is waited for. */
static ssize_t write_some(const char *str, size_t len)
{
	struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};
	ssize_t n;

	while ((n = write(STDOUT_FILENO, str, len)) < 0) {
		if (errno == EAGAIN) {
			poll(&out, 1, -1);
		} else if (errno != EINTR) {
			break;
		}
	}
	return n;
}

static size_t cli_ub_write(const char *str, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write_some(str + done, len - done);
		if (n < 0) {
			EG(exit_status) = 255;
			php_handle_aborted_connection();
			break;
		}
		done += (size_t)n;
	}
	return done;
}

static void cli_flush(void *context)
{
	(void)context; /* nothing is buffered here */
}

static int cli_header_handler(
	sapi_header_struct *header, sapi_header_op_enum op, sapi_headers_struct *headers)
{
	(void)header;
	(void)op;
	(void)headers;
	return 0; /* there are none */
}

static int cli_send_headers(sapi_headers_struct *headers)
{
	(void)headers;
	return SAPI_HEADER_SENT_SUCCESSFULLY;
}

static void cli_send_header(sapi_header_struct *header, void *context)
{
	(void)header;
	(void)context;
}

static char *cli_read_cookies(void)
{
	return NULL;
}

static void register_variable(const char *name, const char *value, zval *array)
{
	char *copy = (char *)value; /* a filter may replace it */
	size_t len = strlen(value);

	if (sapi_module.input_filter(PARSE_SERVER, name, &copy, len, &len)) {
		php_register_variable_safe(name, copy, len, array);
	}
}

static void cli_register_variables(zval *array)
{
	const char *file = options->file ? options->file : "";

	php_import_environment_variables(array);
	register_variable("PHP_SELF", options->argv[0], array);
	register_variable("SCRIPT_NAME", options->argv[0], array);
	register_variable("SCRIPT_FILENAME", file, array);
	register_variable("PATH_TRANSLATED", file, array);
	register_variable("DOCUMENT_ROOT", "", array);
}

static void cli_log_message(const char *message, int priority)
{
	(void)priority;
	fprintf(stderr, "%s\n", message);
}

static int cli_module_startup(sapi_module_struct *module)
{
	(void)module;
	return SUCCESS;
}

static int cli_deactivate(void)
{
	return SUCCESS;
}

/* php.ini beats this. */
static void cli_ini_defaults(HashTable *configuration)
{
	zval value;

	ZVAL_NEW_STR(&value, zend_string_init(ZEND_STRL("1"), 1));
	zend_hash_str_update(configuration, ZEND_STRL("display_errors"), &value);
}

static sapi_module_struct cli_sapi = {
	.name = "cli",
	.pretty_name = "Command Line Interface",
	.startup = cli_module_startup,
	.deactivate = cli_deactivate,
	.ub_write = cli_ub_write,
	.flush = cli_flush,
	.header_handler = cli_header_handler,
	.send_headers = cli_send_headers,
	.send_header = cli_send_header,
	.read_cookies = cli_read_cookies,
	.register_server_variables = cli_register_variables,
	.log_message = cli_log_message,
	.ini_defaults = cli_ini_defaults,
	.phpinfo_as_text = 1,
	.php_ini_ignore_cwd = 1,
};

/* libphp has set PHP_BINARY from the name in argv, with links resolved; a
 * script that starts it must come here again. */
static PHP_MINIT_FUNCTION(ephpm_cli)
{
	const int flags = CONST_PERSISTENT;

	zend_hash_str_del(EG(zend_constants), ZEND_STRL("PHP_BINARY"));
	zend_register_stringl_constant(
		ZEND_STRL("PHP_BINARY"), options->binary, strlen(options->binary), flags, module_number);
	zend_register_bool_constant(ZEND_STRL("PHP_CLI_PROCESS_TITLE"), true, flags, module_number);
	ephpm_http_constants(module_number);
	ephpm_session_register();
	return zend_register_functions(NULL, ephpm_kv_functions, NULL, type);
}

static PHP_MINFO_FUNCTION(ephpm_cli)
{
	(void)zend_module;
	php_info_print_table_start();
	php_info_print_table_row(2, "ephpm", "enabled");
	php_info_print_table_end();
}

static zend_module_entry cli_module = {
	STANDARD_MODULE_HEADER,
	.name = "ephpm",
	.module_startup_func = PHP_MINIT(ephpm_cli),
	.info_func = PHP_MINFO(ephpm_cli),
	.version = PHP_VERSION,
	STANDARD_MODULE_PROPERTIES,
};

static char *ini_entries(const smart_str *defined)
{
	smart_str all = {0};

	smart_str_appendl_ex(&all, fixed_ini, sizeof(fixed_ini) - 1, 1);
	if (defined->s) {
		smart_str_append_ex(&all, defined->s, 1);
	}
	smart_str_0(&all);
	return ZSTR_VAL(all.s);
}

bool ephpm_cli_startup(struct ephpm_cli_options *o)
{
	options = o;
	/* Addresses in libphp are known only now; see weak.h. */
	cli_sapi.sapi_error = zend_error;
	cli_sapi.additional_functions = ephpm_cli_functions();
	cli_module.functions = ephpm_ws_functions;
	cli_sapi.php_ini_path_override = o->ini_file;
	cli_sapi.php_ini_ignore = o->no_ini;

	zend_signal_startup();
	sapi_startup(&cli_sapi); /* clears ini_entries */
	cli_sapi.ini_entries = ini_entries(&o->ini);
	return php_module_startup(&cli_sapi, &cli_module) == SUCCESS;
}

static php_stream *open_stream(const char *name, const char *url, const char *mode)
{
	php_stream *stream = php_stream_open_wrapper_ex(url, mode, 0, NULL, NULL);
	zend_constant constant;

	if (!stream) {
		return NULL; /* it was closed when the process started */
	}
	php_stream_to_zval(stream, &constant.value);
	ZEND_CONSTANT_SET_FLAGS(&constant, 0, 0);
	constant.name = zend_string_init(name, strlen(name), 0);
	zend_register_constant(&constant);
	return stream;
}

php_stream *ephpm_cli_open_streams(void)
{
	php_stream *in = open_stream("STDIN", "php://stdin", "rb");

	open_stream("STDOUT", "php://stdout", "wb");
	open_stream("STDERR", "php://stderr", "wb");
	return in;
}
