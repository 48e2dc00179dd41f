/* PHP on the command line: what php-cli does, with libphp. */
#ifndef EPHPM_CLI_H
#define EPHPM_CLI_H

/* Holds the value of PHP_BINARY when this program starts in the role "cli". */
#define EPHPM_CLI_BINARY_VARIABLE "EPHPM_PHP_BINARY"

/* Where the server is that host calls go to: the path of its socket, or why there is
 * none; and which of its sites. */
#define EPHPM_CLI_SERVER_VARIABLE "EPHPM_PHP_SERVER"
#define EPHPM_CLI_SITE_VARIABLE "EPHPM_PHP_SITE"

/* What these variables say. */
struct ephpm_cli_place {
	const char *binary, *server, *site;
};

/* Runs what the command line asks for and ends the process. */
void ephpm_cli_main(int argc, char **argv, const struct ephpm_cli_place *place)
	__attribute__((noreturn));

/* Notes which signals are ignored, before the Go runtime takes them over; and,
 * when this process is about to be replaced, ignores them again: what a shell's
 * trap or nohup wants of a program holds for scripts too. */
void ephpm_cli_note_signals(void);
int ephpm_cli_restore_signals(void); /* how many */

#endif
