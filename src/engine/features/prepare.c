/*
 * prepare.c: the preprocessing of tables for models that read columns.
 *
 * A column goes through: codes of categories, or means for missing numbers; standardisation, cut at
 * 100; perhaps a power transform and another standardisation; soft bounds at four standard
 * deviations of what is left without outliers. Constant columns are left out. Statistics are
 * float64.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/prepare.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/features/power.h"

#define CUT 100.0				/* standard deviations beyond which numbers are cut off */
#define LEAST_SD 1e-6			/* added to a standard deviation */

/* ---- statistics of a column ------------------------------------------------------------------ */

/* A variance that rounding alone can have made (as scikit-learn judges it). */
static bool
is_constant(const TnpSampleMoments *m)
{
	double		rounding = m->n * DBL_EPSILON;

	return m->variance <= rounding * m->variance + (rounding * m->mean) * (rounding * m->mean);
}

/* ---- cells ----------------------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

/* The code of an identity among sorted levels, -1 for one that is missing or unknown. */
static double
code_of(const double *levels, int64_t n, double identity)
{
	const double *found = isnan(identity) ? NULL
		: bsearch(&identity, levels, n, sizeof(double), compare);

	return found != NULL ? (double) (found - levels) : -1;
}

/* A cell as a number. */
static double
encode(const TnpPrepared *p, const TnpPreparedColumn *c, double value)
{
	if (c->n_levels >= 0)
		return code_of((const double *) (const void *) ((const char *) p + p->levels)
					   + c->first_level, c->n_levels, value);
	return isnan(value) ? c->fill : value;
}

static double
standardise(const TnpPreparedColumn *c, double value)
{
	return fmin(fmax((value - c->mean) / c->scale, -CUT), CUT);
}

static double
make_normal(const TnpPreparedColumn *c, double z)
{
	return (tnp_power_transform(z, c->power) - c->power_mean) / c->power_scale;
}

void
tnp_prepare_row(const TnpPrepared *p, TnpNormal normal, const double *x, float *cells)
{
	for (int i = 0; i < p->n_columns; i++)
	{
		const TnpPreparedColumn *c = &p->column[i];
		double		z = standardise(c, encode(p, c, x[c->source]));

		if (normal == TNP_NORMAL_POWER)
		{
			double		made = make_normal(c, z);

			/* a number that is too large for the power counts as the rows' nearest */
			if (!isfinite(made))
				made = make_normal(c, fmin(fmax(z, c->least), c->largest));
			z = made;
		}
		cells[i] = (float) tnp_bound(&c->bounds[normal], z);
	}
}

/* ---- the fit --------------------------------------------------------------------------------- */

/*
 * A categorical column's distinct identities in ascending order, in levels [n]; returns how many.
 */
static int64_t
collect_levels(const TnpRows *rows, int f, double *levels)
{
	int64_t		n = 0,
				distinct = 0;

	for (int64_t i = 0; i < rows->n; i++)
		if (!isnan(rows->x[i * rows->n_features + f]))
			levels[n++] = rows->x[i * rows->n_features + f];
	qsort(levels, n, sizeof(double), compare);
	for (int64_t i = 0; i < n; i++)
		if (i == 0 || levels[i] != levels[distinct - 1])
			levels[distinct++] = levels[i];
	return distinct;
}

static double
mean_present(const TnpRows *rows, int f)
{
	double		sum = 0;
	int64_t		n = 0;

	for (int64_t i = 0; i < rows->n; i++)
		if (!isnan(rows->x[i * rows->n_features + f]))
		{
			sum += rows->x[i * rows->n_features + f];
			n++;
		}
	return n > 0 ? sum / n : 0;
}

/* Statistics of a column whose cells are numbers x [n], which are lost. */
static void
fit_column(TnpPreparedColumn *c, int64_t n, double *x, bool power)
{
	TnpSampleMoments m = tnp_sample_of(n, x);

	c->mean = m.mean;
	c->scale = sqrt(m.variance) + LEAST_SD;
	for (int64_t i = 0; i < n; i++)
	{
		x[i] = standardise(c, x[i]);
		c->least = i == 0 ? x[i] : fmin(c->least, x[i]);
		c->largest = i == 0 ? x[i] : fmax(c->largest, x[i]);
	}
	c->bounds[TNP_NORMAL_NONE] = tnp_bounds_of(n, x);
	c->power = 1;
	c->power_mean = 0;
	c->power_scale = 1;
	if (!power)
		return;
	m = tnp_sample_of(n, x);
	if (!is_constant(&m))
		c->power = tnp_power_fit(n, x);
	for (int64_t i = 0; i < n; i++)
		x[i] = tnp_power_transform(x[i], c->power);
	m = tnp_sample_of(n, x);
	c->power_mean = m.mean;
	c->power_scale = is_constant(&m) ? 1 : sqrt(m.variance);
	for (int64_t i = 0; i < n; i++)
		x[i] = (x[i] - c->power_mean) / c->power_scale;
	c->bounds[TNP_NORMAL_POWER] = tnp_bounds_of(n, x);
}

static bool
all_equal(int64_t n, const double *x)
{
	for (int64_t i = 1; i < n; i++)
		if (x[i] != x[0])
			return false;
	return true;
}

static TnpStatus
too_large(TnpError *error, int column)
{
	if (column < 0)
		return tnp_fail(error, TNP_BAD_VALUE, "the targets are too large for the model");
	return tnp_fail(error, TNP_BAD_VALUE, "the values of feature %d are too large for the model",
					column + 1);
}

/*
 * Column f of the rows, with its levels from `used` on; x [n] is scratch. Constant ones are not
 * fitted.
 */
static TnpStatus
prepare_column(TnpPrepared *p, TnpPreparedColumn *c, const TnpRows *rows, int f, int64_t used,
			   bool power, double *x, bool *constant, TnpError *error)
{
	double	   *levels = (double *) (void *) ((char *) p + p->levels) + used;

	*c = (TnpPreparedColumn) {.source = f, .first_level = used, .n_levels = -1};
	if (rows->kinds != NULL && rows->kinds[f] == TNP_CATEGORICAL)
		c->n_levels = collect_levels(rows, f, levels);
	else
		c->fill = mean_present(rows, f);
	for (int64_t i = 0; i < rows->n; i++)
		x[i] = encode(p, c, rows->x[i * rows->n_features + f]);
	*constant = rows->n > 1 && all_equal(rows->n, x);
	fit_column(c, rows->n, x, power);
	return isfinite(c->scale) && isfinite(c->mean) ? TNP_OK : too_large(error, f);
}

static TnpStatus
prepare_target(TnpPrepared *p, const TnpRows *rows, bool classifier, TnpError *error)
{
	TnpSampleMoments m;

	p->y_center = 0;
	p->y_scale = 1;
	if (classifier)
		return TNP_OK;
	m = tnp_sample_of(rows->n, rows->y);
	p->y_center = m.mean;
	p->y_scale = is_constant(&m) ? 1 : sqrt(m.variance);
	return isfinite(m.mean) && isfinite(m.variance) ? TNP_OK : too_large(error, -1);
}

/* Memory for all columns and their levels: the categorical ones may have one for every row. */
static TnpPrepared *
make_prepared(const TnpEnv *env, const TnpRows *rows)
{
	size_t		columns = sizeof(TnpPrepared) + rows->n_features * sizeof(TnpPreparedColumn);
	size_t		categorical = 0;
	TnpPrepared *p;

	for (int f = 0; f < rows->n_features; f++)
		categorical += rows->kinds != NULL && rows->kinds[f] == TNP_CATEGORICAL;
	p = tnp_alloc(env, 1, columns + categorical * rows->n * sizeof(double));
	if (p != NULL)
	{
		memset(p, 0, columns);
		p->levels = columns;
	}
	return p;
}

/* Categorical columns come first, as the package has them; constant ones are left out. */
static TnpStatus
prepare_columns(const TnpEnv *env, TnpPrepared *p, const TnpRows *rows, bool power, double *x,
				TnpError *error)
{
	int64_t		used = 0;
	TnpPreparedColumn first = {0};

	for (int numeric = 0; numeric < 2; numeric++)
		for (int f = 0; f < rows->n_features; f++)
		{
			bool		category = rows->kinds != NULL && rows->kinds[f] == TNP_CATEGORICAL,
						constant;
			TnpPreparedColumn *c = &p->column[p->n_columns];
			TnpStatus	status;

			if (category == (numeric == 1))
				continue;
			if (tnp_interrupted(env))
				return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
			status = prepare_column(p, c, rows, f, used, power, x, &constant, error);
			if (status != TNP_OK)
				return status;
			if (first.scale == 0)
				first = *c;
			if (constant && first.source != f)
				continue;
			used += c->n_levels > 0 ? c->n_levels : 0;
			p->n_columns += !constant;
		}
	if (p->n_columns == 0)
	{
		p->column[0] = first;
		p->n_columns = 1;
	}
	p->size = p->levels + (size_t) used * sizeof(double);
	return TNP_OK;
}

TnpStatus
tnp_prepare(const TnpEnv *env, const TnpRows *rows, bool classifier, bool power,
			TnpPrepared **prepared, TnpError *error)
{
	double	   *x = tnp_alloc(env, rows->n, sizeof(double));
	TnpPrepared *p = make_prepared(env, rows);
	TnpStatus	status = x == NULL || p == NULL ? tnp_no_memory(error) : TNP_OK;

	*prepared = NULL;
	if (status == TNP_OK)
	{
		p->has_power = power;
		status = prepare_target(p, rows, classifier, error);
	}
	if (status == TNP_OK)
		status = prepare_columns(env, p, rows, power, x, error);
	tnp_free(env, x);
	if (status != TNP_OK)
	{
		tnp_free(env, p);
		return status;
	}
	*prepared = p;
	return TNP_OK;
}
