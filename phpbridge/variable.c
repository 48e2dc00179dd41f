#include "variable.h"

#include <string.h>

#include "record.h"

bool ephpm_variable_next(struct ephpm_variable *v)
{
	const struct ephpm_work *w = &ephpm_worker.work;
	uint16_t n;
	uint32_t m;

	if (!ephpm_worker.in_request) {
		return false;
	}
	const uint8_t *at = v->next ? v->next : w->request;
	if (w->request + w->job->vars_len - at < EPHPM_VAR_HEADER) {
		return false;
	}
	memcpy(&n, at, sizeof(n));
	memcpy(&m, at + sizeof(n), sizeof(m));
	v->name = (const char *)at + EPHPM_VAR_HEADER;
	v->name_len = n;
	v->value = v->name + n + 1;
	v->value_len = m;
	v->next = (const uint8_t *)v->value + m + 1;
	return true;
}

const char *ephpm_variable_find(const char *name, size_t len)
{
	struct ephpm_variable v = {0};
	const char *value = NULL;

	while (ephpm_variable_next(&v)) {
		if (v.name_len == len && !memcmp(v.name, name, len)) {
			value = v.value;
		}
	}
	return value;
}
