/* The ephpm_kv_ functions; those that take any number of keys or values are in
 * functions_kvmany.c. Reads are answered from the store's memory where that is
 * possible, everything else by the front; see functions.stub.php for what they
 * promise. */
#include "functions_kv_arginfo.h"
#include "functions_kvmany.h"
#include "kvread.h"
#include "sapi.h"

/* The functions of one shape: what they take. */
static void call_key(INTERNAL_FUNCTION_PARAMETERS, uint16_t function)
{
	struct ephpm_call call = {0};
	zend_string *key;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(key)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, key);
	ephpm_call_run(&call, function, return_value);
}

static void call_key_and_text(INTERNAL_FUNCTION_PARAMETERS, uint16_t function)
{
	struct ephpm_call call = {0};
	zend_string *key, *text;

	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(key)
		Z_PARAM_STR(text)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, key);
	ephpm_call_string(&call, text);
	ephpm_call_run(&call, function, return_value);
}

static void call_key_and_int(INTERNAL_FUNCTION_PARAMETERS, uint16_t function)
{
	struct ephpm_call call = {0};
	zend_string *key;
	zend_long n;

	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(key)
		Z_PARAM_LONG(n)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, key);
	ephpm_call_int(&call, n);
	ephpm_call_run(&call, function, return_value);
}

static void call_set(INTERNAL_FUNCTION_PARAMETERS, uint16_t function)
{
	struct ephpm_call call = {0};
	zend_string *key, *value;
	zend_long ttl = 0;

	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_STR(key)
		Z_PARAM_STR(value)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(ttl)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, key);
	ephpm_call_string(&call, value);
	ephpm_call_int(&call, ttl);
	ephpm_call_run(&call, function, return_value);
}

/* Reads from the store's memory; an absent key is null. False: ask the front. */
static bool read_shared(const zend_string *key, zval *value)
{
	zend_string *found = NULL;

	switch (ephpm_kv_read(key, &found)) {
	case EPHPM_KV_FOUND:
		ZVAL_STR(value, found);
		return true;
	case EPHPM_KV_ABSENT:
		ZVAL_NULL(value);
		return true;
	case EPHPM_KV_HASH:
		zend_throw_exception_ex(
			zend_ce_exception, 0, "%s(): the key holds a hash", get_active_function_name());
		return true;
	default:
		return false;
	}
}

static ZEND_FUNCTION(ephpm_kv_get)
{
	struct ephpm_call call = {0};
	zend_string *key;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(key)
	ZEND_PARSE_PARAMETERS_END();
	if (!read_shared(key, return_value)) {
		ephpm_call_string(&call, key);
		ephpm_call_run(&call, EPHPM_CALL_KV_GET, return_value);
	}
}

#define SHAPED(name, shape, function) \
	static ZEND_FUNCTION(name) \
	{ \
		shape(INTERNAL_FUNCTION_PARAM_PASSTHRU, EPHPM_CALL_##function); \
	}

SHAPED(ephpm_kv_set, call_set, KV_SET)
SHAPED(ephpm_kv_setnx, call_set, KV_SETNX)
SHAPED(ephpm_kv_exists, call_key, KV_EXISTS)
SHAPED(ephpm_kv_incr_by, call_key_and_int, KV_INCR_BY)
SHAPED(ephpm_kv_expire, call_key_and_int, KV_EXPIRE)
SHAPED(ephpm_kv_pttl, call_key, KV_TTL)
SHAPED(ephpm_kv_getset, call_key_and_text, KV_GETSET)
SHAPED(ephpm_kv_append, call_key_and_text, KV_APPEND)
SHAPED(ephpm_kv_hget, call_key_and_text, KV_HGET)
SHAPED(ephpm_kv_hgetall, call_key, KV_HGETALL)
SHAPED(ephpm_kv_unlock, call_key, KV_UNLOCK)

static void count(INTERNAL_FUNCTION_PARAMETERS, zend_long by)
{
	struct ephpm_call call = {0};
	zend_string *key;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(key)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, key);
	ephpm_call_int(&call, by);
	ephpm_call_run(&call, EPHPM_CALL_KV_INCR_BY, return_value);
}

static ZEND_FUNCTION(ephpm_kv_incr)
{
	count(INTERNAL_FUNCTION_PARAM_PASSTHRU, 1);
}

static ZEND_FUNCTION(ephpm_kv_decr)
{
	count(INTERNAL_FUNCTION_PARAM_PASSTHRU, -1);
}

static ZEND_FUNCTION(ephpm_kv_ttl)
{
	call_key(INTERNAL_FUNCTION_PARAM_PASSTHRU, EPHPM_CALL_KV_TTL);
	if (Z_TYPE_P(return_value) == IS_LONG && Z_LVAL_P(return_value) > 0) {
		ZVAL_LONG(return_value, (Z_LVAL_P(return_value) + 999) / 1000); /* rounded up */
	}
}

static ZEND_FUNCTION(ephpm_kv_flush_all)
{
	struct ephpm_call call = {0};

	ZEND_PARSE_PARAMETERS_NONE();
	ephpm_call_run(&call, EPHPM_CALL_KV_FLUSH_ALL, return_value);
}

static ZEND_FUNCTION(ephpm_kv_wait)
{
	struct ephpm_call call = {0};
	zend_string *key;
	zend_long version, timeout;

	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_STR(key)
		Z_PARAM_LONG(version)
		Z_PARAM_LONG(timeout)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, key);
	ephpm_call_int(&call, version);
	ephpm_call_int(&call, timeout);
	ephpm_call_run(&call, EPHPM_CALL_KV_WAIT, return_value);
}

static ZEND_FUNCTION(ephpm_kv_hset)
{
	struct ephpm_call call = {0};
	zend_string *key, *field, *value;

	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_STR(key)
		Z_PARAM_STR(field)
		Z_PARAM_STR(value)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, key);
	ephpm_call_string(&call, field);
	ephpm_call_string(&call, value);
	ephpm_call_run(&call, EPHPM_CALL_KV_HSET, return_value);
}

static ZEND_FUNCTION(ephpm_kv_hincrby)
{
	struct ephpm_call call = {0};
	zend_string *key, *field;
	zend_long by;

	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_STR(key)
		Z_PARAM_STR(field)
		Z_PARAM_LONG(by)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, key);
	ephpm_call_string(&call, field);
	ephpm_call_int(&call, by);
	ephpm_call_run(&call, EPHPM_CALL_KV_HINCRBY, return_value);
}

static ZEND_FUNCTION(ephpm_kv_cas)
{
	struct ephpm_call call = {0};
	zend_string *key, *old, *value;
	zend_long ttl = 0;

	ZEND_PARSE_PARAMETERS_START(3, 4)
		Z_PARAM_STR(key)
		Z_PARAM_STR_OR_NULL(old)
		Z_PARAM_STR(value)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(ttl)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, key);
	ephpm_call_string_or_null(&call, old);
	ephpm_call_string(&call, value);
	ephpm_call_int(&call, ttl);
	ephpm_call_run(&call, EPHPM_CALL_KV_CAS, return_value);
}

static ZEND_FUNCTION(ephpm_kv_lock)
{
	struct ephpm_call call = {0};
	zend_string *key;
	double ttl, wait = 0;

	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_STR(key)
		Z_PARAM_DOUBLE(ttl)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(wait)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, key);
	ephpm_call_int(&call, ephpm_compat_dval_to_lval_cap(ttl * 1000));
	ephpm_call_int(&call, ephpm_compat_dval_to_lval_cap(wait * 1000));
	ephpm_call_run(&call, EPHPM_CALL_KV_LOCK, return_value);
}

static ZEND_FUNCTION(ephpm_kv_scan)
{
	struct ephpm_call call = {0};
	zend_string *prefix = ZSTR_EMPTY_ALLOC();
	zend_long cursor = 0, limit = 100;

	ZEND_PARSE_PARAMETERS_START(0, 3)
		Z_PARAM_OPTIONAL
		Z_PARAM_STR(prefix)
		Z_PARAM_LONG(cursor)
		Z_PARAM_LONG(limit)
	ZEND_PARSE_PARAMETERS_END();
	ephpm_call_string(&call, prefix);
	ephpm_call_int(&call, cursor);
	ephpm_call_int(&call, limit);
	ephpm_call_run(&call, EPHPM_CALL_KV_SCAN, return_value);
}

/* clang-format off */
const zend_function_entry ephpm_kv_functions[] = {
	ZEND_FE(ephpm_kv_get, arginfo_get)
	ZEND_FE(ephpm_kv_set, arginfo_set)
	ZEND_FE(ephpm_kv_setnx, arginfo_set)
	ZEND_FE(ephpm_kv_del, arginfo_del)
	ZEND_FE(ephpm_kv_exists, arginfo_exists)
	ZEND_FE(ephpm_kv_incr, arginfo_incr)
	ZEND_FE(ephpm_kv_decr, arginfo_incr)
	ZEND_FE(ephpm_kv_incr_by, arginfo_incr_by)
	ZEND_FE(ephpm_kv_expire, arginfo_expire)
	ZEND_FE(ephpm_kv_ttl, arginfo_ttl)
	ZEND_FE(ephpm_kv_pttl, arginfo_ttl)
	ZEND_FE(ephpm_kv_flush_all, arginfo_flush_all)
	ZEND_FE(ephpm_kv_wait, arginfo_wait)
	ZEND_FE(ephpm_kv_mget, arginfo_mget)
	ZEND_FE(ephpm_kv_mset, arginfo_mset)
	ZEND_FE(ephpm_kv_getset, arginfo_getset)
	ZEND_FE(ephpm_kv_append, arginfo_append)
	ZEND_FE(ephpm_kv_hset, arginfo_hset)
	ZEND_FE(ephpm_kv_hget, arginfo_hget)
	ZEND_FE(ephpm_kv_hdel, arginfo_hdel)
	ZEND_FE(ephpm_kv_hgetall, arginfo_hgetall)
	ZEND_FE(ephpm_kv_hincrby, arginfo_hincrby)
	ZEND_FE(ephpm_kv_cas, arginfo_cas)
	ZEND_FE(ephpm_kv_lock, arginfo_lock)
	ZEND_FE(ephpm_kv_unlock, arginfo_unlock)
	ZEND_FE(ephpm_kv_scan, arginfo_scan)
	ZEND_FE_END
};
/* clang-format on */
