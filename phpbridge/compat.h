/* The only place that looks at PHP_VERSION_ID. PHP 8.2 to 8.5. */
#ifndef EPHPM_COMPAT_H
#define EPHPM_COMPAT_H

#include "weak.h"

#include <php.h>

#include <SAPI.h>
#include <ext/json/php_json.h>
#include <ext/standard/head.h>
#include <ext/standard/info.h>
#include <php_main.h>
#include <php_open_temporary_file.h>
#include <php_output.h>
#include <php_variables.h>
#include <zend_exceptions.h>
#include <zend_ini.h>
#include <zend_signal.h>
#include <zend_smart_str.h>

#if PHP_VERSION_ID < 80200 || PHP_VERSION_ID >= 80600
#error "PHP 8.2, 8.3, 8.4 or 8.5 is needed"
#endif

#ifdef ZTS
#error "a non-thread-safe (NTS) build of PHP is needed: each worker is a process"
#endif

/* The names of PHP and its library, as Debian has them. */
#define EPHPM_TEXT_(x) #x
#define EPHPM_TEXT(x) EPHPM_TEXT_(x)
#define EPHPM_PHP_NAME "php" EPHPM_TEXT(PHP_MAJOR_VERSION) "." EPHPM_TEXT(PHP_MINOR_VERSION)
#define EPHPM_LIBPHP "lib" EPHPM_PHP_NAME ".so"

/* After a fork PHP 8.5 takes care of its allocator and timers. */
#if PHP_VERSION_ID >= 80500
#define ephpm_compat_child_init() php_child_init()
#else
#define ephpm_compat_child_init() ((void)0)
#endif

/* The nearest integer that a zend_long holds. PHP 8.5 names the string that the
 * number came from, if any. */
#if PHP_VERSION_ID >= 80500
#define ephpm_compat_dval_to_lval_cap(d) zend_dval_to_lval_cap(d, NULL)
#else
#define ephpm_compat_dval_to_lval_cap(d) zend_dval_to_lval_cap(d)
#endif

/* How many letters and digits follow php in the name of a temporary file: those
 * of mkstemp, and since PHP 8.4 thirteen of PHP's own before them. */
#if PHP_VERSION_ID >= 80400
#define EPHPM_COMPAT_TEMPORARY_LETTERS (13 + 6)
#else
#define EPHPM_COMPAT_TEMPORARY_LETTERS 6
#endif

/* Since PHP 8.4 php-cli complains about a missing script on stderr, and has STDIN and
 * its like also for a program that it reads from there. */
#if PHP_VERSION_ID >= 80400
#define EPHPM_COMPAT_CLI_COMPLAINTS stderr
#define EPHPM_COMPAT_CLI_ALWAYS_STREAMS true
#else
#define EPHPM_COMPAT_CLI_COMPLAINTS stdout
#define EPHPM_COMPAT_CLI_ALWAYS_STREAMS false
#endif

/* The start of OPcache's state in a process (zend_accel_globals), which no header
 * has. It has been this in all versions since 8.1. */
struct ephpm_compat_opcache {
	bool counted; /* has the lock of those that use the cache */
	bool enabled;
	bool locked;
	bool accelerator_enabled; /* the cache is there for this request */
};

/* Returns where it is, or NULL without OPcache. The entry of opcache.enable knows
 * where its value is. */
static inline const struct ephpm_compat_opcache *ephpm_compat_opcache(void)
{
	const zend_ini_entry *e =
		zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("opcache.enable"));

	if (!e || !e->mh_arg2 || (size_t)e->mh_arg1 != offsetof(struct ephpm_compat_opcache, enabled)) {
		return NULL;
	}
	return (const struct ephpm_compat_opcache *)e->mh_arg2;
}

#endif
