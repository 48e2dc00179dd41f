/* Reads of the site's key-value store in memory that the front shares. */
#ifndef EPHPM_KVREAD_H
#define EPHPM_KVREAD_H

#include "compat.h"

/* A store as one process has it mapped, for reading only. */
struct ephpm_store {
	const uint8_t *base;
	uint64_t size;
};

enum ephpm_kv_result {
	EPHPM_KV_FOUND,
	EPHPM_KV_ABSENT,
	EPHPM_KV_HASH, /* there is a hash, which is read by asking the front */
	EPHPM_KV_ASK,  /* the front knows */
};

/* Maps the stores that the front has passed on, and closes their descriptors. False
 * if one cannot be mapped. */
bool ephpm_kv_map(int first, uint32_t count);

/* Looks up a string. With EPHPM_KV_FOUND value is a new one. */
enum ephpm_kv_result ephpm_kv_read(const zend_string *key, zend_string **value);

/* Tells the front what was read since the last time. */
void ephpm_kv_report(void);

#endif
