/* The session save handler of the key-value store. */
#ifndef EPHPM_SESSION_H
#define EPHPM_SESSION_H

#include "compat.h"

/* Makes the handler known to PHP's session extension, as a module starts. */
void ephpm_session_register(void);

#endif
