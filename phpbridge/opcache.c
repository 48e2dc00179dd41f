#include "opcache.h"

#include <string.h>

#include "compat.h"

/* PHP's opcache_get_status(), also where disable_functions has taken it from
 * scripts. NULL without OPcache. */
static zif_handler status_function(void)
{
	const zend_module_entry *module =
		zend_hash_str_find_ptr(&module_registry, ZEND_STRL("zend opcache"));

	for (const zend_function_entry *f = module ? module->functions : NULL; f && f->fname; f++) {
		if (!strcmp(f->fname, "opcache_get_status")) {
			return f->handler;
		}
	}
	return NULL;
}

/* Calls it with false: without the list of scripts. There is no request, so the call
 * has a frame of its own; opcache.restrict_api is for scripts, and is told a path
 * that it lets pass. */
static void call_status(zif_handler function, zval *result)
{
	zval frame[ZEND_CALL_FRAME_SLOT + 1];
	zend_execute_data *call = (zend_execute_data *)frame;
	zend_execute_data *before = EG(current_execute_data);
	char *path = SG(request_info).path_translated;
	const zend_ini_entry *restricted =
		zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("opcache.restrict_api"));

	memset(frame, 0, sizeof(frame));
	ZEND_CALL_NUM_ARGS(call) = 1;
	ZVAL_FALSE(ZEND_CALL_ARG(call, 1));
	if (restricted && restricted->value) {
		SG(request_info).path_translated = ZSTR_VAL(restricted->value);
	}
	EG(current_execute_data) = call;
	zend_try {
		function(call, result);
	}
	zend_end_try();
	EG(current_execute_data) = before;
	SG(request_info).path_translated = path;
}

/* A number in a table of the status; 0 if it is not there. */
static uint64_t number(const zval *status, const char *table, const char *name)
{
	const zval *in = zend_hash_str_find(Z_ARRVAL_P(status), table, strlen(table));

	if (!in || Z_TYPE_P(in) != IS_ARRAY) {
		return 0;
	}
	const zval *value = zend_hash_str_find(Z_ARRVAL_P(in), name, strlen(name));
	return value && Z_TYPE_P(value) == IS_LONG && Z_LVAL_P(value) > 0 ? (uint64_t)Z_LVAL_P(value)
																	  : 0;
}

bool ephpm_opcache_read(struct ephpm_opcache *o)
{
	static const char memory[] = "memory_usage", strings[] = "interned_strings_usage";
	static const char counts[] = "opcache_statistics", jit[] = "jit";
	zif_handler function = status_function();
	zval status;

	if (!function) {
		return false;
	}
	ZVAL_NULL(&status);
	call_status(function, &status);
	bool is_known = Z_TYPE(status) == IS_ARRAY && number(&status, memory, "used_memory");
	if (is_known) {
		*o = (struct ephpm_opcache){
			.used = number(&status, memory, "used_memory"),
			.free = number(&status, memory, "free_memory"),
			.wasted = number(&status, memory, "wasted_memory"),
			.strings_used = number(&status, strings, "used_memory"),
			.strings_free = number(&status, strings, "free_memory"),
			.scripts = number(&status, counts, "num_cached_scripts"),
			.keys = number(&status, counts, "num_cached_keys"),
			.max_keys = number(&status, counts, "max_cached_keys"),
			.hits = number(&status, counts, "hits"),
			.misses = number(&status, counts, "misses"),
			.oom_restarts = number(&status, counts, "oom_restarts"),
			.hash_restarts = number(&status, counts, "hash_restarts"),
			.manual_restarts = number(&status, counts, "manual_restarts"),
			.jit_size = number(&status, jit, "buffer_size"),
			.jit_free = number(&status, jit, "buffer_free"),
		};
	}
	zval_ptr_dtor(&status);
	return is_known;
}
