/*
 * named_hold.h: the encoding of a named context, as the active snapshot shows its rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_NAMED_HOLD_H
#define POSTERIOR_NAMED_HOLD_H

#include "encoding.h"
#include "named.h"

/* From the cache as far as it reaches. Raises what reading and the engine report. The question, or NULL, may have been answered then. */
PosteriorEncoding *posterior_named_hold(PosteriorModel *model, const PosteriorNamed *named, PosteriorQuestion *question);

/* From the rows, read and encoded now. */
PosteriorEncoding *posterior_named_fresh(PosteriorModel *model, const PosteriorNamed *named);

/*
 * Whether rows of the context can be others than a moment ago although the transaction's snapshot has the same numbers: they depend on more than the rows of one table, or
 * this transaction writes it. A running statement's rows become visible to functions that it calls without any command being counted.
 */
bool		posterior_named_may_change(const PosteriorNamed *named);

#endif							/* POSTERIOR_NAMED_HOLD_H */
