#include "sapi.h"

#include "lasting.h"
#include "tenant.h"
#include "session.h"
#include "variable.h"

enum { SERVER_VARIABLES = 64 }; /* room in $_SERVER, that it need not grow */

static const char *environment = ""; /* ephpm_sapi_config.env */
static const char *disable = "";     /* ephpm_sapi_config.disable */

static size_t ephpm_ub_write(const char *str, size_t len)
{
	if (!ephpm_worker.in_request) {
		return len; /* PHP's own start-up messages go to the log instead */
	}
	if (ephpm_work_aborted(&ephpm_worker.work)) {
		php_handle_aborted_connection();
	} else if (!ephpm_worker.finished) {
		ephpm_record_send(EPHPM_REC_OUTPUT, str, len);
	}
	return len;
}

static void ephpm_flush(void *context)
{
	(void)context;
	if (!ephpm_worker.in_request || ephpm_worker.finished) {
		return;
	}
	sapi_send_headers();
	if (ephpm_work_aborted(&ephpm_worker.work)) {
		php_handle_aborted_connection();
		return;
	}
	ephpm_record_send(EPHPM_REC_FLUSH, NULL, 0);
	ephpm_record_notify();
}

/* Collects small pieces of a record. */
struct pieces {
	size_t len;
	uint8_t bytes[1024];
};

static void piece(struct pieces *p, const void *data, size_t len)
{
	if (len > sizeof(p->bytes) - p->len) {
		ephpm_record_part(p->bytes, p->len);
		p->len = 0;
	}
	if (len > sizeof(p->bytes)) {
		ephpm_record_part(data, len);
		return;
	}
	memcpy(p->bytes + p->len, data, len);
	p->len += len;
}

/* A record that is len bytes long has room for the header. */
static bool header_fits(const sapi_header_struct *h, size_t len)
{
	return h->header_len && len + sizeof(uint32_t) + h->header_len <= EPHPM_HEADERS_MAX;
}

/* Measures the record of all headers. Those that do not fit are left out. */
static size_t measure_headers(zend_llist *headers, uint16_t *n)
{
	size_t len = 2 * sizeof(uint16_t);
	zend_llist_position position;
	sapi_header_struct *h;

	for (h = zend_llist_get_first_ex(headers, &position); h && *n < UINT16_MAX;
		 h = zend_llist_get_next_ex(headers, &position)) {
		if (header_fits(h, len)) {
			len += sizeof(uint32_t) + h->header_len;
			(*n)++;
		}
	}
	return len;
}

void ephpm_sapi_send_headers(uint8_t record, int code)
{
	zend_llist *headers = &SG(sapi_headers).headers;
	uint16_t status = code < 0 || code > UINT16_MAX ? 0 : (uint16_t)code; /* 0: refused there */
	uint16_t n = 0;
	size_t len = 2 * sizeof(uint16_t);
	struct pieces p = {.len = 0};
	zend_llist_position position;
	sapi_header_struct *h;

	ephpm_record_begin(record, measure_headers(headers, &n));
	piece(&p, &status, sizeof(status));
	piece(&p, &n, sizeof(n));
	for (h = zend_llist_get_first_ex(headers, &position); n;
		 h = zend_llist_get_next_ex(headers, &position)) {
		if (header_fits(h, len)) {
			uint32_t header_len = (uint32_t)h->header_len;
			piece(&p, &header_len, sizeof(header_len));
			piece(&p, h->header, header_len);
			len += sizeof(header_len) + header_len;
			n--;
		}
	}
	ephpm_record_part(p.bytes, p.len);
}

static int ephpm_send_headers(sapi_headers_struct *headers)
{
	if (ephpm_worker.in_request && !ephpm_worker.finished) {
		ephpm_sapi_send_headers(EPHPM_REC_HEADERS, headers->http_response_code);
	}
	return SAPI_HEADER_SENT_SUCCESSFULLY;
}

bool ephpm_sapi_finish(void)
{
	if (!ephpm_worker.in_request || ephpm_worker.finished) {
		return false;
	}
	php_output_end_all();
	php_header();
	ephpm_worker.finished = true;
	ephpm_record_send(EPHPM_REC_FINISH, NULL, 0);
	ephpm_record_notify();
	return true;
}

/* Has the front put the next part of the body into the job. False at the end,
 * which needs no question: the length is known before the request starts. */
static bool more_body(struct ephpm_work *w)
{
	if (w->body_ahead <= 0 || !ephpm_worker.in_request) {
		return false;
	}
	ephpm_record_send(EPHPM_REC_READ, NULL, 0);
	ephpm_record_notify();
	w->body_here = ephpm_work_answer(&ephpm_worker.shared, w);
	w->body_taken = 0;
	w->body_ahead = w->body_here ? w->body_ahead - w->body_here : 0;
	return w->body_here > 0;
}

/* Gives PHP the next bytes of the body. It takes less than it asked for as the
 * end. */
static size_t ephpm_read_post(char *buffer, size_t count)
{
	struct ephpm_work *w = &ephpm_worker.work;
	size_t done = 0;

	while (done < count && (w->body_taken < w->body_here || more_body(w))) {
		size_t n = MIN(count - done, w->body_here - w->body_taken);
		memcpy(buffer + done, w->request + w->job->body_off + w->body_taken, n);
		w->body_taken += n;
		done += n;
	}
	return done;
}

static char *ephpm_read_cookies(void)
{
	return (char *)ephpm_variable_find(ZEND_STRL("HTTP_COOKIE"));
}

/* The configured variables are in the environment, where scripts expect them in
 * $_SERVER as well. The request's own come later and win. */
static void register_environment(zval *array)
{
	char name[256];

	for (const char *at = environment, *end; (end = strchr(at, '\n')); at = end + 1) {
		size_t len = end - at;
		if (len >= sizeof(name)) {
			continue;
		}
		memcpy(name, at, len);
		name[len] = 0;
		char *value = getenv(name);
		if (value) {
			php_register_variable_safe(name, value, strlen(value), array);
		}
	}
}

/* Reports whether PHP would register a name as it is: no character that it
 * replaces, and not a number, which would be an index. */
static bool plain_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = name[i];
		if (c != '_' && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9')) {
			return false;
		}
	}
	return len > 0;
}

/* Does what php_register_variable_safe does, at a third of its cost for names
 * such as those of CGI. */
static void register_variable(
	const struct ephpm_variable *v, const char *value, size_t len, zval *array)
{
	zval entry;

	if (!plain_name(v->name, v->name_len)) {
		php_register_variable_safe(v->name, value, len, array);
		return;
	}
	ZVAL_STRINGL_FAST(&entry, value, len);
	zend_hash_str_update(Z_ARRVAL_P(array), v->name, v->name_len, &entry);
}

static void ephpm_register_variables(zval *array)
{
	struct ephpm_variable v = {0}, e = {0};

	zend_hash_extend(Z_ARRVAL_P(array), SERVER_VARIABLES, false);
	register_environment(array);
	while (ephpm_variable_next_env(&e)) {
		register_variable(&e, e.value, e.value_len, array);
	}
	while (ephpm_variable_next(&v)) {
		size_t len = v.value_len;
		if (sapi_module.input_filter(PARSE_SERVER, v.name, (char **)&v.value, len, &len)) {
			register_variable(&v, v.value, len, array);
		}
	}
}

static char *ephpm_getenv(const char *name, size_t len)
{
	return (char *)ephpm_variable_find(name, len);
}

static void ephpm_log_message(const char *message, int priority)
{
	size_t len = strlen(message);
	uint8_t byte = (uint8_t)priority;

	if (!ephpm_worker.in_request) {
		fprintf(stderr, "%s\n", message);
		return;
	}
	if (len > EPHPM_LOG_MAX - 1) {
		len = EPHPM_LOG_MAX - 1;
	}
	ephpm_record_begin(EPHPM_REC_LOG, sizeof(byte) + len);
	ephpm_record_part(&byte, sizeof(byte));
	ephpm_record_part(message, len);
	ephpm_record_notify(); /* it may be the last that this worker says */
}

static int ephpm_module_startup(sapi_module_struct *module)
{
	(void)module;
	return SUCCESS;
}

static int ephpm_deactivate(void)
{
	return SUCCESS;
}

/* php.ini and conf.d beat these, the front's entries beat those. They are what
 * a web server wants, whatever the embed library was built with. */
static void ephpm_ini_defaults(HashTable *configuration)
{
	static const char *const defaults[][2] = {
		{"display_errors", "0"},
		{"log_errors", "1"},
		{"html_errors", "1"},
		{"implicit_flush", "0"},
		{"output_buffering", "4096"},
		{"register_argc_argv", "0"},
		{"max_execution_time", "30"},
		{"max_input_time", "-1"},
	};
	zval value;

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
		ZVAL_NEW_STR(&value, zend_string_init(defaults[i][1], strlen(defaults[i][1]), 1));
		zend_hash_str_update(configuration, defaults[i][0], strlen(defaults[i][0]), &value);
	}
}

static sapi_module_struct ephpm_sapi = {
	.pretty_name = "ephpm",
	.startup = ephpm_module_startup,
	.deactivate = ephpm_deactivate,
	.ub_write = ephpm_ub_write,
	.flush = ephpm_flush,
	.getenv = ephpm_getenv,
	.send_headers = ephpm_send_headers,
	.read_post = ephpm_read_post,
	.read_cookies = ephpm_read_cookies,
	.register_server_variables = ephpm_register_variables,
	.log_message = ephpm_log_message,
	.ini_defaults = ephpm_ini_defaults,
};

/* Adds the front's functions to those that php.ini disables, before PHP looks. */
static void disable_more(void)
{
	zend_ini_entry *entry =
		zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("disable_functions"));
	smart_str all = {0};

	if (!*disable || !entry) {
		return;
	}
	if (entry->value && ZSTR_LEN(entry->value)) {
		smart_str_append_ex(&all, entry->value, true);
		smart_str_appendc_ex(&all, ',', true);
	}
	smart_str_appends_ex(&all, disable, true);
	smart_str_0(&all);
	entry->value = all.s;
}

/* OPcache starts only under the SAPI names that it knows, and ours is not among
 * them. Modules start before OPcache does, so it is given a known name here;
 * ephpm_sapi_startup puts ours back. */
static PHP_MINIT_FUNCTION(ephpm)
{
	sapi_module.name = "fpm-fcgi";
	disable_more();
	ephpm_http_constants(module_number);
	ephpm_session_register();
	if (zend_register_functions(NULL, ephpm_kv_functions, NULL, type) == FAILURE) {
		return FAILURE;
	}
	return zend_register_functions(NULL, ephpm_http_functions, NULL, type);
}

/* Shutdown functions and destructors have run by now. An uncaught exception counts:
 * PHP makes it a fatal error. */
static PHP_RSHUTDOWN_FUNCTION(ephpm)
{
	const int fatal =
		E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;

	(void)type;
	(void)module_number;
	ephpm_worker.fatal = PG(last_error_message) && (PG(last_error_type) & fatal);
	return SUCCESS;
}

static PHP_MINFO_FUNCTION(ephpm)
{
	(void)zend_module;
	php_info_print_table_start();
	php_info_print_table_row(2, "ephpm", "enabled");
	php_info_print_table_end();
}

static zend_module_entry ephpm_module = {
	STANDARD_MODULE_HEADER,
	.name = "ephpm",
	.module_startup_func = PHP_MINIT(ephpm),
	.request_shutdown_func = PHP_RSHUTDOWN(ephpm),
	.info_func = PHP_MINFO(ephpm),
	.version = PHP_VERSION,
	STANDARD_MODULE_PROPERTIES,
};

bool ephpm_sapi_startup(const struct ephpm_sapi_config *config)
{
	/* Addresses in libphp are taken here and not in the static tables above:
	 * they are known only once the library was loaded; see weak.h. */
	ephpm_sapi.name = (char *)config->name;
	ephpm_sapi.sapi_error = zend_error;
	environment = config->env;
	disable = config->disable;
	ephpm_sapi.default_post_reader = NULL;
	ephpm_sapi.php_ini_ignore_cwd = 1;
	if (*config->ini_file) {
		ephpm_sapi.php_ini_path_override = (char *)config->ini_file;
	}
	ephpm_module.functions = ephpm_ws_functions;

	zend_signal_startup();
	sapi_startup(&ephpm_sapi); /* clears ini_entries */
	ephpm_sapi.ini_entries = (char *)config->ini_entries;
	if (php_module_startup(&ephpm_sapi, &ephpm_module) == FAILURE) {
		return false;
	}
	sapi_module.name = (char *)config->name;
	ephpm_lasting_watch();
	ephpm_tenant_watch();
	return true;
}
