/* The CGI variables of the request that runs. */
#ifndef EPHPM_VARIABLE_H
#define EPHPM_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Name and value are followed by a NUL that the lengths leave out. A zeroed one
 * stands before the first. */
struct ephpm_variable {
	const char *name, *value;
	size_t name_len, value_len;
	const uint8_t *next;
};

/* Steps to the next variable. False at the end, and outside of requests. */
bool ephpm_variable_next(struct ephpm_variable *v);

/* The same for the environment and for the ini settings of the request's site. */
bool ephpm_variable_next_env(struct ephpm_variable *v);
bool ephpm_variable_next_ini(struct ephpm_variable *v);

/* Returns the value of a variable, or NULL. Of several with one name the last
 * wins, as it does in $_SERVER. */
const char *ephpm_variable_find(const char *name, size_t len);

#endif
