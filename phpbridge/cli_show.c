/* What -v, -m, -i and --ini print. */
#include "cli_parts.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <zend_extensions.h>

/* PHP has no header for these. */
extern PHPAPI char *php_ini_opened_path, *php_ini_scanned_path, *php_ini_scanned_files;

static const char *constant(const char *name, size_t len)
{
	zval *value = zend_get_constant_str(name, len);

	return value && Z_TYPE_P(value) == IS_STRING ? Z_STRVAL_P(value) : "";
}

/* The library's own version: it may be newer than the headers. */
static void show_version(void)
{
	php_printf("PHP %s (%s) (ephpm) (NTS)\nCopyright (c) The PHP Group\n%s",
		constant(ZEND_STRL("PHP_VERSION")), sapi_module.name, get_zend_version());
}

static int compare(const void *a, const void *b)
{
	return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_sorted(const char **names, size_t n)
{
	qsort(names, n, sizeof(*names), compare);
	for (size_t i = 0; i < n; i++) {
		php_printf("%s\n", names[i]);
	}
	efree(names);
}

static void show_modules(void)
{
	const char **names = safe_emalloc(zend_hash_num_elements(&module_registry), sizeof(*names), 0);
	zend_module_entry *module;
	size_t n = 0;

	ZEND_HASH_FOREACH_PTR(&module_registry, module) {
		names[n++] = module->name;
	}
	ZEND_HASH_FOREACH_END();
	php_printf("[PHP Modules]\n");
	print_sorted(names, n);

	names = safe_emalloc(zend_extensions.count, sizeof(*names), sizeof(*names));
	n = 0;
	for (zend_llist_element *e = zend_extensions.head; e; e = e->next) {
		names[n++] = ((zend_extension *)e->data)->name;
	}
	php_printf("\n[Zend Modules]\n");
	print_sorted(names, n);
	php_printf("\n");
}

static void show_ini(void)
{
	php_printf(
		"Configuration File (php.ini) Path: %s\n", constant(ZEND_STRL("PHP_CONFIG_FILE_PATH")));
	php_printf("Loaded Configuration File:         %s\n",
		php_ini_opened_path ? php_ini_opened_path : "(none)");
	php_printf("Scan for additional .ini files in: %s\n",
		php_ini_scanned_path ? php_ini_scanned_path : "(none)");
	php_printf("Additional .ini files parsed:      %s\n",
		php_ini_scanned_files ? php_ini_scanned_files : "(none)");
}

void ephpm_cli_show(enum ephpm_cli_mode mode)
{
	switch (mode) {
	case EPHPM_CLI_MODULES:
		show_modules();
		break;
	case EPHPM_CLI_INFO:
		php_print_info(PHP_INFO_ALL & ~PHP_INFO_CREDITS);
		break;
	case EPHPM_CLI_INI:
		show_ini();
		break;
	default:
		show_version();
	}
}
