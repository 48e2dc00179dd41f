/* The ephpm_kv_ functions that take any number of keys, fields or values: each may
 * throw halfway, and then what was gathered is freed. */
#include "functions_kvmany.h"

/* Adds a value as a string. False with an exception pending. */
static bool add_text(struct ephpm_call *call, zval *value)
{
	zend_string *text = zval_try_get_string(value);

	if (!text) {
		return false;
	}
	ephpm_call_string(call, text);
	zend_string_release(text);
	return true;
}

/* One text by name and any number more. */
static void call_texts(INTERNAL_FUNCTION_PARAMETERS, uint16_t function, uint32_t least)
{
	struct ephpm_call call = {0};
	zval *texts;
	uint32_t count;

	ZEND_PARSE_PARAMETERS_START(least, -1)
		Z_PARAM_VARIADIC('+', texts, count)
	ZEND_PARSE_PARAMETERS_END();
	for (uint32_t i = 0; i < count; i++) {
		zend_string *text;
		if (!zend_parse_arg_str(&texts[i], &text, false, i + 1)) {
			zend_wrong_parameter_type_error(i + 1, Z_EXPECTED_STRING, &texts[i]);
			smart_str_free(&call.values);
			RETURN_THROWS();
		}
		ephpm_call_string(&call, text);
	}
	ephpm_call_run(&call, function, return_value);
}

ZEND_FUNCTION(ephpm_kv_del)
{
	call_texts(INTERNAL_FUNCTION_PARAM_PASSTHRU, EPHPM_CALL_KV_DEL, 1);
}

ZEND_FUNCTION(ephpm_kv_hdel)
{
	call_texts(INTERNAL_FUNCTION_PARAM_PASSTHRU, EPHPM_CALL_KV_HDEL, 2);
}

ZEND_FUNCTION(ephpm_kv_mget)
{
	struct ephpm_call call = {0};
	HashTable *keys;
	zval *key;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_ARRAY_HT(keys)
	ZEND_PARSE_PARAMETERS_END();
	if (zend_hash_num_elements(keys) > UINT16_MAX) {
		zend_argument_value_error(1, "must have at most 65535 elements");
		RETURN_THROWS();
	}
	ZEND_HASH_FOREACH_VAL(keys, key) {
		ZVAL_DEREF(key);
		if (!add_text(&call, key)) {
			smart_str_free(&call.values);
			RETURN_THROWS();
		}
	}
	ZEND_HASH_FOREACH_END();
	ephpm_call_run(&call, EPHPM_CALL_KV_MGET, return_value);
}

ZEND_FUNCTION(ephpm_kv_mset)
{
	struct ephpm_call call = {0};
	HashTable *values;
	zend_long ttl = 0;
	zend_ulong index;
	zend_string *key;
	zval *value;

	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_ARRAY_HT(values)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(ttl)
	ZEND_PARSE_PARAMETERS_END();
	if (zend_hash_num_elements(values) > UINT16_MAX / 2) {
		zend_argument_value_error(1, "must have at most 32767 elements");
		RETURN_THROWS();
	}
	ephpm_call_int(&call, ttl);
	ZEND_HASH_FOREACH_KEY_VAL(values, index, key, value) {
		char digits[24];
		if (key) {
			ephpm_call_string(&call, key);
		} else {
			int n = snprintf(digits, sizeof(digits), ZEND_LONG_FMT, (zend_long)index);
			ephpm_call_bytes(&call, digits, (size_t)n);
		}
		ZVAL_DEREF(value);
		if (!add_text(&call, value)) {
			smart_str_free(&call.values);
			RETURN_THROWS();
		}
	}
	ZEND_HASH_FOREACH_END();
	ephpm_call_run(&call, EPHPM_CALL_KV_MSET, return_value);
}
