/* Host calls: the values of arguments and answers. */
#include "call.h"

#include <unistd.h>

#include "need.h"
#include "record.h"

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

void ephpm_call_bytes(struct ephpm_call *c, const void *data, size_t size)
{
	/* A longer one makes the whole call too long, which is refused below. */
	uint32_t len = size > EPHPM_CALL_MAX ? EPHPM_CALL_MAX : (uint32_t)size;

	ephpm_need(len);
	append_kind(c, EPHPM_VAL_STRING);
	smart_str_appendl(&c->values, (const char *)&len, sizeof(len));
	smart_str_appendl(&c->values, data, len);
}

void ephpm_call_string(struct ephpm_call *c, const zend_string *value)
{
	ephpm_call_bytes(c, ZSTR_VAL(value), ZSTR_LEN(value));
}

void ephpm_call_string_or_null(struct ephpm_call *c, const zend_string *value)
{
	if (value) {
		ephpm_call_string(c, value);
	} else {
		ephpm_call_null(c);
	}
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

/* An array doubles as it grows. */
static void need_elements(uint32_t n)
{
	ephpm_need(2 * (size_t)n * sizeof(Bucket));
}

static void read_list(struct answer *a, zval *value)
{
	uint32_t n = take_u32(a);

	need_elements(n);
	array_init(value);
	while (n--) {
		uint32_t len = take_u32(a);
		ephpm_need(len);
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

static void read_answer(struct answer *a, zval *value);

static void read_array(struct answer *a, zval *array)
{
	uint32_t n = take_u32(a);

	need_elements(n);
	array_init(array);
	while (n--) {
		zval key, value;
		ZVAL_NULL(&key);
		ZVAL_NULL(&value); /* and so it stays if it throws */
		read_answer(a, &key);
		read_answer(a, &value);
		if (Z_TYPE(key) == IS_STRING) {
			zend_symtable_update(Z_ARRVAL_P(array), Z_STR(key), &value);
		} else {
			add_next_index_zval(array, &value);
		}
		zval_ptr_dtor(&key);
	}
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
		ephpm_need(len);
		ZVAL_STRINGL(value, take(a, len), len);
		break;
	case EPHPM_VAL_LIST:
		read_list(a, value);
		break;
	case EPHPM_VAL_ARRAY:
		read_array(a, value);
		break;
	case EPHPM_VAL_THROW:
		read_throw(a);
		break;
	default:
		ZVAL_NULL(value);
	}
}

size_t ephpm_call_len(const struct ephpm_call *c)
{
	return 2 * sizeof(uint16_t) + (c->values.s ? ZSTR_LEN(c->values.s) : 0);
}

void ephpm_call_run(struct ephpm_call *c, uint16_t function, zval *return_value)
{
	const uint8_t *answer;
	size_t len;
	bool answered = false;

	if (ephpm_call_len(c) > EPHPM_CALL_MAX) {
		zend_throw_error(NULL, "%s() cannot reach the server: its arguments are longer than 64 MiB",
			get_active_function_name());
	} else if (c->count > UINT16_MAX) {
		zend_throw_error(NULL, "%s() cannot reach the server: it has more than %d arguments",
			get_active_function_name(), UINT16_MAX);
	} else {
		answered = ephpm_worker.call(c, function, &answer, &len);
	}
	smart_str_free(&c->values);
	if (answered) {
		struct answer a = {.at = answer, .left = len};
		read_answer(&a, return_value);
	}
	if (c->whole) {
		zend_string_release(c->whole);
	}
}
