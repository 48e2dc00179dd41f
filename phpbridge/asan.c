/* What a program that is built with AddressSanitizer needs, see build/test-c.sh. */
#ifdef __SANITIZE_ADDRESS__

#include <dlfcn.h>

/* PHP loads extensions with RTLD_DEEPBIND, which the sanitizer refuses, for such a
 * library would not call its malloc. */
void *dlopen(const char *file, int mode)
{
	void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");

	return next(file, mode & ~RTLD_DEEPBIND);
}

/* PHP leaves much to the end of its process. libphp is loaded first. A crash of PHP
 * is for the front to see as it is. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0:verify_asan_link_order=0:abort_on_error=1:handle_segv=0";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
	return "halt_on_error=1:print_stacktrace=1";
}

#endif
