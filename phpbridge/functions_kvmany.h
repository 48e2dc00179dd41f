/* The ephpm_kv_ functions that take any number of keys, fields or values. */
#ifndef EPHPM_FUNCTIONS_KVMANY_H
#define EPHPM_FUNCTIONS_KVMANY_H

#include "sapi.h"

ZEND_FUNCTION(ephpm_kv_del);
ZEND_FUNCTION(ephpm_kv_hdel);
ZEND_FUNCTION(ephpm_kv_mget);
ZEND_FUNCTION(ephpm_kv_mset);

#endif
