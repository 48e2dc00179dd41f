/* session.save_handler = ephpm: sessions in the site's key-value store. The front
 * keeps the lock of a session for this request and frees it when the request ends,
 * however it ends. */
#include "session.h"

#include <ext/session/php_session.h>

#include "call.h"
#include "record.h"

/* Runs a call that answers true or false. */
static zend_result run(struct ephpm_call *call, uint16_t function)
{
	zval answer;

	ZVAL_NULL(&answer);
	ephpm_call_run(call, function, &answer);
	bool ok = Z_TYPE(answer) == IS_TRUE;
	zval_ptr_dtor(&answer);
	return ok ? SUCCESS : FAILURE;
}

static zend_result run_with(uint16_t function, const zend_string *id)
{
	struct ephpm_call call = {0};

	ephpm_call_string(&call, id);
	return run(&call, function);
}

static zend_result run_write(
	uint16_t function, const zend_string *id, const zend_string *data, zend_long seconds)
{
	struct ephpm_call call = {0};

	ephpm_call_string(&call, id);
	ephpm_call_string(&call, data);
	ephpm_call_int(&call, seconds);
	if (ephpm_call_len(&call) > EPHPM_CALL_MAX) {
		smart_str_free(&call.values);
		php_error_docref(NULL, E_WARNING, "The session has more than 64 MiB");
		return FAILURE;
	}
	return run(&call, function);
}

PS_OPEN_FUNC(ephpm)
{
	(void)save_path;
	(void)session_name;
	PS_SET_MOD_DATA(&ephpm_worker); /* anything: PHP takes NULL for closed */
	return SUCCESS;
}

PS_CLOSE_FUNC(ephpm)
{
	struct ephpm_call call = {0};

	PS_SET_MOD_DATA(NULL);
	if (!ephpm_worker.in_request && ephpm_worker.call == ephpm_record_call) {
		return SUCCESS; /* the front has done it */
	}
	run(&call, EPHPM_CALL_SESSION_CLOSE);
	return SUCCESS;
}

PS_READ_FUNC(ephpm)
{
	struct ephpm_call call = {0};
	zval answer;

	(void)mod_data;
	ZVAL_NULL(&answer);
	ephpm_call_string(&call, key);
	ephpm_call_run(&call, EPHPM_CALL_SESSION_OPEN, &answer);
	if (Z_TYPE(answer) != IS_STRING) {
		zval_ptr_dtor(&answer);
		return FAILURE;
	}
	*val = Z_STR(answer);
	return SUCCESS;
}

PS_WRITE_FUNC(ephpm)
{
	(void)mod_data;
	return run_write(EPHPM_CALL_SESSION_WRITE, key, val, maxlifetime);
}

PS_UPDATE_TIMESTAMP_FUNC(ephpm)
{
	(void)mod_data;
	return run_write(EPHPM_CALL_SESSION_TOUCH, key, val, maxlifetime);
}

PS_DESTROY_FUNC(ephpm)
{
	(void)mod_data;
	return run_with(EPHPM_CALL_SESSION_DESTROY, key);
}

/* The store drops what has expired by itself. */
PS_GC_FUNC(ephpm)
{
	(void)mod_data;
	(void)maxlifetime;
	*nrdels = 0;
	return 0;
}

PS_CREATE_SID_FUNC(ephpm)
{
	return php_session_create_id(mod_data);
}

PS_VALIDATE_SID_FUNC(ephpm)
{
	(void)mod_data;
	return run_with(EPHPM_CALL_SESSION_EXISTS, key);
}

static const ps_module module = {PS_MOD_UPDATE_TIMESTAMP(ephpm)};

void ephpm_session_register(void)
{
	if (php_session_register_module) { /* the session extension may be missing */
		php_session_register_module(&module);
	}
}
