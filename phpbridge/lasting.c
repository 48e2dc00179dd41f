/* What a script does to its process and PHP does not undo: signal handlers, limits,
 * the user, children that nobody waits for. The next request shall not find it, so
 * the worker ends with the request and another takes its place. */
#include "lasting.h"

#include <sys/resource.h>

#include "record.h"

/* A function of PHP whose effect outlives the request. */
struct lasting {
	const char *name;
	zend_internal_function *function; /* NULL: this PHP does not have it */
	zif_handler handler;              /* PHP's own */
};

static struct lasting functions[] = {
	{.name = "chroot"},
	{.name = "pcntl_alarm"},
	{.name = "pcntl_fork"},
	{.name = "pcntl_rfork"},
	{.name = "pcntl_setpriority"},
	{.name = "pcntl_signal"},
	{.name = "pcntl_sigprocmask"},
	{.name = "pcntl_unshare"},
	{.name = "posix_initgroups"},
	{.name = "posix_setegid"},
	{.name = "posix_seteuid"},
	{.name = "posix_setgid"},
	{.name = "posix_setpgid"},
	{.name = "posix_setrlimit"},
	{.name = "posix_setsid"},
	{.name = "posix_setuid"},
	{.name = "proc_nice"},
};
#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

/* Resource limits can be changed past PHP's functions, by FFI: they are compared
 * now and then. */
static struct rlimit limits[RLIM_NLIMITS];
static uint64_t compared_at; /* CLOCK_MONOTONIC, ns */
#define COMPARE_EVERY 1000000000ull

static void note(const char *name)
{
	static const char message[] = "the script changed its process, its worker is replaced";
	smart_str json = {0};

	smart_str_appends(&json, "{\"function\":\"");
	smart_str_appends(&json, name);
	smart_str_appends(&json, "\"}");
	ephpm_record_note(0, message, sizeof(message) - 1, json.s);
	smart_str_free(&json);
}

/* Stands in for each of them. */
static ZEND_FUNCTION(lasting)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const struct lasting *l = &functions[i];
		if ((zend_function *)l->function != execute_data->func) {
			continue;
		}
		if (ephpm_worker.in_request && !ephpm_worker.changed) {
			ephpm_worker.changed = true;
			note(l->name);
		}
		l->handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
}

void ephpm_lasting_watch(void)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		struct lasting *l = &functions[i];
		l->function = zend_hash_str_find_ptr(CG(function_table), l->name, strlen(l->name));
		if (l->function && l->function->type == ZEND_INTERNAL_FUNCTION) {
			l->handler = l->function->handler;
			l->function->handler = ZEND_FN(lasting);
		} else {
			l->function = NULL;
		}
	}
}

void ephpm_lasting_start(void)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		getrlimit(i, &limits[i]);
	}
}

static bool limits_changed(void)
{
	struct rlimit now;

	for (int i = 0; i < RLIM_NLIMITS; i++) {
		if (getrlimit(i, &now) == 0 && memcmp(&now, &limits[i], sizeof(now)) != 0) {
			return true;
		}
	}
	return false;
}

bool ephpm_lasting_changed(uint64_t now)
{
	if (ephpm_worker.changed) {
		return true;
	}
	if (now - compared_at < COMPARE_EVERY) {
		return false;
	}
	compared_at = now;
	return limits_changed();
}
