/* The zygote: starts PHP once and forks workers from there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leftover.h"
#include "opcache.h"
#include "opcache_empty.h"
#include "sapi.h"
#include "trace.h"
#include "worker.h"
#include "zygote.h"

/* Longest message on the control socket; php.ini entries may be long. */
#define MESSAGE_MAX (128 * 1024)
_Static_assert(MESSAGE_MAX > EPHPM_CONFIG_MAX, "a configuration fits a message");

/* A worker as the zygote knows it. */
struct child {
	pid_t pid; /* 0: the slot is empty */
	uint32_t generation;
};

struct zygote {
	struct ephpm_shared shared;
	int signals; /* signalfd of SIGCHLD */
	struct child children[EPHPM_SLOTS];
};

static struct zygote zygote;
static char buffer[sizeof(struct ephpm_message) + MESSAGE_MAX];

static void send_message(
	uint32_t type, uint32_t slot, uint32_t generation, int32_t value, const char *text, size_t len)
{
	struct ephpm_message m = {type, slot, generation, value};
	struct iovec parts[] = {{&m, sizeof(m)}, {(char *)text, len}};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2};

	while (sendmsg(EPHPM_FD_CONTROL, &header, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR) {
			_exit(1); /* the front has gone */
		}
	}
}

static void fail(const char *why)
{
	send_message(EPHPM_MSG_FAILED, 0, 0, 0, why, strlen(why));
	_exit(1);
}

/* Receives one message and, if it carried one, a descriptor. Returns its length,
 * 0 at the end of the socket. */
static size_t receive(struct ephpm_message **m, int *fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {buffer, sizeof(buffer) - 1};
	struct msghdr header = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n;

	*fd = -1;
	do {
		n = recvmsg(EPHPM_FD_CONTROL, &header, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof(struct ephpm_message)) {
		return 0;
	}
	struct cmsghdr *c = CMSG_FIRSTHDR(&header);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	}
	buffer[n] = 0;
	*m = (struct ephpm_message *)buffer;
	return (size_t)n;
}

/* Programs that PHP starts get nothing of ours. */
static void hide_descriptors(void)
{
	for (int fd = EPHPM_FD_CONTROL; fd <= EPHPM_FD_DOORBELL; fd++) {
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
	/* Nor what the server itself inherited. PHP opens what it needs later. */
	syscall(SYS_close_range, EPHPM_FD_DOORBELL + 1, ~0u, 0);
}

/* Signals meant for the server reach the whole process group or control group.
 * The front alone acts on them; a handler that does nothing, unlike SIG_IGN, is
 * not inherited by programs that PHP starts. */
static void ignored(int number)
{
	(void)number;
}

static void set_signals(void)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE};
	struct sigaction action = {.sa_handler = ignored, .sa_flags = SA_RESTART};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		sigaction(numbers[i], &action, NULL);
	}
}

static void watch_children(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	zygote.signals = signalfd(-1, &set, SFD_CLOEXEC);
}

/* What is different in a worker: no control socket, its own stderr, and an end
 * with the zygote. */
static void become_worker(uint32_t slot, int errors, pid_t parent, const char *uploads)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) {
		_exit(EPHPM_EXIT_STOPPED);
	}
	close(EPHPM_FD_CONTROL);
	close(EPHPM_FD_SHARED);
	close(zygote.signals);
	if (errors >= 0) {
		dup2(errors, STDERR_FILENO);
		dup2(errors, STDOUT_FILENO);
		close(errors);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	ephpm_worker_main(&zygote.shared, slot, uploads);
}

static void do_fork(const struct ephpm_message *m, int errors)
{
	if (m->slot >= EPHPM_SLOTS) {
		fail("fork into a slot that does not exist");
	}
	ephpm_opcache_forget(m->slot);
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		become_worker(m->slot, errors, parent, (const char *)(m + 1));
	}
	if (errors >= 0) {
		close(errors);
	}
	if (pid > 0) {
		zygote.children[m->slot] = (struct child){pid, m->generation};
	}
	send_message(EPHPM_MSG_FORKED, m->slot, m->generation, pid, NULL, 0);
}

static void do_kill(const struct ephpm_message *m)
{
	if (m->slot >= EPHPM_SLOTS) {
		return;
	}
	const struct child *c = &zygote.children[m->slot];
	if (c->pid > 0 && c->generation == m->generation) {
		if (m->value == SIGKILL) {
			ephpm_leftover_remove(c->pid);
		}
		kill(c->pid, m->value);
	}
}

/* The worker may have ended the request meanwhile: then there is nothing to say. */
static void do_trace(const struct ephpm_message *m)
{
	static char text[16 * 1024];
	size_t len = 0;

	if (m->slot >= EPHPM_SLOTS) {
		return;
	}
	const struct child *c = &zygote.children[m->slot];
	const struct ephpm_slot *slot = &zygote.shared.slots[m->slot];
	uint32_t job = (uint32_t)m->value + 1;
	if (c->pid > 0 && c->generation == m->generation
		&& __atomic_load_n(&slot->job, __ATOMIC_SEQ_CST) == job) {
		len = ephpm_trace(c->pid, text, sizeof(text));
		len = __atomic_load_n(&slot->job, __ATOMIC_SEQ_CST) == job ? len : 0;
	}
	send_message(EPHPM_MSG_TRACED, m->slot, m->generation, m->value, text, len);
}

static void do_opcache(const struct ephpm_message *m)
{
	struct ephpm_opcache o;
	bool is_known = ephpm_opcache_read(&o);

	send_message(
		EPHPM_MSG_OPCACHED, 0, m->generation, 0, (const char *)&o, is_known ? sizeof(o) : 0);
}

static void reap(void)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	if (read(zygote.signals, &info, sizeof(info)) < 0) {
		return;
	}
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (uint32_t i = 0; i < EPHPM_SLOTS; i++) {
			if (zygote.children[i].pid == pid) {
				zygote.children[i].pid = 0;
				ephpm_opcache_forget(i);
				send_message(EPHPM_MSG_DIED, i, zygote.children[i].generation, status, NULL, 0);
				break;
			}
		}
	}
}

static void empty_opcache(void)
{
	switch (ephpm_opcache_empty()) {
	case EPHPM_OPCACHE_EMPTIED:
		send_message(EPHPM_MSG_EMPTIED, 0, 0, 0, NULL, 0);
		break;
	case EPHPM_OPCACHE_STUCK:
		send_message(EPHPM_MSG_STUCK, 0, 0, 0, NULL, 0);
		break;
	case EPHPM_OPCACHE_USED:
		break;
	}
}

static void serve(void)
{
	struct pollfd fds[] = {{EPHPM_FD_CONTROL, POLLIN, 0}, {zygote.signals, POLLIN, 0},
		{ephpm_opcache_bell(), POLLIN, 0}};
	struct ephpm_message *m;
	int fd;

	for (;;) {
		if (poll(fds, 3, ephpm_opcache_delay()) < 0) {
			continue;
		}
		if (fds[1].revents) {
			reap();
		}
		if (fds[2].revents || ephpm_opcache_delay() == 0) {
			empty_opcache();
		}
		if (!fds[0].revents) {
			continue;
		}
		if (!receive(&m, &fd)) {
			_exit(0); /* the front has ended; the workers follow */
		}
		if (m->type == EPHPM_MSG_FORK) {
			do_fork(m, fd);
		} else if (m->type == EPHPM_MSG_KILL) {
			do_kill(m);
		} else if (m->type == EPHPM_MSG_TRACE) {
			do_trace(m);
		} else if (m->type == EPHPM_MSG_OPCACHE) {
			do_opcache(m);
		}
	}
}

static void start_php(void)
{
	static char config[MESSAGE_MAX + 4];
	struct ephpm_sapi_config c;
	struct ephpm_message *m;
	int fd;

	if (!receive(&m, &fd) || m->type != EPHPM_MSG_CONFIG) {
		_exit(1);
	}
	if (!php_module_startup) {
		fail("the PHP library " EPHPM_LIBPHP " cannot be loaded");
	}
	memcpy(config, buffer + sizeof(*m), MESSAGE_MAX);
	c.name = config;
	c.ini_file = c.name + strlen(c.name) + 1;
	c.ini_entries = c.ini_file + strlen(c.ini_file) + 1;
	c.env = c.ini_entries + strlen(c.ini_entries) + 1;
	c.disable = c.env + strlen(c.env) + 1;
	const char *no_new_privs = c.disable + strlen(c.disable) + 1;
	if (*no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		fail("the system does not know no_new_privs");
	}
	if (!ephpm_sapi_startup(&c)) {
		fail("PHP did not start; its own messages are above");
	}
}

static void send_ready(void)
{
	bool opcache = zend_hash_str_exists(&module_registry, ZEND_STRL("zend opcache"))
		&& zend_ini_long(ZEND_STRL("opcache.enable"), 0);
	const char *uploads = PG(upload_tmp_dir) && *PG(upload_tmp_dir) ? PG(upload_tmp_dir)
																	: php_get_temporary_directory();
	char text[PATH_MAX + 64];
	int len = snprintf(text, sizeof(text), "%s%c%d%c%s", PHP_VERSION, 0, opcache, 0, uploads);

	send_message(EPHPM_MSG_READY, 0, 0, 0, text, MIN((size_t)len, sizeof(text) - 1));
	if (PG(php_sys_temp_dir)) { /* or the first request of a worker would keep it */
		efree(PG(php_sys_temp_dir));
		PG(php_sys_temp_dir) = NULL;
	}
}

void ephpm_zygote_main(int argc, char **argv)
{
	if (argc > 0) {
		ephpm_worker.process_name = argv[0];
		ephpm_worker.process_name_size = strlen(argv[0]) + 1;
	}
	prctl(PR_SET_NAME, "ephpm-zygote", 0, 0, 0);
	/* What scripts start and leave behind is waited for by reap, also where the
	 * front is process 1 and nobody else would. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	set_signals();
	if (!ephpm_shared_map(&zygote.shared, EPHPM_FD_SHARED, EPHPM_FD_DOORBELL)) {
		fail("the shared memory does not fit this program");
	}
	if (!ephpm_kv_map(EPHPM_FD_STORES, zygote.shared.pool->stores)) {
		fail("the memory of a key-value store cannot be mapped");
	}
	hide_descriptors();
	start_php();
	ephpm_opcache_start();
	watch_children();
	send_ready();
	serve();
	_exit(0);
}
