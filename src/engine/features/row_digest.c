/*
 * row_digest.c: numbers that stand for rows of the prefix, where something has to be ordered and
 * names must not decide (docs/model-format.md section 5, "Digests").
 *
 * A row of digest d is likely a row of the same places in all its columns: sums of digests tell
 * sets of rows apart, in an order that says nothing else.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/row_digest.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/compare.h"
#include "engine/base/error.h"
#include "engine/base/exact.h"
#include "engine/base/mix.h"
#include "engine/base/sorted.h"
#include "engine/features/column.h"
#include "engine/features/far.h"

/* What one column is worked out in, of all [n0]. */
typedef struct Work
{
	double	   *column;			/* its cells, NaN where missing */
	double	   *cells;			/* those that are there, sorted */
	int64_t    *place;			/* of a number among these, or where a label begins */
	uint64_t   *sum;			/* of the label that begins there */
	int64_t    *target_place;
} Work;

/* Read column f, of a number those that are not far (far.h). Returns how many cells are there. */
static int64_t
read_column(const TnpModel *model, const TnpRows *rows, int64_t n0, int f, bool labels,
			const Work *work)
{
	TnpReach	reach = {0};
	int64_t		m = 0,
				near = 0;

	for (int64_t i = 0; i < n0; i++)
	{
		work->column[i] = rows->x[i * rows->n_features + f];
		if (!isnan(work->column[i]))
			work->cells[m++] = work->column[i];
	}
	qsort(work->cells, m, sizeof(double), tnp_compare_doubles);
	if (labels || !(model->config.far_cells > 0))
		return m;
	tnp_cells_bind(work->cells, m, model->config.far_cells, &reach);
	for (int64_t i = 0; i < n0; i++)
		if (tnp_is_far(&reach, work->column[i]))
			work->column[i] = NAN;
	for (int64_t k = 0; k < m; k++)
		if (!tnp_is_far(&reach, work->cells[k]))
			work->cells[near++] = work->cells[k];
	return near;
}

/* Add a column of labels, of m cells: a label stands for the targets of its rows. */
static void
add_labels(int64_t n0, int64_t m, const Work *work, uint64_t *digest)
{
	for (int64_t k = 0; k < m; k++)
		work->sum[k] = 0;
	for (int64_t i = 0; i < n0; i++)
		if (!isnan(work->column[i]))
		{
			work->place[i] = tnp_count_below(work->cells, m, work->column[i], false);
			work->sum[work->place[i]] += tnp_mix((uint64_t) work->target_place[i]);
		}
	for (int64_t i = 0; i < n0; i++)
		if (!isnan(work->column[i]))
			digest[i] += tnp_mix(work->sum[work->place[i]]);
}

/*
 * Add a column of numbers, of m cells: their places, turned to the side on which targets rise with
 * them, or without a side where they do neither.
 */
static void
add_numbers(int64_t n0, int64_t m, const Work *work, uint64_t *digest)
{
	TnpExact	rise = 0;

	for (int64_t i = 0; i < n0; i++)
		if (!isnan(work->column[i]))
		{
			work->place[i] = tnp_place_from_middle(work->cells, m, work->column[i]);
			rise += (TnpExact) work->place[i] * work->target_place[i];
		}
	for (int64_t i = 0; i < n0; i++)
		if (!isnan(work->column[i]))
			digest[i] += tnp_mix((uint64_t) (rise > 0 ? work->place[i] : rise < 0 ? -work->place[i]
											 : llabs(work->place[i])));
}

/* All columns, then the target. */
static TnpStatus
add_all(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, const Work *work,
		uint64_t *digest, TnpError *error)
{
	int64_t		n0 = stats->n0;

	for (int64_t i = 0; i < n0; i++)
	{
		digest[i] = 0;
		work->cells[i] = tnp_compared_target(model, stats, rows->y[i]);
	}
	qsort(work->cells, n0, sizeof(double), tnp_compare_doubles);
	for (int64_t i = 0; i < n0; i++)
	{
		double		target = tnp_compared_target(model, stats, rows->y[i]);

		work->target_place[i] = tnp_place_from_middle(work->cells, n0, target);
	}
	for (int f = 0; f < rows->n_features; f++)
	{
		bool		labels = rows->kinds != NULL && rows->kinds[f] == TNP_CATEGORICAL;
		int64_t		m;

		if (tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		m = read_column(model, rows, n0, f, labels, work);
		if (labels)
			add_labels(n0, m, work, digest);
		else
			add_numbers(n0, m, work, digest);
	}
	for (int64_t i = 0; i < n0; i++)
		digest[i] = tnp_mix(digest[i] + (uint64_t) work->target_place[i]);
	return TNP_OK;
}

TnpStatus
tnp_row_digests(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
				uint64_t *digest, TnpError *error)
{
	const TnpEnv *env = &model->env;
	Work		work = {
		.column = tnp_alloc(env, stats->n0, sizeof(double)),
		.cells = tnp_alloc(env, stats->n0, sizeof(double)),
		.place = tnp_alloc(env, stats->n0, sizeof(int64_t)),
		.sum = tnp_alloc(env, stats->n0, sizeof(uint64_t)),
		.target_place = tnp_alloc(env, stats->n0, sizeof(int64_t)),
	};
	TnpStatus	status;

	if (work.column == NULL || work.cells == NULL || work.place == NULL || work.sum == NULL
		|| work.target_place == NULL)
		status = tnp_no_memory(error);
	else
		status = add_all(model, stats, rows, &work, digest, error);
	tnp_free(env, work.column);
	tnp_free(env, work.cells);
	tnp_free(env, work.place);
	tnp_free(env, work.sum);
	tnp_free(env, work.target_place);
	return status;
}
