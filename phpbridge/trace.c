#include "trace.h"

#include <sys/uio.h>

#include "compat.h"

/* Frames beyond this are left out. */
#define FRAMES_MAX 50

/* Bytes of a name or path that are shown. */
#define NAME_MAX_SHOWN 255

/* The child was forked from this process after PHP had started, so PHP's globals
 * have the same addresses in both. */
static bool peek(pid_t pid, const void *address, void *to, size_t len)
{
	struct iovec local = {to, len}, remote = {(void *)address, len};

	return address && process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

/* Copies a string of the child; what is no text is shown as question marks. */
static void peek_string(pid_t pid, const zend_string *s, char *to)
{
	zend_string head;

	strcpy(to, "?");
	if (!peek(pid, s, &head, _ZSTR_HEADER_SIZE)) {
		return;
	}
	size_t len = MIN(head.len, NAME_MAX_SHOWN);
	if (!peek(pid, ZSTR_VAL(s), to, len)) {
		return;
	}
	to[len] = 0;
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)to[i] < ' ') {
			to[i] = '?';
		}
	}
}

/* Class and function of a frame, "{main}" for a script. */
static void peek_name(pid_t pid, const zend_function *f, char *to, size_t size)
{
	char class[NAME_MAX_SHOWN + 1] = "", name[NAME_MAX_SHOWN + 1];
	zend_class_entry *scope = f->common.scope;
	zend_string *class_name;

	if (!f->common.function_name) {
		snprintf(to, size, "{main}");
		return;
	}
	peek_string(pid, f->common.function_name, name);
	if (scope
		&& peek(pid, (const char *)scope + XtOffsetOf(zend_class_entry, name), &class_name,
			sizeof(class_name))) {
		peek_string(pid, class_name, class);
	}
	snprintf(to, size, "%s%s%s()", class, *class ? "::" : "", name);
}

static size_t add_frame(
	pid_t pid, const zend_execute_data *frame, const zend_function *f, char *text, size_t size)
{
	char name[2 * NAME_MAX_SHOWN + 8], file[NAME_MAX_SHOWN + 1];
	zend_op op;

	peek_name(pid, f, name, sizeof(name));
	if (f->type != ZEND_USER_FUNCTION) {
		return snprintf(text, size, "%s\n", name);
	}
	peek_string(pid, f->op_array.filename, file);
	uint32_t line = peek(pid, frame->opline, &op, sizeof(op)) ? op.lineno : 0;
	return snprintf(text, size, "%s %s:%u\n", name, file, line);
}

size_t ephpm_trace(pid_t pid, char *text, size_t size)
{
	zend_execute_data *at, frame;
	zend_function f;
	size_t len = 0;

	if (!peek(pid, &EG(current_execute_data), &at, sizeof(at))) {
		return 0;
	}
	if (!at) {
		return snprintf(text, size, "{no script}\n");
	}
	for (int i = 0; at && i < FRAMES_MAX && size - len > 4 * NAME_MAX_SHOWN; i++) {
		if (!peek(pid, at, &frame, sizeof(frame))) {
			break;
		}
		at = frame.prev_execute_data;
		memset(&f, 0, sizeof(f));
		/* An internal function is shorter than a user's, and may be the last
		 * thing in its page. */
		if (!peek(pid, frame.func, &f, sizeof(f.common))) {
			continue;
		}
		if (f.type == ZEND_USER_FUNCTION && !peek(pid, frame.func, &f, sizeof(f))) {
			continue;
		}
		len += add_frame(pid, &frame, &f, text + len, size - len);
	}
	return len;
}
