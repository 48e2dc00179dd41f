/* What the ephpm_kv_ functions take and return, as functions.stub.php declares it. */
#ifndef EPHPM_FUNCTIONS_KV_ARGINFO_H
#define EPHPM_FUNCTIONS_KV_ARGINFO_H

#include "compat.h"

#define TEXT(name) ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
#define INT(name) ZEND_ARG_TYPE_INFO(0, name, IS_LONG, 0)
#define TTL() ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, ttl, IS_LONG, 0, "0")
#define RETURNS(name, required, type, nullable) \
	ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(name, 0, required, type, nullable)
#define RETURNS_OR_FALSE(name, required, type) \
	ZEND_BEGIN_ARG_WITH_RETURN_TYPE_MASK_EX(name, 0, required, type | MAY_BE_FALSE)

/* clang-format off */
RETURNS(arginfo_get, 1, IS_STRING, 1)
	TEXT(key)
ZEND_END_ARG_INFO()

RETURNS(arginfo_set, 2, _IS_BOOL, 0)
	TEXT(key)
	TEXT(value)
	TTL()
ZEND_END_ARG_INFO()

RETURNS(arginfo_del, 1, IS_LONG, 0)
	TEXT(key)
	ZEND_ARG_VARIADIC_TYPE_INFO(0, keys, IS_STRING, 0)
ZEND_END_ARG_INFO()

RETURNS(arginfo_exists, 1, _IS_BOOL, 0)
	TEXT(key)
ZEND_END_ARG_INFO()

RETURNS_OR_FALSE(arginfo_incr, 1, MAY_BE_LONG)
	TEXT(key)
ZEND_END_ARG_INFO()

RETURNS_OR_FALSE(arginfo_incr_by, 2, MAY_BE_LONG)
	TEXT(key)
	INT(by)
ZEND_END_ARG_INFO()

RETURNS(arginfo_expire, 2, _IS_BOOL, 0)
	TEXT(key)
	INT(seconds)
ZEND_END_ARG_INFO()

RETURNS(arginfo_ttl, 1, IS_LONG, 0)
	TEXT(key)
ZEND_END_ARG_INFO()

RETURNS(arginfo_flush_all, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

RETURNS_OR_FALSE(arginfo_wait, 3, MAY_BE_ARRAY)
	TEXT(key)
	INT(last_version)
	INT(timeout_ms)
ZEND_END_ARG_INFO()

RETURNS(arginfo_mget, 1, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, keys, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

RETURNS(arginfo_mset, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, values, IS_ARRAY, 0)
	TTL()
ZEND_END_ARG_INFO()

RETURNS(arginfo_getset, 2, IS_STRING, 1)
	TEXT(key)
	TEXT(value)
ZEND_END_ARG_INFO()

RETURNS_OR_FALSE(arginfo_append, 2, MAY_BE_LONG)
	TEXT(key)
	TEXT(value)
ZEND_END_ARG_INFO()

RETURNS(arginfo_hset, 3, _IS_BOOL, 0)
	TEXT(key)
	TEXT(field)
	TEXT(value)
ZEND_END_ARG_INFO()

RETURNS(arginfo_hget, 2, IS_STRING, 1)
	TEXT(key)
	TEXT(field)
ZEND_END_ARG_INFO()

RETURNS(arginfo_hdel, 2, IS_LONG, 0)
	TEXT(key)
	TEXT(field)
	ZEND_ARG_VARIADIC_TYPE_INFO(0, fields, IS_STRING, 0)
ZEND_END_ARG_INFO()

RETURNS(arginfo_hgetall, 1, IS_ARRAY, 0)
	TEXT(key)
ZEND_END_ARG_INFO()

RETURNS_OR_FALSE(arginfo_hincrby, 3, MAY_BE_LONG)
	TEXT(key)
	TEXT(field)
	INT(by)
ZEND_END_ARG_INFO()

RETURNS(arginfo_cas, 3, _IS_BOOL, 0)
	TEXT(key)
	ZEND_ARG_TYPE_INFO(0, old, IS_STRING, 1)
	TEXT(new)
	TTL()
ZEND_END_ARG_INFO()

RETURNS_OR_FALSE(arginfo_lock, 2, MAY_BE_STRING)
	TEXT(key)
	ZEND_ARG_TYPE_INFO(0, ttl, IS_DOUBLE, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, wait, IS_DOUBLE, 0, "0.0")
ZEND_END_ARG_INFO()

RETURNS(arginfo_unlock, 1, _IS_BOOL, 0)
	TEXT(token)
ZEND_END_ARG_INFO()

RETURNS(arginfo_scan, 0, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, prefix, IS_STRING, 0, "\"\"")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, cursor, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, limit, IS_LONG, 0, "100")
ZEND_END_ARG_INFO()
/* clang-format on */

#endif
