#include "leftover.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compat.h"

/* PHP names them php and a fixed number of letters or digits. */
static bool is_temporary_name(const char *name)
{
	if (strncmp(name, "php", 3) != 0 || strlen(name) != 3 + EPHPM_COMPAT_TEMPORARY_LETTERS) {
		return false;
	}
	for (name += 3; *name; name++) {
		if (!isalnum((unsigned char)*name)) {
			return false;
		}
	}
	return true;
}

/* The path is in the directory of temporary files, and in none below it. */
static bool is_temporary_path(const char *path)
{
	const char *dir = php_get_temporary_directory();
	size_t len = strlen(dir);

	while (len > 1 && dir[len - 1] == '/') {
		len--;
	}
	return !strncmp(path, dir, len) && path[len] == '/' && is_temporary_name(path + len + 1);
}

/* The path still leads to the open file, which has no other name and is as private
 * as mkstemp made it. */
static bool is_same_file(const char *open_file, const char *path)
{
	struct stat a, b;

	return !stat(open_file, &a) && !lstat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino
		&& S_ISREG(b.st_mode) && (b.st_mode & 07777) == 0600 && b.st_nlink == 1;
}

static void remove_if_temporary(int fds, const char *dir, const char *name)
{
	char open_file[64], path[PATH_MAX];
	ssize_t len = readlinkat(fds, name, path, sizeof(path) - 1);

	if (len <= 0) {
		return;
	}
	path[len] = 0;
	snprintf(open_file, sizeof(open_file), "%s/%.16s", dir, name);
	if (is_temporary_path(path) && is_same_file(open_file, path)) {
		unlink(path);
	}
}

void ephpm_leftover_remove(pid_t pid)
{
	char dir[32];

	snprintf(dir, sizeof(dir), "/proc/%d/fd", (int)pid);
	DIR *fds = opendir(dir);
	if (!fds) {
		return;
	}
	for (struct dirent *e; (e = readdir(fds));) {
		remove_if_temporary(dirfd(fds), dir, e->d_name);
	}
	closedir(fds);
}
