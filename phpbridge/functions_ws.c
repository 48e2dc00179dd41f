/* The ephpm_ws_ functions. Each takes its arguments as Zend
 * demands and hands them to the front, which decides everything else; see
 * functions.stub.php for what they promise. */
#include "sapi.h"

#include "ext/standard/html.h"

#define TEXT(name) ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
#define NULLABLE_TEXT(name) ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, name, IS_STRING, 1, "null")
#define BINARY() ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, binary, _IS_BOOL, 0, "false")
#define USERS() ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, users, _IS_BOOL, 0, "false")
#define OPTIONS() ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, options, IS_ARRAY, 0, "[]")
#define RETURNS(name, required, type) \
	ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(name, 0, required, type, 0)

/* clang-format off */
RETURNS(arginfo_send, 1, _IS_BOOL)
	TEXT(payload)
	BINARY()
ZEND_END_ARG_INFO()

RETURNS(arginfo_connection_send, 2, _IS_BOOL)
	TEXT(connection_id)
	TEXT(payload)
	BINARY()
ZEND_END_ARG_INFO()

RETURNS(arginfo_subscribe, 1, _IS_BOOL)
	TEXT(channel)
	OPTIONS()
ZEND_END_ARG_INFO()

RETURNS(arginfo_connection_subscribe, 2, _IS_BOOL)
	TEXT(connection_id)
	TEXT(channel)
	OPTIONS()
ZEND_END_ARG_INFO()

RETURNS(arginfo_channel, 1, _IS_BOOL)
	TEXT(channel)
ZEND_END_ARG_INFO()

RETURNS(arginfo_connection_channel, 2, _IS_BOOL)
	TEXT(connection_id)
	TEXT(channel)
ZEND_END_ARG_INFO()

RETURNS(arginfo_broadcast, 2, IS_LONG)
	TEXT(channel)
	TEXT(payload)
	BINARY()
	NULLABLE_TEXT(except)
ZEND_END_ARG_INFO()

RETURNS(arginfo_close, 0, _IS_BOOL)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, code, IS_LONG, 0, "1000")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, reason, IS_STRING, 0, "\"\"")
ZEND_END_ARG_INFO()

RETURNS(arginfo_connection_close, 1, _IS_BOOL)
	TEXT(connection_id)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, code, IS_LONG, 0, "1000")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, reason, IS_STRING, 0, "\"\"")
ZEND_END_ARG_INFO()

RETURNS(arginfo_count, 0, IS_LONG)
	NULLABLE_TEXT(channel)
	USERS()
ZEND_END_ARG_INFO()

RETURNS(arginfo_members, 1, IS_ARRAY)
	TEXT(channel)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, limit, IS_LONG, 0, "1000")
	USERS()
ZEND_END_ARG_INFO()
/* clang-format on */

static bool is_utf8(const zend_string *text)
{
	const unsigned char *at = (const unsigned char *)ZSTR_VAL(text);
	size_t len = ZSTR_LEN(text), i = 0;
	zend_result status = SUCCESS;

	while (i < len && status == SUCCESS) {
		if (at[i] < 0x80) {
			i++;
		} else {
			php_next_utf8_char(at, len, &i, &status);
		}
	}
	return status == SUCCESS;
}

/* Whether the front will take a payload, as far as can be known here. */
static bool will_be_taken(const zend_string *payload, bool binary)
{
	return ZSTR_LEN(payload) <= ephpm_record_post_max() && ZSTR_LEN(payload)
		&& (binary || is_utf8(payload));
}

static ZEND_FUNCTION(ephpm_ws_send)
{
	struct ephpm_call call = {0};
	zend_string *payload;
	bool binary = false;

	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_STR(payload)
		Z_PARAM_OPTIONAL
		Z_PARAM_BOOL(binary)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, payload);
	ephpm_call_bool(&call, binary);
	if (will_be_taken(payload, binary)) {
		ephpm_record_post(&call, EPHPM_CALL_WS_SEND);
		smart_str_free(&call.values);
		RETURN_TRUE;
	}
	ephpm_call_run(&call, EPHPM_CALL_WS_SEND, return_value);
}

static ZEND_FUNCTION(ephpm_ws_connection_send)
{
	struct ephpm_call call = {0};
	zend_string *id, *payload;
	bool binary = false;

	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_STR(id)
		Z_PARAM_STR(payload)
		Z_PARAM_OPTIONAL
		Z_PARAM_BOOL(binary)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, id);
	ephpm_call_string(&call, payload);
	ephpm_call_bool(&call, binary);
	ephpm_call_run(&call, EPHPM_CALL_WS_CONNECTION_SEND, return_value);
}

/* Adds options, each as its name and its value in JSON; argument is their number.
 * False with an exception pending, and then the call is freed. */
static bool add_options(struct ephpm_call *call, HashTable *options, uint32_t argument)
{
	zend_ulong index;
	zend_string *name;
	zval *value;

	if (!options) {
		return true;
	}
	if (zend_hash_num_elements(options) > 16) {
		zend_argument_value_error(argument, "must have at most 16 elements");
		smart_str_free(&call->values);
		return false;
	}
	ZEND_HASH_FOREACH_KEY_VAL(options, index, name, value) {
		smart_str json = {0};
		char digits[24] = "";
		bool ok;

		if (name) {
			ephpm_call_string(call, name);
		} else {
			int n = snprintf(digits, sizeof(digits), ZEND_LONG_FMT, (zend_long)index);
			ephpm_call_bytes(call, digits, (size_t)n);
		}
		ok = php_json_encode(&json, value, PHP_JSON_UNESCAPED_SLASHES | PHP_JSON_UNESCAPED_UNICODE)
				== SUCCESS
			&& JSON_G(error_code) == PHP_JSON_ERROR_NONE && !EG(exception) && json.s;
		if (ok) {
			ephpm_call_string(call, json.s);
		} else if (!EG(exception)) {
			zend_argument_value_error(argument, "must have as \"%.*s\" what json_encode() takes",
				name ? (int)MIN(ZSTR_LEN(name), 40) : (int)strlen(digits),
				name ? ZSTR_VAL(name) : digits);
		}
		smart_str_free(&json);
		if (!ok) {
			smart_str_free(&call->values);
			return false;
		}
	}
	ZEND_HASH_FOREACH_END();
	return true;
}

static void call_with_channel(INTERNAL_FUNCTION_PARAMETERS, uint16_t function)
{
	struct ephpm_call call = {0};
	zend_string *channel;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(channel)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, channel);
	ephpm_call_run(&call, function, return_value);
}

static void call_with_connection_and_channel(INTERNAL_FUNCTION_PARAMETERS, uint16_t function)
{
	struct ephpm_call call = {0};
	zend_string *id, *channel;

	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(id)
		Z_PARAM_STR(channel)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, id);
	ephpm_call_string(&call, channel);
	ephpm_call_run(&call, function, return_value);
}

static ZEND_FUNCTION(ephpm_ws_subscribe)
{
	struct ephpm_call call = {0};
	zend_string *channel;
	HashTable *options = NULL;

	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_STR(channel)
		Z_PARAM_OPTIONAL
		Z_PARAM_ARRAY_HT(options)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, channel);
	if (!add_options(&call, options, 2)) {
		RETURN_THROWS();
	}
	ephpm_call_run(&call, EPHPM_CALL_WS_SUBSCRIBE, return_value);
}

static ZEND_FUNCTION(ephpm_ws_unsubscribe)
{
	call_with_channel(INTERNAL_FUNCTION_PARAM_PASSTHRU, EPHPM_CALL_WS_UNSUBSCRIBE);
}

static ZEND_FUNCTION(ephpm_ws_connection_subscribe)
{
	struct ephpm_call call = {0};
	zend_string *id, *channel;
	HashTable *options = NULL;

	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_STR(id)
		Z_PARAM_STR(channel)
		Z_PARAM_OPTIONAL
		Z_PARAM_ARRAY_HT(options)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, id);
	ephpm_call_string(&call, channel);
	if (!add_options(&call, options, 3)) {
		RETURN_THROWS();
	}
	ephpm_call_run(&call, EPHPM_CALL_WS_CONNECTION_SUBSCRIBE, return_value);
}

static ZEND_FUNCTION(ephpm_ws_connection_unsubscribe)
{
	call_with_connection_and_channel(
		INTERNAL_FUNCTION_PARAM_PASSTHRU, EPHPM_CALL_WS_CONNECTION_UNSUBSCRIBE);
}

static ZEND_FUNCTION(ephpm_ws_broadcast)
{
	struct ephpm_call call = {0};
	zend_string *channel, *payload, *except = NULL;
	bool binary = false;

	ZEND_PARSE_PARAMETERS_START(2, 4)
		Z_PARAM_STR(channel)
		Z_PARAM_STR(payload)
		Z_PARAM_OPTIONAL
		Z_PARAM_BOOL(binary)
		Z_PARAM_STR_OR_NULL(except)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, channel);
	ephpm_call_string(&call, payload);
	ephpm_call_bool(&call, binary);
	ephpm_call_string_or_null(&call, except);
	ephpm_call_run(&call, EPHPM_CALL_WS_BROADCAST, return_value);
}

static void finish_close(struct ephpm_call *call, uint16_t function, zend_long code,
	const zend_string *reason, zval *value)
{
	ephpm_call_int(call, code);
	ephpm_call_string(call, reason ? reason : ZSTR_EMPTY_ALLOC());
	ephpm_call_run(call, function, value);
}

static ZEND_FUNCTION(ephpm_ws_close)
{
	struct ephpm_call call = {0};
	zend_long code = 1000;
	zend_string *reason = NULL;

	ZEND_PARSE_PARAMETERS_START(0, 2)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(code)
		Z_PARAM_STR(reason)
	ZEND_PARSE_PARAMETERS_END();
	finish_close(&call, EPHPM_CALL_WS_CLOSE, code, reason, return_value);
}

static ZEND_FUNCTION(ephpm_ws_connection_close)
{
	struct ephpm_call call = {0};
	zend_long code = 1000;
	zend_string *id, *reason = NULL;

	ZEND_PARSE_PARAMETERS_START(1, 3)
		Z_PARAM_STR(id)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(code)
		Z_PARAM_STR(reason)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, id);
	finish_close(&call, EPHPM_CALL_WS_CONNECTION_CLOSE, code, reason, return_value);
}

static ZEND_FUNCTION(ephpm_ws_count)
{
	struct ephpm_call call = {0};
	zend_string *channel = NULL;
	bool users = false;

	ZEND_PARSE_PARAMETERS_START(0, 2)
		Z_PARAM_OPTIONAL
		Z_PARAM_STR_OR_NULL(channel)
		Z_PARAM_BOOL(users)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string_or_null(&call, channel);
	ephpm_call_bool(&call, users);
	ephpm_call_run(&call, EPHPM_CALL_WS_COUNT, return_value);
}

/* Puts what a JSON text means in its place. What is in it was encoded with a depth of
 * at most PHP_JSON_PARSER_DEFAULT_DEPTH, and is in a list of objects now. */
static void decode(zval *text)
{
	zval value;

	ZVAL_NULL(&value);
	php_json_decode_ex(&value, Z_STRVAL_P(text), Z_STRLEN_P(text), PHP_JSON_OBJECT_AS_ARRAY,
		PHP_JSON_PARSER_DEFAULT_DEPTH + 2);
	zval_ptr_dtor(text);
	ZVAL_COPY_VALUE(text, &value);
}

static ZEND_FUNCTION(ephpm_ws_members)
{
	struct ephpm_call call = {0};
	zend_string *channel;
	zend_long limit = 1000;
	bool users = false;

	ZEND_PARSE_PARAMETERS_START(1, 3)
		Z_PARAM_STR(channel)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(limit)
		Z_PARAM_BOOL(users)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, channel);
	ephpm_call_int(&call, limit);
	ephpm_call_bool(&call, users);
	ephpm_call_run(&call, EPHPM_CALL_WS_MEMBERS, return_value);
	if (users && Z_TYPE_P(return_value) == IS_STRING) {
		decode(return_value);
	}
}

/* clang-format off */
const zend_function_entry ephpm_ws_functions[] = {
	ZEND_FE(ephpm_ws_send, arginfo_send)
	ZEND_FE(ephpm_ws_connection_send, arginfo_connection_send)
	ZEND_FE(ephpm_ws_subscribe, arginfo_subscribe)
	ZEND_FE(ephpm_ws_connection_subscribe, arginfo_connection_subscribe)
	ZEND_FE(ephpm_ws_unsubscribe, arginfo_channel)
	ZEND_FE(ephpm_ws_connection_unsubscribe, arginfo_connection_channel)
	ZEND_FE(ephpm_ws_broadcast, arginfo_broadcast)
	ZEND_FE(ephpm_ws_close, arginfo_close)
	ZEND_FE(ephpm_ws_connection_close, arginfo_connection_close)
	ZEND_FE(ephpm_ws_count, arginfo_count)
	ZEND_FE(ephpm_ws_members, arginfo_members)
	ZEND_FE_END
};
/* clang-format on */
