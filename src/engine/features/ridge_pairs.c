/*
 * ridge_pairs.c: columns that say something together or by a curve, and nothing in any linear way
 * (docs/model-format.md section 5, "Pairs").
 *
 * Of a column that says nothing the product with another and with a residual has the mean 0,
 * whatever the other says. So its sum is compared with the root of its sum of squares, which needs
 * no variance to exist, and whose tails are those of a normal variable or lighter. With labels
 * there is one such sum for each of them, and their squares are added up.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/ridge_pairs.h"

#include <math.h>

#include "engine/base/error.h"
#include "engine/features/column.h"
#include "engine/features/ridge_fit.h"

#define FORMS 2					/* of a cell: its value, and its distance from zero */
#define MOST_ROWS 1024			/* are looked at: more would tell smaller effects, at their cost */

/* What is looked at: residuals [m], and forms of cells [m, n_slots], less their means. */
typedef struct Pairs
{
	int64_t		m;
	int			n_slots;
	double	   *residual,
			   *form[FORMS],
			   *sum,			/* [n_slots] of one form of one slot, with those behind it */
			   *square;
	int		   *label;			/* [m, n_slots] bins of categorical slots */
} Pairs;

static void
pairs_free(const TnpEnv *env, Pairs *p)
{
	for (int k = 0; k < FORMS; k++)
		tnp_free(env, p->form[k]);
	tnp_free(env, p->residual);
	tnp_free(env, p->sum);
	tnp_free(env, p->square);
	tnp_free(env, p->label);
}

static bool
pairs_alloc(const TnpEnv *env, Pairs *p)
{
	bool		there = true;

	for (int k = 0; k < FORMS; k++)
	{
		p->form[k] = tnp_alloc_zero(env, (size_t) p->m * p->n_slots, sizeof(double));
		there = there && p->form[k] != NULL;
	}
	p->residual = tnp_alloc(env, (size_t) p->m, sizeof(double));
	p->sum = tnp_alloc(env, (size_t) p->n_slots, sizeof(double));
	p->square = tnp_alloc(env, (size_t) p->n_slots, sizeof(double));
	p->label = tnp_alloc(env, (size_t) p->m * p->n_slots, sizeof(int));
	return there && p->residual != NULL && p->sum != NULL && p->square != NULL
		&& p->label != NULL;
}

/* The i-th row that is looked at. */
static int64_t
pairs_row(const Pairs *p, const TnpStats *stats, int64_t i)
{
	return (2 * i + 1) * stats->n0 / (2 * p->m);
}

/* The forms of a numeric slot; 0 where the cell is missing. */
static void
slot_forms(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, int s, Pairs *p)
{
	const TnpColumn *column = tnp_slot_column(stats, s);
	double		mean[FORMS] = {0};
	int64_t		present = 0;

	for (int pass = 0; pass < 2; pass++)
		for (int64_t i = 0; i < p->m; i++)
		{
			const double *x = rows->x + pairs_row(p, stats, i) * rows->n_features;
			double		value = tnp_column_value(column, tnp_slot_cell(stats, s, x)),
						z;

			if (isnan(value))
				continue;
			z = tnp_column_scale(model, column, value);
			for (int k = 0; k < FORMS; k++)
				if (pass == 0)
					mean[k] += k == 0 ? z : fabs(z);
				else
					p->form[k][i * p->n_slots + s] =
						(k == 0 ? z : fabs(z)) - mean[k] / (double) present;
			present += pass == 0;
		}
}

/* What slot h says with each of those behind it. */
static void
slot_with_others(int h, double limit, Pairs *p, bool *said)
{
	double	   *sum = p->sum,
			   *square = p->square;

	for (int own = 0; own < FORMS; own++)
		for (int other = 0; other < FORMS; other++)
		{
			for (int s = h + 1; s < p->n_slots; s++)
				sum[s] = square[s] = 0;
			for (int64_t i = 0; i < p->m; i++)
			{
				const double *theirs = p->form[other] + i * p->n_slots;
				double		mine = p->residual[i] * p->form[own][i * p->n_slots + h];

				for (int s = h + 1; s < p->n_slots; s++)
				{
					double		product = mine * theirs[s];

					sum[s] += product;
					square[s] += product * product;
				}
			}
			for (int s = h + 1; s < p->n_slots; s++)
				if (sum[s] * sum[s] > limit * square[s])
					said[h] = said[s] = true;
		}
}

/* What a slot says by its distance from zero, as one end of a curve does that has two alike. */
static void
slot_alone(int h, double limit, const Pairs *p, bool *said)
{
	double		sum = 0,
				square = 0;

	for (int64_t i = 0; i < p->m; i++)
	{
		double		product = p->residual[i] * p->form[1][i * p->n_slots + h];

		sum += product;
		square += product * product;
	}
	if (sum * sum > limit * square)
		said[h] = true;
}

/* The bins of a categorical slot; that of missing cells says nothing. */
static void
slot_labels(const TnpRows *rows, const TnpStats *stats, int s, Pairs *p)
{
	for (int64_t i = 0; i < p->m; i++)
	{
		const double *x = rows->x + pairs_row(p, stats, i) * rows->n_features;

		p->label[i * p->n_slots + s] = tnp_column_bin(tnp_slot_column(stats, s),
													  tnp_slot_cell(stats, s, x));
	}
}

/*
 * Whether sums of products, one for each of n labels, differ by more than chance, beyond what they
 * have in common: what the sum of as many squares of normal variables but one exceeds as rarely as
 * one exceeds the limit (Laurent & Massart 2000, lemma 1).
 */
static bool
labels_say(int n, const double *sum, const double *square, double limit)
{
	double		apart = 0,
				common = 0,
				squares = 0;
	int			free = -1;

	for (int k = 0; k < n; k++)
		if (square[k] > 0)
		{
			apart += sum[k] * sum[k] / square[k];
			common += sum[k];
			squares += square[k];
			free++;
		}
	return free > 0
		&& apart - common * common / squares > free + sqrt(2 * free * limit) + limit;
}

/* What the labels of slot h say with numbers, and with labels of the slots behind it. */
static void
labels_with_others(const TnpStats *stats, int h, double limit, Pairs *p, bool *said)
{
	for (int s = 0; s < p->n_slots; s++)
	{
		bool		labels = tnp_slot_column(stats, s)->kind == TNP_CATEGORICAL;
		int			forms = !labels ? FORMS : s > h ? 1 : 0;

		for (int form = 0; form < forms; form++)
		{
			double		sum[TNP_BINS * TNP_BINS] = {0},
						square[TNP_BINS * TNP_BINS] = {0};

			for (int64_t i = 0; i < p->m; i++)
			{
				int64_t		at = i * p->n_slots;
				int			own = p->label[at + h],
							other = labels ? p->label[at + s] : 0,
							k = own * (labels ? TNP_BINS : 1) + other;
				double		product = p->residual[i] * (labels ? 1 : p->form[form][at + s]);

				if (own == TNP_MISSING_BIN || (labels && other == TNP_MISSING_BIN))
					continue;
				sum[k] += product;
				square[k] += product * product;
			}
			if (labels_say(TNP_BINS * (labels ? TNP_BINS : 1), sum, square, limit))
				said[h] = said[s] = true;
		}
	}
}

TnpStatus
tnp_ridge_pairs(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
				const TnpRidge *ridge, bool *said, TnpError *error)
{
	Pairs		p = {.m = stats->n0 < MOST_ROWS ? stats->n0 : MOST_ROWS,
					 .n_slots = stats->n_slots};
	/*
	 * what the largest square of as many normal variables hardly exceeds as are half of the
	 * products, four of each pair
	 */
	double		limit = 2 * log((double) p.n_slots * (p.n_slots - 1));
	bool		interrupted = false;

	if (!pairs_alloc(&model->env, &p))
	{
		pairs_free(&model->env, &p);
		return tnp_no_memory(error);
	}
	for (int64_t i = 0; i < p.m && !interrupted; i++)
	{
		int64_t		row = pairs_row(&p, stats, i);
		double		answer;

		interrupted = i % TNP_RIDGE_POLL_ROWS == 0 && tnp_interrupted(&model->env);
		tnp_ridge_answer(model, stats, ridge, rows->x + row * rows->n_features, NAN, &answer);
		p.residual[i] = tnp_clipped_target(model, stats, rows->y[row]) - answer;
	}
	for (int s = 0; s < p.n_slots; s++)
		if (tnp_slot_column(stats, s)->kind != TNP_CATEGORICAL)
			slot_forms(model, rows, stats, s, &p);
		else
			slot_labels(rows, stats, s, &p);
	for (int h = 0; h < p.n_slots && !interrupted; h++)
	{
		interrupted = tnp_interrupted(&model->env);
		if (tnp_slot_column(stats, h)->kind == TNP_CATEGORICAL)
			labels_with_others(stats, h, limit, &p, said);
		else
		{
			slot_alone(h, limit, &p, said);
			slot_with_others(h, limit, &p, said);
		}
	}
	pairs_free(&model->env, &p);
	return interrupted ? tnp_fail(error, TNP_INTERRUPTED, "interrupted") : TNP_OK;
}
