#include "need.h"

void ephpm_need(size_t size)
{
	size_t limit = (size_t)PG(memory_limit); /* -1, for none, is the largest */
	size_t used = zend_memory_usage(true);

	/* What fits a chunk may find room in those that are counted already. */
	if (used > limit || (size >= ZEND_MM_CHUNK_SIZE && size > limit - used)) {
		zend_error_noreturn(E_ERROR,
			"Allowed memory size of %zu bytes exhausted (tried to allocate %zu bytes)", limit,
			size);
	}
}
