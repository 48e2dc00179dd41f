/* The title of the process, as ps shows it. The kernel shows the memory that it
 * put the command line into, and behind that the environment: a title is
 * written over both, so the strings in there are copied first. */
#include "cli_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	char *memory, *end;
	bool set;
} title;

/* Moves the strings that lie one behind the other from title.end on. */
static void move(char **strings)
{
	for (; *strings && *strings == title.end; strings++) {
		title.end += strlen(*strings) + 1;
		*strings = strdup(*strings);
	}
}

char **ephpm_cli_title_start(int argc, char **argv)
{
	char **copies = malloc((argc + 1) * sizeof(*copies));

	memcpy(copies, argv, (argc + 1) * sizeof(*copies));
	title.memory = title.end = argv[0];
	move(copies);
	if (copies[argc - 1] != argv[argc - 1]) { /* all of argv lay there */
		move(environ);
	}
	return copies;
}

void ephpm_cli_title_set(const char *text, size_t len)
{
	size_t size = title.end - title.memory;

	memset(title.memory, 0, size);
	memcpy(title.memory, text, MIN(len, size - 1));
	title.set = true;
}

const char *ephpm_cli_title(void)
{
	return title.set ? title.memory : "";
}
