/* The functions that applications look for under a web server, by the names
 * that other servers gave them; see functions.stub.php for what they promise. */
#include <ctype.h>

#include "sapi.h"
#include "variable.h"

/* clang-format off */
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_finish, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_headers_send, 0, 0, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, status, IS_LONG, 0, "200")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_headers, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_log, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, message, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, level, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, context, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()
/* clang-format on */

static ZEND_FUNCTION(fastcgi_finish_request)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(ephpm_sapi_finish());
}

static ZEND_FUNCTION(headers_send)
{
	zend_long status = 200;

	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(status)
	ZEND_PARSE_PARAMETERS_END();
	if (!ephpm_worker.in_request || SG(headers_sent)) {
		RETURN_LONG(FAILURE);
	}
	if (status >= 100 && status < 200) {
		ephpm_sapi_send_headers(EPHPM_REC_INFORM, status);
		ephpm_record_notify();
		RETURN_LONG(SUCCESS);
	}
	SG(sapi_headers).http_response_code = status;
	RETURN_LONG(sapi_send_headers());
}

/* Turns ACCEPT_LANGUAGE into Accept-Language. */
static void spell_header(char *to, const char *from, size_t len)
{
	bool first = true;

	for (size_t i = 0; i < len; i++) {
		to[i] = from[i] == '_' ? '-' : first ? from[i] : (char)tolower((unsigned char)from[i]);
		first = from[i] == '_';
	}
}

static void add_request_header(zval *array, const struct ephpm_variable *v)
{
	static const char prefix[] = "HTTP_";
	const size_t prefix_len = sizeof(prefix) - 1;
	const char *name = v->name;
	size_t name_len = v->name_len;
	char spelled[256];
	bool known = !strcmp(name, "CONTENT_TYPE") || !strcmp(name, "CONTENT_LENGTH");

	if (known && !v->value_len) {
		return; /* it is always there for CGI, the header was not */
	}
	if (!known) {
		if (name_len <= prefix_len || memcmp(name, prefix, prefix_len) != 0) {
			return;
		}
		name += prefix_len;
		name_len -= prefix_len;
	}
	if (name_len < sizeof(spelled)) {
		spell_header(spelled, name, name_len);
		add_assoc_stringl_ex(array, spelled, name_len, v->value, v->value_len);
	}
}

static ZEND_FUNCTION(getallheaders)
{
	struct ephpm_variable v = {0};

	ZEND_PARSE_PARAMETERS_NONE();
	array_init(return_value);
	while (ephpm_variable_next(&v)) {
		add_request_header(return_value, &v);
	}
}

static ZEND_FUNCTION(apache_response_headers)
{
	zend_llist *headers = &SG(sapi_headers).headers;
	zend_llist_position position;
	sapi_header_struct *h;

	ZEND_PARSE_PARAMETERS_NONE();
	array_init(return_value);
	for (h = zend_llist_get_first_ex(headers, &position); h;
		 h = zend_llist_get_next_ex(headers, &position)) {
		const char *colon = memchr(h->header, ':', h->header_len);
		if (!colon) {
			continue;
		}
		const char *value = colon + 1, *end = h->header + h->header_len;
		while (value < end && *value == ' ') {
			value++;
		}
		add_assoc_stringl_ex(return_value, h->header, colon - h->header, value, end - value);
	}
}

bool ephpm_log_append_context(smart_str *to, zval *context)
{
	php_json_encode(to, context, 0);
	if (!EG(exception) && JSON_G(error_code)) {
		zend_argument_value_error(3, "must hold only values that JSON can hold");
	}
	return !EG(exception);
}

static ZEND_FUNCTION(ephpm_log)
{
	smart_str json = {0};
	zend_string *message;
	zend_long level = 0;
	zval *context = NULL;

	ZEND_PARSE_PARAMETERS_START(1, 3)
		Z_PARAM_STR(message)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(level)
		Z_PARAM_ARRAY(context)
	ZEND_PARSE_PARAMETERS_END();
	if (context && zend_hash_num_elements(Z_ARRVAL_P(context)) > 0) {
		if (!ephpm_log_append_context(&json, context)) {
			smart_str_free(&json);
			RETURN_THROWS();
		}
		smart_str_0(&json);
	}
	if (ephpm_worker.in_request) {
		int32_t slog_level = (int32_t)MAX(MIN(level, 100), -100);
		ephpm_record_note(slog_level, ZSTR_VAL(message), ZSTR_LEN(message), json.s);
	}
	smart_str_free(&json);
}

/* clang-format off */
const zend_function_entry ephpm_http_functions[] = {
	ZEND_FE(fastcgi_finish_request, arginfo_finish)
	ZEND_NAMED_FE(frankenphp_finish_request, zif_fastcgi_finish_request, arginfo_finish)
	ZEND_FE(headers_send, arginfo_headers_send)
	ZEND_FE(getallheaders, arginfo_headers)
	ZEND_NAMED_FE(apache_request_headers, zif_getallheaders, arginfo_headers)
	ZEND_NAMED_FE(frankenphp_request_headers, zif_getallheaders, arginfo_headers)
	ZEND_FE(apache_response_headers, arginfo_headers)
	ZEND_NAMED_FE(frankenphp_response_headers, zif_apache_response_headers, arginfo_headers)
	ZEND_FE(ephpm_log, arginfo_log)
	ZEND_NAMED_FE(frankenphp_log, zif_ephpm_log, arginfo_log)
	ZEND_FE_END
};
/* clang-format on */

void ephpm_http_constants(int module_number)
{
	static const struct {
		const char *name;
		zend_long value;
	} levels[] = {{"DEBUG", -4}, {"INFO", 0}, {"WARN", 4}, {"ERROR", 8}};
	static const char *const prefixes[] = {"EPHPM_LOG_LEVEL_", "FRANKENPHP_LOG_LEVEL_"};
	char name[64];

	for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
		for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
			size_t n = snprintf(name, sizeof(name), "%s%s", prefixes[p], levels[i].name);
			zend_register_long_constant(name, n, levels[i].value, CONST_PERSISTENT, module_number);
		}
	}
}
