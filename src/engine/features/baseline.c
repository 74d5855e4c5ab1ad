/*
 * baseline.c: a ridge regression without a model.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/baseline.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/cholesky.h"
#include "engine/base/error.h"
#include "engine/features/penalty.h"

#define MOST_ENTRIES 128		/* of the design; the first ones */
#define MOST_LABELS 15			/* indicators of one feature: its most frequent labels */
#define FEWEST_ROWS 3			/* of a label that gets an indicator */
#define POLL_ROWS 256			/* rows between two looks at interrupts */

/* One entry of the design. */
typedef struct BaselineEntry
{
	int			feature;
	enum
	{
		ENTRY_NUMBER, ENTRY_MISSING, ENTRY_LABEL
	}			is;
	double		label;			/* identity, of ENTRY_LABEL */
	double		mean,			/* over the rows of the context */
				sd;
} BaselineEntry;

typedef struct Baseline
{
	const TnpEnv *env;
	const TnpRows *context;
	int			n;				/* entries */
	BaselineEntry entries[MOST_ENTRIES];
	double		y_mean,
				y_sd;
	double		noise;			/* variance, in units of the target's */
	double	   *gram;			/* [n, n]; all [MOST_ENTRIES …] and in one piece of memory */
	double	   *factor;			/* [n, n] */
	double	   *try_factor;		/* [n, n] */
	double	   *moment;			/* [n] */
	double	   *weights;		/* [n] */
	double	   *try_weights;	/* [n] */
} Baseline;

typedef struct LabelCount
{
	double		label;
	int64_t		rows;
} LabelCount;

/* ---- the design ------------------------------------------------------------------------------ */

/* What a row x [F] has in an entry, before it is standardized; a missing number is its mean. */
static double
entry_raw(const BaselineEntry *e, const double *x)
{
	double		cell = x[e->feature];

	if (e->is == ENTRY_NUMBER)
		return isnan(cell) ? e->mean : cell;
	return e->is == ENTRY_MISSING ? isnan(cell) : cell == e->label;
}

static double
entry_value(const BaselineEntry *e, const double *x)
{
	return (entry_raw(e, x) - e->mean) / e->sd;
}

/* Take an entry unless it is constant, or there are enough of them. */
static void
baseline_add(Baseline *b, BaselineEntry e)
{
	const TnpRows *rows = b->context;
	double		sum = 0,
				squares = 0;
	int64_t		present = 0;

	if (b->n == MOST_ENTRIES)
		return;
	for (int64_t i = 0; i < rows->n; i++)
		if (e.is != ENTRY_NUMBER || !isnan(rows->x[i * rows->n_features + e.feature]))
		{
			sum += entry_raw(&e, rows->x + i * rows->n_features);
			present++;
		}
	e.mean = present > 0 ? sum / (double) present : 0;
	for (int64_t i = 0; i < rows->n; i++)
	{
		double		deviation = entry_raw(&e, rows->x + i * rows->n_features) - e.mean;

		squares += deviation * deviation;
	}
	e.sd = sqrt(squares / (double) rows->n);
	if (isfinite(e.sd) && e.sd > 1e-12 * fabs(e.mean) && e.sd > 0)
		b->entries[b->n++] = e;
}

static int
compare_labels(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

/* The more frequent first; of equals the smaller identity, so that the order is one. */
static int
compare_counts(const void *a, const void *b)
{
	const LabelCount *x = a,
			   *y = b;

	return x->rows != y->rows ? (x->rows < y->rows) - (x->rows > y->rows)
							  : compare_labels(&x->label, &y->label);
}

/* Indicators of the most frequent labels of a feature. */
static TnpStatus
baseline_add_labels(Baseline *b, int feature, TnpError *error)
{
	const TnpRows *rows = b->context;
	double	   *labels = tnp_alloc(b->env, (size_t) rows->n, sizeof(double));
	LabelCount *counts = tnp_alloc(b->env, (size_t) rows->n, sizeof(LabelCount));
	int64_t		present = 0,
				different = 0;

	if (labels == NULL || counts == NULL)
	{
		tnp_free(b->env, labels);
		tnp_free(b->env, counts);
		return tnp_no_memory(error);
	}
	for (int64_t i = 0; i < rows->n; i++)
		if (!isnan(rows->x[i * rows->n_features + feature]))
			labels[present++] = rows->x[i * rows->n_features + feature];
	qsort(labels, (size_t) present, sizeof(double), compare_labels);
	for (int64_t i = 0; i < present; i++)
	{
		if (different == 0 || labels[i] != counts[different - 1].label)
			counts[different++] = (LabelCount) {labels[i], 0};
		counts[different - 1].rows++;
	}
	qsort(counts, (size_t) different, sizeof(LabelCount), compare_counts);
	for (int64_t k = 0; k < different && k < MOST_LABELS; k++)
		if (counts[k].rows >= FEWEST_ROWS)
			baseline_add(b, (BaselineEntry) {feature, ENTRY_LABEL, counts[k].label, 0, 0});
	tnp_free(b->env, labels);
	tnp_free(b->env, counts);
	return TNP_OK;
}

static TnpStatus
baseline_choose_entries(Baseline *b, TnpError *error)
{
	const TnpRows *rows = b->context;
	TnpStatus	status = TNP_OK;

	for (int f = 0; status == TNP_OK && f < rows->n_features; f++)
	{
		if (tnp_interrupted(b->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		baseline_add(b, (BaselineEntry) {f, ENTRY_MISSING, 0, 0, 0});
		if (rows->kinds != NULL && rows->kinds[f] == TNP_CATEGORICAL)
			status = baseline_add_labels(b, f, error);
		else
			baseline_add(b, (BaselineEntry) {f, ENTRY_NUMBER, 0, 0, 0});
	}
	return status;
}

/* ---- the regression -------------------------------------------------------------------------- */

/* Mean and standard deviation of the target, the latter 0 where rounding is all that differs. */
static void
baseline_scale_target(Baseline *b)
{
	const TnpRows *rows = b->context;
	double		squares = 0;

	for (int64_t i = 0; i < rows->n; i++)
		b->y_mean += rows->y[i] / (double) rows->n;
	for (int64_t i = 0; i < rows->n; i++)
		squares += (rows->y[i] - b->y_mean) * (rows->y[i] - b->y_mean);
	b->y_sd = sqrt(squares / (double) rows->n);
	if (!(b->y_sd > 1e-12 * fabs(b->y_mean)))
		b->y_sd = 0;
}

static TnpStatus
baseline_fit(Baseline *b, TnpError *error)
{
	const TnpRows *rows = b->context;
	double		u[MOST_ENTRIES],
				square = 0;
	TnpNormalEquations sums;

	for (int64_t i = 0; i < rows->n; i++)
	{
		double		y = b->y_sd > 0 ? (rows->y[i] - b->y_mean) / b->y_sd : 0;

		if (i % POLL_ROWS == 0 && tnp_interrupted(b->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		for (int c = 0; c < b->n; c++)
			u[c] = entry_value(&b->entries[c], rows->x + i * rows->n_features);
		for (int c = 0; c < b->n; c++)
		{
			b->moment[c] += u[c] * y;
			for (int k = 0; k <= c; k++)
				b->gram[c * b->n + k] += u[c] * u[k];
		}
		square += y * y;
	}
	sums = (TnpNormalEquations){.rows = rows->n,
								.smallest = TNP_SMALLEST_PENALTY,
								.n = b->n,
								.n_targets = 1,
								.gram = b->gram,
								.moment = b->moment,
								.square = square,
								.try_factor = b->try_factor,
								.try_weights = b->try_weights};
	(void) tnp_choose_penalty(&sums, b->weights, b->factor, &b->noise);
	return TNP_OK;
}

/* Mean and standard deviation for a row x [F]. */
static void
baseline_answer(const Baseline *b, const double *x, double *params)
{
	double		u[MOST_ENTRIES],
				mean;

	for (int c = 0; c < b->n; c++)
		u[c] = entry_value(&b->entries[c], x);
	mean = tnp_dot(b->n, u, b->weights);
	tnp_solve_lower(b->factor, b->n, u);
	params[0] = b->y_mean + b->y_sd * mean;
	params[1] = b->y_sd
		* sqrt(b->noise * (1 + 1 / (double) b->context->n + tnp_dot(b->n, u, u)));
	/* of a constant target */
	params[1] = fmax(params[1], 1e-9 * fmax(fabs(b->y_mean), 1e-100));
}

static TnpStatus
baseline_run(Baseline *b, const TnpRows *queries, double *params, TnpError *error)
{
	TnpStatus	status = baseline_choose_entries(b, error);

	baseline_scale_target(b);
	if (status == TNP_OK)
		status = baseline_fit(b, error);
	for (int64_t i = 0; status == TNP_OK && i < queries->n; i++)
	{
		if (i % POLL_ROWS == 0 && tnp_interrupted(b->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		baseline_answer(b, queries->x + i * queries->n_features, params + 2 * i);
	}
	return status;
}

/* ---- what is refused ------------------------------------------------------------------------- */

static TnpStatus
check_cells(const TnpRows *rows, TnpError *error)
{
	for (int64_t i = 0; i < rows->n * rows->n_features; i++)
		if (isinf(rows->x[i]))
			return tnp_fail(error, TNP_BAD_VALUE, "a feature is infinite");
	for (int64_t i = 0; rows->y != NULL && i < rows->n; i++)
		if (!isfinite(rows->y[i]))
			return tnp_fail(error, TNP_BAD_VALUE, "a target is not finite");
	return TNP_OK;
}

static TnpColumnKind
column_kind(const TnpRows *rows, int feature)
{
	return rows->kinds == NULL ? TNP_NUMERIC : rows->kinds[feature];
}

static TnpStatus
check_rows(const TnpRows *context, const TnpRows *queries, TnpError *error)
{
	TnpStatus	status;

	if (context->n == 0)
		return tnp_fail(error, TNP_TOO_FEW_ROWS, "a regression needs a row");
	if (context->n_features != queries->n_features)
		return tnp_fail(error, TNP_BAD_SHAPE, "the rows have other columns than the context");
	for (int f = 0; f < context->n_features; f++)
		if (column_kind(context, f) != column_kind(queries, f))
			return tnp_fail(error, TNP_BAD_SHAPE, "the rows have other columns than the context");
	status = check_cells(context, error);
	if (status == TNP_OK)
		status = check_cells(&(TnpRows) {.n = queries->n,.n_features = queries->n_features,
			.x = queries->x}, error);
	return status;
}

TnpStatus
tnp_baseline_ridge(const TnpEnv *env, const TnpRows *context, const TnpRows *queries,
				   double *params, TnpError *error)
{
	const size_t square = (size_t) MOST_ENTRIES * MOST_ENTRIES;
	Baseline   *b;
	TnpStatus	status = check_rows(context, queries, error);

	if (status != TNP_OK)
		return status;
	b = tnp_alloc_zero(env, 1, sizeof(Baseline));
	if (b == NULL)
		return tnp_no_memory(error);
	b->gram = tnp_alloc_zero(env, 3 * square + 3 * MOST_ENTRIES, sizeof(double));
	if (b->gram == NULL)
	{
		tnp_free(env, b);
		return tnp_no_memory(error);
	}
	b->env = env;
	b->context = context;
	b->factor = b->gram + square;
	b->try_factor = b->factor + square;
	b->moment = b->try_factor + square;
	b->weights = b->moment + MOST_ENTRIES;
	b->try_weights = b->weights + MOST_ENTRIES;
	status = baseline_run(b, queries, params, error);
	tnp_free(env, b->gram);
	tnp_free(env, b);
	return status;
}
