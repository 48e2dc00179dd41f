/* Memory for what comes from the front. */
#ifndef EPHPM_NEED_H
#define EPHPM_NEED_H

#include "compat.h"

/* Ends the script with PHP's own fatal error when so many bytes more are over its
 * memory_limit, or the limit is passed already. For whoever takes memory by what
 * others say: some builds of PHP let C code pass the limit up to a second one, at
 * which the process ends. Called within zend_try, holding nothing. */
void ephpm_need(size_t size);

#endif
