#include "record.h"

struct ephpm_worker ephpm_worker;

/* The shared memory is little endian, as is every machine we build for. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little endian only");

static void send_header(uint8_t type, size_t len)
{
	uint8_t header[EPHPM_RECORD_HEADER] = {0};
	uint32_t n = (uint32_t)len;

	memcpy(header, &n, sizeof(n));
	header[4] = type;
	ephpm_work_write(&ephpm_worker.shared, &ephpm_worker.work, header, sizeof(header));
}

void ephpm_record_send(uint8_t type, const void *data, size_t len)
{
	/* Output of 4 GiB in one piece does not fit the length of a record. */
	const size_t most = 1u << 30;

	while (type == EPHPM_REC_OUTPUT && len > most) {
		send_header(type, most);
		ephpm_work_write(&ephpm_worker.shared, &ephpm_worker.work, data, most);
		data = (const char *)data + most;
		len -= most;
	}
	send_header(type, len);
	ephpm_work_write(&ephpm_worker.shared, &ephpm_worker.work, data, len);
}

void ephpm_record_notify(void)
{
	ephpm_work_notify(&ephpm_worker.shared, &ephpm_worker.work);
}

void ephpm_record_note(int32_t level, const char *message, size_t len, const zend_string *context)
{
	smart_str out = {0};
	const size_t room = EPHPM_LOG_MAX - sizeof(level) - sizeof(uint32_t);
	uint32_t n = (uint32_t)MIN(len, room);

	smart_str_appendl(&out, (const char *)&level, sizeof(level));
	smart_str_appendl(&out, (const char *)&n, sizeof(n));
	smart_str_appendl(&out, message, n);
	if (context && ZSTR_LEN(context) <= room - n) {
		smart_str_append(&out, context);
	}
	ephpm_record_send(EPHPM_REC_NOTE, ZSTR_VAL(out.s), ZSTR_LEN(out.s));
	smart_str_free(&out);
}

static void append_kind(struct ephpm_call *c, uint8_t kind)
{
	smart_str_appendc(&c->values, (char)kind);
	c->count++;
}

void ephpm_call_null(struct ephpm_call *c)
{
	append_kind(c, EPHPM_VAL_NULL);
}

void ephpm_call_bool(struct ephpm_call *c, bool value)
{
	append_kind(c, value ? EPHPM_VAL_TRUE : EPHPM_VAL_FALSE);
}

void ephpm_call_int(struct ephpm_call *c, zend_long value)
{
	int64_t n = value;

	append_kind(c, EPHPM_VAL_INT);
	smart_str_appendl(&c->values, (const char *)&n, sizeof(n));
}

void ephpm_call_string(struct ephpm_call *c, const zend_string *value)
{
	/* A longer one makes the whole call too long, which is refused below. */
	uint32_t len = ZSTR_LEN(value) > EPHPM_CALL_MAX ? EPHPM_CALL_MAX : (uint32_t)ZSTR_LEN(value);

	append_kind(c, EPHPM_VAL_STRING);
	smart_str_appendl(&c->values, (const char *)&len, sizeof(len));
	smart_str_appendl(&c->values, ZSTR_VAL(value), len);
}

/* The bytes of an answer that are not read yet. The front is trusted, but a
 * length that does not fit would be a bug worth stopping at. */
struct answer {
	const uint8_t *at;
	size_t left;
};

static const void *take(struct answer *a, size_t n)
{
	const uint8_t *at = a->at;

	if (n > a->left) {
		_exit(EPHPM_EXIT_BROKEN);
	}
	a->at += n;
	a->left -= n;
	return at;
}

static uint32_t take_u32(struct answer *a)
{
	uint32_t n;

	memcpy(&n, take(a, sizeof(n)), sizeof(n));
	return n;
}

static void read_list(struct answer *a, zval *value)
{
	uint32_t n = take_u32(a);

	array_init(value);
	while (n--) {
		uint32_t len = take_u32(a);
		add_next_index_stringl(value, take(a, len), len);
	}
}

static void read_throw(struct answer *a)
{
	uint8_t class = *(const uint8_t *)take(a, 1);
	uint32_t len = take_u32(a);
	const char *message = take(a, len);
	zend_class_entry *ce = zend_ce_exception;

	if (class == EPHPM_THROW_VALUE_ERROR) {
		ce = zend_ce_value_error;
	} else if (class == EPHPM_THROW_ERROR) {
		ce = zend_ce_error;
	}
	zend_throw_exception_ex(ce, 0, "%.*s", (int)len, message);
}

static void read_answer(struct answer *a, zval *value)
{
	int64_t n;
	uint32_t len;

	switch (*(const uint8_t *)take(a, 1)) {
	case EPHPM_VAL_FALSE:
		ZVAL_FALSE(value);
		break;
	case EPHPM_VAL_TRUE:
		ZVAL_TRUE(value);
		break;
	case EPHPM_VAL_INT:
		memcpy(&n, take(a, sizeof(n)), sizeof(n));
		ZVAL_LONG(value, n);
		break;
	case EPHPM_VAL_STRING:
		len = take_u32(a);
		ZVAL_STRINGL(value, take(a, len), len);
		break;
	case EPHPM_VAL_LIST:
		read_list(a, value);
		break;
	case EPHPM_VAL_THROW:
		read_throw(a);
		break;
	default:
		ZVAL_NULL(value);
	}
}

void ephpm_call_run(struct ephpm_call *c, uint16_t function, zval *return_value)
{
	struct ephpm_work *w = &ephpm_worker.work;
	size_t len = 2 * sizeof(uint16_t) + smart_str_get_len(&c->values);

	if (!ephpm_worker.in_request || !w->job->has_host || len > EPHPM_CALL_MAX) {
		smart_str_free(&c->values);
		zend_throw_error(NULL, "%s() cannot reach the server: %s", get_active_function_name(),
			len > EPHPM_CALL_MAX ? "its arguments are longer than 64 MiB"
								 : "no request is being served");
		return;
	}
	send_header(EPHPM_REC_CALL, len);
	ephpm_work_write(&ephpm_worker.shared, w, &function, sizeof(function));
	ephpm_work_write(&ephpm_worker.shared, w, &c->count, sizeof(c->count));
	ephpm_work_write(&ephpm_worker.shared, w, ZSTR_VAL(c->values.s), ZSTR_LEN(c->values.s));
	smart_str_free(&c->values);
	ephpm_record_notify();

	struct answer a = {.left = ephpm_work_answer(w), .at = w->answer};
	read_answer(&a, return_value);
}
