/*
 * process_near.c: a process of the prefix that is asked given the nearest rows alone
 * (docs/model-format.md section 5, "Nearest rows"; Vecchia 1988, Datta et al. 2016).
 *
 * Of a series, or of a map, so few rows as carry a process cannot tell what is between them. Those
 * next to a row can, at a cost that grows with the rows as a scan does. Weights and noise are those
 * of the largest likelihood, as far as the nearest of the rows before each have a say in it. What
 * rows left out are told chooses between these rows and the process.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/process_near.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/mix.h"
#include "engine/features/column.h"
#include "engine/features/process_points.h"
#include "engine/features/spread.h"

#define LEAST_ROWS 32
#define MOST_ROWS (1 << 15)
#define JUDGES 128				/* rows that judge weights, at most */
#define LEAST_JUDGES 32			/* unless there are fewer */
#define JUDGED_PAIRS (1 << 17)	/* of judges and rows, unless they are too few */
#define JUDGED_BY 12			/* rows that tell of a judge */
#define BETTER (1.0 / 1024)		/* rounding decides nothing */
#define AHEAD 0.05				/* of the process, in nats a row left out, and */
#define AHEAD_OF_FEW 6.0		/* this over their number, more of which is chance */
#define SMALLEST 1e-6			/* added to sums of squares */
#define LEAST_LOG (-16.0)
#define MOST_LOG 12.0
#define FEW_LOGS_BELOW 3.0		/* of other weights, below the mean of the process's prior */
#define FINE_NOISE 0.03
#define TURNS 2					/* of all logs, by a step */
#define FARTHEST_SQUARE 100.0	/* of a target's distance in deviations, one row in the record */
#define SMALLEST_REST 1e-9
#define LOG_TWO_PI 1.8378770664093453
#define PART 256				/* rows whose distances are known at once, and */
#define AT_ONCE 16				/* that are compared so */
#define POLL_ROWS 64			/* between two looks at interrupts */

/* ---- neighbours ------------------------------------------------------------------------------ */

/* The nearest so far, in ascending order, and how many there are at most. */
typedef struct Nearest
{
	int			n,
				most,
				row[TNP_NEAR_ROWS];
	float		distance[TNP_NEAR_ROWS];
} Nearest;

/* Put a row where it belongs, behind those as near; it is nearer than the last if that is full. */
static void
put_row(Nearest *list, float distance, int row)
{
	int			place = list->n < list->most ? list->n++ : list->most - 1;

	for (; place > 0 && list->distance[place - 1] > distance; place--)
	{
		list->distance[place] = list->distance[place - 1];
		list->row[place] = list->row[place - 1];
	}
	list->distance[place] = distance;
	list->row[place] = row;
}

/* The first of the distances from `place` on that is below the limit; n if none is. */
static int
next_below(const double *distance, int place, int n, double limit)
{
	for (; place + AT_ONCE <= n; place += AT_ONCE)
	{
		int			below = 0;

		for (int k = 0; k < AT_ONCE; k++)
			below |= distance[place + k] < limit;
		if (below)
			break;
	}
	while (place < n && !(distance[place] < limit))
		place++;
	return place;
}

/* Look among the first n points, which are rows from `row` on; `own` is none of them. */
static void
look_among(const TnpStats *stats, const double *weight, const TnpPoints *from, int i,
		   const TnpPoints *points, int n, int row, int own, Nearest *list)
{
	double		distance[PART];

	for (int first = 0; first < n; first += PART)
	{
		int			last = n - first < PART ? n : first + PART;
		float		farthest = list->n < list->most ? INFINITY : list->distance[list->most - 1];

		tnp_points_distances_between(stats, from, i, points, first, last, weight, distance);
		for (int j = first; (j = first + next_below(distance, j - first, last - first, farthest))
			 < last; j++)
		{
			float		d = (float) distance[j - first];

			if (j == own || !(d < farthest))
				continue;
			put_row(list, d, row + j);
			if (list->n == list->most)
				farthest = list->distance[list->most - 1];
		}
	}
}

/* In place of squared distances the correlations. */
static void
correlate(bool is_rough, int n, double *distance)
{
	if (!is_rough)
		tnp_points_correlations(0, n, distance, NULL);
	else
		for (int j = 0; j < n; j++)
			distance[j] = exp(-sqrt(distance[j]));
}

/* The weights of the rows in the list, of which `local` are the points, for point i of `from`. */
static void
weigh_rows(const TnpStats *stats, const TnpNearRows *nearest, const TnpPoints *from, int i,
		   const TnpPoints *local, const Nearest *list, TnpNeighbours *found)
{
	int			n = list->n;
	double		noise = nearest->noise,
				gram[TNP_NEAR_ROWS * TNP_NEAR_ROWS],
				factor[TNP_NEAR_ROWS * TNP_NEAR_ROWS],
			   *alike = found->weight;

	found->n = n;
	memcpy(found->row, list->row, n * sizeof(int));
	for (int r = 0; r < n; r++)
	{
		double	   *row = gram + r * n;

		tnp_points_distances_between(stats, local, r, local, 0, r, nearest->weight, row);
		correlate(nearest->is_rough, r, row);
		row[r] = 1;
	}
	tnp_points_distances_between(stats, from, i, local, 0, n, nearest->weight, alike);
	correlate(nearest->is_rough, n, alike);
	/* the noise keeps it definite; were it not for rounding, rows would say nothing */
	if (!tnp_factorise(gram, n, noise, factor))
	{
		memset(alike, 0, n * sizeof(double));
		found->rest = 1 + noise;
		return;
	}
	tnp_solve_lower(factor, n, alike);
	found->rest = fmax(1 - tnp_dot(n, alike, alike), 0) + noise;
	tnp_solve_upper(factor, n, alike);
}

/*
 * What tells of point i of `from`, by at most `most` rows: of the first n of the prefix, but for
 * `own`, and of a chain.
 */
static void
find(const TnpStats *stats, const TnpNearRows *nearest, const TnpPoints *from, int i, int n,
	 int own, const TnpPoints *chain, int n_chain, int most, TnpNeighbours *found)
{
	Nearest		list = {.most = most};
	double		value[TNP_NEAR_AXES * TNP_NEAR_ROWS],
				label[TNP_NEAR_AXES * TNP_NEAR_ROWS];
	const TnpPoints *all = &nearest->points;
	TnpPoints	local = {.n_axes = all->n_axes,.value = value,.label = label};

	look_among(stats, nearest->weight, from, i, all, n, 0, own, &list);
	if (n_chain > 0)
	{
		TnpPoints	slots = *chain;

		slots.n_axes = all->n_axes;
		look_among(stats, nearest->weight, from, i, &slots, n_chain, all->n, -1, &list);
	}
	local.n = list.n;
	for (int r = 0; r < list.n; r++)
	{
		bool		chained = list.row[r] >= all->n;
		const TnpPoints *points = chained ? chain : all;
		int			place = chained ? list.row[r] - all->n : list.row[r];

		for (int a = 0; a < all->n_axes; a++)
		{
			value[a * list.n + r] = points->value[(size_t) a * points->n + place];
			label[a * list.n + r] = points->label[(size_t) a * points->n + place];
		}
	}
	weigh_rows(stats, nearest, from, i, &local, &list, found);
}

void
tnp_near_find(const TnpStats *stats, const TnpNearRows *nearest, const TnpPoints *from, int i,
			  const TnpPoints *chain, int n_chain, TnpNeighbours *found)
{
	find(stats, nearest, from, i, nearest->points.n, -1, chain, n_chain, TNP_NEAR_ROWS, found);
}

double
tnp_near_mean(const TnpNearRows *nearest, const TnpNeighbours *found)
{
	double		mean = 0;

	for (int r = 0; r < found->n; r++)
		if (found->row[r] < nearest->points.n)
			mean += found->weight[r] * nearest->target[found->row[r]];
	return mean;
}

double
tnp_near_say(const TnpModel *model, const TnpStats *stats, const double *x, double *rest)
{
	const TnpNearRows *nearest = &stats->process.nearest;
	double		value[TNP_NEAR_AXES],
				label[TNP_NEAR_AXES];
	TnpPoints	one = {1, nearest->points.n_axes, value, label};
	TnpNeighbours found;

	tnp_points_set(model, stats, x, &one, 0);
	tnp_near_find(stats, nearest, &one, 0, NULL, 0, &found);
	*rest = found.rest;
	return tnp_near_mean(nearest, &found);
}

/* ---- weights and noise ----------------------------------------------------------------------- */

/* Weights and noise that are tried. */
typedef struct Trial
{
	const TnpModel *model;
	const TnpStats *stats;
	TnpNearRows *nearest;		/* receives those of the last trial */
	int			n_judges,		/* rows, evenly spaced */
				n_logs;
	double		best[TNP_NEAR_AXES + 1],	/* logs of the weights and, last, of the noise */
				score,			/* of these, */
				variance;		/* and what follows from them */
	bool		is_rough,		/* the kind of correlation of these */
				stopped;		/* by an interrupt */
} Trial;

/* How likely the judges are, given the nearest of the rows before each, under these logs. */
static double
judge(Trial *t, const double *logs)
{
	TnpNearRows *nearest = t->nearest;
	double		square = 0,
				spread = 0;

	if (tnp_interrupted(&t->model->env))
	{
		t->stopped = true;
		return -INFINITY;
	}
	for (int a = 0; a < t->n_logs - 1; a++)
		nearest->weight[a] = exp(logs[a]);
	nearest->noise = exp(logs[t->n_logs - 1]);
	for (int j = 0; j < t->n_judges; j++)
	{
		int			row = (int) ((2 * j + 1) * (int64_t) nearest->points.n / (2 * t->n_judges));
		TnpNeighbours found;
		double		away;

		find(t->stats, nearest, &nearest->points, row, row, -1, NULL, 0, JUDGED_BY, &found);
		away = nearest->target[row] - tnp_near_mean(nearest, &found);
		square += away * away / found.rest;
		spread += log(found.rest);
	}
	nearest->variance = (square + SMALLEST) / t->n_judges;
	return -0.5 * (log(nearest->variance) + spread / t->n_judges);
}

/* Whether these logs, held within bounds, are better than the best, which they then are. */
static bool
try_logs(Trial *t, double *logs)
{
	double		score;

	for (int a = 0; a < t->n_logs; a++)
		logs[a] = fmin(fmax(logs[a], LEAST_LOG), MOST_LOG);
	score = judge(t, logs);
	if (!(score > t->score + BETTER))
		return false;
	t->score = score;
	t->variance = t->nearest->variance;
	t->is_rough = t->nearest->is_rough;
	memcpy(t->best, logs, t->n_logs * sizeof(double));
	return true;
}

/* Weights that are fine along one number, from those of the process. */
static void
try_fine(Trial *t, const double *start)
{
	static const double fine[] = {4.0, 7.0, 10.0};
	int			axes = t->n_logs - 1;
	double		logs[TNP_NEAR_AXES + 1];

	for (int a = 0; a < axes; a++)
	{
		if (tnp_slot_column(t->stats, a)->kind == TNP_CATEGORICAL)
			continue;
		for (int k = 0; k < 3; k++)
			for (int alone = 0; alone < (axes > 1 ? 2 : 1); alone++)
			{
				for (int b = 0; b < axes; b++)
					logs[b] = alone ? -log((double) axes) - FEW_LOGS_BELOW : start[b];
				logs[a] = fine[k];
				logs[axes] = log(FINE_NOISE);
				try_logs(t, logs);
			}
	}
}

/* From the best on: each log in turn, up and down by the step; whether one of them has moved. */
static bool
climb(Trial *t, double step)
{
	double		logs[TNP_NEAR_AXES + 1],
				before = t->score;

	for (int a = 0; a < t->n_logs; a++)
		for (int sign = 1; sign >= -1; sign -= 2)
			do
			{
				memcpy(logs, t->best, t->n_logs * sizeof(double));
				logs[a] += sign * step;
			} while (try_logs(t, logs));
	return t->score > before;
}

/* The kind of correlation, the weights and the noise. */
static TnpStatus
fit(const TnpModel *model, const TnpStats *stats, const TnpProcess *p, TnpNearRows *nearest,
	TnpError *error)
{
	int64_t		n = nearest->points.n,
				most = JUDGED_PAIRS / n;
	static const double steps[] = {1.2, 0.5};
	double		start[TNP_NEAR_AXES + 1];
	Trial		t = {model, stats, nearest,.n_logs = nearest->points.n_axes + 1,
	.score = -INFINITY};

	most = most < LEAST_JUDGES ? LEAST_JUDGES : most > JUDGES ? JUDGES : most;
	t.n_judges = (int) (n < most ? n : most);
	for (int a = 0; a < t.n_logs - 1; a++)
		start[a] = log(p->weight[a]);
	start[t.n_logs - 1] = log(p->noise);
	memcpy(t.best, start, sizeof(start));
	for (int rough = 0; rough < 2; rough++)
	{
		nearest->is_rough = rough;
		try_logs(&t, start);
		try_fine(&t, start);
	}
	nearest->is_rough = t.is_rough;
	for (int s = 0; s < 2; s++)
		for (int turn = 0; turn < TURNS && climb(&t, steps[s]); turn++)
			;
	for (int a = 0; a < t.n_logs - 1; a++)
		nearest->weight[a] = exp(t.best[a]);
	nearest->noise = exp(t.best[t.n_logs - 1]);
	nearest->variance = t.variance;
	return t.stopped ? tnp_fail(error, TNP_INTERRUPTED, "interrupted") : TNP_OK;
}

/* ---- rows left out --------------------------------------------------------------------------- */

/* What is said of the prefix rows without their own target; row [n] is the raw row of each. */
static TnpStatus
leave_out(const TnpModel *model, const TnpStats *stats, const int64_t *row, TnpNearRows *nearest,
		  TnpProcess *to, TnpError *error)
{
	int			n = nearest->points.n;
	double	   *mean = tnp_alloc(&model->env, 2 * (size_t) n, sizeof(double)),
			   *rest,
				square = SMALLEST,
				density = 0,
				near = 0;

	if (mean == NULL)
		return tnp_no_memory(error);
	rest = mean + n;
	for (int i = 0; i < n; i++)
	{
		TnpNeighbours found;

		if (i % POLL_ROWS == 0 && tnp_interrupted(&model->env))
		{
			tnp_free(&model->env, mean);
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		}
		find(stats, nearest, &nearest->points, i, n, i, NULL, 0, TNP_NEAR_ROWS, &found);
		mean[i] = tnp_near_mean(nearest, &found);
		rest[i] = found.rest;
		square += (nearest->target[i] - mean[i]) * (nearest->target[i] - mean[i]) / rest[i];
	}
	nearest->variance = fmax(nearest->variance, square / n);
	to->square = to->left_free = 0;
	for (int i = 0; i < n; i++)
	{
		double		spread = nearest->variance * rest[i],
					away = (nearest->target[i] - mean[i]) * (nearest->target[i] - mean[i]) / spread,
					free = nearest->noise / rest[i];
		float	   *out = to->left_out + 2 * row[i];

		density -= 0.5 * (LOG_TWO_PI + log(spread) + away);
		to->left_free += free;
		to->square += away / n;
		near += (1 - free) * fmin(away, FARTHEST_SQUARE);
		out[0] = (float) tnp_soft_clip(mean[i], model->config.target_clip);
		out[1] = (float) (0.5 * log(spread));
	}
	to->density = density / n;
	to->square_near = near / fmax(n - to->left_free, SMALLEST_REST);
	to->quality = tnp_soft_clip(to->density, model->config.target_clip);
	tnp_free(&model->env, mean);
	return TNP_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static size_t
block_bytes(const TnpNearRows *nearest)
{
	return (size_t) nearest->points.n * (2 * nearest->points.n_axes + 1) * sizeof(double);
}

/* Memory for as many points as it has; false when there is none. */
static bool
make_block(const TnpEnv *env, TnpNearRows *nearest)
{
	size_t		values = (size_t) nearest->points.n * nearest->points.n_axes;

	nearest->points.value = tnp_alloc(env, 1, block_bytes(nearest));
	if (nearest->points.value == NULL)
		return false;
	nearest->points.label = nearest->points.value + values;
	nearest->target = nearest->points.label + values;
	return true;
}

typedef struct Shuffled
{
	uint64_t	key;
	int			place;
} Shuffled;

static int
compare_shuffled(const void *a, const void *b)
{
	const Shuffled *x = a,
			   *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/*
 * All rows of the prefix, in an order that neither they nor their targets have: where many are as
 * near, some of them tell, and those before a row are everywhere. sorted [n] are the rows in the
 * order of their targets, row [n] receives which row each is.
 */
static bool
take_rows(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
		  const int64_t *sorted, int64_t *row, TnpNearRows *nearest)
{
	int			n = nearest->points.n;
	Shuffled   *order = tnp_alloc(&model->env, n, sizeof(Shuffled));

	if (order == NULL || !make_block(&model->env, nearest))
	{
		tnp_free(&model->env, order);
		return false;
	}
	for (int i = 0; i < n; i++)
		order[i] = (Shuffled) {tnp_mix(i), i};
	qsort(order, n, sizeof(Shuffled), compare_shuffled);
	for (int i = 0; i < n; i++)
	{
		row[i] = sorted[order[i].place];
		tnp_points_set(model, stats, rows->x + row[i] * rows->n_features, &nearest->points, i);
		nearest->target[i] = tnp_clipped_target(model, stats, rows->y[row[i]]);
	}
	tnp_free(&model->env, order);
	return true;
}

/* Make nearest and what it says of rows left out: to->left_out [n0, 2] is there. */
static TnpStatus
make(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, const TnpProcess *p,
	 TnpNearRows *nearest, TnpProcess *to, TnpError *error)
{
	int			n = nearest->points.n;
	int64_t    *sorted = tnp_alloc(&model->env, 2 * (size_t) n, sizeof(int64_t));
	TnpStatus	status = TNP_OK;

	if (sorted == NULL || tnp_spread_rows(model, rows, stats, n, sorted) < 0
		|| !take_rows(model, rows, stats, sorted, sorted + n, nearest))
		status = tnp_no_memory(error);
	if (status == TNP_OK)
		status = fit(model, stats, p, nearest, error);
	if (status == TNP_OK)
		status = leave_out(model, stats, sorted + n, nearest, to, error);
	tnp_free(&model->env, sorted);
	return status;
}

TnpStatus
tnp_near_weigh(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, TnpProcess *p,
			   TnpError *error)
{
	TnpProcess	said = *p;
	TnpNearRows	nearest = {.points = {.n = (int) stats->n0,.n_axes = stats->n_slots}};
	TnpStatus	status;

	if (stats->n0 < LEAST_ROWS || stats->n0 > MOST_ROWS || stats->n_slots < 1
		|| stats->n_slots > TNP_NEAR_AXES)
		return TNP_OK;
	said.left_out = tnp_alloc(&model->env, stats->n0, 2 * sizeof(float));
	if (said.left_out == NULL)
		return tnp_no_memory(error);
	status = make(model, rows, stats, p, &nearest, &said, error);
	if (status == TNP_OK && said.density > p->density + AHEAD + AHEAD_OF_FEW / stats->n0)
	{
		float	   *loser = p->left_out;

		*p = said;
		p->nearest = nearest;
		tnp_free(&model->env, loser);
		return TNP_OK;
	}
	tnp_free(&model->env, said.left_out);
	tnp_near_free(&model->env, &nearest);
	return status;
}

bool
tnp_near_copy(const TnpEnv *env, const TnpNearRows *from, TnpNearRows *to)
{
	*to = *from;
	if (from->points.n == 0)
		return true;
	if (!make_block(env, to))
		return false;
	memcpy(to->points.value, from->points.value, block_bytes(from));
	return true;
}

void
tnp_near_free(const TnpEnv *env, TnpNearRows *nearest)
{
	tnp_free(env, nearest->points.value);
	memset(nearest, 0, sizeof(*nearest));
}

size_t
tnp_near_bytes(const TnpNearRows *nearest)
{
	return nearest->points.n == 0 ? 0 : block_bytes(nearest);
}
