/*
 * kept_fold.h: sums of named contexts, made of the rows and brought up to date.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_KEPT_FOLD_H
#define POSTERIOR_KEPT_FOLD_H

#include "pg/named/definition.h"

/* Fewest rows that a basis is made of; a context with fewer is read like any other. */
#define POSTERIOR_KEPT_ROWS 32

/* Most notes that a writer, or a step of a worker, folds into the sums. */
#define POSTERIOR_KEPT_NOTES 65536

/*
 * Begin to keep sums for a context that has an identity and triggers: a basis of a sample of its
 * rows, the sums of all of them, and the model's fit, put into its definition. With too few rows
 * the definition gets none. Raises where sums cannot be kept.
 */
void		posterior_kept_begin(const char *name);

/*
 * Put notes into the sums, and make these anew where they are missing or not those of the table any
 * more. Does nothing where this transaction cannot: it would not see what others have written
 * meanwhile, or may not write.
 */
void		posterior_kept_settle(const PosteriorModel *model, const PosteriorNamed *named);

/*
 * Put a step's worth of notes into the sums, POSTERIOR_KEPT_NOTES at most, whether all of them are
 * that many or not; whether there were any. False also where another transaction is writing the
 * sums.
 */
bool		posterior_kept_fold_step(const PosteriorModel *model, const PosteriorNamed *named);

/*
 * Once in a while, so that there are some hundred notes as a rule: put those of transactions that
 * have ended, and of this one's earlier commands, into the sums. Fails without an error.
 */
void		posterior_kept_fold_sometimes(const pg_uuid_t *kept);

#endif							/* POSTERIOR_KEPT_FOLD_H */
