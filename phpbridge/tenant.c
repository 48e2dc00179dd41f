#include "tenant.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "record.h"
#include "variable.h"

/* A variable that the site's one hides. */
struct hidden {
	struct hidden *next;
	char *value; /* NULL: there was none */
	char name[];
};

static struct hidden *hidden; /* the last first */

static void hide(const char *name, size_t len)
{
	const char *value = getenv(name);
	struct hidden *h = malloc(sizeof(*h) + len + 1);

	if (!h) {
		_exit(EPHPM_EXIT_BROKEN); /* it could not be taken back */
	}
	memcpy(h->name, name, len + 1);
	h->value = value ? strdup(value) : NULL;
	h->next = hidden;
	hidden = h;
}

void ephpm_tenant_begin(void)
{
	struct ephpm_variable v = {0};

	while (ephpm_variable_next_env(&v)) {
		hide(v.name, v.name_len);
		setenv(v.name, v.value, 1);
	}
}

void ephpm_tenant_end(void)
{
	while (hidden) {
		struct hidden *h = hidden;
		hidden = h->next;
		if (h->value) {
			setenv(h->name, h->value, 1);
		} else {
			unsetenv(h->name);
		}
		free(h->value);
		free(h);
	}
}

static bool set(const char *name, size_t name_len, const char *value, size_t len)
{
	zend_string *key = zend_string_init(name, name_len, false);
	zend_result r =
		zend_alter_ini_entry_chars(key, value, len, PHP_INI_SYSTEM, PHP_INI_STAGE_ACTIVATE);

	zend_string_release(key);
	return r == SUCCESS;
}

/* Gives the site a directory for uploads in that of the worker, with which it ends,
 * and lets its scripts read there. */
static void set_uploads(void)
{
	char dir[PATH_MAX];
	int len =
		snprintf(dir, sizeof(dir), "%s/%u", ephpm_worker.uploads, ephpm_worker.work.job->tenant);

	if (len >= (int)sizeof(dir) || (mkdir(dir, 0700) && errno != EEXIST)
		|| !set(ZEND_STRL("upload_tmp_dir"), dir, len)) {
		return;
	}
	if (PG(open_basedir) && *PG(open_basedir)) {
		smart_str granted = {0};
		smart_str_appends(&granted, PG(open_basedir));
		smart_str_appendc(&granted, ':');
		smart_str_appendl(&granted, dir, len);
		set(ZEND_STRL("open_basedir"), ZSTR_VAL(granted.s), ZSTR_LEN(granted.s));
		smart_str_free(&granted);
	}
}

void ephpm_tenant_settings(void)
{
	struct ephpm_variable v = {0};

	while (ephpm_variable_next_ini(&v)) {
		set(v.name, v.name_len, v.value, v.value_len);
	}
	if (ephpm_worker.in_request && ephpm_worker.work.job->tenant && *ephpm_worker.uploads) {
		set_uploads();
	}
}

static zend_op_array *(*original_compile)(zend_file_handle *file, int type);

/* The path behind the wrappers whose files OPcache keeps. */
static const char *bare_path(const char *name)
{
	if (!strncasecmp(name, ZEND_STRL("file://")) || !strncasecmp(name, ZEND_STRL("phar://"))) {
		return name + sizeof("file://") - 1;
	}
	return name;
}

/* Reports whether open_basedir refuses a file; PHP warns then. A name that leads to
 * nothing is for others to refuse. */
static bool refused(zend_string *name)
{
	zend_string *path = zend_string_copy(name);

	if (*bare_path(ZSTR_VAL(path)) != '/') {
		zend_string_release(path);
		path = zend_resolve_path(name);
	}
	bool no = path && *bare_path(ZSTR_VAL(path)) == '/'
		&& php_check_open_basedir(bare_path(ZSTR_VAL(path)));
	if (path) {
		zend_string_release(path);
	}
	return no;
}

/* OPcache finds what another site has compiled by its path alone, without opening
 * the file, so that nobody asks open_basedir. */
static zend_op_array *compile_allowed(zend_file_handle *file, int type)
{
	zend_string *name = file->opened_path ? file->opened_path : file->filename;

	if (name && PG(open_basedir) && *PG(open_basedir) && refused(name)) {
		zend_message_dispatcher(
			type == ZEND_REQUIRE ? ZMSG_FAILED_REQUIRE_FOPEN : ZMSG_FAILED_INCLUDE_FOPEN,
			ZSTR_VAL(file->filename));
		return NULL;
	}
	return original_compile(file, type);
}

void ephpm_tenant_watch(void)
{
	original_compile = zend_compile_file;
	zend_compile_file = compile_allowed;
}
