/* What OPcache has in its shared memory. */
#ifndef EPHPM_OPCACHE_H
#define EPHPM_OPCACHE_H

#include <stdbool.h>

#include "wire.h"

/* Reads it, outside of any request. False: there is no OPcache, or it keeps nothing
 * in memory. */
bool ephpm_opcache_read(struct ephpm_opcache *o);

#endif
