/* PHP on the command line: what php-cli does, with libphp. */
#ifndef EPHPM_CLI_H
#define EPHPM_CLI_H

/* Holds the value of PHP_BINARY when this program starts in the role "cli". */
#define EPHPM_CLI_BINARY_VARIABLE "EPHPM_PHP_BINARY"

/* Runs what the command line asks for and ends the process. */
void ephpm_cli_main(int argc, char **argv, const char *binary) __attribute__((noreturn));

#endif
