/* What belongs to the site of a request, in a pool that several sites share: its
 * environment, its ini settings, its directory for uploads. */
#ifndef EPHPM_TENANT_H
#define EPHPM_TENANT_H

/* Has OPcache ask open_basedir. Once, after PHP has started. */
void ephpm_tenant_watch(void);

/* Puts the site's variables into the environment, before PHP's request startup. */
void ephpm_tenant_begin(void);

/* Applies the site's ini settings, before it as well, but where PHP may bail out.
 * PHP undoes them at its request shutdown. */
void ephpm_tenant_settings(void);

/* Puts the environment back, after PHP's request shutdown. */
void ephpm_tenant_end(void);

#endif
