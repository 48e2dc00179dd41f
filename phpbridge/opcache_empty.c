/*
 * OPcache empties itself, after opcache_reset() or when it is full, in the start-up
 * of the next request for which it finds nobody using it. Who uses it has a lock, but
 * a request takes that only after it has looked its script up: one that begins while
 * another empties the cache may run what is being overwritten.
 *
 * So here no worker empties it. The zygote holds a lock of use itself, which keeps
 * them from it. A worker that finds the cache switched off, because it is to be
 * emptied, rings the zygote. That closes the gate, through which every request goes
 * before it looks at the cache; waits for those that are inside, which are those
 * that have no lock yet; gives its own lock up for a child which goes through the
 * start-up of a request, where OPcache does the rest; and opens the gate. While scripts
 * that began before use the cache it tries again and again, as OPcache would; who
 * begins meanwhile does without the cache, and sees new code at once.
 */
#include "opcache_empty.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compat.h"
#include "wire.h"

#define load(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define store(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define swap(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)

/* Times of the zygote, in ms. */
#define CLOSED_MAX 20 /* the gate is never closed for longer */
#define RETRY_MIN 2
#define RETRY_MAX 500

/* Longest life of the child that empties the cache, in seconds. */
#define CHILD_MAX 5

/* The byte of OPcache's lock file that says who uses the cache. */
#define USE_BYTE 1

/* Shared by a zygote and its workers. */
struct gate {
	uint32_t closed; /* futex; 1: wait */
	uint32_t wanted; /* 1: the zygote has been rung */
	uint32_t pad[14];
	struct {
		uint32_t inside; /* 1: the worker may look at the cache without a lock */
		uint32_t pad[15];
	} slots[EPHPM_SLOTS];
};

struct opcache {
	struct gate *gate; /* NULL: there is nothing to do */
	const struct ephpm_compat_opcache *state;
	int lock_file; /* OPcache's */

	/* Of the zygote. */
	int bell;
	bool wanted;
	int delay;          /* ms between the attempts; it grows */
	uint64_t due;       /* CLOCK_MONOTONIC, ms: the next attempt */
	uint64_t since;     /* CLOCK_MONOTONIC, ms: when it was wanted */
	zend_long patience; /* seconds; 0: without end */

	/* Of a worker. */
	uint32_t *inside; /* NULL: it is not in a request, or has a lock */
};

static struct opcache opcache = {.lock_file = -1, .bell = -1};

static zend_op_array *(*opcache_compile_file)(zend_file_handle *file, int type);

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void nap_us(long us)
{
	struct timespec ts = {0, us * 1000};

	nanosleep(&ts, NULL);
}

/* Finds the lock file among the descriptors: it has no name any more. Older
 * versions make it in /tmp, newer ones in memory. */
static int find_lock_file(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int found = -1;

	while (dir && found < 0 && (entry = readdir(dir))) {
		char target[256];
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		if (n > 0) {
			target[n] = 0;
			if (strstr(target, "/.ZendSem.") || strstr(target, "memfd:opcache_lock")) {
				found = atoi(entry->d_name);
			}
		}
	}
	if (dir) {
		closedir(dir);
	}
	return found;
}

/* Takes or gives up the lock that says that this process uses the cache. */
static bool set_use(short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = USE_BYTE, .l_len = 1};

	return fcntl(opcache.lock_file, F_SETLK, &lock) == 0;
}

/* OPcache would kill who uses the cache for too long, the zygote among them. */
static void take_patience(void)
{
	zend_ini_entry *entry =
		zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("opcache.force_restart_timeout"));

	if (entry && entry->on_modify) {
		zend_string *zero = zend_string_init(ZEND_STRL("0"), 1);
		opcache.patience = zend_ini_long(ZEND_STRL("opcache.force_restart_timeout"), 0);
		entry->on_modify(
			entry, zero, entry->mh_arg1, entry->mh_arg2, entry->mh_arg3, ZEND_INI_STAGE_STARTUP);
		entry->value = zero;
	}
}

/* A request is inside until OPcache has a lock for it, which it takes when it
 * gives out the first script, or does not use the cache at all. */
static zend_op_array *on_compile(zend_file_handle *file, int type)
{
	zend_op_array *result = opcache_compile_file(file, type);

	if (opcache.inside && opcache.state->counted) {
		ephpm_opcache_leave();
	}
	return result;
}

void ephpm_opcache_start(void)
{
	opcache.state = ephpm_compat_opcache();
	opcache.lock_file = opcache.state ? find_lock_file() : -1;
	if (opcache.lock_file < 0 || !set_use(F_RDLCK)) {
		return;
	}
	opcache.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	void *memory =
		mmap(NULL, sizeof(struct gate), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (opcache.bell < 0 || memory == MAP_FAILED) {
		set_use(F_UNLCK); /* then OPcache does it in its own way */
		return;
	}
	opcache.gate = memory;
	take_patience();
	opcache_compile_file = zend_compile_file;
	zend_compile_file = on_compile;
}

int ephpm_opcache_bell(void)
{
	return opcache.bell;
}

int ephpm_opcache_delay(void)
{
	uint64_t now = now_ms();

	if (!opcache.wanted) {
		return -1;
	}
	return now < opcache.due ? (int)(opcache.due - now) : 0;
}

void ephpm_opcache_forget(uint32_t slot)
{
	if (opcache.gate) {
		store(&opcache.gate->slots[slot].inside, 0);
	}
}

static void listen_to_bell(void)
{
	uint64_t rings;

	if (read(opcache.bell, &rings, sizeof(rings)) < 0 || opcache.wanted) {
		return;
	}
	opcache.wanted = true;
	opcache.since = now_ms();
	opcache.delay = RETRY_MIN;
}

/* The child that empties the cache: OPcache does it in the start-up of a request,
 * if nobody has a lock. */
static void child_main(void) __attribute__((noreturn));
static void child_main(void)
{
	volatile bool emptied = false;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	alarm(CHILD_MAX);
	ephpm_compat_child_init();
	zend_first_try
	{
		emptied = php_request_startup() == SUCCESS && opcache.state->accelerator_enabled;
	}
	zend_end_try();
	php_request_shutdown(NULL);
	_exit(emptied ? 0 : 1);
}

static bool run_child(void)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0) {
		child_main();
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Reports whether a process other than this has the lock. */
static bool others_use(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = USE_BYTE, .l_len = 1};

	return fcntl(opcache.lock_file, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static bool all_outside(void)
{
	for (uint32_t i = 0; i < EPHPM_SLOTS; i++) {
		if (load(&opcache.gate->slots[i].inside)) {
			return false;
		}
	}
	return true;
}

static bool empty_behind_the_gate(void)
{
	struct gate *g = opcache.gate;
	uint64_t until = now_ms() + CLOSED_MAX;
	bool outside, emptied = false;

	store(&g->closed, 1);
	while (!(outside = all_outside()) && now_ms() < until) {
		nap_us(50);
	}
	if (outside && !others_use() && set_use(F_UNLCK)) {
		store(&g->wanted, 0); /* who comes in afterwards may ring again */
		emptied = run_child();
		set_use(F_RDLCK);
	}
	store(&g->closed, 0);
	syscall(SYS_futex, &g->closed, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	return emptied;
}

enum ephpm_opcache_result ephpm_opcache_empty(void)
{
	listen_to_bell();
	if (!others_use() && empty_behind_the_gate()) {
		opcache.wanted = false;
		return EPHPM_OPCACHE_EMPTIED;
	}
	opcache.delay = MIN(2 * opcache.delay, RETRY_MAX);
	opcache.due = now_ms() + (uint64_t)opcache.delay;
	if (opcache.patience && now_ms() - opcache.since > (uint64_t)opcache.patience * 1000) {
		opcache.since = now_ms();
		return EPHPM_OPCACHE_STUCK;
	}
	return EPHPM_OPCACHE_USED;
}

void ephpm_opcache_enter(uint32_t slot)
{
	struct gate *g = opcache.gate;

	if (!g) {
		return;
	}
	opcache.inside = &g->slots[slot].inside;
	for (;;) {
		store(opcache.inside, 1);
		if (!load(&g->closed)) {
			return;
		}
		store(opcache.inside, 0);
		syscall(SYS_futex, &g->closed, FUTEX_WAIT, 1, NULL, NULL, 0);
	}
}

void ephpm_opcache_begun(void)
{
	uint64_t one = 1;

	if (!opcache.gate || opcache.state->accelerator_enabled) {
		return;
	}
	if (opcache.state->enabled && !swap(&opcache.gate->wanted, 1)
		&& write(opcache.bell, &one, sizeof(one)) < 0) {
		store(&opcache.gate->wanted, 0); /* the next request rings */
	}
	ephpm_opcache_leave(); /* without the cache there is nothing to fear */
}

void ephpm_opcache_leave(void)
{
	if (opcache.inside) {
		store(opcache.inside, 0);
		opcache.inside = NULL;
	}
}
