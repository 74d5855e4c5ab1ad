/*
 * row_limit.h: how many rows a prediction is made from at most (posterior.row_limit), and what a
 * joint question may cost that encodes again (posterior.joint_limit).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ROW_LIMIT_H
#define POSTERIOR_ROW_LIMIT_H

#include "pg/models/model_cache.h"

extern int	posterior_row_limit;	/* posterior.row_limit; -1: as the model says, 0: any number */

/*
 * Milliseconds by the estimate: a joint question whose encodings take longer is announced by a
 * NOTICE, or refused; -1: never.
 */
extern int	posterior_joint_notice;	/* posterior.joint_notice */
extern int	posterior_joint_limit;	/* posterior.joint_limit */

/* The most rows for this model; PG_INT64_MAX: any number. */
int64		posterior_row_limit_of(const PosteriorModel *model);

/* Raise if n rows are too many. `whose` begins the message: whose rows they are. */
void		posterior_check_row_limit(const PosteriorModel *model, const char *whose, int64 n,
									  int n_features);

/* Raise: there are more rows than the limit, how many more is not known. */
pg_noreturn void posterior_beyond_row_limit(const PosteriorModel *model, const char *whose,
											int n_features);

/* Warn that a context, which no prediction has read yet, has too many rows. */
void		posterior_warn_row_limit(const PosteriorModel *model, const char *whose,
									 int n_features);

/*
 * Say, or refuse, what `chains` chains (draws or orders) of n rows after a context of `context`
 * rows with so many views (0: as the setting says) take in encodings: a model that cannot append
 * encodes all rows again when a chain has as many as its buffer takes. `what` begins the message.
 */
void		posterior_check_joint_cost(const PosteriorModel *model, const char *what, int64 context,
									   int views, int64 n, int64 chains);

#endif							/* POSTERIOR_ROW_LIMIT_H */
