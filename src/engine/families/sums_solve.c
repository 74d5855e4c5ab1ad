/*
 * sums_solve.c: from sums to posteriors: precisions by the evidence, the noise, the weights of the
 * settings (docs/sums.md, "Evidence").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/normal.h"
#include "engine/families/sums_factor.h"

#define LEAST_PRECISION 1e-4
#define MOST_PRECISION 1e7
#define INTERCEPT_PRECISION 0.01
#define MOST_PROFILE 1e12
#define JITTER 0x1p-40			/* of a feature's own sum of squares, against rounding */
#define SMALLEST_RATE 1e-12		/* of what is left of the targets */

/* ---- the layout of facts --------------------------------------------------------------------- */

static size_t
words_of_bytes(size_t bytes)
{
	return (bytes + 7) / 8;
}

/* A factor and a mean. */
static size_t
setting_numbers(int width)
{
	return sums_stair(sums_padded(width)) + width;
}

static size_t
solution_bytes(int settings, int width)
{
	return 8 * words_of_bytes(sizeof(SumsSolution))
		+ settings * setting_numbers(width) * sizeof(double);
}

double *
sums_precision(const SumsFacts *f, int setting)
{
	return (double *) f + words_of_bytes(sizeof(SumsFacts)) + (size_t) setting * f->width;
}

double *
sums_noise(const SumsFacts *f)
{
	return sums_precision(f, f->settings);
}

int64_t *
sums_facts_marks(const SumsFacts *f)
{
	return (int64_t *) (void *) (sums_noise(f) + (size_t) f->settings * f->points);
}

SumsState *
sums_of(const SumsFacts *f)
{
	return (SumsState *) (void *) (sums_facts_marks(f) + sums_marks_words(f->columns));
}

SumsSolution *
sums_first_solution(const SumsFacts *f)
{
	return (SumsSolution *) ((double *) (void *) sums_of(f) + words_of_bytes(f->sums_bytes));
}

double *
sums_factor(const SumsFacts *f, const SumsSolution *s, int setting)
{
	return (double *) s + words_of_bytes(sizeof(SumsSolution))
		+ setting * setting_numbers(f->width);
}

double *
sums_mean(const SumsFacts *f, const SumsSolution *s, int setting)
{
	return sums_factor(f, s, setting) + sums_stair(sums_padded(f->width));
}

size_t
sums_facts_bytes(const SumsConfig *c, size_t sums_bytes, int width, int columns)
{
	return 8 * (words_of_bytes(sizeof(SumsFacts)) + (size_t) c->n_lengths * (width + c->points)
				+ sums_marks_words(columns) + words_of_bytes(sums_bytes))
		+ solution_bytes(c->n_lengths, width);
}

void
sums_facts_lay_out(const SumsConfig *c, size_t sums_bytes, int width, int columns, SumsFacts *f)
{
	memset(f, 0, sizeof(SumsFacts));
	f->width = width;
	f->columns = columns;
	f->settings = c->n_lengths;
	f->points = c->points;
	f->sums_bytes = sums_bytes;
	f->solution_bytes = solution_bytes(c->n_lengths, width);
	memset(f + 1, 0, (size_t) ((char *) sums_of(f) - (char *) (f + 1)));
	memset(sums_first_solution(f), 0, sizeof(SumsSolution));
}

/* ---- one regression -------------------------------------------------------------------------- */

/* The sums as numbers, and what a regression of them takes. */
typedef struct Fit
{
	const TnpModel *model;
	const SumsConfig *c;
	int			width,
				padded,			/* width in whole blocks: what is more has no effect */
				groups;
	double		n,
				square;			/* of the target */
	const int64_t *sums;		/* of products of features, a lower triangle by rows */
	double	   *gram,			/* the same as numbers; NULL: they are made when they are needed */
			   *product,		/* [width] */
			   *profile,		/* [width] */
			   *scratch,		/* of the factor, then [padded] */
			   *inverse,		/* [padded, padded] of the factor; NULL: no evidence is wanted */
			   *by_group,		/* [3, groups] */
			   *precision;		/* [groups] */
	int		   *group;			/* [width] */
	double	   *frequency2;		/* [width] */
} Fit;

static void
fit_free(Fit *fit)
{
	const TnpEnv *env = &fit->model->env;

	tnp_free(env, fit->gram);
	tnp_free(env, fit->product);
	tnp_free(env, fit->profile);
	tnp_free(env, fit->scratch);
	tnp_free(env, fit->inverse);
	tnp_free(env, fit->by_group);
	tnp_free(env, fit->precision);
	tnp_free(env, fit->group);
	tnp_free(env, fit->frequency2);
}

static double
number_of(const int64_t *wide, double unit)
{
	return (double) tnp_exact(wide) / unit;
}

/* Row i of the lower triangle, as numbers. */
static void
gram_row(const Fit *fit, int i, double *row)
{
	const int64_t *sums = fit->sums + (size_t) i * (i + 1) / 2;

	for (int j = 0; j <= i; j++)
		row[j] = (double) sums[j] / ((double) SUMS_UNIT * SUMS_UNIT);
	row[i] *= 1 + JITTER;
}

/* Make the sums numbers; freed by the caller also after a failure. */
static TnpStatus
fit_make(const TnpModel *model, const SumsState *sums, bool evidence, Fit *fit, TnpError *error)
{
	const TnpEnv *env = &model->env;
	int			width = sums->width;
	const int64_t *product = sums_product(sums);
	double		unit = (double) ((int64_t) 1 << SUMS_TARGET_BITS);
	bool		enough;

	*fit = (Fit) {.model = model, .c = sums_config(model), .width = width,
		.padded = sums_padded(width), .n = (double) sums->common.n, .sums = sums_gram(sums)};
	fit->product = tnp_alloc(env, width, sizeof(double));
	fit->profile = tnp_alloc(env, width, sizeof(double));
	fit->by_group = tnp_alloc(env, (size_t) 3 * (width + 3), sizeof(double));
	fit->precision = tnp_alloc(env, width + 3, sizeof(double));
	fit->group = tnp_alloc(env, width, sizeof(int));
	fit->frequency2 = tnp_alloc(env, width, sizeof(double));
	fit->scratch = tnp_alloc(env, sums_factor_numbers(fit->padded) + fit->padded, sizeof(double));
	enough = fit->product != NULL && fit->profile != NULL && fit->by_group != NULL
		&& fit->precision != NULL && fit->group != NULL && fit->frequency2 != NULL
		&& fit->scratch != NULL;
	if (evidence && enough)
	{
		fit->gram = tnp_alloc(env, (size_t) width * (width + 1) / 2, sizeof(double));
		fit->inverse = tnp_alloc(env, (size_t) fit->padded * fit->padded, sizeof(double));
		enough = fit->gram != NULL && fit->inverse != NULL;
	}
	if (!enough)
		return tnp_no_memory(error);
	for (int i = 0; i < width; i++)
	{
		if (evidence)
			gram_row(fit, i, fit->gram + (size_t) i * (i + 1) / 2);
		fit->product[i] = number_of(product + 2 * i, SUMS_UNIT * unit);
	}
	fit->square = number_of(product + 2 * width, unit * unit);
	fit->groups = sums_groups(fit->c, sums_basis(sums), fit->group, fit->frequency2);
	return TNP_OK;
}

/*
 * The factor of A = gram + diag(precision), the mean [width] of the weights, half the logarithm of
 * A's determinant, and what the mean leaves of the targets' sum of squares.
 */
static TnpStatus
regress(const Fit *fit, const double *precision, double *factor, double *mean, double *determinant,
		double *rest, TnpError *error)
{
	int			n = fit->width,
				padded = fit->padded;
	double	   *v = fit->scratch + sums_factor_numbers(padded);

	if (tnp_interrupted(&fit->model->env))
		return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
	for (int i = 0; i < padded; i++)
	{
		double	   *row = factor + sums_stair(i);

		if (i >= n)
			memset(row, 0, i * sizeof(double));
		else if (fit->gram != NULL)
			memcpy(row, fit->gram + (size_t) i * (i + 1) / 2, (i + 1) * sizeof(double));
		else
			gram_row(fit, i, row);
		row[i] = i < n ? row[i] + precision[i] : 1;
		v[i] = i < n ? fit->product[i] : 0;
	}
	if (!sums_factorise(fit->model->kernels->moments(), padded, factor, fit->scratch))
		return tnp_fail(error, TNP_BAD_VALUE, "the sums are singular");
	*determinant = 0;
	for (int i = 0; i < n; i++)
		*determinant += log(factor[sums_stair(i) + i]);
	sums_solve_lower(factor, padded, v);
	*rest = fit->square - tnp_dot(padded, v, v);
	if (!(*rest > SMALLEST_RATE * (1 + fit->n)))
		*rest = SMALLEST_RATE * (1 + fit->n);
	sums_solve_upper(factor, padded, v);
	memcpy(mean, v, n * sizeof(double));
	return TNP_OK;
}

/* diagonal [width] of the inverse of A, whose factor `regress` has made last. */
static TnpStatus
inverse_diagonal(const Fit *fit, const double *factor, double *diagonal, TnpError *error)
{
	int			n = fit->width;

	if (tnp_interrupted(&fit->model->env))
		return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
	sums_invert(fit->model->kernels->moments(), fit->padded, factor, fit->scratch, fit->inverse);
	memset(diagonal, 0, n * sizeof(double));
	for (int i = 0; i < n; i++)
	{
		const double *row = fit->inverse + (size_t) i * fit->padded;

		for (int j = 0; j <= i; j++)
			diagonal[j] += row[j] * row[j];
	}
	return TNP_OK;
}

/* ---- precisions ------------------------------------------------------------------------------ */

/* How much smaller a wave is expected than the first ones of its group: a spectral density. */
static void
fill_profile(Fit *fit, double length)
{
	double		step = 3.14159265358979323846 / (2 * SUMS_REACH);

	for (int i = 0; i < fit->width; i++)
	{
		double		w2 = fit->frequency2[i] * step * step * length * length,
					p = 1 + w2 / 5;

		if (fit->frequency2[i] == 0)
			p = 1;
		else if (fit->c->profile == SUMS_MATERN)
			p = p * p * p / length;
		else
			p = exp(fmin(0.5 * w2, 100)) / length;
		fit->profile[i] = fmin(p, MOST_PROFILE);
	}
}

static void
spread_precision(const Fit *fit, double *precision)
{
	for (int i = 0; i < fit->width; i++)
		precision[i] = fit->precision[fit->group[i]] * fit->profile[i];
}

/* Shape and rate of the noise's precision after n rows of which `rest` is left. */
static double
noise_shape(const Fit *fit)
{
	return fit->c->noise_shape + fit->n / 2;
}

static double
noise_rate(const Fit *fit, double rest)
{
	return fit->c->noise_rate + rest / 2;
}

/*
 * One step to the precisions that the evidence wants, times a gamma prior of each (MacKay 1992,
 * eq. 4.6 and 4.7, with the weights in units of the noise).
 */
static TnpStatus
evidence_step(Fit *fit, double *precision, double *factor, double *mean, TnpError *error)
{
	double	   *count = fit->by_group,
			   *trace = count + fit->groups,
			   *size = trace + fit->groups,
				diagonal[SUMS_MOST_FEATURES],
				determinant,
				rest,
				scale;
	TnpStatus	status;

	spread_precision(fit, precision);
	status = regress(fit, precision, factor, mean, &determinant, &rest, error);
	if (status == TNP_OK)
		status = inverse_diagonal(fit, factor, diagonal, error);
	if (status != TNP_OK)
		return status;
	scale = noise_shape(fit) / noise_rate(fit, rest);
	memset(count, 0, (size_t) 3 * fit->groups * sizeof(double));
	for (int i = 0; i < fit->width; i++)
	{
		int			g = fit->group[i];

		count[g] += 1;
		trace[g] += fit->profile[i] * diagonal[i];
		size[g] += fit->profile[i] * mean[i] * mean[i] * scale;
	}
	for (int g = 1; g < fit->groups; g++)
	{
		double		determined = fmax(count[g] - fit->precision[g] * trace[g], 0),
					next = (determined + 2 * fit->c->prior_shape)
			/ (size[g] + 2 * fit->c->prior_rate);

		fit->precision[g] = fmin(fmax(next, LEAST_PRECISION), MOST_PRECISION);
	}
	return TNP_OK;
}

/* The logarithm of the evidence of one setting, up to what all settings have in common. */
static double
log_evidence(const Fit *fit, const double *precision, double determinant, double rest)
{
	double		sum = -determinant - noise_shape(fit) * log(noise_rate(fit, rest));

	for (int i = 0; i < fit->width; i++)
		sum += 0.5 * log(precision[i]);
	for (int g = 1; g < fit->groups; g++)
		if (fit->c->steps > 0)
			sum += fit->c->prior_shape * log(fit->precision[g])
				- fit->c->prior_rate * fit->precision[g];
	return sum;
}

/*
 * The logarithm of the density of the rows' targets, in units of the basis, under these precisions:
 * weights and noise are integrated out (Bishop 2006, section 3.5, with a gamma prior of the noise's
 * precision).
 */
static double
log_density(const Fit *fit, const double *precision, double determinant, double rest)
{
	double		shape = fit->c->noise_shape,
				sum = shape * log(fit->c->noise_rate) - lgamma(shape) + lgamma(noise_shape(fit))
		- noise_shape(fit) * log(noise_rate(fit, rest)) - determinant
		- fit->n / 2 * log(2 * 3.14159265358979323846);

	for (int i = 0; i < fit->width; i++)
		sum += 0.5 * log(precision[i]);
	return sum;
}

/*
 * Standard deviations of the noise: points of equal probability of its posterior, a gamma
 * distribution of the precision (Wilson and Hilferty 1931), their variances' mean that of the
 * posterior where it has one.
 */
static void
fill_noise(const Fit *fit, double rest, double *noise)
{
	double		shape = noise_shape(fit),
				h = 1 / (9 * shape),
				sum = 0,
				want = shape > 1 ? shape / (shape - 1) : 1;
	int			n = fit->c->points;

	for (int q = 0; q < n; q++)
	{
		double		z = tnp_normal_quantile((q + 0.5) / n),
					root = 1 - h + z * sqrt(h);

		/* in the lowest tail of few rows the cube root is no longer positive */
		root = fmax(root, 0.1);
		noise[q] = 1 / (root * root * root);
		sum += noise[q];
	}
	for (int q = 0; q < n; q++)
		noise[q] = sqrt(noise[q] * n / sum * want * noise_rate(fit, rest) / shape);
}

/* Weights that sum to 1, of logarithms. */
static void
normalise(int n, double *weight)
{
	double		most = -INFINITY,
				sum = 0;

	for (int i = 0; i < n; i++)
		most = fmax(most, weight[i]);
	for (int i = 0; i < n; i++)
		sum += weight[i] = exp(weight[i] - most);
	for (int i = 0; i < n; i++)
		weight[i] /= sum;
}

/* The precisions of one setting, and its first solution. */
static TnpStatus
fit_setting(Fit *fit, SumsFacts *f, int setting, TnpError *error)
{
	SumsSolution *solution = sums_first_solution(f);
	double	   *precision = sums_precision(f, setting),
			   *factor = sums_factor(f, solution, setting),
			   *mean = sums_mean(f, solution, setting);
	TnpStatus	status = TNP_OK;
	/* the others begin where the first has ended */
	int			steps = setting == 0 ? fit->c->steps : (fit->c->steps + 1) / 2;

	fill_profile(fit, fit->c->lengths[setting]);
	for (int step = 0; status == TNP_OK && step < steps; step++)
		status = evidence_step(fit, precision, factor, mean, error);
	if (status != TNP_OK)
		return status;
	spread_precision(fit, precision);
	status = regress(fit, precision, factor, mean, &f->determinant[setting], &f->rest[setting],
					 error);
	if (status != TNP_OK)
		return status;
	f->base[setting] = log_evidence(fit, precision, f->determinant[setting], f->rest[setting]);
	f->density[setting] = log_density(fit, precision, f->determinant[setting], f->rest[setting]);
	fill_noise(fit, f->rest[setting], sums_noise(f) + (size_t) setting * f->points);
	return TNP_OK;
}

TnpStatus
sums_fit(const TnpModel *model, SumsFacts *f, TnpError *error)
{
	SumsSolution *solution = sums_first_solution(f);
	Fit			fit;
	TnpStatus	status = fit_make(model, sums_of(f), true, &fit, error);

	for (int g = 0; status == TNP_OK && g < fit.groups; g++)
		fit.precision[g] = g == 0 ? INTERCEPT_PRECISION : fit.c->start;
	f->n = f->measured = solution->n = sums_of(f)->common.n;
	sums_marks(sums_of(f), sums_facts_marks(f));
	f->groups = fit.groups;
	for (int s = 0; status == TNP_OK && s < f->settings; s++)
		status = fit_setting(&fit, f, s, error);
	fit_free(&fit);
	for (int i = 0; status == TNP_OK && i < f->settings * f->points; i++)
		solution->weight[i] = f->base[i / f->points];
	if (status == TNP_OK)
		normalise(f->settings * f->points, solution->weight);
	return status;
}

TnpStatus
sums_solve(const TnpModel *model, const SumsFacts *f, const SumsState *sums, SumsSolution *solution,
		   TnpError *error)
{
	Fit			fit;
	TnpStatus	status = fit_make(model, sums, false, &fit, error);

	solution->n = sums->common.n;
	for (int s = 0; status == TNP_OK && s < f->settings; s++)
	{
		double		determinant,
					rest;

		status = regress(&fit, sums_precision(f, s), sums_factor(f, solution, s),
						 sums_mean(f, solution, s), &determinant, &rest, error);
		/* the density of the later rows under each noise, given the first */
		for (int q = 0; status == TNP_OK && q < f->points; q++)
		{
			double		noise = sums_noise(f)[s * f->points + q];

			solution->weight[s * f->points + q] = f->base[s]
				- (double) (sums->common.n - f->measured) * log(noise)
				- (determinant - f->determinant[s])
				- (rest - f->rest[s]) / (2 * noise * noise);
		}
	}
	fit_free(&fit);
	if (status == TNP_OK)
		normalise(f->settings * f->points, solution->weight);
	return status;
}

/* ---- a fit as words -------------------------------------------------------------------------- */

/*
 * Places of a fit's words; numbers follow: base, determinant, rest, noise, precisions; then marks.
 */
enum { FIT_VERSION, FIT_WIDTH, FIT_SETTINGS, FIT_POINTS, FIT_ROWS, FIT_HEAD };

#define FIT_FORMAT 1

size_t
sums_fit_words(const SumsConfig *c, int width, int columns)
{
	return FIT_HEAD + (size_t) c->n_lengths * (3 + c->points + width) + sums_marks_words(columns);
}

void
sums_fit_write(const SumsFacts *f, int64_t *words)
{
	int64_t    *to = words + FIT_HEAD;

	words[FIT_VERSION] = FIT_FORMAT;
	words[FIT_WIDTH] = f->width;
	words[FIT_SETTINGS] = f->settings;
	words[FIT_POINTS] = f->points;
	words[FIT_ROWS] = f->measured;
	for (int s = 0; s < f->settings; s++)
	{
		*to++ = sums_word(f->base[s]);
		*to++ = sums_word(f->determinant[s]);
		*to++ = sums_word(f->rest[s]);
		for (int q = 0; q < f->points; q++)
			*to++ = sums_word(sums_noise(f)[s * f->points + q]);
		for (int i = 0; i < f->width; i++)
			*to++ = sums_word(sums_precision(f, s)[i]);
	}
	memcpy(to, sums_facts_marks(f), sums_marks_words(f->columns) * sizeof(int64_t));
}

TnpStatus
sums_fit_read(SumsFacts *f, size_t words, const int64_t *fit, TnpError *error)
{
	const int64_t *from = fit + FIT_HEAD;
	size_t		marks = sums_marks_words(f->columns);
	bool		good = words == FIT_HEAD + (size_t) f->settings * (3 + f->points + f->width) + marks
		&& fit[FIT_VERSION] == FIT_FORMAT && fit[FIT_WIDTH] == f->width
		&& fit[FIT_SETTINGS] == f->settings && fit[FIT_POINTS] == f->points
		&& fit[FIT_ROWS] >= 0 && fit[FIT_ROWS] <= SUMS_MOST_ROWS;

	for (int s = 0; good && s < f->settings; s++)
	{
		f->base[s] = sums_number(*from++);
		f->determinant[s] = sums_number(*from++);
		f->rest[s] = sums_number(*from++);
		good = isfinite(f->base[s]) && isfinite(f->determinant[s]) && isfinite(f->rest[s]);
		for (int q = 0; good && q < f->points; q++)
		{
			double		noise = sums_noise(f)[s * f->points + q] = sums_number(*from++);

			good = noise > 0 && isfinite(noise);
		}
		for (int i = 0; good && i < f->width; i++)
		{
			double		precision = sums_precision(f, s)[i] = sums_number(*from++);

			good = precision > 0 && isfinite(precision);
		}
	}
	if (!good || !sums_marks_fit(f->columns, fit[FIT_ROWS], from))
		return tnp_fail(error, TNP_BAD_VALUE, "the fit is not one of this model and basis");
	memcpy(sums_facts_marks(f), from, marks * sizeof(int64_t));
	f->measured = fit[FIT_ROWS];
	return TNP_OK;
}
