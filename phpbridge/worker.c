#include "worker.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lasting.h"
#include "limit.h"
#include "record.h"
#include "script.h"

static void set_name(uint32_t slot)
{
	char name[16];

	snprintf(name, sizeof(name), "ephpm-php-%u", slot);
	prctl(PR_SET_NAME, name, 0, 0, 0);
	if (ephpm_worker.process_name) {
		snprintf(
			ephpm_worker.process_name, ephpm_worker.process_name_size, "ephpm: worker %u", slot);
	}
}

/* A script may fork (pcntl_fork). The job stays with the parent: its child runs the
 * script to its end, but has no request, and is no worker. */
static void on_fork(void)
{
	ephpm_worker.forked = true;
	ephpm_worker.in_request = false;
}

/* Uploads, and the large body of any request, are files until the request ends. In
 * a directory of the worker's own the front finds them when it could not end it. */
static void set_upload_directory(const char *dir)
{
	zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("upload_tmp_dir"));

	if (*dir && entry) {
		entry->value = zend_string_init(dir, strlen(dir), 1);
		PG(upload_tmp_dir) = ZSTR_VAL(entry->value);
	}
}

void ephpm_worker_main(const struct ephpm_shared *shared, uint32_t slot, const char *uploads)
{
	struct ephpm_slot *me = &shared->slots[slot];
	uint32_t max = shared->pool->max_requests;

	ephpm_worker.shared = *shared;
	ephpm_worker.slot = slot;
	ephpm_worker.call = ephpm_record_call;
	ephpm_worker.turn = slot;
	set_name(slot);
	pthread_atfork(NULL, NULL, on_fork);
	ephpm_compat_child_init();
	ephpm_limit_start();
	ephpm_lasting_start();
	ephpm_worker.uploads = uploads;
	set_upload_directory(uploads);

	while (ephpm_shared_take(&ephpm_worker.shared, slot, &ephpm_worker.turn, &ephpm_worker.work)) {
		ephpm_script_run();
		uint64_t served = __atomic_add_fetch(&me->served, 1, __ATOMIC_SEQ_CST);
		if ((max && served >= max) || ephpm_lasting_changed(ephpm_worker.work.job->taken_at)) {
			_exit(EPHPM_EXIT_RECYCLED);
		}
	}
	_exit(EPHPM_EXIT_STOPPED);
}
