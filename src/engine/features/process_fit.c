/*
 * process_fit.c: the weights of the axes and the noise of the process of the prefix
 * (docs/model-format.md section 5, "Process"): the best of a few starts, and from there a fixed
 * number of steps up the log posterior. Nothing depends on the machine but rounding.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/process_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/upper.h"
#include "engine/base/wide.h"
#include "engine/features/climb.h"
#include "engine/features/column.h"
#include "engine/features/process_pairs.h"
#include "engine/features/process_points.h"
#include "engine/features/spread.h"

#define STAGES 2
#define SHARE_STEPS 12			/* of the first stage, with a share of means over axes */
#define SHARE_LEVELS (LEVELS + 1)	/* of the starts with a share */
#define SHARE_WEIGHT 1.5		/* of all axes in the last of these, beside the prior's mean */
#define SHARE_GAIN 1.0			/* of the log posterior, for these to be made */
#define LEAST -16.0			/* of every log, and */
#define LEAST_OF_FEW -13.0		/* with fewer rows than */
#define FEW_ROWS 32				/* these, which chance may let look exact */
#define MOST 9.0
#define NARROW 5.0				/* spread of the logs under their prior, at first and */
#define WIDE 20.0				/* after so many steps: */
#define NARROW_STEPS 24
#define LOG_NOISE -3.0			/* mean of the noise's */
#define LEVELS 3				/* of the starts */
#define REST -3.0				/* of other axes beside the prior's mean */
#define FEWEST_VALUES 16		/* an axis with fewer is never the finest */
#define FEWEST_GROUPS 5			/* of equal cells */
#define MOST_GROUPS 0.75		/* of the rows */
#define GROUPS_WEIGHT 7.5		/* of the axis whose values are groups */
#define PAIR_ROWS 16			/* the fewest for which pairs of axes are looked for */
#define PAIR_LEVELS 3
#define PAIR_GAIN 1.0			/* of their start's log posterior over all ends */
#define ROUGHNESS_STEPS 1048576.0	/* and of shares: what is equal up to rounding is equal */
#define SMALLEST 1e-6			/* added to sums of squares */
#define SMALLEST_CHANCE 1e-30

static const int stage_rows[STAGES] = {128, TNP_PROCESS_ROWS};
static const int stage_steps[STAGES] = {48, 12};
static const double stage_rate[STAGES] = {0.8, 0.5};
static const double starts[LEVELS] = {-1, 0, 1.5};
static const double fine_starts[LEVELS] = {1.5, 3, 4.5};
static const double direct_starts[LEVELS] = {-1, 0.5, 2};
static const double pair_starts[PAIR_LEVELS] = {0.5, -1, 2.5};
static const double noises[2] = {0.03, 0.3};
static const double share_starts[SHARE_LEVELS] = {0, 2, 4, 2};

/* What one stage works on, and its memory. */
typedef struct Fit
{
	const TnpModel *model;
	const TnpStats *stats;
	int			n,
				axes;
	bool		additive;		/* theta has one number more, the share's logit */
	double		mean,			/* of the weights' logs under their prior */
				spread;			/* of all logs */
	TnpPoints	points;
	double	   *scaled;			/* [axes, n] values, those of categories too */
	double	   *y;				/* [n] scaled and clipped targets */
	double	   *weight;			/* [axes] */
	double	   *slope;			/* [n, n] of the correlations, upper triangle */
	double	   *more;			/* [n, n] of means over axes than of products, upper triangle */
	double	   *matrix;			/* [n, n] the system, then its factor */
	double	   *inverse;		/* [n, n] of the system, upper triangle */
	double	   *scratch;		/* [n, n] */
	double	   *answer;			/* [n] */
	double	   *pull;			/* [n] of one row */
	double	   *alone;			/* [n] */
	double	   *pulled;			/* [axes, n] what pairs say of the weights, by their later row */
} Fit;

static void
fit_free(Fit *fit)
{
	const TnpEnv *env = &fit->model->env;

	tnp_points_free(env, &fit->points);
	tnp_free(env, fit->scaled);
	tnp_free(env, fit->slope);
}

/* Read the rows; false when memory ran out. */
static bool
fit_make(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, int most, Fit *fit)
{
	const TnpEnv *env = &model->env;
	int64_t		chosen[TNP_PROCESS_ROWS];
	int			n = tnp_spread_rows(model, rows, stats, most, chosen),
				axes = tnp_points_axes(stats);
	size_t		square = (size_t) n * n;

	memset(fit, 0, sizeof(*fit));
	fit->model = model;
	fit->stats = stats;
	fit->n = n;
	fit->axes = axes;
	fit->mean = -log(axes);
	if (n < 0 || !tnp_points_make(model, stats, n, &fit->points))
		return false;
	fit->spread = WIDE;
	fit->scaled = tnp_alloc_zero(env, (size_t) n * (2 * axes + 4) + axes, sizeof(double));
	fit->slope = tnp_alloc_zero(env, (4 + model->config.encode_x.additive) * square,
								sizeof(double));
	if (fit->scaled == NULL || fit->slope == NULL)
		return false;
	fit->matrix = fit->slope + square;
	fit->inverse = fit->matrix + square;
	fit->scratch = fit->inverse + square;
	fit->more = fit->scratch + square;
	fit->pulled = fit->scaled + (size_t) n * axes;
	fit->y = fit->pulled + (size_t) n * axes;
	fit->answer = fit->y + n;
	fit->pull = fit->answer + n;
	fit->alone = fit->pull + n;
	fit->weight = fit->alone + n;
	for (int i = 0; i < n; i++)
	{
		const double *x = rows->x + chosen[i] * rows->n_features;

		tnp_points_set(model, stats, x, &fit->points, i);
		fit->y[i] = tnp_clipped_target(model, stats, rows->y[chosen[i]]);
		for (int s = 0; s < stats->n_slots; s++)
		{
			const TnpColumn *column = tnp_slot_column(stats, s);
			double		value = tnp_column_value(column, tnp_slot_cell(stats, s, x));

			fit->scaled[(size_t) s * n + i] = isnan(value) ? 0
				: tnp_column_scale(model, column, value);
		}
		for (int a = stats->n_slots; a < axes; a++)
			fit->scaled[(size_t) a * n + i] = fit->points.value[(size_t) a * n + i];
	}
	return true;
}

/* ---- the log posterior ----------------------------------------------------------------------- */

/* Distance from the prior's mean in units of its spread. */
static double
prior_deviation(const Fit *fit, const double *theta, int k)
{
	const double mean = k < fit->axes ? fit->mean : k == fit->axes ? LOG_NOISE : 0;

	return (theta[k] - mean) / fit->spread;
}

static int
n_theta(const Fit *fit)
{
	return fit->axes + 1 + fit->additive;
}

/* Of the correlation: the part that is a mean over axes. */
static double
share_of(const Fit *fit, const double *theta)
{
	return fit->additive ? 1 / (1 + exp(-theta[fit->axes + 1])) : 0;
}

/*
 * The factor of the system at theta; false where rounding has made it indefinite, which the least
 * noise prevents.
 */
static bool
fit_factorise(Fit *fit, const double *theta)
{
	double		noise = exp(theta[fit->axes]),
				share = share_of(fit, theta);
	int			n = fit->n;

	for (int s = 0; s < fit->axes; s++)
		fit->weight[s] = exp(theta[s]);
	for (int i = 0; i < n; i++)
	{
		double	   *row = fit->matrix + (size_t) i * n;

		tnp_points_distances(fit->stats, &fit->points, i, &fit->points, i, fit->weight, row);
		tnp_points_correlations(i, n, row, fit->slope + (size_t) i * n);
		if (fit->additive)
		{
			double	   *more = fit->more + (size_t) i * n;

			tnp_points_alone(fit->stats, &fit->points, i, &fit->points, i, fit->weight,
							 fit->alone);
			for (int j = i; j < n; j++)
				more[j] = fit->alone[j] - row[j];
			tnp_points_mix(i, n, share, fit->alone, row);
		}
		row[i] = 1 + noise;
	}
	return tnp_upper_factorise(fit->matrix, n);
}

/* The log posterior but for a constant; the targets' variance is at its maximum. */
static double
fit_value(Fit *fit, const double *theta)
{
	double		determinant = 0,
				prior = 0,
				square;
	int			n = fit->n;

	if (!fit_factorise(fit, theta))
		return -INFINITY;
	memcpy(fit->answer, fit->y, n * sizeof(double));
	tnp_upper_solve(fit->matrix, n, 1, fit->answer);
	square = tnp_dot(n, fit->answer, fit->answer);
	for (int i = 0; i < n; i++)
		determinant += 2 * log(fit->matrix[(size_t) i * n + i]);
	for (int k = 0; k < n_theta(fit); k++)
		prior += prior_deviation(fit, theta, k) * prior_deviation(fit, theta, k);
	return -0.5 * (n * log((square + SMALLEST) / n) + determinant + prior);
}

/* The system's inverse, and its product with the targets. */
static void
fit_invert(Fit *fit)
{
	int			n = fit->n;

	tnp_upper_invert(fit->matrix, n, fit->scratch, fit->inverse);
	memcpy(fit->answer, fit->y, n * sizeof(double));
	tnp_upper_solve(fit->matrix, n, 1, fit->answer);
	tnp_upper_solve_back(fit->matrix, n, fit->answer);
}

/* pull[j] = the derivative by the squared distance of rows i and j. */
TNP_WIDE_ANY
pull_row_any(double *restrict pull, const double *restrict answer, const double *restrict inverse,
			 const double *restrict slope, double own, int i, int n)
{
	for (int j = i; j < n; j++)
		pull[j] = 0.5 * (own * answer[j] - inverse[j]) * slope[j];
}
TNP_WIDE(pull_row, (double *restrict pull, const double *restrict answer,
					const double *restrict inverse, const double *restrict slope, double own, int i,
					int n), (pull, answer, inverse, slope, own, i, n))

/* pull[j] = the derivative by the correlation of rows i and j. */
TNP_WIDE_ANY
pull_correlations_any(double *restrict pull, const double *restrict answer,
					  const double *restrict inverse, double own, int i, int n)
{
	for (int j = i; j < n; j++)
		pull[j] = 0.5 * (own * answer[j] - inverse[j]);
}
TNP_WIDE(pull_correlations, (double *restrict pull, const double *restrict answer,
							 const double *restrict inverse, double own, int i, int n),
		 (pull, answer, inverse, own, i, n))

/*
 * pulled[j] += pull[j] times the derivative of the correlation of rows i and j by the weight of one
 * axis: product times slope[j], and `each` of the axis alone, where the weight is w.
 */
TNP_WIDE_ANY
add_pulled_alone_any(double *restrict pulled, const double *restrict pull,
					 const double *restrict slope, const double *restrict value,
					 const double *restrict label, double w, double apart, double product,
					 double each, int i, int n)
{
	for (int j = i + 1; j < n; j++)
	{
		double		d = value[i] - value[j],
					distance = d * d + (label[i] != label[j] ? apart : 0),
					t = 1 / (1 + w * distance / 8),
					square = t * t;

		pulled[j] += pull[j] * distance * (product * slope[j] + each * square * square * t);
	}
}
TNP_WIDE(add_pulled_alone, (double *restrict pulled, const double *restrict pull,
							const double *restrict slope, const double *restrict value,
							const double *restrict label, double w, double apart,
							double product, double each, int i, int n),
		 (pulled, pull, slope, value, label, w, apart, product, each, i, n))

/* What row i and those behind it say of the weights and, in the gradient, of the share. */
static void
pull_shared(Fit *fit, const double *inverse, double own, double share, int i, double *gradient)
{
	const double *more = fit->more + (size_t) i * fit->n;
	int			n = fit->n;

	pull_correlations(fit->pull, fit->answer, inverse, own, i, n);
	for (int s = 0; s < fit->axes; s++)
		add_pulled_alone(fit->pulled + (size_t) s * n, fit->pull, fit->slope + (size_t) i * n,
						 fit->points.value + (size_t) s * n, fit->points.label + (size_t) s * n,
						 TNP_ALONE * fit->weight[s], tnp_points_label_distance(fit->stats, s),
						 1 - share, -0.5 * TNP_ALONE * share / fit->axes, i, n);
	for (int j = i + 1; j < n; j++)
		gradient[fit->axes + 1] += 2 * share * (1 - share) * fit->pull[j] * more[j];
}

/* What row i and those behind it say of the weights. */
static void
pull_product(Fit *fit, const double *inverse, double own, int i)
{
	int			n = fit->n;

	pull_row(fit->pull, fit->answer, inverse, fit->slope + (size_t) i * n, own, i, n);
	for (int s = 0; s < fit->axes; s++)
		tnp_points_pull(fit->stats, &fit->points, s, i, fit->pull,
						fit->pulled + (size_t) s * n);
}

/* The gradient [n_theta] of the log posterior. */
static bool
fit_gradient(Fit *fit, const double *theta, double *gradient)
{
	double		noise = exp(theta[fit->axes]),
				share = share_of(fit, theta),
				variance;
	int			n = fit->n;

	for (int k = 0; k < n_theta(fit); k++)
		gradient[k] = -prior_deviation(fit, theta, k) / fit->spread;
	if (!fit_factorise(fit, theta))
		return false;
	fit_invert(fit);
	variance = (tnp_dot(n, fit->answer, fit->y) + SMALLEST) / n;
	memset(fit->pulled, 0, (size_t) fit->axes * n * sizeof(double));
	for (int i = 0; i < n; i++)
	{
		const double *inverse = fit->inverse + (size_t) i * n;
		double		own = fit->answer[i] / variance;

		gradient[fit->axes] += noise * 0.5 * (own * fit->answer[i] - inverse[i]);
		if (fit->additive)
			pull_shared(fit, inverse, own, share, i, gradient);
		else
			pull_product(fit, inverse, own, i);
	}
	for (int s = 0; s < fit->axes; s++)
	{
		double		sum = 0;

		for (int j = 0; j < n; j++)
			sum += fit->pulled[(size_t) s * n + j];
		gradient[s] += 2 * fit->weight[s] * sum;
	}
	return true;
}

/* ---- starts ---------------------------------------------------------------------------------- */

typedef struct Pair
{
	double		z,
				y;
} Pair;

static int
compare_pairs(const void *a, const void *b)
{
	const Pair *x = a,
			   *y = b;

	return (x->z > y->z) - (x->z < y->z);
}

/*
 * How much of the target's variance lies between neighbours along an axis: about 1 for noise, 0 for
 * a smooth curve. Rows of equal values count as their mean; 1 for an axis of few values.
 */
static double
roughness(const Fit *fit, int axis)
{
	Pair		pairs[TNP_PROCESS_ROWS];
	double		between = 0,
				chance = 0,
				mean_before = 0,
				share_before = 0;
	int			values = 0;

	for (int i = 0; i < fit->n; i++)
		pairs[i] = (Pair) {fit->scaled[(size_t) axis * fit->n + i], fit->y[i]};
	qsort(pairs, fit->n, sizeof(Pair), compare_pairs);
	for (int i = 0; i < fit->n; values++)
	{
		double		sum = 0;
		int			first = i;

		for (; i < fit->n && pairs[i].z == pairs[first].z; i++)
			sum += pairs[i].y;
		sum /= i - first;
		if (values > 0)
		{
			between += (sum - mean_before) * (sum - mean_before);
			chance += 1.0 / (i - first) + share_before;
		}
		mean_before = sum;
		share_before = 1.0 / (i - first);
	}
	chance *= tnp_dot(fit->n, fit->y, fit->y) / fit->n;
	return values < FEWEST_VALUES ? 1
		: rint(ROUGHNESS_STEPS * between / fmax(chance, SMALLEST_CHANCE)) / ROUGHNESS_STEPS;
}

/*
 * The share of the targets' variance that lies between rows of different cells along an axis,
 * adjusted for how many these are; less than 0 where they do not make groups.
 */
static double
group_share(const Fit *fit, int axis)
{
	Pair		pairs[TNP_PROCESS_ROWS];
	double		mean = 0,
				total = 0,
				within = 0;
	int			n = fit->n,
				groups = 0;

	for (int i = 0; i < n; i++)
	{
		pairs[i] = (Pair) {fit->scaled[(size_t) axis * n + i], fit->y[i]};
		mean += fit->y[i] / n;
	}
	qsort(pairs, n, sizeof(Pair), compare_pairs);
	for (int i = 0; i < n; groups++)
	{
		double		sum = 0;
		int			first = i;

		for (; i < n && pairs[i].z == pairs[first].z; i++)
			sum += pairs[i].y;
		sum /= i - first;
		for (int j = first; j < i; j++)
		{
			within += (pairs[j].y - sum) * (pairs[j].y - sum);
			total += (pairs[j].y - mean) * (pairs[j].y - mean);
		}
	}
	if (groups < FEWEST_GROUPS || groups > MOST_GROUPS * n || total <= 0)
		return -1;
	return rint(ROUGHNESS_STEPS * (1 - within / (n - groups) / (total / (n - 1))))
		/ ROUGHNESS_STEPS;
}

/* The weights' logs of start number level, of 2 * LEVELS, or with directions 3 * LEVELS. */
static void
make_start(const Fit *fit, int level, int finest, double *theta)
{
	for (int a = 0; a < fit->axes; a++)
	{
		bool		direction = a >= fit->stats->n_slots;

		theta[a] = fit->mean + REST;
		if (level < LEVELS)
			theta[a] = fit->mean + starts[level];
		else if (level < 2 * LEVELS && a == finest)
			theta[a] = fine_starts[level - LEVELS];
		else if (level >= 2 * LEVELS && direction)
			theta[a] = direct_starts[level - 2 * LEVELS];
	}
}

/*
 * Of the starts of levels first … end - 1 that of the largest posterior, which is returned: theta
 * [axes + 1]; try [axes + 1] is scratch.
 */
static double
choose_start(Fit *fit, int first, int end, double *theta, double *try)
{
	double		best = -INFINITY,
				least = INFINITY;
	int			finest = 0;

	fit->spread = NARROW;
	for (int s = 0; s < fit->stats->n_slots; s++)
	{
		double		rough = roughness(fit, s);

		if (rough < least)
		{
			least = rough;
			finest = s;
		}
	}
	for (int k = 2 * first; k < 2 * end; k++)
	{
		double		value;

		make_start(fit, k / 2, finest, try);
		try[fit->axes] = log(noises[k % 2]);
		value = fit_value(fit, try);
		if (k == 2 * first || value > best)
		{
			best = value;
			memcpy(theta, try, (fit->axes + 1) * sizeof(double));
		}
	}
	return best;
}

/*
 * The start for numbers that name groups, as an id does: those of one axis are all unlike. False
 * where no axis has groups that differ, or where this is no likelier than `least`.
 */
static bool
choose_groups(Fit *fit, double least, double *theta, double *try)
{
	double		most = 0,
				best = least;
	int			axis = -1;

	for (int s = 0; s < fit->stats->n_slots; s++)
	{
		double		share = tnp_slot_column(fit->stats, s)->kind == TNP_CATEGORICAL ? -1
			: group_share(fit, s);

		if (share > most)
		{
			most = share;
			axis = s;
		}
	}
	for (int k = 0; axis >= 0 && k < 4; k++)
	{
		double		value;

		for (int a = 0; a < fit->axes; a++)
			try[a] = a == axis ? GROUPS_WEIGHT : fit->mean + (k < 2 ? 0 : REST);
		try[fit->axes] = log(noises[k % 2]);
		value = fit_value(fit, try);
		if (value > best)
		{
			best = value;
			memcpy(theta, try, (fit->axes + 1) * sizeof(double));
		}
	}
	return best > least;
}

/*
 * The start along a pair of axes of this weight's log; other axes are as at the end of other steps,
 * or rest.
 */
static void
make_pair_start(const Fit *fit, const int *axis, double weight, const double *end, double *theta)
{
	for (int a = 0; a < fit->axes; a++)
		theta[a] = a == axis[0] || a == axis[1] ? weight
			: end == NULL ? fit->mean + REST : end[a];
	theta[fit->axes] = log(noises[0]);
}

/*
 * The start along a pair of axes that targets tell of, or beside the end of other steps along one
 * that what it leaves of them tells of: that of the likeliest of these pairs with the likeliest of
 * some weights. False where it is not likelier than that end: a pair that is the answer is so at
 * once where steps have missed it.
 */
static TnpStatus
choose_pair(Fit *fit, const double *end, double *theta, double *try, bool *found, TnpError *error)
{
	TnpAxisPair pairs[TNP_PAIR_TARGETS][TNP_PAIRS];
	double		best = -INFINITY,
				least = fit_value(fit, end) + PAIR_GAIN;
	int			likeliest = 0,
				n = 0,
				tried;

	if (fit->n >= PAIR_ROWS && fit->axes > 1)
	{
		/* the system's factor and half its solution are there */
		tnp_upper_solve_back(fit->matrix, fit->n, fit->answer);
		n = tnp_pairs_find(fit->model, fit->stats, &fit->points,
						   (const double *const[]) {fit->y, fit->answer}, pairs);
	}
	if (n < 0)
		return tnp_no_memory(error);
	tried = n * TNP_PAIR_TARGETS;
	for (int k = 0; n > 0 && k < tried + PAIR_LEVELS - 1; k++)
	{
		int			own = k < tried ? k : likeliest;
		double		value;

		make_pair_start(fit, pairs[own / n][own % n].axis,
						pair_starts[k < tried ? 0 : k - tried + 1], own < n ? NULL : end, try);
		value = fit_value(fit, try);
		if (value > best)
		{
			best = value;
			likeliest = own;
			memcpy(theta, try, (fit->axes + 1) * sizeof(double));
		}
	}
	*found = best > least;
	return TNP_OK;
}

/* ---- the steps ------------------------------------------------------------------------------- */

/*
 * The steps of a stage, of which the first have the narrow prior; work [3, n_theta]. Steps are of
 * one length however flat the posterior is: with little noise a wide prior would let columns that
 * matter sink so low at first that nothing brings them back.
 */
static TnpStatus
climb(Fit *fit, int steps, int narrow, double rate, double *theta, double *work, TnpError *error)
{
	int			n = n_theta(fit);
	TnpClimb	climb = {.n = n, .steps = steps, .rate = rate, .most = MOST,
		.least = fit->n < FEW_ROWS ? LEAST_OF_FEW : LEAST, .first = work + n,
		.second = work + 2 * n, .first_rest = 1, .second_rest = 1};

	memset(work, 0, 3 * n * sizeof(double));
	for (int step = 0; step < steps; step++)
	{
		if (tnp_interrupted(&fit->model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		fit->spread = step < narrow ? NARROW : WIDE;
		/* the least noise is far above rounding: there is always a factor */
		if (!fit_gradient(fit, theta, work))
			return TNP_OK;
		tnp_climb_step(&climb, work, theta);
	}
	return TNP_OK;
}

/* The first stage from `other`, which takes the place of theta if the posterior ends larger. */
static TnpStatus
try_other(Fit *fit, double *other, double *theta, double *work, TnpError *error)
{
	TnpStatus	status = climb(fit, stage_steps[0], NARROW_STEPS, stage_rate[0], other, work,
							   error);

	if (status == TNP_OK && fit_value(fit, other) > fit_value(fit, theta))
		memcpy(theta, other, (fit->axes + 1) * sizeof(double));
	return status;
}

/*
 * The first stage: from the best start, with directions from the best one along these, too, with
 * numbers that name groups from theirs, and from that of a pair of axes; where the posterior is
 * largest in the end is kept. work [4, axes + 1].
 */
static TnpStatus
begin(Fit *fit, double *theta, double *work, TnpError *error)
{
	double	   *other = work + 3 * (fit->axes + 1),
				best = choose_start(fit, 0, 2 * LEVELS, theta, work);
	bool		paired = false;
	TnpStatus	status = climb(fit, stage_steps[0], NARROW_STEPS, stage_rate[0], theta, work,
							   error);

	if (status == TNP_OK && fit->axes > fit->stats->n_slots)
	{
		choose_start(fit, 2 * LEVELS, 3 * LEVELS, other, work);
		status = try_other(fit, other, theta, work, error);
	}
	fit->spread = NARROW;
	if (status == TNP_OK && choose_groups(fit, best, other, work))
		status = try_other(fit, other, theta, work, error);
	fit->spread = WIDE;
	if (status == TNP_OK)
		status = choose_pair(fit, theta, other, work, &paired, error);
	return status == TNP_OK && paired ? try_other(fit, other, theta, work, error) : status;
}

/*
 * Start number level with a share, theta [axes + 2]: the weights and the noise that the product has
 * come to, or, as the last, weights of a start: where a product has taken a sum of axes for noise,
 * its weights say nothing of the sum.
 */
static void
make_shared_start(const Fit *fit, int level, const double *product, double *theta)
{
	memcpy(theta, product, (fit->axes + 1) * sizeof(double));
	theta[fit->axes + 1] = share_starts[level];
	if (level < LEVELS)
		return;
	for (int a = 0; a < fit->axes; a++)
		theta[a] = fit->mean + SHARE_WEIGHT;
	theta[fit->axes] = log(noises[0]);
}

/*
 * Further steps of the first stage with a share of means over axes, where one of a few starts with
 * a share is likelier at once than the product alone; theta [axes + 2], work [3, axes + 2].
 */
static TnpStatus
share_out(Fit *fit, double *theta, double *work, TnpError *error)
{
	double		best = fit_value(fit, theta) + SHARE_GAIN;
	int			found = -1;

	fit->additive = true;
	for (int k = 0; k < SHARE_LEVELS; k++)
	{
		double		value;

		make_shared_start(fit, k, theta, work);
		value = fit_value(fit, work);
		if (value > best)
		{
			best = value;
			found = k;
		}
	}
	fit->additive = found >= 0;
	if (!fit->additive)
		return TNP_OK;
	make_shared_start(fit, found, theta, work);
	memcpy(theta, work, (fit->axes + 2) * sizeof(double));
	return climb(fit, SHARE_STEPS, 0, stage_rate[0], theta, work, error);
}

TnpStatus
tnp_process_climb(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, double *theta,
				  double *share, TnpError *error)
{
	const int	axes = tnp_points_axes(stats);
	double	   *found = tnp_alloc_zero(&model->env, 5 * ((size_t) axes + 2), sizeof(double)),
			   *work = found == NULL ? NULL : found + axes + 2;
	bool		additive = false;
	TnpStatus	status = found == NULL ? tnp_no_memory(error) : TNP_OK;

	*share = 0;
	for (int k = 0; status == TNP_OK && k < STAGES; k++)
	{
		Fit			fit;

		/* the rows of the stage before: further steps would change little */
		if (k > 0 && stats->n0 <= stage_rows[k - 1])
			break;
		if (!fit_make(model, rows, stats, stage_rows[k], &fit))
			status = tnp_no_memory(error);
		else if (k == 0)
		{
			status = begin(&fit, found, work, error);
			if (status == TNP_OK && model->config.encode_x.additive && axes > 1)
				status = share_out(&fit, found, work, error);
		}
		else
		{
			fit.additive = additive;
			status = climb(&fit, stage_steps[k], 0, stage_rate[k], found, work, error);
		}
		if (status == TNP_OK)
		{
			additive = fit.additive;
			*share = share_of(&fit, found);
		}
		fit_free(&fit);
	}
	if (status == TNP_OK)
		memcpy(theta, found, ((size_t) axes + 1) * sizeof(double));
	tnp_free(&model->env, found);
	return status;
}
