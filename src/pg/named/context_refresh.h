/*
 * context_refresh.h: a context's prefix, made anew.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CONTEXT_REFRESH_H
#define POSTERIOR_CONTEXT_REFRESH_H

#include "pg/base/compat.h"

#include "utils/uuid.h"

extern double posterior_drift_limit;	/* posterior.drift_limit; 0: off */

/*
 * Give a context a new definition whose prefix is the rows that are there now, for all that see it.
 * The caller has locked the relation and checked the user's rights. While another transaction
 * changes the definition it waits, unless it is told of a version: then it does nothing, now and
 * when the definition has another version.
 */
void		posterior_refresh(const char *name, const pg_uuid_t *id, const pg_uuid_t *version);

#endif							/* POSTERIOR_CONTEXT_REFRESH_H */
