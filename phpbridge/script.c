#include "script.h"

#include <limits.h>
#include <unistd.h>

#include "limit.h"
#include "opcache_empty.h"
#include "record.h"
#include "tenant.h"
#include "variable.h"

/* The variables that the SAPI layer itself needs. */
struct request_vars {
	const char *method, *query, *uri, *script, *type, *cookie, *authorization;
};

static void fill_request_info(const struct request_vars *v)
{
	SG(server_context) = &ephpm_worker;
	SG(request_info).request_method = v->method;
	SG(request_info).query_string = (char *)v->query;
	SG(request_info).request_uri = (char *)v->uri;
	SG(request_info).path_translated = (char *)v->script;
	SG(request_info).content_type = v->type;
	SG(request_info).content_length = ephpm_worker.work.job->body_len;
	SG(request_info).cookie_data = (char *)v->cookie;
	SG(request_info).proto_num = 1001;
	SG(options) |= SAPI_OPTION_NO_CHDIR; /* enter_directory has done it */
	SG(sapi_headers).http_response_code = 200;
	php_handle_auth_data(v->authorization);
}

static void read_request_vars(struct request_vars *r)
{
	static const struct {
		const char *name;
		size_t len, offset;
	} wanted[] = {
		{ZEND_STRL("REQUEST_METHOD"), offsetof(struct request_vars, method)},
		{ZEND_STRL("QUERY_STRING"), offsetof(struct request_vars, query)},
		{ZEND_STRL("REQUEST_URI"), offsetof(struct request_vars, uri)},
		{ZEND_STRL("SCRIPT_FILENAME"), offsetof(struct request_vars, script)},
		{ZEND_STRL("CONTENT_TYPE"), offsetof(struct request_vars, type)},
		{ZEND_STRL("HTTP_COOKIE"), offsetof(struct request_vars, cookie)},
		{ZEND_STRL("HTTP_AUTHORIZATION"), offsetof(struct request_vars, authorization)},
	};
	struct ephpm_variable v = {0};

	while (ephpm_variable_next(&v)) {
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
			if (v.name_len == wanted[i].len && !memcmp(v.name, wanted[i].name, v.name_len)) {
				*(const char **)((char *)r + wanted[i].offset) = v.value;
				break;
			}
		}
	}
}

/* Makes the script's directory the working directory, as PHP does for every
 * request; but not if it is still that, and without going back afterwards. */
static void enter_directory(const char *script)
{
	char dir[PATH_MAX], now[PATH_MAX];
	const char *slash = script ? strrchr(script, '/') : NULL;

	if (!slash) {
		return;
	}
	size_t len = slash == script ? 1 : (size_t)(slash - script);
	if (len >= sizeof(dir)) {
		return;
	}
	memcpy(dir, script, len);
	dir[len] = 0;
	if ((!getcwd(now, sizeof(now)) || strcmp(now, dir)) && chdir(dir)) {
		return; /* PHP will say that it cannot open the script */
	}
}

void ephpm_script_run(void)
{
	struct request_vars vars = {0};

	ephpm_worker.in_request = true;
	ephpm_worker.finished = false;
	ephpm_worker.fatal = false;
	read_request_vars(&vars);
	fill_request_info(&vars);
	enter_directory(vars.script);
	ephpm_tenant_begin();
	ephpm_limit_begin();
	ephpm_opcache_enter(ephpm_worker.slot);
	zend_first_try
	{
		ephpm_tenant_settings(); /* PHP reads the body within its startup */
		if (php_request_startup() == SUCCESS) {
			ephpm_opcache_begun();
			/* For HEAD, too, PHP shall print the page: the front leaves it out
			 * and says how long it is. */
			SG(request_info).headers_only = 0;
			zend_file_handle script;
			zend_stream_init_filename(&script, vars.script ? vars.script : "");
			script.primary_script = true;
			php_execute_script(&script);
			zend_destroy_file_handle(&script);
		} else {
			SG(sapi_headers).http_response_code = 500;
		}
	}
	zend_end_try();
	php_request_shutdown(NULL);
	if (ephpm_worker.forked) {
		_exit(EG(exit_status));
	}
	ephpm_opcache_leave();
	ephpm_tenant_end();
#ifdef ZEND_SIGNALS
	/* Handlers are in place from the first request on: leave them there. */
	SIGG(reset) = 0;
#endif
	ephpm_kv_report();
	ephpm_work_done(&ephpm_worker.work, ephpm_worker.slot);
	uint8_t fatal = ephpm_worker.fatal;
	ephpm_record_send(EPHPM_REC_END, &fatal, sizeof(fatal));
	ephpm_worker.in_request = false;
	ephpm_record_notify();
}
