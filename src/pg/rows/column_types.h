/*
 * column_types.h: what columns of an SQL type can be in a model's rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_COLUMN_TYPES_H
#define POSTERIOR_COLUMN_TYPES_H

#include "pg/base/compat.h"

/* Whether columns of this type can be features, or the target. */
bool		posterior_can_be_feature(Oid type);
bool		posterior_can_be_target(Oid type);

/* Whether values of a type are numbers that a model can predict. */
bool		posterior_is_number(Oid type);

/*
 * Whether values of a type have attributes: then ALTER TYPE can change what they are and how they
 * are ordered, without any row being written.
 */
bool		posterior_has_attributes(Oid type);

#endif							/* POSTERIOR_COLUMN_TYPES_H */
