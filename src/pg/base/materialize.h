/*
 * materialize.h: results of set-returning functions in a tuplestore.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_MATERIALIZE_H
#define POSTERIOR_MATERIALIZE_H

#include "pg/base/compat.h"

/*
 * Make this call of a set-returning function fill a tuplestore: the setResult and setDesc of what
 * is returned. Raises 0A000 where the caller accepts no set, and 55000 where the function was
 * declared by an older version of the extension.
 */
ReturnSetInfo *posterior_materialize(FunctionCallInfo fcinfo);

#endif							/* POSTERIOR_MATERIALIZE_H */
