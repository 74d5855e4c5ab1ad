/*
 * process.c: a sparse Gaussian process of the prefix, whose answers the row tokeniser sees as
 * further numbers of a row (docs/model-format.md section 5, "Process"). Some rows carry it; all
 * rows of the prefix are its data (Snelson & Ghahramani 2006), so that what they say is a sum. Its
 * directions are found in process_directions.c, then the weights and the noise in process_fit.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/process.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/upper.h"
#include "engine/features/column.h"
#include "engine/features/directions.h"
#include "engine/features/process_directions.h"
#include "engine/features/process_fit.h"
#include "engine/features/process_line.h"
#include "engine/features/process_near.h"
#include "engine/features/process_points.h"
#include "engine/features/spread.h"

#define TOGETHER TNP_UPPER_ROWS	/* rows whose systems are solved and summed at once */
#define MANY TNP_UPPER_MANY		/* or whose numbers lie side by side meanwhile */
#define LEAST_MANY 8			/* rows for which that is faster than each by itself */
#define POLL_ROWS (4 * MANY)	/* rows between two looks at interrupts */
#define JITTER 1e-8				/* added to the carriers' correlations */
#define SMALLEST 1e-6			/* added to sums of squares */
#define SMALLEST_REST 1e-9		/* of one minus the share of a prefix row in its own answer */
#define FARTHEST_SQUARE 100.0	/* of a target's distance in deviations, one row in the record */
#define LOG_TWO_PI 1.8378770664093453

double
tnp_process_target(const TnpModel *model, const TnpStats *stats, const TnpProcess *p, double y)
{
	return p->is_line ? tnp_scaled_target(stats, y) : tnp_clipped_target(model, stats, y);
}

void
tnp_process_correlate(const TnpStats *stats, const TnpPoints *from, int i, const TnpPoints *points,
					  int first, double *out)
{
	const TnpProcess *p = &stats->process;
	double		alone[TNP_PROCESS_ROWS];

	tnp_points_distances(stats, from, i, points, first, p->weight, out);
	tnp_points_correlations(first, points->n, out, NULL);
	if (p->share > 0)
	{
		tnp_points_alone(stats, from, i, points, first, p->weight, alone);
		tnp_points_mix(first, points->n, p->share, alone, out);
	}
}

/* The correlations of a row x and the carriers, or of a line its features: phi [n_features]. */
static void
see_row(const TnpModel *model, const TnpStats *stats, const TnpProcess *p, const double *x,
		double *phi)
{
	double		value[TNP_MOST_SLOTS + TNP_MOST_DIRECTIONS],
				label[TNP_MOST_SLOTS + TNP_MOST_DIRECTIONS];
	TnpPoints	one = {1, p->points.n_axes, value, label};

	if (p->is_line)
	{
		tnp_line_features(model, stats, p, x, phi);
		return;
	}
	tnp_points_set(model, stats, x, &one, 0);
	tnp_process_correlate(stats, &one, 0, &p->points, 0, phi);
}

/*
 * The features phi [n_rows, n] of up to TOGETHER rows, `width` apart, and in own [n_rows] the
 * variance of what they do not reach and the noise, in units of the process's variance.
 */
static void
features_of(const TnpModel *model, const TnpStats *stats, const TnpProcess *p, const double *x,
			int width, int n_rows, double *phi, double *own)
{
	int			n = p->n_features;

	for (int r = 0; r < n_rows; r++)
		see_row(model, stats, p, x + (size_t) r * width, phi + (size_t) r * n);
	if (!p->is_line)
		tnp_upper_solve(p->factor, n, n_rows, phi);
	for (int r = 0; r < n_rows; r++)
	{
		const double *own_phi = phi + (size_t) r * n;

		own[r] = p->is_line ? 1 : fmax(1 - tnp_dot(n, own_phi, own_phi), 0) + p->noise;
	}
}

/*
 * Means [n_rows] of rows of features phi [n_rows, n], which are lost, and in share [n_rows] what
 * the process does not know of what they reach.
 */
static void
answers_of(const TnpProcess *p, int n_rows, double *phi, double *mean, double *share)
{
	int			n = p->n_features;

	for (int r = 0; r < n_rows; r++)
		mean[r] = tnp_dot(n, phi + (size_t) r * n, p->coefficients);
	tnp_upper_solve(p->outer, n, n_rows, phi);
	for (int r = 0; r < n_rows; r++)
		share[r] = tnp_dot(n, phi + (size_t) r * n, phi + (size_t) r * n);
}

/* As features_of and answers_of of LEAST_MANY to MANY rows, bit for bit. */
static void
answers_of_many(const TnpModel *model, const TnpStats *stats, const TnpProcess *p, const double *x,
				int width, int n_rows, double *own, double *mean, double *share)
{
	double		lanes[TNP_PROCESS_ROWS * MANY] __attribute__((aligned(64))),
				phi[TNP_PROCESS_ROWS],
				square[MANY],
				product[MANY];
	int			n = p->n_features;

	if (n_rows < MANY)
		memset(lanes, 0, n * MANY * sizeof(double));
	for (int r = 0; r < n_rows; r++)
	{
		see_row(model, stats, p, x + (size_t) r * width, phi);
		for (int j = 0; j < n; j++)
			lanes[j * MANY + r] = phi[j];
	}
	if (!p->is_line)
		tnp_upper_solve_many(p->factor, n, lanes);
	tnp_upper_dot_many(n, lanes, NULL, square);
	tnp_upper_dot_many(n, lanes, p->coefficients, product);
	tnp_upper_solve_many(p->outer, n, lanes);
	for (int r = 0; r < n_rows; r++)
	{
		own[r] = p->is_line ? 1 : fmax(1 - square[r], 0) + p->noise;
		mean[r] = product[r];
	}
	tnp_upper_dot_many(n, lanes, NULL, square);
	memcpy(share, square, n_rows * sizeof(double));
}

/*
 * Of up to MANY rows x, `width` apart: their means, what the process does not know of what they
 * reach, and own of features_of. Rows do not depend on each other.
 */
static void
answers_at(const TnpModel *model, const TnpStats *stats, const TnpProcess *p, const double *x,
		   int width, int n_rows, double *own, double *mean, double *share)
{
	double		phi[TOGETHER * TNP_PROCESS_ROWS];

	if (n_rows >= LEAST_MANY)
	{
		answers_of_many(model, stats, p, x, width, n_rows, own, mean, share);
		return;
	}
	for (int r = 0; r < n_rows; r += TOGETHER)
	{
		int			some = n_rows - r < TOGETHER ? n_rows - r : TOGETHER;

		features_of(model, stats, p, x + (size_t) r * width, width, some, phi, own + r);
		answers_of(p, some, phi, mean + r, share + r);
	}
}

/* How many of the n0 rows from `first` on are taken together: `most` while there are as many. */
static int
rows_together(const TnpStats *stats, int64_t first, int most)
{
	return stats->n0 - first < most ? (int) (stats->n0 - first) : most;
}

/* ---- the fit --------------------------------------------------------------------------------- */

/* Bytes of the block that begins with the weights. */
static size_t
block_bytes(const TnpProcess *p)
{
	size_t		n = p->n_features,
				axes = p->points.n_axes,
				carriers = p->points.n;

	return (n * n + carriers * carriers + n + axes + 1) * sizeof(double);
}

/* All of its memory but for points; needs what block_bytes does. */
static TnpStatus
make_room(const TnpModel *model, const TnpStats *stats, TnpProcess *p, TnpError *error)
{
	size_t		carriers = p->points.n;

	p->n0 = stats->n0;
	p->weight = tnp_alloc_zero(&model->env, 1, block_bytes(p));
	p->left_out = tnp_alloc(&model->env, stats->n0, 2 * sizeof(float));
	if (p->weight == NULL || p->left_out == NULL)
		return tnp_no_memory(error);
	p->coefficients = p->weight + p->points.n_axes + 1;
	p->factor = p->coefficients + p->n_features;
	p->outer = p->factor + carriers * carriers;
	return TNP_OK;
}

/* Choose the rows that carry the process. */
static TnpStatus
choose_carriers(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, TnpProcess *p,
				TnpError *error)
{
	int64_t		chosen[TNP_PROCESS_ROWS];
	int			n = tnp_spread_rows(model, rows, stats, TNP_PROCESS_ROWS, chosen);
	TnpStatus	status;

	if (n < 0 || !tnp_points_make(model, stats, n, &p->points))
		return tnp_no_memory(error);
	p->n_features = n;
	status = make_room(model, stats, p, error);
	if (status != TNP_OK)
		return status;
	for (int i = 0; i < n; i++)
		tnp_points_set(model, stats, rows->x + chosen[i] * rows->n_features, &p->points, i);
	return TNP_OK;
}

static bool
factorise_carriers(const TnpStats *stats, TnpProcess *p)
{
	int			n = p->points.n;

	for (int i = 0; i < n; i++)
	{
		double	   *row = p->factor + (size_t) i * n;

		tnp_process_correlate(stats, &p->points, i, &p->points, i, row);
		row[i] = 1 + JITTER;
	}
	return tnp_upper_factorise(p->factor, n);
}

/* The sums over the prefix, and what follows from them; phi [TOGETHER, n] is scratch. */
static TnpStatus
sum_rows(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, TnpProcess *p,
		 double *phi, TnpError *error)
{
	int			n = p->n_features;
	double		square = 0;

	for (int i = 0; i < n; i++)
		p->outer[(size_t) i * n + i] = 1;
	for (int64_t r = 0; r < stats->n0; r += TOGETHER)
	{
		double		weight[TOGETHER] = {0},
					own[TOGETHER];
		int			n_rows = rows_together(stats, r, TOGETHER);

		if (r % POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		features_of(model, stats, p, rows->x + r * rows->n_features, rows->n_features, n_rows, phi,
					own);
		for (int k = 0; k < n_rows; k++)
		{
			const double *features = phi + (size_t) k * n;
			double		y = tnp_process_target(model, stats, p, rows->y[r + k]);

			weight[k] = 1 / own[k];
			square += weight[k] * y * y;
			for (int j = 0; j < n; j++)
				p->coefficients[j] += weight[k] * y * features[j];
		}
		tnp_upper_add(p->outer, n, phi, weight);
	}
	/* the identity beneath it keeps it definite */
	if (!tnp_upper_factorise(p->outer, n))
		return tnp_fail(error, TNP_BAD_VALUE, "the rows are too large for the model");
	tnp_upper_solve(p->outer, n, 1, p->coefficients);
	square -= tnp_dot(n, p->coefficients, p->coefficients);
	tnp_upper_solve_back(p->outer, n, p->coefficients);
	p->variance = (fmax(square, 0) + SMALLEST) / stats->n0;
	return TNP_OK;
}

/* What the process says of the prefix rows without their own target. */
static TnpStatus
leave_out(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, TnpProcess *p,
		  TnpError *error)
{
	double		density = 0,
				left_free = 0,
				square = 0,
				near = 0;

	for (int64_t first = 0; first < stats->n0; first += MANY)
	{
		double		own[MANY],
					mean[MANY],
					share[MANY];
		int			n_rows = rows_together(stats, first, MANY);

		if (first % POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		answers_at(model, stats, p, rows->x + first * rows->n_features, rows->n_features, n_rows,
				   own, mean, share);
		for (int k = 0; k < n_rows; k++)
		{
			double		y = tnp_process_target(model, stats, p, rows->y[first + k]),
						rest = fmax(1 - share[k] / own[k], SMALLEST_REST),
						left = y - (y - mean[k]) / rest,
						spread = p->variance * own[k] / rest,
						away = (left - y) * (left - y) / spread;
			float	   *out = p->left_out + 2 * (first + k);

			left_free += rest;
			density -= 0.5 * (LOG_TWO_PI + log(spread) + away);
			square += away;
			near += (1 - rest) * fmin(away, FARTHEST_SQUARE);
			out[0] = (float) tnp_soft_clip(left, model->config.target_clip);
			out[1] = (float) (0.5 * log(spread));
		}
	}
	p->density = density / stats->n0;
	p->left_free = left_free;
	p->square = square / stats->n0;
	p->square_near = near / fmax(stats->n0 - left_free, SMALLEST_REST);
	p->is_certain = p->is_line && p->density > TNP_LINE_CERTAIN;
	p->quality = p->is_certain ? TNP_LINE_SAYS_CERTAIN
		: tnp_soft_clip(p->density, model->config.target_clip);
	return TNP_OK;
}

/* What follows from the features; `p` has room. */
static TnpStatus
take_in(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, TnpProcess *p,
		TnpError *error)
{
	double	   *phi = tnp_alloc_zero(&model->env, (size_t) TOGETHER * p->n_features,
									 sizeof(double));
	TnpStatus	status = phi == NULL ? tnp_no_memory(error)
		: sum_rows(model, rows, stats, p, phi, error);

	tnp_free(&model->env, phi);
	return status == TNP_OK ? leave_out(model, rows, stats, p, error) : status;
}

/* A line takes the place of the process where it predicts rows left out better. */
static TnpStatus
weigh_line(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, TnpProcess *p,
		   TnpError *error)
{
	TnpProcess	line = {.points.n_axes = stats->n_slots},
				loser;
	double		least;
	TnpStatus	status = tnp_line_choose(model, rows, stats, &line, error);

	line.noise = 1;
	if (status == TNP_OK)
		status = make_room(model, stats, &line, error);
	if (status == TNP_OK)
		status = take_in(model, rows, stats, &line, error);
	loser = line;
	least = p->density + (line.density > TNP_LINE_CERTAIN ? -TNP_LINE_BEHIND : TNP_LINE_AHEAD);
	least = fmin(least, TNP_LINE_EXACT + 0.5 * log((double) stats->n0));
	/* equal targets are along a line by whatever comes next */
	if (tnp_all_equal(rows->y, stats->n0, 1))
		least = p->density + TNP_LINE_AHEAD;
	if (status == TNP_OK && line.left_free >= TNP_LINE_FREE && line.density > least)
	{
		loser = *p;
		*p = line;
	}
	tnp_process_free(&model->env, &loser);
	/* sums without room say nothing of the process */
	return status == TNP_BAD_VALUE ? TNP_OK : status;
}

TnpStatus
tnp_process_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpProcess *p = &stats->process;
	TnpStatus	status = tnp_process_direct(model, rows, stats, error);

	if (status == TNP_OK)
		status = choose_carriers(model, rows, stats, p, error);
	if (status == TNP_OK)
		status = tnp_process_climb(model, rows, stats, p->weight, &p->share, error);
	if (status != TNP_OK)
		return status;
	for (int a = 0; a < p->points.n_axes; a++)
		p->weight[a] = exp(p->weight[a]);
	p->noise = exp(p->weight[p->points.n_axes]);
	/* what is added to the diagonal keeps it definite */
	if (!factorise_carriers(stats, p))
		return tnp_fail(error, TNP_BAD_VALUE, "the rows are too large for the model");
	status = take_in(model, rows, stats, p, error);
	if (status == TNP_OK && model->config.encode_x.nearest)
		status = tnp_near_weigh(model, rows, stats, p, error);
	if (status == TNP_OK && model->config.encode_x.line)
		status = weigh_line(model, rows, stats, p, error);
	return status;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Bytes of the directions, the points and left_out. */
static size_t
direction_bytes(const TnpProcess *p)
{
	return (size_t) p->n_directions * (p->points.n_axes - p->n_directions) * sizeof(double);
}

static size_t
points_bytes(const TnpProcess *p)
{
	return (size_t) p->points.n * 2 * p->points.n_axes * sizeof(double);
}

static size_t
left_out_bytes(const TnpProcess *p)
{
	return (size_t) p->n0 * 2 * sizeof(float);
}

bool
tnp_process_copy(const TnpEnv *env, const TnpProcess *from, TnpProcess *to)
{
	TnpNearRows	nearest;

	memset(to, 0, sizeof(*to));
	if (from->n_features == 0)
		return true;
	*to = *from;
	if (!tnp_near_copy(env, &from->nearest, &nearest))
		return false;
	to->nearest = nearest;
	to->direction = from->n_directions > 0 ? tnp_alloc(env, 1, direction_bytes(from)) : NULL;
	to->points.value = from->points.n > 0 ? tnp_alloc(env, 1, points_bytes(from)) : NULL;
	to->weight = tnp_alloc(env, 1, block_bytes(from));
	to->left_out = tnp_alloc(env, 1, left_out_bytes(from));
	if ((from->n_directions > 0 && to->direction == NULL)
		|| (from->points.n > 0 && to->points.value == NULL) || to->weight == NULL
		|| to->left_out == NULL)
		return false;
	if (from->n_directions > 0)
		memcpy(to->direction, from->direction, direction_bytes(from));
	if (from->points.n > 0)
	{
		memcpy(to->points.value, from->points.value, points_bytes(from));
		to->points.label = to->points.value + (from->points.label - from->points.value);
	}
	memcpy(to->weight, from->weight, block_bytes(from));
	memcpy(to->left_out, from->left_out, left_out_bytes(from));
	to->coefficients = to->weight + (from->coefficients - from->weight);
	to->factor = to->weight + (from->factor - from->weight);
	to->outer = to->weight + (from->outer - from->weight);
	return true;
}

void
tnp_process_free(const TnpEnv *env, TnpProcess *process)
{
	tnp_free(env, process->direction);
	tnp_free(env, process->points.value);
	tnp_free(env, process->weight);
	tnp_free(env, process->left_out);
	tnp_near_free(env, &process->nearest);
	memset(process, 0, sizeof(*process));
}

size_t
tnp_process_bytes(const TnpProcess *process)
{
	return process->n_features == 0 ? 0 : direction_bytes(process) + points_bytes(process)
		+ block_bytes(process) + left_out_bytes(process) + tnp_near_bytes(&process->nearest);
}

/* ---- answers --------------------------------------------------------------------------------- */

double
tnp_process_reach(const TnpModel *model, const TnpStats *stats, const double *x, double *reached,
				  double *unknown, double *mean)
{
	const TnpProcess *p = &stats->process;
	double		own,
				share;

	features_of(model, stats, p, x, 0, 1, reached, &own);
	memcpy(unknown, reached, p->n_features * sizeof(double));
	answers_of(p, 1, unknown, mean, &share);
	return own + share;
}

double
tnp_process_mean(const TnpModel *model, const TnpProcess *p, double mean)
{
	return p->is_line ? mean : tnp_soft_clip(mean, model->config.target_clip);
}

void
tnp_process_means(const TnpProcess *p, double *means)
{
	memcpy(means, p->coefficients, p->n_features * sizeof(double));
	if (!p->is_line)
		tnp_upper_solve_back(p->factor, p->n_features, means);
}

double
tnp_process_mix(const TnpModel *model, const TnpStats *stats, const double *means,
				const double *x, int width, int n_rows, const double *weight, double *reached,
				double *unknown, double *mean, double *each)
{
	const TnpProcess *p = &stats->process;
	double		seen[TNP_PROCESS_ROWS],
				rest,
				share;
	int			n = p->n_features;

	memset(reached, 0, n * sizeof(double));
	for (int r = 0; r < n_rows; r++)
	{
		see_row(model, stats, p, x + (size_t) r * width, seen);
		each[r] = tnp_dot(n, seen, means);
		for (int j = 0; j < n; j++)
			reached[j] += weight[r] * seen[j];
	}
	if (!p->is_line)
		tnp_upper_solve(p->factor, n, 1, reached);
	rest = p->is_line ? 1 : fmax(1 - tnp_dot(n, reached, reached), 0) + p->noise;
	memcpy(unknown, reached, n * sizeof(double));
	answers_of(p, 1, unknown, mean, &share);
	return rest + share;
}

/* The first two numbers of up to MANY rows x, `width` apart, that are none of the n0 rows. */
static void
say_of_rows(const TnpModel *model, const TnpStats *stats, const double *x, int width, int n_rows,
			float *out, size_t step)
{
	const TnpProcess *p = &stats->process;
	double		own[MANY],
				mean[MANY],
				share[MANY];

	answers_at(model, stats, p, x, width, n_rows, own, mean, share);
	for (int r = 0; r < n_rows; r++, out += step)
	{
		out[0] = (float) tnp_process_mean(model, p, mean[r]);
		out[1] = (float) (0.5 * log(p->variance * (own[r] + share[r])));
	}
}

/* The same where nearest rows tell. */
static void
say_of_near(const TnpModel *model, const TnpStats *stats, const double *x, int width, int n_rows,
			float *out, size_t step)
{
	for (int r = 0; r < n_rows; r++, out += step)
	{
		double		rest,
					mean = tnp_near_say(model, stats, x + (size_t) r * width, &rest);

		out[0] = (float) tnp_soft_clip(mean, model->config.target_clip);
		out[1] = (float) (0.5 * log(stats->process.nearest.variance * rest));
	}
}

void
tnp_process_features(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
					 int64_t first, int n, bool in_context, float *out, size_t step)
{
	const TnpProcess *p = &stats->process;
	int			own = !in_context || first >= stats->n0 ? 0
		: stats->n0 - first < n ? (int) (stats->n0 - first) : n;
	bool		near = p->nearest.points.n > 0;
	float		noise = (float) (0.5 * log(near ? p->nearest.variance * p->nearest.noise
										   : p->variance * p->noise));

	for (int r = 0; r < own; r++)
		for (int k = 0; k < 2; k++)
			out[r * step + k] = p->left_out[2 * (first + r) + k];
	for (int r = own; r < n; r += MANY)
		(near ? say_of_near : say_of_rows) (model, stats,
											rows->x + (first + r) * rows->n_features,
											rows->n_features, n - r < MANY ? n - r : MANY,
											out + r * step, step);
	for (int r = 0; r < n; r++)
	{
		out[r * step + 2] = noise;
		out[r * step + 3] = (float) p->quality;
	}
}
