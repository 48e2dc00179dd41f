/* Records from the worker to the front. */
#ifndef EPHPM_RECORD_H
#define EPHPM_RECORD_H

#include "call.h"
#include "compat.h"
#include "kvread.h"
#include "shared.h"

/* Everything that one worker process knows. */
struct ephpm_worker {
	struct ephpm_shared shared;
	struct ephpm_work work;
	uint32_t slot;
	uint32_t turn;              /* whose class is looked at first */
	bool in_request;            /* work is valid: records may be sent */
	bool forked;                /* a script has forked, and this is the child */
	bool changed;               /* the script changed its process: it takes no other request */
	bool fatal;                 /* the request had a fatal error */
	bool finished;              /* the client has its answer: output goes nowhere */
	const char *uploads;        /* its directory for uploads; "" when it has none */
	struct ephpm_store *stores; /* of sites, that the front shares */
	uint32_t store_count;
	ephpm_caller call;  /* how host calls reach the front */
	char *process_name; /* argv[0], for ps */
	size_t process_name_size;
};

extern struct ephpm_worker ephpm_worker;

/* Appends a record to the response. The front sees it at the latest with the
 * next notify. No record takes memory of PHP's: there may be none left. */
void ephpm_record_send(uint8_t type, const void *data, size_t len);

/* The same in pieces: a record of len bytes, and its parts, which together have as
 * many. Nothing else may be sent in between, nor may anything bail out. */
void ephpm_record_begin(uint8_t type, size_t len);
void ephpm_record_part(const void *data, size_t len);

/* Sends a line for the log, with a slog level. context is JSON, or NULL. */
void ephpm_record_note(int32_t level, const char *message, size_t len, const zend_string *context);

/* Publishes all records and wakes the front. */
void ephpm_record_notify(void);

/* The longest payload that may be posted, in bytes, and how: as a call that the
 * front takes to return true and does not answer. 0: none may. */
size_t ephpm_record_post_max(void);
void ephpm_record_post(const struct ephpm_call *c, uint16_t function);

/* How a worker makes a host call; see call.h. */
bool ephpm_record_call(
	struct ephpm_call *c, uint16_t function, const uint8_t **answer, size_t *len);

#endif
