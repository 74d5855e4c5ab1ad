/*
 * ridge_baseline.c: ridge regression of the rows of a context, the baseline of posterior.evaluate.
 *
 * Columns are standardized numbers, whether a number is missing, and indicators of frequent labels.
 * With the eigenvalues e and eigenvectors V of X'X and z = V'X'y the weights of a penalty l are
 * V (z / (e + l)), the degrees of freedom sum e / (e + l); l is that of a grid with the least
 * generalized cross-validation (Golub, Heath and Wahba, 1979). An answer is normal, with the
 * standard deviation of the residuals per degree of freedom that is left.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/context_value.h"
#include "pg/types/distribution_value.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#define MOST_COLUMNS 256		/* of the design; the first ones */
#define MOST_LABELS 15			/* indicators of one feature: its most frequent labels */
#define FEWEST_ROWS 3			/* of a label that gets an indicator */
#define SWEEPS 30				/* of Jacobi's method, which needs fewer than ten */
#define PENALTIES 13			/* 10^-4 n … 10^2 n */

/* One column of the design. */
typedef struct Column
{
	int			feature;
	enum { NUMBER, MISSING, LABEL } is;
	double		label;			/* identity, of LABEL */
	double		mean,			/* over the rows of the context */
				sd;
} Column;

typedef struct Ridge
{
	int			n_columns;
	Column		columns[MOST_COLUMNS];
	double		mean,			/* of the target */
				sd;				/* of an answer */
	double	   *weights;		/* [n_columns] */
} Ridge;

typedef struct Count
{
	double		label;
	int64		rows;
} Count;

/* ---- columns --------------------------------------------------------------------------------- */

/* What a row has in a column, before it is standardized; a missing number is its mean. */
static double
matrix_raw_entry(const Column *c, const double *x)
{
	double		cell = x[c->feature];

	if (c->is == NUMBER)
		return isnan(cell) ? c->mean : cell;
	return c->is == MISSING ? isnan(cell) : cell == c->label;
}

static double
matrix_entry(const Column *c, const double *x)
{
	return (matrix_raw_entry(c, x) - c->mean) / c->sd;
}

/* Take a column unless it is constant, or there are enough of them. */
static void
ridge_add_column(Ridge *r, Column c, const double *x, int64 n, int width)
{
	double		sum = 0,
				squares = 0;
	int64		present = 0;

	if (r->n_columns == MOST_COLUMNS)
		return;
	for (int64 i = 0; i < n; i++)
		if (c.is != NUMBER || !isnan(x[i * width + c.feature]))
		{
			sum += matrix_raw_entry(&c, x + i * width);
			present++;
		}
	c.mean = present > 0 ? sum / present : 0;
	for (int64 i = 0; i < n; i++)
	{
		double		deviation = matrix_raw_entry(&c, x + i * width) - c.mean;

		squares += deviation * deviation;
	}
	c.sd = sqrt(squares / n);
	if (isfinite(c.sd) && c.sd > 1e-12 * fabs(c.mean) && c.sd > 0)
		r->columns[r->n_columns++] = c;
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
	const Count *x = a,
			   *y = b;

	return x->rows != y->rows ? (x->rows < y->rows) - (x->rows > y->rows)
							  : compare_labels(&x->label, &y->label);
}

static void
add_label_columns(Ridge *r, int feature, const double *x, int64 n, int width)
{
	double	   *labels = palloc(n * sizeof(double));
	Count	   *counts = palloc(n * sizeof(Count));
	int64		present = 0;
	int			different = 0;

	for (int64 i = 0; i < n; i++)
		if (!isnan(x[i * width + feature]))
			labels[present++] = x[i * width + feature];
	qsort(labels, present, sizeof(double), compare_labels);
	for (int64 i = 0; i < present; i++)
	{
		if (different == 0 || labels[i] != counts[different - 1].label)
			counts[different++] = (Count){labels[i], 0};
		counts[different - 1].rows++;
	}
	qsort(counts, different, sizeof(Count), compare_counts);
	for (int k = 0; k < Min(different, MOST_LABELS); k++)
		if (counts[k].rows >= FEWEST_ROWS)
			ridge_add_column(r, (Column){feature, LABEL, counts[k].label}, x, n, width);
	pfree(labels);
	pfree(counts);
}

/* ---- the regression -------------------------------------------------------------------------- */

/*
 * Eigenvalues and eigenvectors of a symmetric matrix a [n, n] by Jacobi's cyclic rotations: a
 * becomes diagonal, column k of v [n, n] belongs to a[k, k].
 */
static void
matrix_diagonalize(int n, double *a, double *v)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			v[i * n + k] = i == k;
	for (int sweep = 0; sweep < SWEEPS; sweep++)
	{
		double		off = 0,
					diagonal = 0;

		for (int i = 0; i < n; i++)
			for (int k = 0; k <= i; k++)
				*(i == k ? &diagonal : &off) += a[i * n + k] * a[i * n + k];
		if (!(off > 1e-26 * diagonal))
			return;
		for (int p = 0; p < n; p++)
		{
			CHECK_FOR_INTERRUPTS();
			for (int q = p + 1; q < n; q++)
			{
				double		theta,
							t,
							c,
							s;

				if (a[p * n + q] == 0)
					continue;
				theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
				t = (theta >= 0 ? 1 : -1) / (fabs(theta) + hypot(theta, 1));
				c = 1 / hypot(t, 1);
				s = t * c;
				for (int k = 0; k < n; k++)
				{
					double		left = a[k * n + p],
								right = a[k * n + q];

					a[k * n + p] = c * left - s * right;
					a[k * n + q] = s * left + c * right;
				}
				for (int k = 0; k < n; k++)
				{
					double		upper = a[p * n + k],
								lower = a[q * n + k],
								left = v[k * n + p],
								right = v[k * n + q];

					a[p * n + k] = c * upper - s * lower;
					a[q * n + k] = s * upper + c * lower;
					v[k * n + p] = c * left - s * right;
					v[k * n + q] = s * left + c * right;
				}
			}
		}
	}
}

static void
ridge_fit(Ridge *r, const double *x, const double *y, int64 n, int width)
{
	int			m = r->n_columns;
	double	   *gram = palloc0(Max(m * m, 1) * sizeof(double)),
			   *vectors = palloc(Max(m * m, 1) * sizeof(double)),
			   *moment = palloc0(Max(m, 1) * sizeof(double)),
			   *z = palloc0(Max(m, 1) * sizeof(double)),
			   *row = palloc(Max(m, 1) * sizeof(double));
	double		total = 0,
				best = INFINITY,
				penalty = 0;

	for (int64 i = 0; i < n; i++)
		r->mean += y[i] / n;
	for (int64 i = 0; i < n; i++)
	{
		double		target = y[i] - r->mean;

		CHECK_FOR_INTERRUPTS();
		for (int c = 0; c < m; c++)
			row[c] = matrix_entry(&r->columns[c], x + i * width);
		for (int c = 0; c < m; c++)
		{
			moment[c] += row[c] * target;
			for (int k = 0; k < m; k++)
				gram[c * m + k] += row[c] * row[k];
		}
		total += target * target;
	}
	matrix_diagonalize(m, gram, vectors);
	for (int c = 0; c < m; c++)
		for (int k = 0; k < m; k++)
			z[c] += vectors[k * m + c] * moment[k];
	for (int g = 0; g < PENALTIES; g++)
	{
		double		l = n * pow(10, -4 + 0.5 * g),
					rest = total,
					freedom = 1;	/* the mean */
		double		score;

		for (int c = 0; c < m; c++)
		{
			double		e = fmax(gram[c * m + c], 0),
						w = z[c] / (e + l);

			rest += w * (e * w - 2 * z[c]);
			freedom += e / (e + l);
		}
		rest = fmax(rest, 0);
		if (freedom > n - 1)
			continue;
		score = rest / ((n - freedom) * (n - freedom));
		if (score < best)
		{
			best = score;
			penalty = l;
			r->sd = sqrt(rest / (n - freedom));
		}
	}
	r->weights = palloc0(Max(m, 1) * sizeof(double));
	for (int c = 0; best < INFINITY && c < m; c++)
		for (int k = 0; k < m; k++)
			r->weights[k] += vectors[k * m + c] * z[c] / (fmax(gram[c * m + c], 0) + penalty);
	if (best == INFINITY)
		r->sd = sqrt(total / Max(n - 1, 1));
	r->sd = fmax(r->sd, 1e-9 * fmax(fabs(r->mean), 1e-100));
}

/* ridge(context, rows context) returns posterior.distribution[], one for each row */
PG_FUNCTION_INFO_V1(posterior_ridge);
Datum
posterior_ridge(PG_FUNCTION_ARGS)
{
	PosteriorContext *given = PG_GETARG_CONTEXT(0),
					 *asked = PG_GETARG_CONTEXT(1);
	const double *x = posterior_context_x(given),
				 *q = posterior_context_x(asked);
	int			width = given->n_features;
	Ridge		r = {0};
	Oid			element = get_element_type(get_fn_expr_rettype(fcinfo->flinfo));
	Datum	   *answers = palloc(Max(asked->n, 1) * sizeof(Datum));

	if (posterior_context_labelled(given) || given->n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a ridge regression needs rows whose targets are numbers")));
	if (asked->n_features != width || memcmp(given->classes, asked->classes, width) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the rows have other columns than the context")));
	for (int f = 0; f < width; f++)
	{
		ridge_add_column(&r, (Column){f, MISSING}, x, given->n, width);
		if (given->classes[f] == POSTERIOR_CATEGORY)
			add_label_columns(&r, f, x, given->n, width);
		else
			ridge_add_column(&r, (Column){f, NUMBER}, x, given->n, width);
	}
	ridge_fit(&r, x, posterior_context_y(given), given->n, width);
	for (int64 i = 0; i < asked->n; i++)
	{
		double		params[2] = {r.mean, r.sd};

		for (int c = 0; c < r.n_columns; c++)
			params[0] += r.weights[c] * matrix_entry(&r.columns[c], q + i * width);
		answers[i] =
			PointerGetDatum(posterior_check_distribution(TNP_GAUSSIAN, 1, params, NULL, 0));
	}
	PG_RETURN_ARRAYTYPE_P(
		construct_array(answers, (int) asked->n, element, -1, false, TYPALIGN_DOUBLE));
}
