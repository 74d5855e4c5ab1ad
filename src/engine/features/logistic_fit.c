/*
 * logistic_fit.c: a multinomial logistic regression of the prefix (docs/model-format.md section 5,
 * "Logistic").
 *
 * The likelihood is climbed by Newton's method, a matrix of curvature for every class, down a grid
 * of penalties; the best of these gives the rows, each left out, the largest probability. All in
 * double precision: which is best should not hang on rounding.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/logistic.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/features/class_counts.h"
#include "engine/features/design.h"

/* 4^3 … 4^-3: from the largest on, each starts where the last one ended */
#define PENALTIES 7
#define LARGEST_PENALTY 64.0
#define STEPS 6					/* of Newton, with the curvature at the start of a penalty */
#define HALVINGS 10				/* of a step that makes things worse */
#define WORSE (1 + 1e-9)		/* by which rounding alone does not change a sum of losses */
#define SMALLEST_REST 1e-6		/* of one minus a prefix row's leverage times its weight */
/* rows that sums take together, written out: each sum is read and written once for all of them */
#define GROUP 4
/*
 * groups that meet a class's matrix while it is in the nearest cache; then there is a look at
 * interrupts
 */
#define BLOCK 16

/* The fit on its way; K classes, n entries of the design, m rows. */
typedef struct Descent
{
	const TnpModel *model;
	const double *y;			/* [m] classes */
	int64_t		m;
	/* of rows; the last one is filled up with rows of zeros, which add nothing */
	int64_t		groups;
	int			n,
				classes,
				matrices;		/* curvatures: K, or of two classes, which are mirror images, one */
	double		evenness;		/* K / (K - 1) */
	double		penalty;
	double	   *u;				/* [groups * GROUP, n] designs */
	double	   *scores,			/* [m, K] log probabilities but for a constant of each row */
			   *change,			/* [m, K] what the step would add to them */
			   *p;				/* [groups * GROUP, K] probabilities */
	double	   *weights,		/* [K, n] */
			   *step;			/* [K, n] what a step would add to them */
	double	   *curvature,		/* [matrices, n, n] U'WU, lower triangles */
			   *factor;			/* [matrices, n, n] of curvature + penalty * I */
	double	   *work;			/* [n, GROUP] */
	double		loss;			/* of the rows, at weights */
} Descent;

/* Memory for the fit; false when it ran out. What was made is freed by free_room. */
static bool
make_room(Descent *d)
{
	const TnpEnv *env = &d->model->env;
	size_t		n = d->n,
				answers = (size_t) d->m * d->classes,
				rows = (size_t) d->groups * GROUP;

	d->u = tnp_alloc_zero(env, rows, n * sizeof(double));
	d->scores = tnp_alloc(env, answers, sizeof(double));
	d->change = tnp_alloc_zero(env, answers, sizeof(double));
	d->p = tnp_alloc_zero(env, rows, d->classes * sizeof(double));
	d->weights = tnp_alloc_zero(env, d->classes * n, sizeof(double));
	d->step = tnp_alloc_zero(env, d->classes * n, sizeof(double));
	d->curvature = tnp_alloc(env, d->matrices * n, n * sizeof(double));
	d->factor = tnp_alloc_zero(env, d->matrices * n, n * sizeof(double));
	d->work = tnp_alloc(env, n, GROUP * sizeof(double));
	return d->u != NULL && d->scores != NULL && d->change != NULL && d->p != NULL
		&& d->weights != NULL && d->step != NULL
		&& d->curvature != NULL && d->factor != NULL && d->work != NULL;
}

static void
free_room(Descent *d)
{
	double	   *all[] = {d->u, d->scores, d->change, d->p, d->weights, d->step, d->curvature,
						 d->factor, d->work};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		tnp_free(&d->model->env, all[i]);
}

/* The first group that is not in the block that begins with this one. */
static int64_t
end_of_block(const Descent *d, int64_t group)
{
	return d->groups < group + BLOCK ? d->groups : group + BLOCK;
}

/* ---- the pieces of a step -------------------------------------------------------------------- */

/*
 * Probabilities where `share` of the change is added to the scores; returns the rows' loss there.
 */
static double
look(Descent *d, double share)
{
	int			classes = d->classes;
	double		loss = 0;

	for (int64_t r = 0; r < d->m; r++)
	{
		double	   *p = d->p + r * classes,
					most = -INFINITY,
					sum = 0,
					own;

		for (int c = 0; c < classes; c++)
		{
			p[c] = d->scores[r * classes + c] + share * d->change[r * classes + c];
			if (p[c] > most)
				most = p[c];
		}
		own = p[(int) d->y[r]] - most;
		for (int c = 0; c < classes; c++)
		{
			p[c] = exp(p[c] - most);
			sum += p[c];
		}
		loss += log(sum) - own;
		for (int c = 0; c < classes; c++)
			p[c] /= sum;
	}
	return loss;
}

/*
 * Half the penalty times the sum of squares of the weights, to which `share` of the step is added.
 */
static double
penalise(const Descent *d, double share)
{
	double		sum = 0;

	for (size_t i = 0; i < (size_t) d->classes * d->n; i++)
	{
		double		w = d->weights[i] + share * d->step[i];

		sum += w * w;
	}
	return 0.5 * d->penalty * sum;
}

/*
 * The weight of row r in the curvature of class c: exact where all classes are as likely, and for
 * two classes.
 */
static double
row_weight(const Descent *d, int64_t r, int c)
{
	double		p = d->p[r * d->classes + c];

	return p * (1 - p) * d->evenness;
}

/* What is left of the indicator of class c for row r; rows beyond the last have any. */
static double
residual(const Descent *d, int64_t r, int c)
{
	return (r < d->m && d->y[r] == c) - d->p[r * d->classes + c];
}

/* Add a group's rows to the curvature of class c. */
static void
add_group(Descent *d, int64_t group, int c)
{
	size_t		n = d->n;
	const double *u = d->u + group * GROUP * n;
	double		w[GROUP];

	for (int k = 0; k < GROUP; k++)
		w[k] = row_weight(d, group * GROUP + k, c);
	for (size_t i = 0; i < n; i++)
	{
		double	   *row = d->curvature + (c * n + i) * n;
		double		a[GROUP];

		for (int k = 0; k < GROUP; k++)
			a[k] = w[k] * u[k * n + i];
		for (size_t j = 0; j <= i; j++)
			row[j] += (a[0] * u[j] + a[1] * u[n + j]) + (a[2] * u[2 * n + j] + a[3] * u[3 * n + j]);
	}
}

/* U'WU of every class; false when interrupted. */
static bool
sum_curvature(Descent *d)
{
	memset(d->curvature, 0, (size_t) d->matrices * d->n * d->n * sizeof(double));
	for (int64_t g = 0; g < d->groups; g += BLOCK)
	{
		if (tnp_interrupted(&d->model->env))
			return false;
		for (int c = 0; c < d->matrices; c++)
			for (int64_t i = g; i < end_of_block(d, g); i++)
				add_group(d, i, c);
	}
	return true;
}

/* The factors of the curvature under the penalty; false where rounding has made it indefinite. */
static bool
factorise(Descent *d)
{
	size_t		square = (size_t) d->n * d->n;

	for (int c = 0; c < d->matrices; c++)
		if (!tnp_factorise(d->curvature + c * square, d->n, d->penalty, d->factor + c * square))
			return false;
	return true;
}

/* Add a group's rows to the gradient of class c, which stands where the step will be. */
static void
add_gradient(Descent *d, int64_t group, int c)
{
	int			n = d->n;
	const double *u = d->u + group * GROUP * n;
	double	   *sum = d->step + c * n;
	double		rest[GROUP];

	for (int k = 0; k < GROUP; k++)
		rest[k] = residual(d, group * GROUP + k, c);
	for (int i = 0; i < n; i++)
		sum[i] += (rest[0] * u[i] + rest[1] * u[n + i]) +
			(rest[2] * u[2 * n + i] + rest[3] * u[3 * n + i]);
}

/*
 * The direction of a step: the factors' solution for the gradient of the penalised likelihood.
 * False when interrupted.
 */
static bool
solve(Descent *d)
{
	int			n = d->n,
				classes = d->classes;

	for (int i = 0; i < classes * n; i++)
		d->step[i] = -d->penalty * d->weights[i];
	for (int64_t g = 0; g < d->groups; g += BLOCK)
	{
		if (tnp_interrupted(&d->model->env))
			return false;
		for (int c = 0; c < classes; c++)
			for (int64_t i = g; i < end_of_block(d, g); i++)
				add_gradient(d, i, c);
	}
	for (int c = 0; c < classes; c++)
	{
		const double *factor = d->factor + (size_t) (d->matrices > 1 ? c : 0) * n * n;

		tnp_solve_lower(factor, n, d->step + c * n);
		tnp_solve_upper(factor, n, d->step + c * n);
	}
	for (int64_t r = 0; r < d->m; r++)
		for (int c = 0; c < classes; c++)
			d->change[r * classes + c] = tnp_dot(n, d->u + r * n, d->step + c * n);
	return true;
}

/* One step: as long as it makes things worse, half of it. False when interrupted. */
static bool
take_step(Descent *d)
{
	double		before = d->loss + penalise(d, 0),
				share = 1;

	if (!solve(d))
		return false;
	d->loss = look(d, share);
	for (int i = 0; i < HALVINGS && d->loss + penalise(d, share) > before * WORSE; i++)
	{
		if (tnp_interrupted(&d->model->env))
			return false;
		share /= 2;
		d->loss = look(d, share);
	}
	for (size_t i = 0; i < (size_t) d->classes * d->n; i++)
		d->weights[i] += share * d->step[i];
	for (size_t i = 0; i < (size_t) d->m * d->classes; i++)
		d->scores[i] += share * d->change[i];
	return true;
}

/* ---- rows left out --------------------------------------------------------------------------- */

/*
 * Leverages u' (U'WU + penalty I)^-1 u of a group's rows under a factor: |L^-1 u|^2, forward
 * substitution for all of them together.
 */
static void
find_leverages(const Descent *d, int64_t group, const double *factor, double *leverage)
{
	int			n = d->n;
	const double *u = d->u + group * GROUP * n;
	double	   *v = d->work;

	for (int k = 0; k < GROUP; k++)
		leverage[k] = 0;
	for (int i = 0; i < n; i++)
	{
		const double *row = factor + (size_t) i * n;
		double		rest[GROUP];

		for (int k = 0; k < GROUP; k++)
			rest[k] = u[k * n + i];
		for (int j = 0; j < i; j++)
			for (int k = 0; k < GROUP; k++)
				rest[k] -= row[j] * v[j * GROUP + k];
		for (int k = 0; k < GROUP; k++)
		{
			v[i * GROUP + k] = rest[k] / row[i];
			leverage[k] += v[i * GROUP + k] * v[i * GROUP + k];
		}
	}
}

/*
 * Scores for a group's rows, each under the fit without it, to first order: its residual's pull on
 * its own score is h / (1 - h w), h its leverage and w its weight. They take the place of the last
 * step's change. All classes of a matrix at once.
 */
static void
leave_out(Descent *d, int64_t group, int matrix)
{
	int			end = d->matrices > 1 ? matrix + 1 : d->classes;
	int64_t		first = group * GROUP;
	double		leverage[GROUP];

	find_leverages(d, group, d->factor + (size_t) matrix * d->n * d->n, leverage);
	for (int64_t r = first; r < first + GROUP && r < d->m; r++)
		for (int c = matrix; c < end; c++)
		{
			double		h = leverage[r - first],
						pull = h / fmax(1 - h * row_weight(d, r, c), SMALLEST_REST);

			d->change[r * d->classes + c] = d->scores[r * d->classes + c] -
				pull * residual(d, r, c);
		}
}

/*
 * Log probabilities of all rows left out, in the place of the last step's change, and the mean of
 * those of their classes; false when interrupted.
 */
static bool
leave_all_out(Descent *d, double *mean)
{
	int			classes = d->classes;
	double		total = 0;

	for (int64_t g = 0; g < d->groups; g += BLOCK)
	{
		if (tnp_interrupted(&d->model->env))
			return false;
		for (int matrix = 0; matrix < d->matrices; matrix++)
			for (int64_t i = g; i < end_of_block(d, g); i++)
				leave_out(d, i, matrix);
	}
	for (int64_t r = 0; r < d->m; r++)
	{
		double	   *log_p = d->change + r * classes,
					sum = tnp_log_sum(classes, log_p);

		for (int c = 0; c < classes; c++)
			log_p[c] -= sum;
		total += log_p[(int) d->y[r]];
	}
	*mean = total / d->m;
	return true;
}

/*
 * Keep the fit if it gives the rows left out a larger probability than those before; false when
 * interrupted.
 */
static bool
keep_better(Descent *d, TnpLogistic *logistic)
{
	double		mean;

	if (!leave_all_out(d, &mean))
		return false;
	if (!(mean + log(d->classes) > logistic->quality))
		return true;
	logistic->quality = mean + log(d->classes);
	memcpy(logistic->weights, d->weights, (size_t) d->classes * d->n * sizeof(double));
	for (size_t i = 0; i < (size_t) d->m * d->classes; i++)
		logistic->left_out[i] = (float) d->change[i];
	return true;
}

/* ---- the fit --------------------------------------------------------------------------------- */

/*
 * Designs of all rows, and the scores that the classes' shares alone give them; false when
 * interrupted.
 */
static bool
begin(Descent *d, const TnpRows *rows, const TnpStats *stats, const TnpLogistic *logistic)
{
	for (int64_t r = 0; r < d->m; r++)
	{
		if (r % (BLOCK * GROUP) == 0 && tnp_interrupted(&d->model->env))
			return false;
		tnp_design_row(d->model, stats, &logistic->design, rows->x + r * rows->n_features,
					   d->u + r * d->n);
		memcpy(d->scores + r * d->classes, logistic->shift, d->classes * sizeof(double));
	}
	return true;
}

/* Down the grid of penalties; false when interrupted. */
static bool
descend(Descent *d, TnpLogistic *logistic)
{
	d->loss = look(d, 0);
	if (!sum_curvature(d))
		return false;
	d->penalty = LARGEST_PENALTY;
	/*
	 * the largest penalty always has a factor: clipped values keep the sums far below it times the
	 * precision
	 */
	for (int k = 0; k < PENALTIES && factorise(d); k++, d->penalty /= 4)
	{
		for (int i = 0; i < STEPS; i++)
			if (!take_step(d))
				return false;
		if (!sum_curvature(d))
			return false;
		if (!factorise(d))
			break;
		if (!keep_better(d, logistic))
			return false;
	}
	return true;
}

TnpStatus
tnp_logistic_fit(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
				 TnpLogistic *logistic, TnpError *error)
{
	const TnpEnv *env = &model->env;
	int			classes = stats->n_classes;
	Descent		d = {.model = model,.y = rows->y,.m = stats->n0,
					 .groups = (stats->n0 + GROUP - 1) / GROUP,.classes = classes};
	TnpStatus	status = TNP_OK;

	tnp_design_choose(stats, false, &logistic->design);
	d.n = logistic->design.n;
	d.matrices = classes == 2 ? 1 : classes;
	d.evenness = classes > 1 ? (double) classes / (classes - 1) : 1;
	logistic->n_classes = classes;
	logistic->n0 = stats->n0;
	logistic->quality = -INFINITY;
	logistic->weights = tnp_alloc_zero(env, (size_t) classes * (d.n + 1), sizeof(double));
	logistic->left_out = tnp_alloc_zero(env, (size_t) stats->n0 * classes, sizeof(float));
	if (logistic->weights == NULL || logistic->left_out == NULL || !make_room(&d))
		status = tnp_no_memory(error);
	else
	{
		logistic->shift = logistic->weights + (size_t) classes * d.n;
		tnp_class_log_shares(stats, logistic->shift);
		if (!begin(&d, rows, stats, logistic) || !descend(&d, logistic))
			status = tnp_fail(error, TNP_INTERRUPTED, "interrupted");
	}
	free_room(&d);
	return status;
}
