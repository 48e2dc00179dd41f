/* How PHP sees the server: the SAPI module. */
#ifndef EPHPM_SAPI_H
#define EPHPM_SAPI_H

#include "record.h"

/* What the front configured; the strings live as long as the process. */
struct ephpm_sapi_config {
	const char *name;        /* PHP_SAPI */
	const char *ini_file;    /* instead of the system's php.ini; "" for that */
	const char *ini_entries; /* after php.ini, in its syntax */
	const char *env;         /* names of configured variables, a line each */
	const char *disable;     /* functions that scripts do not have, with commas between */
};

/* Starts PHP: php.ini, extensions, OPcache. */
bool ephpm_sapi_startup(const struct ephpm_sapi_config *config);

/* Sends a record with the headers that PHP has collected. */
void ephpm_sapi_send_headers(uint8_t record, int status);

/* Completes the answer while the script goes on. False if it is complete. */
bool ephpm_sapi_finish(void);

/* The functions for PHP code. */
extern const zend_function_entry ephpm_ws_functions[];   /* functions_ws.c */
extern const zend_function_entry ephpm_kv_functions[];   /* functions_kv.c */
extern const zend_function_entry ephpm_http_functions[]; /* functions_http.c */

/* Appends the context of ephpm_log() as JSON. False with an exception pending. */
bool ephpm_log_append_context(smart_str *to, zval *context);

/* The constants that go with them. */
void ephpm_http_constants(int module_number);

#endif
