/* One run of one script. */
#ifndef EPHPM_SCRIPT_H
#define EPHPM_SCRIPT_H

/* Runs the job in ephpm_worker.work, from request start-up to shutdown, and tells
 * the front when it is through. */
void ephpm_script_run(void);

#endif
