#ifndef EPHPM_ZYGOTE_H
#define EPHPM_ZYGOTE_H

/* Serves the front as its zygote until the front is gone. */
void ephpm_zygote_main(int argc, char **argv) __attribute__((noreturn));

#endif
