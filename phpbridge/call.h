/* Host calls: what PHP asks of the front. */
#ifndef EPHPM_CALL_H
#define EPHPM_CALL_H

#include "compat.h"
#include "wire.h"

/* A host call under construction: request memory. */
struct ephpm_call {
	smart_str values;
	uint32_t count;     /* of values; at most UINT16_MAX can be sent */
	zend_string *whole; /* an answer that came in parts; NULL otherwise */
};

void ephpm_call_null(struct ephpm_call *c);
void ephpm_call_bool(struct ephpm_call *c, bool value);
void ephpm_call_int(struct ephpm_call *c, zend_long value);
void ephpm_call_string(struct ephpm_call *c, const zend_string *value);
void ephpm_call_bytes(struct ephpm_call *c, const void *data, size_t len);
void ephpm_call_string_or_null(struct ephpm_call *c, const zend_string *value);

/* The bytes of the call in a record. */
size_t ephpm_call_len(const struct ephpm_call *c);

/* Brings a call to the front and waits for the answer, which stays valid until the
 * next call. False with an exception pending. */
typedef bool (*ephpm_caller)(
	struct ephpm_call *c, uint16_t function, const uint8_t **answer, size_t *len);

/* Sends the call, frees it, waits for the answer and stores it. An answer that
 * throws leaves return_value as it is and the exception pending. */
void ephpm_call_run(struct ephpm_call *c, uint16_t function, zval *return_value);

#endif
