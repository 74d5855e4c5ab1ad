/*
 * batch.h: a plan node that answers calls of posterior.predict and predict_targets over one row
 * many rows at a time.
 *
 * `SELECT posterior.predict('oven', r) FROM r` calls a function for every row, and a model that
 * is asked about one row at a time reads all keys and values for each. plan_rewrite.c takes such
 * calls out of the target lists of a finished plan and puts a node above (batch_scan.c) that reads
 * a block of rows from the plan below, asks about all of them, and returns them one by one with the
 * answers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_BATCH_H
#define POSTERIOR_BATCH_H

#include "pg/base/compat.h"

#include "nodes/plannodes.h"

/* posterior.batch_calls */
extern bool posterior_batch_calls;

/* Register the node; for _PG_init. */
void		posterior_batch_scan_register(void);

/* Have finished plans rewritten; for _PG_init. */
void		posterior_plan_rewrite_register(void);

/*
 * The node above `below`, which returns the columns of `below` followed by the values of `calls`,
 * such calls, whose variables are of OUTER_VAR. The caller fills in targetlist and
 * qual, whose variables are of INDEX_VAR, and the fields that a planner sets.
 */
CustomScan *posterior_batch_scan_make(Plan *below, List *calls);

/* A form of posterior.predict or posterior.predict_targets over one row. */
typedef struct PosteriorPredictForm
{
	bool		named;			/* of a named context, not a value */
	bool		targets;		/* an array, of all targets */
} PosteriorPredictForm;

/* Whether this is the function behind such a form. */
bool		posterior_is_predict(Oid function, PosteriorPredictForm *form);

#endif							/* POSTERIOR_BATCH_H */
