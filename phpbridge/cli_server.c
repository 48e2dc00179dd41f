/* Host calls of the command line: over a Unix socket to a server that runs. It is
 * connected to at the first call, and again when the server was restarted. */
#include "cli_parts.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "call.h"
#include "record.h"

/* The server may wait for a client that reads slowly, but not for longer than this
 * with its greeting. In seconds. */
#define GREETING_MAX 10

struct remote {
	const char *where; /* the socket; or why there is none, when it starts with no slash */
	const char *site;  /* "" for the only one */
	int fd;            /* -1: not connected */
	uint8_t *answer;
	size_t size;
};

static struct remote remote = {.where = "", .site = "", .fd = -1};

static void disconnect(void)
{
	if (remote.fd >= 0) {
		close(remote.fd);
		remote.fd = -1;
	}
}

void ephpm_cli_server_start(const char *where, const char *site)
{
	remote.where = where;
	remote.site = site;
	ephpm_worker.call = ephpm_cli_server_call;
	pthread_atfork(NULL, NULL, disconnect); /* answers are for one process */
}

/* Throws why it failed; NULL: what the system says. */
static bool fail(const char *why)
{
	const char *function = get_active_function_name();

	if (!why) {
		why = errno ? strerror(errno) : "it ended the connection";
	}
	disconnect();
	if (*remote.where == '/') {
		zend_throw_error(
			NULL, "%s() cannot reach the server at %s: %s", function, remote.where, why);
	} else {
		zend_throw_error(NULL, "%s() cannot reach the server: %s", function, why);
	}
	return false;
}

static bool send_all(const void *data, size_t len)
{
	for (const char *at = data; len;) {
		ssize_t n = send(remote.fd, at, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return false;
		}
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static bool receive_all(void *data, size_t len)
{
	for (char *at = data; len;) {
		ssize_t n = recv(remote.fd, at, len, 0);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			errno = n ? errno : 0; /* the end is no error of the system */
			return false;
		}
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static bool send_header(uint8_t type, size_t len)
{
	uint8_t header[EPHPM_RECORD_HEADER] = {0};
	uint32_t n = (uint32_t)len;

	memcpy(header, &n, sizeof(n));
	header[4] = type;
	return send_all(header, sizeof(header));
}

/* Receives a record into remote.answer, with a NUL behind it. */
static bool receive_record(uint8_t *type, size_t *len)
{
	uint8_t header[EPHPM_RECORD_HEADER];
	uint32_t n;

	if (!receive_all(header, sizeof(header))) {
		return false;
	}
	memcpy(&n, header, sizeof(n));
	*type = header[4];
	*len = n;
	if (n > EPHPM_CALL_MAX) {
		errno = EPROTO;
		return false;
	}
	if (n >= remote.size) {
		free(remote.answer);
		remote.size = n + 1;
		remote.answer = malloc(remote.size);
		if (!remote.answer) {
			remote.size = 0;
			return false;
		}
	}
	remote.answer[n] = 0;
	return receive_all(remote.answer, n);
}

static bool greet(void)
{
	const uint16_t version = EPHPM_REMOTE_VERSION;
	struct timeval limit = {GREETING_MAX, 0}, none = {0, 0};
	size_t len = strlen(remote.site);
	uint8_t type;

	setsockopt(remote.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (!send_header(EPHPM_REC_HELLO, sizeof(version) + len) || !send_all(&version, sizeof(version))
		|| !send_all(remote.site, len) || !receive_record(&type, &len)) {
		return fail(NULL);
	}
	if (type == EPHPM_REC_REFUSED) {
		return fail((const char *)remote.answer);
	}
	if (type != EPHPM_REC_WELCOME) {
		errno = EPROTO;
		return fail(NULL);
	}
	setsockopt(remote.fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	return true;
}

static bool connect_server(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (*remote.where != '/') {
		return fail(remote.where);
	}
	if (strlen(remote.where) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return fail(NULL);
	}
	strcpy(address.sun_path, remote.where);
	remote.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (remote.fd < 0 || connect(remote.fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		return fail(errno == ENOENT || errno == ECONNREFUSED ? "none is running" : NULL);
	}
	return greet();
}

/* The server says nothing unasked: what can be read is the end. */
static bool was_ended(void)
{
	struct pollfd p = {remote.fd, POLLIN, 0};

	return poll(&p, 1, 0) != 0;
}

bool ephpm_cli_server_call(
	struct ephpm_call *c, uint16_t function, const uint8_t **answer, size_t *len)
{
	const uint16_t count = (uint16_t)c->count;
	uint8_t type;

	if (remote.fd >= 0 && was_ended()) {
		disconnect();
	}
	if (remote.fd < 0 && !connect_server()) {
		return false;
	}
	if (!send_header(EPHPM_REC_CALL, ephpm_call_len(c)) || !send_all(&function, sizeof(function))
		|| !send_all(&count, sizeof(count))
		|| (c->values.s && !send_all(ZSTR_VAL(c->values.s), ZSTR_LEN(c->values.s)))
		|| !receive_record(&type, len)) {
		return fail(NULL);
	}
	if (type != EPHPM_REC_ANSWER || !*len) {
		return fail(type == EPHPM_REC_REFUSED ? (const char *)remote.answer : "it sent nonsense");
	}
	*answer = remote.answer;
	return true;
}
