#include "variable.h"

#include <string.h>

#include "record.h"

/* Steps through one of the lists at the start of the request area. */
static bool step(struct ephpm_variable *v, size_t from, size_t len)
{
	const uint8_t *list = ephpm_worker.work.request + from;
	const uint8_t *at = v->next ? v->next : list;
	uint16_t n;
	uint32_t m;

	if (list + len - at < EPHPM_VAR_HEADER) {
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

bool ephpm_variable_next(struct ephpm_variable *v)
{
	return ephpm_worker.in_request && step(v, 0, ephpm_worker.work.job->vars_len);
}

bool ephpm_variable_next_env(struct ephpm_variable *v)
{
	const struct ephpm_job *j = ephpm_worker.work.job;

	return ephpm_worker.in_request && step(v, j->vars_len, j->env_len);
}

bool ephpm_variable_next_ini(struct ephpm_variable *v)
{
	const struct ephpm_job *j = ephpm_worker.work.job;

	return ephpm_worker.in_request && step(v, j->vars_len + j->env_len, j->ini_len);
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
