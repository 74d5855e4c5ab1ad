/*
 * ridge.c: two ridge regressions of the prefix, one linear and one with a spline for every numeric column, whose answers the
 * row tokeniser sees as six more numbers of a row (docs/model-format.md section 5, "Ridge").
 *
 * Attention would have to invert the covariance of nearly collinear columns; here a Cholesky factor does. All in double
 * precision: the penalty is the best of a grid, and which is best should not hang on rounding.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "ridge.h"

#include <math.h>
#include <string.h>

#include "stats.h"

#define LARGEST_DESIGN 128		/* entries, the intercept included */
#define PENALTIES 15			/* 4^-6 … 4^8 */
#define SMALLEST_PENALTY (1.0 / 4096)
#define SMALLEST_NOISE 1e-8		/* variance, in units of the target's */
#define SMALLEST_REST 1e-6		/* of one minus the leverage of a prefix row */
#define POLL_ROWS 256			/* rows between two looks at interrupts */
#define KNOTS 3

/* Pruning: what chance hardly makes of a column of noise, and how many slots stay in any case. */
#define ALWAYS_KEPT 8
#define CHANCE 8.0				/* relevance times rows */
#define DEVIATIONS 2.5			/* of a weight from zero */
#define ENOUGH_ROWS 100.0		/* fewer tell noise less well: the thresholds shrink with them */

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

	ridge->slot = tnp_alloc(&model->env, LARGEST_DESIGN, sizeof(unsigned char));
	ridge->kind = tnp_alloc(&model->env, LARGEST_DESIGN, sizeof(unsigned char));
	if (ridge->slot == NULL || ridge->kind == NULL)
		return tnp_no_memory(error);
	for (int s = 0; s < stats->n_slots; s++)
	{
		int			more = column_entries(&stats->columns[stats->slot[s]], splines, kind);

		if (n + more > LARGEST_DESIGN - 1)
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
	double	   *moment;			/* [n] U'y */
	double	   *factor;			/* [n, n] of one penalty */
	double	   *weights;		/* [n] */
	double		square;			/* y'y */
} RidgeWork;

/* Sums over the prefix. */
static TnpStatus
sum_rows(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, const TnpRidge *ridge, RidgeWork *w, TnpError *error)
{
	double		u[LARGEST_DESIGN];
	int			n = ridge->n;

	for (int64_t r = 0; r < stats->n0; r++)
	{
		double		y = tnp_clipped_target(model, stats, rows->y[r]);

		if (r % POLL_ROWS == 0 && tnp_interrupted(&model->env))
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
			w->moment[i] += u[i] * y;
		}
		w->square += y * y;
	}
	return TNP_OK;
}

/* Sum of a[i] b[i]; four partial sums, so that an addition need not wait for the one before it. */
static double
dot(int n, const double *a, const double *b)
{
	double		sum[4] = {0, 0, 0, 0};
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
			double		sum = gram[(size_t) i * n + j] + (i == j ? penalty : 0) - dot(j, row, other);

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

/* v <- L^-1 v */
static void
solve_lower(const double *factor, int n, double *v)
{
	for (int i = 0; i < n; i++)
	{
		const double *row = factor + (size_t) i * n;

		v[i] = (v[i] - dot(i, row, v)) / row[i];
	}
}

/* v <- L'^-1 v */
static void
solve_upper(const double *factor, int n, double *v)
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
 * The largest penalty always has a factor: clipped values keep the sums far below it times the precision.
 */
static void
choose_penalty(int64_t n0, TnpRidge *ridge, RidgeWork *w)
{
	int			n = ridge->n;
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
		memcpy(w->weights, w->moment, n * sizeof(double));
		solve_lower(w->factor, n, w->weights);
		for (int i = 0; i < n; i++)
		{
			explained += w->weights[i] * w->weights[i];
			determinant += 2 * log(w->factor[(size_t) i * n + i]) - log(penalty);
		}
		noise = fmax((w->square - explained) / n0, SMALLEST_NOISE);
		evidence = -0.5 * (n0 * log(noise) + determinant);
		if (!(evidence > best))
			continue;
		best = evidence;
		solve_upper(w->factor, n, w->weights);
		memcpy(ridge->factor, w->factor, (size_t) n * n * sizeof(double));
		memcpy(ridge->weights, w->weights, n * sizeof(double));
		ridge->log_noise = 0.5 * log(noise);
		ridge->penalty = penalty;
	}
}

/* One regression. */
static TnpStatus
build(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, bool splines, TnpRidge *ridge, TnpError *error)
{
	const TnpEnv *env = &model->env;
	RidgeWork	w = {NULL, NULL, NULL, NULL, 0};
	TnpStatus	status = choose_entries(model, stats, splines, ridge, error);
	int			n = ridge->n;

	if (status != TNP_OK)
		return status;
	ridge->factor = tnp_alloc_zero(env, (size_t) n * n, sizeof(double));
	ridge->weights = tnp_alloc_zero(env, n, sizeof(double));
	w.gram = tnp_alloc_zero(env, (size_t) n * n, sizeof(double));
	w.factor = tnp_alloc_zero(env, (size_t) n * n, sizeof(double));
	w.moment = tnp_alloc_zero(env, n, sizeof(double));
	w.weights = tnp_alloc_zero(env, n, sizeof(double));
	if (ridge->factor == NULL || ridge->weights == NULL || w.gram == NULL || w.factor == NULL || w.moment == NULL || w.weights == NULL)
		status = tnp_no_memory(error);
	else
		status = sum_rows(model, rows, stats, ridge, &w, error);
	if (status == TNP_OK)
		choose_penalty(stats->n0, ridge, &w);
	tnp_free(env, w.gram);
	tnp_free(env, w.factor);
	tnp_free(env, w.moment);
	tnp_free(env, w.weights);
	return status;
}

/*
 * Whether the weight of entry i is further from zero than the noise would carry it; strictness 0 … 1. Over samples of the noise the weights have the
 * covariance noise A^-1 U'U A^-1 = noise (A^-1 - penalty A^-2), A = U'U + penalty I.
 */
static bool
weighs(const TnpRidge *ridge, int i, double strictness)
{
	double		v[LARGEST_DESIGN] = {0};
	double		spread;

	v[i] = 1;
	solve_lower(ridge->factor, ridge->n, v);
	solve_upper(ridge->factor, ridge->n, v);
	spread = fmax(v[i] - ridge->penalty * dot(ridge->n, v, v), 0) * exp(2 * ridge->log_noise);
	return ridge->weights[i] * ridge->weights[i] > strictness * DEVIATIONS * DEVIATIONS * spread;
}

/* ---- entry points ------------------------------------------------------------------------------------------ */

TnpStatus
tnp_ridge_prune(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpRidge	ridge;
	bool		heavy[LARGEST_DESIGN] = {false};	/* slots in the design: at least one entry each */
	double		strictness = fmin(1, (double) stats->n0 / ENOUGH_ROWS);
	int			kept = 0;
	TnpStatus	status;

	if (stats->n_slots <= ALWAYS_KEPT)
		return TNP_OK;
	memset(&ridge, 0, sizeof(ridge));
	status = build(model, rows, stats, false, &ridge, error);
	for (int i = 0; status == TNP_OK && i < ridge.n - 1; i++)
		if (ridge.slot[i] >= ALWAYS_KEPT && !heavy[ridge.slot[i]])
			heavy[ridge.slot[i]] = weighs(&ridge, i, strictness);
	for (int s = 0; status == TNP_OK && s < stats->n_slots; s++)
		if (s < ALWAYS_KEPT || tnp_column_relevance(&stats->columns[stats->slot[s]]) * (double) stats->n0 > strictness * CHANCE ||
			(s < LARGEST_DESIGN && heavy[s]))
			stats->slot[kept++] = stats->slot[s];
	if (status == TNP_OK)
		stats->n_slots = kept;
	tnp_ridge_free(&model->env, &ridge);
	return status;
}

TnpStatus
tnp_ridge_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpStatus	status = TNP_OK;

	for (int k = 0; status == TNP_OK && k < TNP_RIDGES; k++)
		status = build(model, rows, stats, k > 0, &stats->ridge[k], error);
	return status;
}

/* A copy of `size` bytes, or NULL. */
static void *
duplicate(const TnpEnv *env, const void *from, size_t size)
{
	void	   *p = tnp_alloc(env, 1, size);

	if (p != NULL)
		memcpy(p, from, size);
	return p;
}

bool
tnp_ridge_copy(const TnpEnv *env, const TnpRidge *from, TnpRidge *to)
{
	size_t		n = from->n;

	memset(to, 0, sizeof(*to));
	if (n == 0)
		return true;
	to->n = from->n;
	to->log_noise = from->log_noise;
	to->penalty = from->penalty;
	to->slot = duplicate(env, from->slot, LARGEST_DESIGN);
	to->kind = duplicate(env, from->kind, LARGEST_DESIGN);
	to->weights = duplicate(env, from->weights, n * sizeof(double));
	to->factor = duplicate(env, from->factor, n * n * sizeof(double));
	return to->slot != NULL && to->kind != NULL && to->weights != NULL && to->factor != NULL;
}

void
tnp_ridge_free(const TnpEnv *env, TnpRidge *ridge)
{
	tnp_free(env, ridge->slot);
	tnp_free(env, ridge->kind);
	tnp_free(env, ridge->weights);
	tnp_free(env, ridge->factor);
	memset(ridge, 0, sizeof(*ridge));
}

size_t
tnp_ridge_bytes(const TnpRidge *ridge)
{
	return ridge->n == 0 ? 0 : 2 * LARGEST_DESIGN + (size_t) ridge->n * (ridge->n + 1) * sizeof(double);
}

void
tnp_ridge_opinions(const TnpModel *model, const TnpStats *stats, const double *x, double y, float *out)
{
	double		u[LARGEST_DESIGN];

	for (int k = 0; k < TNP_RIDGES; k++, out += TNP_OPINIONS / TNP_RIDGES)
	{
		const TnpRidge *ridge = &stats->ridge[k];
		double		mean,
					leverage;

		design_row(model, stats, ridge, x, u);
		mean = dot(ridge->n, u, ridge->weights);
		solve_lower(ridge->factor, ridge->n, u);
		leverage = dot(ridge->n, u, u);
		if (!isnan(y))
		{
			/* without its own row (Sherman-Morrison): residual and leverage grow by 1 / (1 - leverage) */
			double		own = tnp_clipped_target(model, stats, y),
						rest = fmax(1 - leverage, SMALLEST_REST);

			mean = own - (own - mean) / rest;
			leverage /= rest;
		}
		out[0] = (float) tnp_soft_clip(mean, model->config.target_clip);
		out[1] = (float) ridge->log_noise;
		out[2] = (float) (0.5 * log1p(leverage));
	}
}
