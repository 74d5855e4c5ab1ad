/*
 * ridge_fit.c: one ridge regression of the prefix (docs/model-format.md section 5, "Ridge"): its design, its penalty, its answers.
 *
 * All in double precision: the penalty is the best of a grid, and which is best should not hang on rounding.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "ridge_fit.h"

#include <math.h>
#include <string.h>

#include "stats.h"

#define PENALTIES 15			/* 4^-6 … 4^8 */
#define SMALLEST_PENALTY (1.0 / 4096)
#define SMALLEST_NOISE 1e-8		/* variance, in units of the target's */
#define SMALLEST_REST 1e-6		/* of one minus the leverage of a prefix row */
#define KNOTS 3

static const double knots[KNOTS] = {-0.7, 0, 0.7};

/* What an entry of the design is: its slot's value, a hinge at a knot, or (from FIRST_BIN on) the indicator of a bin. */
enum
{
	ENTRY_VALUE, FIRST_HINGE, FIRST_BIN = FIRST_HINGE + KNOTS
};

/* ---- the design -------------------------------------------------------------------------------------------- */

/* The kinds of entries that a column has; returns how many. */
static int
column_entries(const TnpColumn *column, bool splines, unsigned char *kind)
{
	int			n = 0;

	if (column->kind == TNP_CATEGORICAL)
	{
		for (int b = 0; b < TNP_MISSING_BIN; b++)
			if (column->count[b] > 0)
				kind[n++] = (unsigned char) (FIRST_BIN + b);
	}
	else
	{
		kind[n++] = ENTRY_VALUE;
		for (int j = 0; splines && j < KNOTS; j++)
			kind[n++] = (unsigned char) (FIRST_HINGE + j);
	}
	if (column->count[TNP_MISSING_BIN] > 0)
		kind[n++] = FIRST_BIN + TNP_MISSING_BIN;
	return n;
}

/* Choose the entries: slots in order, as long as all entries of a slot fit beside the intercept. */
static TnpStatus
choose_entries(const TnpModel *model, const TnpStats *stats, bool splines, TnpRidge *ridge, TnpError *error)
{
	unsigned char kind[TNP_BINS + 1 + KNOTS];
	int			n = 0;

	ridge->slot = tnp_alloc(&model->env, TNP_LARGEST_DESIGN, sizeof(unsigned char));
	ridge->kind = tnp_alloc(&model->env, TNP_LARGEST_DESIGN, sizeof(unsigned char));
	if (ridge->slot == NULL || ridge->kind == NULL)
		return tnp_no_memory(error);
	for (int s = 0; s < stats->n_slots; s++)
	{
		int			more = column_entries(&stats->columns[stats->slot[s]], splines, kind);

		if (n + more > TNP_LARGEST_DESIGN - 1)
			break;
		for (int i = 0; i < more; i++)
		{
			ridge->slot[n] = (unsigned char) s;
			ridge->kind[n++] = kind[i];
		}
	}
	ridge->n = n + 1;
	return TNP_OK;
}

/* The design's row u [n] of a raw row x [F]; the intercept is its last entry. */
static void
design_row(const TnpModel *model, const TnpStats *stats, const TnpRidge *ridge, const double *x, double *u)
{
	int			slot = -1,
				bin = 0;
	double		z = 0;

	for (int i = 0; i < ridge->n - 1; i++)
	{
		int			kind = ridge->kind[i];

		if (ridge->slot[i] != slot)
		{
			const TnpColumn *column = &stats->columns[stats->slot[ridge->slot[i]]];
			double		value = tnp_column_value(column, x[stats->slot[ridge->slot[i]]]);

			slot = ridge->slot[i];
			bin = tnp_column_bin(column, x[stats->slot[slot]]);
			z = isnan(value) ? 0 : tnp_column_scale(model, column, value);
		}
		if (kind == ENTRY_VALUE)
			u[i] = z;
		else if (kind < FIRST_BIN)
			u[i] = fmax(z - knots[kind - FIRST_HINGE], 0);
		else
			u[i] = bin == kind - FIRST_BIN;
	}
	u[ridge->n - 1] = 1;
}

/* ---- the fit ------------------------------------------------------------------------------------------------ */

/* Memory for the fit of one regression. */
typedef struct RidgeWork
{
	double	   *gram;			/* [n, n] U'U, lower triangle */
	double	   *moment;			/* [n_targets, n] U'y */
	double	   *factor;			/* [n, n] of one penalty */
	double	   *weights;		/* [n_targets, n] */
	double		square;			/* sum of y'y over the targets */
} RidgeWork;

/*
 * The indicator of a class lacks its share in the mean: y = [class] - share. What has been summed of the indicators alone becomes that of
 * such targets; the last row of the gram matrix holds the sums of the design's entries.
 */
static void
centre_indicators(const TnpStats *stats, const TnpRidge *ridge, RidgeWork *w)
{
	const double *sums = w->gram + (size_t) (ridge->n - 1) * ridge->n;

	for (int c = 0; c < ridge->n_targets; c++)
	{
		double		share = stats->class_share[c];

		for (int i = 0; i < ridge->n; i++)
			w->moment[(size_t) c * ridge->n + i] -= share * sums[i];
		w->square += stats->n0 * share * (1 - share);
	}
}

/* Sums over the prefix. */
static TnpStatus
sum_rows(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, const TnpRidge *ridge, RidgeWork *w, TnpError *error)
{
	bool		classes = tnp_classes(model) > 0;
	double		u[TNP_LARGEST_DESIGN];
	int			n = ridge->n;

	for (int64_t r = 0; r < stats->n0; r++)
	{
		double		y = classes ? 1 : tnp_clipped_target(model, stats, rows->y[r]);
		double	   *moment = w->moment + (classes ? (size_t) rows->y[r] * n : 0);

		if (r % TNP_RIDGE_POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		design_row(model, stats, ridge, rows->x + r * rows->n_features, u);
		for (int i = 0; i < n; i++)
		{
			double	   *row = w->gram + (size_t) i * n;

			/* indicators are mostly zero */
			if (u[i] == 0)
				continue;
			for (int j = 0; j <= i; j++)
				row[j] += u[i] * u[j];
			moment[i] += u[i] * y;
		}
		if (!classes)
			w->square += y * y;
	}
	if (classes)
		centre_indicators(stats, ridge, w);
	return TNP_OK;
}

double
tnp_dot(int n, const double *a, const double *b)
{
	double		sum[4] = {0, 0, 0, 0};	/* so that an addition need not wait for the one before it */
	int			i = 0;

	for (; i + 4 <= n; i += 4)
		for (int k = 0; k < 4; k++)
			sum[k] += a[i + k] * b[i + k];
	for (; i < n; i++)
		sum[0] += a[i] * b[i];
	return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Lower Cholesky factor of gram + penalty * I, row by row; false where rounding has made the matrix indefinite. */
static bool
factorise(const double *gram, int n, double penalty, double *factor)
{
	for (int i = 0; i < n; i++)
	{
		double	   *row = factor + (size_t) i * n;

		for (int j = 0; j <= i; j++)
		{
			const double *other = factor + (size_t) j * n;
			double		sum = gram[(size_t) i * n + j] + (i == j ? penalty : 0) - tnp_dot(j, row, other);

			if (i != j)
				row[j] = sum / other[j];
			else if (sum > 0)
				row[j] = sqrt(sum);
			else
				return false;
		}
	}
	return true;
}

void
tnp_solve_lower(const double *factor, int n, double *v)
{
	for (int i = 0; i < n; i++)
	{
		const double *row = factor + (size_t) i * n;

		v[i] = (v[i] - tnp_dot(i, row, v)) / row[i];
	}
}

void
tnp_solve_upper(const double *factor, int n, double *v)
{
	for (int i = n - 1; i >= 0; i--)
	{
		const double *row = factor + (size_t) i * n;

		v[i] /= row[i];
		for (int j = 0; j < i; j++)
			v[j] -= row[j] * v[i];
	}
}

/*
 * The penalty of the largest evidence (Bishop 2006, section 3.5, with the noise at its maximum): -1/2 (n0 ln noise + ln det(U'U / penalty + I)).
 * All targets share it, and the noise.
 * The largest penalty always has a factor: clipped values keep the sums far below it times the precision.
 */
static void
choose_penalty(int64_t n0, TnpRidge *ridge, RidgeWork *w)
{
	int			n = ridge->n;
	size_t		all = (size_t) ridge->n_targets * n;
	double		penalty = SMALLEST_PENALTY,
				best = -INFINITY;

	for (int k = 0; k < PENALTIES; k++, penalty *= 4)
	{
		double		explained = 0,
					determinant = 0,
					noise,
					evidence;

		if (!factorise(w->gram, n, penalty, w->factor))
			continue;
		memcpy(w->weights, w->moment, all * sizeof(double));
		for (int t = 0; t < ridge->n_targets; t++)
			tnp_solve_lower(w->factor, n, w->weights + (size_t) t * n);
		for (size_t i = 0; i < all; i++)
			explained += w->weights[i] * w->weights[i];
		for (int i = 0; i < n; i++)
			determinant += 2 * log(w->factor[(size_t) i * n + i]) - log(penalty);
		noise = fmax((w->square - explained) / n0, SMALLEST_NOISE);
		evidence = -0.5 * (n0 * log(noise) + determinant);
		if (!(evidence > best))
			continue;
		best = evidence;
		for (int t = 0; t < ridge->n_targets; t++)
			tnp_solve_upper(w->factor, n, w->weights + (size_t) t * n);
		memcpy(ridge->factor, w->factor, (size_t) n * n * sizeof(double));
		memcpy(ridge->weights, w->weights, all * sizeof(double));
		ridge->log_noise = 0.5 * log(noise);
		ridge->penalty = penalty;
	}
}

TnpStatus
tnp_ridge_fit(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, bool splines, TnpRidge *ridge, TnpError *error)
{
	const TnpEnv *env = &model->env;
	RidgeWork	w = {NULL, NULL, NULL, NULL, 0};
	TnpStatus	status = choose_entries(model, stats, splines, ridge, error);
	int			n = ridge->n,
				targets = tnp_classes(model) > 0 ? stats->n_classes : 1;

	if (status != TNP_OK)
		return status;
	ridge->n_targets = targets;
	ridge->factor = tnp_alloc_zero(env, (size_t) n * n, sizeof(double));
	ridge->weights = tnp_alloc_zero(env, (size_t) targets * (n + 1), sizeof(double));
	w.gram = tnp_alloc_zero(env, (size_t) n * n, sizeof(double));
	w.factor = tnp_alloc_zero(env, (size_t) n * n, sizeof(double));
	w.moment = tnp_alloc_zero(env, (size_t) targets * n, sizeof(double));
	w.weights = tnp_alloc_zero(env, (size_t) targets * n, sizeof(double));
	if (ridge->factor == NULL || ridge->weights == NULL || w.gram == NULL || w.factor == NULL || w.moment == NULL || w.weights == NULL)
		status = tnp_no_memory(error);
	else
		status = sum_rows(model, rows, stats, ridge, &w, error);
	if (status == TNP_OK)
	{
		ridge->shift = ridge->weights + (size_t) targets * n;
		choose_penalty(stats->n0, ridge, &w);
	}
	tnp_free(env, w.gram);
	tnp_free(env, w.factor);
	tnp_free(env, w.moment);
	tnp_free(env, w.weights);
	return status;
}

/* ---- answers ------------------------------------------------------------------------------------------------ */

double
tnp_ridge_answer(const TnpModel *model, const TnpStats *stats, const TnpRidge *ridge, const double *x, double y, double *answer)
{
	bool		classes = tnp_classes(model) > 0;
	double		u[TNP_LARGEST_DESIGN];
	double		leverage,
				rest;

	design_row(model, stats, ridge, x, u);
	for (int t = 0; t < ridge->n_targets; t++)
		answer[t] = tnp_dot(ridge->n, u, ridge->weights + (size_t) t * ridge->n);
	tnp_solve_lower(ridge->factor, ridge->n, u);
	leverage = tnp_dot(ridge->n, u, u);
	if (isnan(y))
		return leverage;
	/* without its own row (Sherman-Morrison): residual and leverage grow by 1 / (1 - leverage) */
	rest = fmax(1 - leverage, SMALLEST_REST);
	for (int t = 0; t < ridge->n_targets; t++)
	{
		double		own = classes ? (y == t) - stats->class_share[t] : tnp_clipped_target(model, stats, y);

		answer[t] = own - (own - answer[t]) / rest;
	}
	return leverage / rest;
}
