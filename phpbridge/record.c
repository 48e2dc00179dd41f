#include "record.h"

#include "need.h"

struct ephpm_worker ephpm_worker;

/* The shared memory is little endian, as is every machine we build for. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little endian only");

void ephpm_record_begin(uint8_t type, size_t len)
{
	uint8_t header[EPHPM_RECORD_HEADER] = {0};
	uint32_t n = (uint32_t)len;

	memcpy(header, &n, sizeof(n));
	header[4] = type;
	ephpm_work_write(&ephpm_worker.shared, &ephpm_worker.work, header, sizeof(header));
}

void ephpm_record_part(const void *data, size_t len)
{
	ephpm_work_write(&ephpm_worker.shared, &ephpm_worker.work, data, len);
}

void ephpm_record_send(uint8_t type, const void *data, size_t len)
{
	/* Output of 4 GiB in one piece does not fit the length of a record. */
	const size_t most = 1u << 30;

	while (type == EPHPM_REC_OUTPUT && len > most) {
		ephpm_record_begin(type, most);
		ephpm_record_part(data, most);
		data = (const char *)data + most;
		len -= most;
	}
	ephpm_record_begin(type, len);
	ephpm_record_part(data, len);
}

void ephpm_record_notify(void)
{
	ephpm_work_notify(&ephpm_worker.shared, &ephpm_worker.work);
}

void ephpm_record_note(int32_t level, const char *message, size_t len, const zend_string *context)
{
	const size_t room = EPHPM_LOG_MAX - sizeof(level) - sizeof(uint32_t);
	uint32_t n = (uint32_t)MIN(len, room);
	size_t rest = context && ZSTR_LEN(context) <= room - n ? ZSTR_LEN(context) : 0;

	ephpm_record_begin(EPHPM_REC_NOTE, sizeof(level) + sizeof(n) + n + rest);
	ephpm_record_part(&level, sizeof(level));
	ephpm_record_part(&n, sizeof(n));
	ephpm_record_part(message, n);
	if (rest) {
		ephpm_record_part(ZSTR_VAL(context), rest);
	}
}

/* Gathers an answer that does not fit the answer area, of which n bytes are
 * there. */
static zend_string *whole_answer(struct ephpm_work *w, size_t n)
{
	zend_string *whole;
	size_t done = 0;

	ephpm_need(n + w->job->more);
	whole = zend_string_alloc(n + w->job->more, 0);
	for (;;) {
		memcpy(ZSTR_VAL(whole) + done, w->answer, MIN(n, ZSTR_LEN(whole) - done));
		done += n;
		if (done >= ZSTR_LEN(whole)) {
			return whole;
		}
		ephpm_record_begin(EPHPM_REC_MORE, 0);
		ephpm_record_notify();
		n = ephpm_work_answer(&ephpm_worker.shared, w);
	}
}

/* Sends a call, by a record of either type. */
static void send_call(uint8_t type, const struct ephpm_call *c, uint16_t function)
{
	const uint16_t count = (uint16_t)c->count;

	ephpm_record_begin(type, ephpm_call_len(c));
	ephpm_record_part(&function, sizeof(function));
	ephpm_record_part(&count, sizeof(count));
	if (c->values.s) {
		ephpm_record_part(ZSTR_VAL(c->values.s), ZSTR_LEN(c->values.s));
	}
	ephpm_record_notify();
}

size_t ephpm_record_post_max(void)
{
	return ephpm_worker.in_request ? ephpm_work_post_max(&ephpm_worker.work) : 0;
}

void ephpm_record_post(const struct ephpm_call *c, uint16_t function)
{
	send_call(EPHPM_REC_POST, c, function);
}

bool ephpm_record_call(struct ephpm_call *c, uint16_t function, const uint8_t **answer, size_t *len)
{
	struct ephpm_work *w = &ephpm_worker.work;

	if (!ephpm_worker.in_request || !w->job->has_host) {
		zend_throw_error(NULL, "%s() cannot reach the server: no request is being served",
			get_active_function_name());
		return false;
	}
	send_call(EPHPM_REC_CALL, c, function);
	*len = ephpm_work_answer(&ephpm_worker.shared, w);
	*answer = w->answer;
	if (w->job->more) {
		c->whole = whole_answer(w, *len);
		*len = ZSTR_LEN(c->whole);
		*answer = (const uint8_t *)ZSTR_VAL(c->whole);
	}
	return true;
}
