/*
 * predict_batch.h: rows of one call of posterior.predict or posterior.predict_targets that are
 * answered together.
 *
 * A row's answer does not depend on the rows beside it, so a batch answers what the function would
 * answer row by row, bitwise on the CPU.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_PREDICT_BATCH_H
#define POSTERIOR_PREDICT_BATCH_H

#include "pg/base/compat.h"

/* Rows of a call that wait for their answers, all for one encoding. */
typedef struct PosteriorBatch PosteriorBatch;

/* What EXPLAIN tells of a batch. */
typedef struct PosteriorBatchSummary
{
	int64		rows;			/* answered */
	int64		requests;		/* in so many requests */
	int64		context_rows;	/* of the encoding used last */
	const char *model;			/* its name, or "" before the first row */
	int64		encodes;		/* of this session's processor: 0 where encodings were there */
	double		encode_seconds; /* that these took */
} PosteriorBatchSummary;

/*
 * A batch of the function that `function` calls, a form of posterior.predict over one row, or of
 * posterior.predict_targets: its arguments and result say which. It ends with `owner`. `function`
 * must have its expression set (fmgr_info_set_expr).
 */
PosteriorBatch *posterior_batch_make(MemoryContext owner, FmgrInfo *function, bool named,
									 bool targets);

/*
 * Take the row of these arguments. *answer and *isnull are set by this call where the answer needs
 * no model, or by the next posterior_batch_answer; values are allocated in the memory context that
 * is current then. Rows that wait for another encoding are answered first. Raises what
 * posterior.predict raises for the row.
 */
void		posterior_batch_add(PosteriorBatch *batch, FunctionCallInfo fcinfo, Datum *answer,
								bool *isnull);

/* Bytes that the answer to a row takes, once the first row is there. */
Size		posterior_batch_answer_size(const PosteriorBatch *batch);

/* Answer all rows that wait. */
void		posterior_batch_answer(PosteriorBatch *batch);

/* Forget the rows that wait. */
void		posterior_batch_clear(PosteriorBatch *batch);

/* Count a row that the caller answers by calling the function itself, between these two. */
void		posterior_batch_begin_alone(PosteriorBatch *batch);
void		posterior_batch_end_alone(PosteriorBatch *batch);

void		posterior_batch_summary(const PosteriorBatch *batch, PosteriorBatchSummary *summary);

#endif							/* POSTERIOR_PREDICT_BATCH_H */
