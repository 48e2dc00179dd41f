/* How PHP sees the server: the SAPI module. */
#ifndef EPHPM_SAPI_H
#define EPHPM_SAPI_H

#include "record.h"

/* What the front configured; the strings live as long as the process. */
struct ephpm_sapi_config {
	const char *name;        /* PHP_SAPI */
	const char *ini_file;    /* instead of the system's php.ini; "" for that */
	const char *ini_entries; /* after php.ini, in its syntax */
};

/* Starts PHP: php.ini, extensions, OPcache. */
bool ephpm_sapi_startup(const struct ephpm_sapi_config *config);

/* Runs the job in ephpm_worker.work from request start-up to shutdown. */
void ephpm_sapi_run(void);

/* The functions PHP code may call; functions.c. */
extern const zend_function_entry *ephpm_functions;

#endif
