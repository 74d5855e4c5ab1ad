/*
 * directions.c: the search for directions (docs/sums.md, "The basis").
 *
 * Fixed candidates are screened, the best ones moved by Levenberg-Marquardt steps (Marquardt 1963),
 * and the best of these is taken if it says more than its parameters cost. Weights are rounded, so
 * that the last digits of what the search adds up do not matter.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/directions.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/random.h"
#include "engine/base/waves.h"
#include "engine/features/least_squares.h"
#include "engine/kernels/moments_reference.h"

#define ROWS_PER_PARAMETER 16	/* at least */
#define SCREENED_ROWS 512		/* that candidates are compared on, at most */
#define RANDOM 256				/* candidates that chance gives, ... */
#define ALONG 8					/* ... and those along the slope of the targets */
#define CANDIDATES (RANDOM + ALONG)
#define KEPT 4					/* candidates that are moved */
#define STEPS 8
#define STREAM 5				/* of random numbers */
#define RIDGE 1e-6				/* of a constant, sine and cosine */
#define CLEARLY (1 - 1e-9)		/* by which a candidate must be better than those before it */
#define SMOOTH_WAVES 8			/* of a direction, which later ones do not see */
#define SMOOTH (1 + SMOOTH_WAVES + 2)

/* A frequency vector, and the least squares of the rest by a constant, its sine and cosine. */
typedef struct Wave
{
	double	   *w,				/* [columns] */
			   *sine,			/* [n]; behind them cosines and errors */
			   *cosine,
			   *error,			/* what is left */
				k[3],
				squares;		/* of errors; infinite where nothing can be fitted */
} Wave;

typedef struct Search
{
	const TnpEnv *env;
	int			n,				/* rows */
				columns;
	int			screened;		/* rows that candidates are compared on */
	const double *z;			/* [n, columns] scores */
	double	   *across,			/* [columns, n] the same */
			   *some,			/* [columns, screened] of the screened rows */
			   *one,			/* [n] of one */
			   *angle,			/* [n] */
			   *rest,			/* [n] what nothing has explained yet */
			   *slope,			/* [columns] of the targets, of length 1 or 0 */
			   *candidate,		/* [CANDIDATES, columns] */
			   *best,			/* [columns] the best frequency vector */
			   *design,			/* [n, entries] of a regression, or [entries, n] */
			   *gram;			/* what it and a step work with */
	Wave		wave[2];		/* at hand, and where a step leads */
} Search;

/* ---- memory and rows ------------------------------------------------------------------------- */

static void
search_free(Search *s)
{
	double	   *all[] = {s->across, s->some, s->one, s->angle, s->slope, s->candidate, s->best,
	s->design, s->gram, s->wave[0].w, s->wave[1].w};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		tnp_free(s->env, all[i]);
}

static bool
search_room_for_wave(const Search *s, Wave *wave)
{
	wave->w = tnp_alloc(s->env, s->columns + 3 * (size_t) s->n, sizeof(double));
	if (wave->w == NULL)
		return false;
	wave->sine = wave->w + s->columns;
	wave->cosine = wave->sine + s->n;
	wave->error = wave->cosine + s->n;
	return true;
}

static bool
search_room(Search *s)
{
	size_t		entries = s->columns + 3 > SMOOTH ? s->columns + 3 : SMOOTH;

	s->across = tnp_alloc(s->env, (size_t) s->n * s->columns, sizeof(double));
	s->some = tnp_alloc(s->env, (size_t) s->screened * s->columns, sizeof(double));
	s->one = tnp_alloc(s->env, s->n, sizeof(double));
	s->angle = tnp_alloc(s->env, s->n, sizeof(double));
	s->slope = tnp_alloc_zero(s->env, s->columns, sizeof(double));
	s->candidate = tnp_alloc(s->env, (size_t) CANDIDATES * s->columns, sizeof(double));
	s->best = tnp_alloc(s->env, s->columns, sizeof(double));
	s->design = tnp_alloc(s->env, (size_t) s->n * entries, sizeof(double));
	s->gram = tnp_alloc(s->env, (2 * entries + 2) * entries, sizeof(double));
	return s->across != NULL && s->some != NULL && s->one != NULL && s->angle != NULL
		&& s->slope != NULL && s->candidate != NULL && s->best != NULL && s->design != NULL
		&& s->gram != NULL && search_room_for_wave(s, &s->wave[0])
		&& search_room_for_wave(s, &s->wave[1]);
}

/* The row of that many that is screened as number i. */
static inline size_t
screened_row(const Search *s, int i)
{
	return (size_t) i * s->n / s->screened;
}

/* Scores, column by column. */
static void
search_turn(Search *s)
{
	for (int f = 0; f < s->columns; f++)
	{
		for (int i = 0; i < s->n; i++)
			s->across[(size_t) f * s->n + i] = s->z[(size_t) i * s->columns + f];
		for (int i = 0; i < s->screened; i++)
			s->some[(size_t) f * s->screened + i] = s->z[screened_row(s, i) * s->columns + f];
	}
	for (int i = 0; i < s->n; i++)
		s->one[i] = 1;
}

/* The slope of the targets, and what a line leaves of them. */
static void
search_begin(Search *s)
{
	const int	m = s->columns;
	const double *slope = tnp_least_squares(s->n, m, s->z, s->rest, s->gram);
	double		norm = 0;

	search_turn(s);
	for (int f = 0; slope != NULL && f < m; f++)
		norm += slope[f] * slope[f];
	for (int f = 0; norm > 0 && f < m; f++)
		s->slope[f] = slope[f] / sqrt(norm);
	for (int i = 0; i < s->n; i++)
	{
		double	   *entry = s->design + (size_t) i * (m + 1);

		entry[0] = 1;
		memcpy(entry + 1, s->z + (size_t) i * m, m * sizeof(double));
	}
	tnp_least_squares_rest(s->n, m + 1, s->design, s->rest, s->gram);
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* From a half to four as `at` goes from 0 to 3: twice as long per unit, straight in between. */
static double
length_of(double at)
{
	return ldexp(1 + at - floor(at), (int) floor(at) - 1);
}

static void
search_propose(Search *s, int direction)
{
	const int	m = s->columns;

	for (int i = 0; i < CANDIDATES; i++)
	{
		double	   *w = s->candidate + (size_t) i * m,
					norm = 0;

		for (int f = 0; f < m; f++)
		{
			double		u[2];

			if (i < RANDOM)
			{
				tnp_random(0, (uint64_t) direction, (uint32_t) (i * m + f), STREAM, u);
				w[f] = u[0] + u[1] - 1;
				norm += w[f] * w[f];
			}
			else
				w[f] = s->slope[f] * length_of(3.0 * (i - RANDOM) / (ALONG - 1));
		}
		for (int f = 0; i < RANDOM && f < m; f++)
			w[f] *= length_of(3 * (i + 0.5) / RANDOM) / sqrt(norm);
	}
}

/* Squares that the sine and cosine of a candidate take from what is left of the screened rows. */
static double
screen(const Search *s, const double *w, const double *left)
{
	const int	n = s->screened;
	double	   *sine = s->wave[0].sine,
			   *cosine = s->wave[0].cosine,
				sum[2],
				with[2],
				square[3];

	tnp_weighted_sum(n, s->columns, s->some, w, s->angle);
	tnp_sines(n, s->angle, sine, cosine);
	sum[0] = tnp_sum_of_products(n, sine, s->one);
	sum[1] = tnp_sum_of_products(n, cosine, s->one);
	with[0] = tnp_sum_of_products(n, sine, left);
	with[1] = tnp_sum_of_products(n, cosine, left);
	square[0] = tnp_sum_of_products(n, sine, sine) - sum[0] * sum[0] / n;
	square[1] = tnp_sum_of_products(n, sine, cosine) - sum[0] * sum[1] / n;
	square[2] = tnp_sum_of_products(n, cosine, cosine) - sum[1] * sum[1] / n;
	return (square[2] * with[0] * with[0] - 2 * square[1] * with[0] * with[1]
			+ square[0] * with[1] * with[1])
		/ fmax(square[0] * square[2] - square[1] * square[1], 1e-9);
}

/* The KEPT best candidates, best first, of equal ones the first. */
static bool
search_screen(const Search *s, int *kept)
{
	double		gain[KEPT + 1],
			   *left = s->wave[0].error,
				mean = 0;
	int			n = 0;

	for (int i = 0; i < s->screened; i++)
		left[i] = s->rest[screened_row(s, i)];
	mean = tnp_sum_of_products(s->screened, left, s->one) / s->screened;
	for (int i = 0; i < s->screened; i++)
		left[i] -= mean;
	for (int i = 0; i < CANDIDATES; i++)
	{
		double		value;
		int			at = n;

		if (i % 16 == 0 && tnp_interrupted(s->env))
			return false;
		value = screen(s, s->candidate + (size_t) i * s->columns, left);
		for (; at > 0 && gain[at - 1] < value; at--)
			if (at < KEPT)
			{
				gain[at] = gain[at - 1];
				kept[at] = kept[at - 1];
			}
		if (at < KEPT)
		{
			gain[at] = value;
			kept[at] = i;
			n = n < KEPT ? n + 1 : n;
		}
	}
	return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void
wave_fit(const Search *s, Wave *wave)
{
	const int	n = s->n;
	const double *entry[3] = {s->one, wave->sine, wave->cosine};
	double		gram[9] = {0},
				factor[9];

	wave->squares = INFINITY;
	memset(wave->k, 0, sizeof(wave->k));
	tnp_weighted_sum(n, s->columns, s->across, wave->w, s->angle);
	for (int i = 0; i < n; i++)
		if (!(fabs(s->angle[i]) <= TNP_MOST_ANGLE))
			return;
	tnp_sines(n, s->angle, wave->sine, wave->cosine);
	for (int a = 0; a < 3; a++)
	{
		wave->k[a] = tnp_sum_of_products(n, entry[a], s->rest);
		for (int b = 0; b <= a; b++)
			gram[3 * a + b] = tnp_sum_of_products(n, entry[a], entry[b]);
	}
	if (!tnp_factorise(gram, 3, RIDGE, factor))
		return;
	tnp_solve_lower(factor, 3, wave->k);
	tnp_solve_upper(factor, 3, wave->k);
	for (int i = 0; i < n; i++)
		wave->error[i] = s->rest[i] - (wave->k[0] + wave->k[1] * wave->sine[i]
									   + wave->k[2] * wave->cosine[i]);
	wave->squares = tnp_sum_of_products(n, wave->error, wave->error);
}

/* Add a step of Levenberg and Marquardt to w of `to`; false if the matrix has no factor. */
static bool
wave_step(const Search *s, const Wave *from, double damping, Wave *to)
{
	const int	n = s->n,
				m = s->columns + 3;
	double	   *factor = s->gram + (size_t) m * m,
			   *step = factor + (size_t) m * m;
	const double *last[3] = {s->one, from->sine, from->cosine};

	for (int i = 0; i < n; i++)
		s->angle[i] = from->k[1] * from->cosine[i] - from->k[2] * from->sine[i];
	for (int f = 0; f < s->columns; f++)
		for (int i = 0; i < n; i++)
			s->design[(size_t) f * n + i] = s->angle[i] * s->across[(size_t) f * n + i];
	for (int a = 0; a < m; a++)
	{
		const double *entry = a < s->columns ? s->design + (size_t) a * n : last[a - s->columns];
		double	   *row = s->gram + (size_t) a * m;

		for (int b = 0; b <= a; b++)
			row[b] = tnp_sum_of_products(n, entry, b < s->columns ? s->design + (size_t) b * n
										 : last[b - s->columns]);
		row[a] += damping * (row[a] + 1e-6);
		step[a] = tnp_sum_of_products(n, entry, from->error);
	}
	if (!tnp_factorise(s->gram, m, 0, factor))
		return false;
	tnp_solve_lower(factor, m, step);
	tnp_solve_upper(factor, m, step);
	for (int f = 0; f < s->columns; f++)
		to->w[f] = from->w[f] + step[f];
	return true;
}

/* Move a candidate; what is best so far, and its squares, are kept. */
static bool
search_move(Search *s, int candidate, double *least)
{
	Wave	   *at = &s->wave[0],
			   *next = &s->wave[1];
	double		damping = 1e-2;

	memcpy(at->w, s->candidate + (size_t) candidate * s->columns, s->columns * sizeof(double));
	wave_fit(s, at);
	for (int i = 0; i < STEPS; i++)
	{
		bool		better = false;

		if (tnp_interrupted(s->env))
			return false;
		if (wave_step(s, at, damping, next))
		{
			wave_fit(s, next);
			better = next->squares < at->squares;
		}
		damping *= better ? 0.3 : 5;
		if (better)
		{
			Wave	   *swap = at;

			at = next;
			next = swap;
		}
	}
	if (at->squares < CLEARLY * *least)
	{
		*least = at->squares;
		memcpy(s->best, at->w, s->columns * sizeof(double));
	}
	return true;
}

/* ---- directions ------------------------------------------------------------------------------ */

static double
squares_from_mean(int n, const double *x)
{
	double		mean = 0,
				squares = 0;

	for (int i = 0; i < n; i++)
		mean += x[i] / n;
	for (int i = 0; i < n; i++)
		squares += (x[i] - mean) * (x[i] - mean);
	return squares;
}

/* Whether squares sink by more than a direction's parameters, and having looked for it, cost. */
static bool
says_more(const Search *s, double before, double after)
{
	return 0.5 * s->n * log(before / after)
		>= 0.5 * (s->columns + 2) * log(s->n) + 2 * sqrt(s->columns);
}

/* left [n]: what a smooth function along w leaves of the rest. The score's sd, or 0 and nothing. */
static double
search_left(Search *s, const double *w, double *left)
{
	double		sd;

	for (int i = 0; i < s->n; i++)
		left[i] = tnp_dot(s->columns, s->z + (size_t) i * s->columns, w);
	sd = sqrt(squares_from_mean(s->n, left) / s->n);
	if (!(sd > 0))
		return 0;
	tnp_sines(s->n, left, s->wave[0].sine, s->wave[0].cosine);
	for (int i = 0; i < s->n; i++)
	{
		double	   *entry = s->design + (size_t) i * SMOOTH;

		entry[0] = 1;
		tnp_waves(tnp_squash(left[i], 0, sd), SMOOTH_WAVES, entry + 1);
		entry[SMOOTH - 2] = s->wave[0].sine[i];
		entry[SMOOTH - 1] = s->wave[0].cosine[i];
	}
	memcpy(left, s->rest, s->n * sizeof(double));
	tnp_least_squares_rest(s->n, SMOOTH, s->design, left, s->gram);
	return sd;
}

/*
 * Whether the column with the largest weight says as much by itself: its waves are features as it
 * is. If so, alone [n] is what it leaves of the rest, of which the direction leaves along [n].
 */
static bool
search_is_column(Search *s, const double *along, double *column, double *alone)
{
	int			largest = 0;

	for (int f = 1; f < s->columns; f++)
		if (fabs(s->best[f]) > fabs(s->best[largest]))
			largest = f;
	memset(column, 0, s->columns * sizeof(double));
	column[largest] = s->best[largest];
	return search_left(s, column, alone) > 0
		&& !says_more(s, tnp_dot(s->n, alone, alone), tnp_dot(s->n, along, along));
}

/* One more search. Its direction's weights, if it finds one; no other follows if it is over. */
static TnpStatus
search_next(Search *s, int search, int64_t *weight, bool *found, bool *over, TnpError *error)
{
	double		least = INFINITY,
			   *along = s->wave[0].error,
			   *alone = s->wave[1].error,
				sd;
	int			kept[KEPT];

	*found = false;
	*over = true;
	search_propose(s, search);
	if (!search_screen(s, kept))
		return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
	for (int i = 0; i < KEPT; i++)
		if (!search_move(s, kept[i], &least))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
	if (!(least < INFINITY) || !says_more(s, squares_from_mean(s->n, s->rest), least))
		return TNP_OK;
	sd = search_left(s, s->best, along);
	for (int f = 0; f < s->columns; f++)
		if (!(fabs(s->best[f] / sd) * TNP_DIRECTION_UNIT <= TNP_MOST_DIRECTION_WEIGHT))
			return TNP_OK;
	*over = false;
	*found = !search_is_column(s, along, s->wave[1].w, alone);
	memcpy(s->rest, *found ? along : alone, s->n * sizeof(double));
	for (int f = 0; *found && f < s->columns; f++)
		weight[f] = (int64_t) nearbyint(s->best[f] / sd * TNP_DIRECTION_UNIT);
	return TNP_OK;
}

TnpStatus
tnp_directions_find(const TnpEnv *env, int n, int columns, const double *z, double *rest, int most,
					int room, int64_t *weight, int *found, TnpError *error)
{
	TnpStatus	status = TNP_OK;
	bool		over = false;
	Search		s = {.env = env, .n = n, .columns = columns, .z = z, .rest = rest,
	.screened = n < SCREENED_ROWS ? n : SCREENED_ROWS};

	*found = 0;
	if (columns < 2 || n < ROWS_PER_PARAMETER * (columns + 2))
		return TNP_OK;
	if (!search_room(&s))
		status = tnp_no_memory(error);
	else
		search_begin(&s);
	for (int i = 0; i < 2 * most && *found < most && *found < room && !over && status == TNP_OK;
		 i++)
	{
		bool		one;

		status = search_next(&s, i, weight + (size_t) *found * columns, &one, &over, error);
		*found += status == TNP_OK && one;
	}
	search_free(&s);
	return status;
}
