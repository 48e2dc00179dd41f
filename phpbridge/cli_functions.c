/* The functions that only the command line has. */
#include "cli_parts.h"

#include <stdio.h>

#include "sapi.h"

/* clang-format off */
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_set_title, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, title, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_get_title, 0, 0, IS_STRING, 1)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_dl, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, extension_filename, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_log, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, message, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, level, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, context, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()
/* clang-format on */

PHP_FUNCTION(dl); /* in libphp, for the SAPIs that offer it */

static ZEND_FUNCTION(cli_set_process_title)
{
	zend_string *title;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(title)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_cli_title_set(ZSTR_VAL(title), ZSTR_LEN(title));
	RETURN_TRUE;
}

static ZEND_FUNCTION(cli_get_process_title)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_STRING(ephpm_cli_title());
}

static const char *level_name(zend_long level)
{
	return level < 0 ? "DEBUG" : level < 4 ? "INFO" : level < 8 ? "WARN" : "ERROR";
}

/* The server's log is where the front writes it; here it is stderr. */
static ZEND_FUNCTION(ephpm_log)
{
	smart_str line = {0};
	zend_string *message;
	zend_long level = 0;
	zval *context = NULL;

	ZEND_PARSE_PARAMETERS_START(1, 3)
		Z_PARAM_STR(message)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(level)
		Z_PARAM_ARRAY(context)
	ZEND_PARSE_PARAMETERS_END();
	smart_str_appends(&line, level_name(level));
	smart_str_appendc(&line, ' ');
	smart_str_append(&line, message);
	if (context && zend_hash_num_elements(Z_ARRVAL_P(context)) > 0) {
		smart_str_appendc(&line, ' ');
		ephpm_log_append_context(&line, context);
	}
	smart_str_appendc(&line, '\n');
	if (!EG(exception)) {
		fwrite(ZSTR_VAL(line.s), 1, ZSTR_LEN(line.s), stderr);
	}
	smart_str_free(&line);
}

const zend_function_entry *ephpm_cli_functions(void)
{
	/* clang-format off */
	static zend_function_entry functions[] = {
		ZEND_FE(cli_set_process_title, arginfo_set_title)
		ZEND_FE(cli_get_process_title, arginfo_get_title)
		ZEND_NAMED_FE(dl, NULL, arginfo_dl)
		ZEND_FE(ephpm_log, arginfo_log)
		ZEND_NAMED_FE(frankenphp_log, zif_ephpm_log, arginfo_log)
		ZEND_FE_END
	};
	/* clang-format on */

	functions[2].handler = ZEND_FN(dl); /* not in the table: see weak.h */
	return functions;
}
