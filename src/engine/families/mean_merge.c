/*
 * mean_merge.c: sums of rows' vectors under a basis: added, taken away, merged, written, read and
 * encoded (docs/families.md, "Contexts that are sums").
 *
 * Beside the sums of vectors there are those of numbers and their squares, in units of the basis,
 * which tell how far rows have moved. All are integers that cannot overflow, so that they depend on
 * which rows are in them and on nothing else.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/mean_merge.h"

#include <math.h>
#include <string.h>

#include "engine/base/exact.h"
#include "engine/families/mean.h"
#include "engine/features/column.h"
#include "engine/features/drift.h"
#include "engine/features/scale.h"
#include "engine/network/encoding.h"

#define TILE 16					/* rows that become vectors together */

/* Numbers that drift is told by are cut off here, and rounded to multiples of 1 / PLACE_UNIT. */
#define PLACE_MOST 32
#define PLACE_UNIT 1024

/* What follows the structure is found by the functions below. */
typedef struct MeanState
{
	TnpSums		common;
	int			d,
				targets;
} MeanState;

/* ---- the layout ------------------------------------------------------------------------------ */

static int64_t *
state_basis(const MeanState *s)
{
	return (int64_t *) (void *) ((char *) s + (sizeof(MeanState) + 7) / 8 * 8);
}

/* The sum of the vectors [d] pairs of words, ... */
static int64_t *
state_sum(const MeanState *s)
{
	return state_basis(s) + s->common.basis_words;
}

/* ... the places [targets + columns, 2] of targets and columns: sums of numbers, of squares, ... */
static int64_t *
state_places(const MeanState *s)
{
	return state_sum(s) + 2 * s->d;
}

static size_t
places_words(int targets, int columns)
{
	return 2 * ((size_t) targets + columns);
}

/* ... and what vectors are made in. */
static float *
state_scratch(const MeanState *s)
{
	return (float *) (void *) (state_places(s) + places_words(s->targets, s->common.columns));
}

/* Words of sums beside the number of rows. */
static size_t
sum_words(const TnpModel *model, int columns)
{
	return 2 * (size_t) model->config.width + places_words(model->config.n_targets, columns);
}

/* Numbers of a row in scratch: features, targets, what embedding takes, the state. */
static size_t
scratch_numbers(const TnpModel *model)
{
	const TnpFamily *family = model->config.family;

	return (size_t) model->config.n_features + model->config.n_targets
		+ family->embed_scratch(model)
		+ family->state_width(model);
}

static size_t
mean_state_bytes(const TnpModel *model, const int64_t *basis)
{
	int			columns = (int) basis[MEAN_COLUMNS];

	return (sizeof(MeanState) + 7) / 8 * 8
		+ (mean_basis_words(model, columns) + sum_words(model, columns)) * sizeof(int64_t)
		+ TILE * scratch_numbers(model) * sizeof(float);
}

static size_t
mean_state_words(const TnpModel *model, const int64_t *basis)
{
	return 1 + sum_words(model, (int) basis[MEAN_COLUMNS]);
}

static void
mean_begin(const TnpModel *model, const int64_t *basis, TnpSums *sums)
{
	MeanState  *s = (MeanState *) sums;
	size_t		words = mean_basis_words(model, (int) basis[MEAN_COLUMNS]);

	memset(s, 0, mean_state_bytes(model, basis));
	s->common.columns = (int) basis[MEAN_COLUMNS];
	s->common.basis_words = (int) words;
	s->d = model->config.width;
	s->targets = model->config.n_targets;
	memcpy(state_basis(s), basis, words * sizeof(int64_t));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* What one row adds. */
typedef struct RowSum
{
	int64_t		sum[2 * TNP_MAX_WIDTH];
} RowSum;

/* Scaled features [columns] of a row's cells. */
static void
scale_row(const TnpModel *model, const int64_t *basis, const double *x, float *out)
{
	TnpColumn	column = {.kind = TNP_NUMERIC};

	for (int f = 0; f < model->config.n_features; f++)
	{
		const int64_t *words = mean_column(basis, model->config.n_targets, f);

		if (model->config.input_scaling == TNP_SCALE_PREFIX)
		{
			column.mean = sums_number(words[MEAN_COLUMN_CENTER]);
			column.sd = sums_number(words[MEAN_COLUMN_SCALE]);
			column.constant = words[MEAN_COLUMN_CONSTANT] != 0;
			out[f] = (float) tnp_column_scale(model, &column, x[f]);
		}
		else
			out[f] = (float) tnp_scale_feature(model, NULL, f, x[f]);
	}
}

/* Centre and scale of the targets; those after the first are in `more`, which has room for all. */
static TnpStats
target_stats(const int64_t *basis, int targets, double *more)
{
	const int64_t *first = mean_target(basis, 0);

	for (int t = 1; t < targets; t++)
	{
		more[2 * (t - 1)] = sums_number(mean_target(basis, t)[MEAN_CENTER]);
		more[2 * (t - 1) + 1] = sums_number(mean_target(basis, t)[MEAN_SCALE]);
	}
	return (TnpStats) {.y_center = sums_number(first[MEAN_CENTER]),
		.y_scale = sums_number(first[MEAN_SCALE]),.n_more = targets - 1,.y_more = more};
}

/*
 * States [n, state width] of n rows from number `first` on, at most TILE, and their numbers
 * [n, columns] and targets [n, targets]; all lie in the scratch.
 */
typedef struct MeanTile
{
	float	   *x,
			   *y,
			   *states;
} MeanTile;

static TnpStatus
make_tile(const TnpModel *model, const MeanState *s, const TnpRows *rows, int64_t first, int n,
		  MeanTile *tile, TnpError *error)
{
	const int64_t *basis = state_basis(s);
	int			columns = s->common.columns,
				targets = s->targets;
	const float *row[TILE];
	int			position[TILE];
	double		more[2 * TNP_MAX_TARGETS];
	TnpStats	stats = target_stats(basis, targets, more);
	float	   *scratch;

	tile->x = state_scratch(s);
	tile->y = tile->x + (size_t) TILE * columns;
	tile->states = tile->y + (size_t) TILE * targets;
	scratch = tile->states + (size_t) TILE * model->config.family->state_width(model);
	for (int i = 0; i < n; i++)
	{
		scale_row(model, basis, rows->x + (first + i) * columns, tile->x + (size_t) i * columns);
		row[i] = tile->x + (size_t) i * columns;
		position[i] = -1;
		if (!tnp_scale_targets(model, &stats, rows->y + (first + i) * targets,
							   tile->y + (size_t) i * targets)
			|| !tnp_all_finite(columns, row[i]))
			return mean_refuse_row(rows->before + first + i, error);
	}
	model->config.family->embed(model, n, row, tile->y, TNP_ROLE_PREFIX, position, scratch,
								tile->states);
	return TNP_OK;
}

static void
add_place(float number, int sign, int64_t *place)
{
	int64_t		fixed = llrintf(fmaxf(fminf(number, PLACE_MOST), -PLACE_MOST) * PLACE_UNIT);

	place[0] += sign * fixed;
	place[1] += sign * fixed * fixed;
}

/* Rows before one that is refused are in. */
static TnpStatus
mean_add_rows(const TnpModel *model, TnpSums *sums, const TnpRows *rows, int sign, TnpError *error)
{
	MeanState  *s = (MeanState *) sums;
	int			columns = s->common.columns,
				width = model->config.family->state_width(model);
	int64_t    *places = state_places(s);
	TnpStatus	status;
	MeanTile	tile;

	if (rows->n_features != columns)
		return tnp_fail(error, TNP_BAD_SHAPE, "%d feature columns given, the basis has %d",
						rows->n_features, columns);
	status = tnp_sums_check_change(sums, rows->n, sign, MEAN_MOST_ROWS, error);
	if (status == TNP_OK)
		status = tnp_rows_check(model, rows, true, error);
	for (int64_t first = 0; status == TNP_OK && first < rows->n; first += TILE)
	{
		int			n = rows->n - first < TILE ? (int) (rows->n - first) : TILE;

		status = make_tile(model, s, rows, first, n, &tile, error);
		for (int i = 0; status == TNP_OK && i < n; i++)
		{
			RowSum		one = {0};

			if (!mean_add(s->d, tile.states + (size_t) i * width, one.sum))
				return mean_refuse_row(rows->before + first + i, error);
			mean_add_sum(s->d, one.sum, sign, state_sum(s));
			for (int t = 0; t < s->targets; t++)
				add_place(tile.y[(size_t) i * s->targets + t], sign, places + 2 * t);
			for (int f = 0; f < columns; f++)
				add_place(tile.x[(size_t) i * columns + f], sign, places + 2 * (s->targets + f));
			s->common.n += sign;
		}
	}
	return status;
}

static bool
mean_takes(const TnpModel *model, TnpSums *sums, const double *x, const double *y)
{
	MeanState  *s = (MeanState *) sums;
	TnpRows		row = {.n = 1,.n_features = s->common.columns,.x = x,.y = y,
		.n_targets = s->targets};
	RowSum		one = {0};
	MeanTile	tile;
	TnpError	error;

	return tnp_rows_check(model, &row, true, &error) == TNP_OK
		&& make_tile(model, s, &row, 0, 1, &tile, &error) == TNP_OK
		&& mean_add(s->d, tile.states, one.sum);
}

static TnpStatus
mean_merge(const TnpModel *model, TnpSums *into_sums, TnpSums *from_sums, int sign,
		   TnpError *error)
{
	MeanState  *into = (MeanState *) into_sums,
			   *from = (MeanState *) from_sums;
	int64_t    *places = state_places(into);
	TnpStatus	status;

	(void) model;
	if (into_sums->basis_words != from_sums->basis_words
		|| memcmp(state_basis(into), state_basis(from),
				  into_sums->basis_words * sizeof(int64_t)) != 0)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "sums of different bases cannot be merged");
	status = tnp_sums_check_change(into_sums, from_sums->n, sign, MEAN_MOST_ROWS, error);
	if (status != TNP_OK)
		return status;
	mean_add_sum(into->d, state_sum(from), sign, state_sum(into));
	for (size_t i = 0; i < places_words(into->targets, into_sums->columns); i++)
		places[i] += sign * state_places(from)[i];
	into_sums->n += sign * from_sums->n;
	return TNP_OK;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void
mean_write(const TnpModel *model, TnpSums *sums, int64_t *words)
{
	const MeanState *s = (const MeanState *) sums;

	words[0] = sums->n;
	memcpy(words + 1, state_sum(s), sum_words(model, sums->columns) * sizeof(int64_t));
}

/* Whether sums can be of n rows, so that what follows does not overflow. */
static bool
are_places(size_t places_of_all, int64_t n, const int64_t *places)
{
	const int64_t most = (int64_t) PLACE_MOST * PLACE_UNIT;
	bool		good = true;

	for (size_t f = 0; f < places_of_all / 2; f++)
		good = good && places[2 * f] <= n * most && places[2 * f] >= -n * most
			&& places[2 * f + 1] >= 0 && places[2 * f + 1] <= n * most * most;
	return good;
}

static TnpStatus
mean_read(const TnpModel *model, TnpSums *sums, const int64_t *words, TnpError *error)
{
	MeanState  *s = (MeanState *) sums;
	const TnpExact largest = (TnpExact) (MEAN_LARGEST * MEAN_UNIT);
	bool		good = words[0] >= 0 && words[0] <= MEAN_MOST_ROWS;

	memcpy(state_sum(s), words + 1, sum_words(model, sums->columns) * sizeof(int64_t));
	sums->n = good ? words[0] : 0;
	for (int f = 0; good && f < s->d; f++)
	{
		TnpExact	sum = tnp_exact(state_sum(s) + 2 * f);

		good = sum <= largest * sums->n && sum >= -largest * sums->n;
	}
	good = good && are_places(places_words(s->targets, sums->columns), sums->n, state_places(s));
	return good ? TNP_OK
		: tnp_fail(error, TNP_BAD_VALUE, "the sums are of no rows: a number is out of range");
}

/* ---- encodings ------------------------------------------------------------------------------- */

/*
 * What an encoding of sums keeps beside its total: number of rows and places of those that it is
 * compared with, and of its own.
 */
typedef struct MeanPlaces
{
	size_t		words;			/* of places */
	int64_t		rows,
				fitted;
} MeanPlaces;

static MeanPlaces *
places_of(const TnpEncoding *e)
{
	return tnp_encoding_own(e);
}

static int64_t *
places_now(const TnpEncoding *e)
{
	return (int64_t *) (places_of(e) + 1);
}

static int64_t *
places_fitted(const TnpEncoding *e)
{
	return places_now(e) + places_of(e)->words;
}

static size_t
own_bytes(const TnpModel *model, int columns)
{
	return sizeof(MeanPlaces)
		+ 2 * places_words(model->config.n_targets, columns) * sizeof(int64_t);
}

static size_t
mean_fit_words(const TnpModel *model, const int64_t *basis)
{
	return 1 + places_words(model->config.n_targets, (int) basis[MEAN_COLUMNS]);
}

static void
mean_fit_write(const TnpEncoding *e, int64_t *words)
{
	words[0] = places_of(e)->fitted;
	memcpy(words + 1, places_fitted(e), places_of(e)->words * sizeof(int64_t));
}

/* Without a fit rows are compared with themselves. */
static TnpStatus
take_places(TnpEncoding *e, const MeanState *s, size_t words, const int64_t *fit, TnpError *error)
{
	size_t		n = places_words(s->targets, s->common.columns);

	*places_of(e) = (MeanPlaces) {n, s->common.n, fit != NULL ? fit[0] : s->common.n};
	if (fit != NULL
		&& (words != 1 + n || fit[0] < 0 || fit[0] > MEAN_MOST_ROWS
			|| !are_places(n, fit[0], fit + 1)))
		return tnp_fail(error, TNP_BAD_VALUE, "the fit is of another basis, or damaged");
	memcpy(places_now(e), state_places(s), n * sizeof(int64_t));
	memcpy(places_fitted(e), fit != NULL ? fit + 1 : state_places(s), n * sizeof(int64_t));
	return TNP_OK;
}

/* Statistics as those of rows that the basis was made of. */
static TnpStatus
take_stats(TnpEncoding *e, const TnpEnv *env, const int64_t *basis, TnpError *error)
{
	int			targets = e->model->config.n_targets;
	double	   *more = NULL;

	if (targets > 1)
	{
		more = tnp_alloc_zero(env, targets - 1, 2 * sizeof(double));
		if (more == NULL)
			return tnp_no_memory(error);
	}
	e->stats = target_stats(basis, targets, more);
	e->stats.n0 = e->n;
	if (e->model->config.input_scaling != TNP_SCALE_PREFIX)
		return TNP_OK;
	e->stats.columns = tnp_alloc_zero(env, e->n_features, sizeof(TnpColumn));
	if (e->stats.columns == NULL)
		return tnp_no_memory(error);
	e->stats.n_columns = e->n_features;
	for (int f = 0; f < e->n_features; f++)
	{
		const int64_t *words = mean_column(basis, targets, f);

		e->stats.columns[f] = (TnpColumn) {.kind = TNP_NUMERIC,.feature = f,.n_parts = 1,
			.mean = sums_number(words[MEAN_COLUMN_CENTER]),
			.sd = sums_number(words[MEAN_COLUMN_SCALE]),
			.constant = words[MEAN_COLUMN_CONSTANT] != 0};
	}
	return TNP_OK;
}

static TnpStatus
fill_encoding(TnpEncoding *e, const TnpEnv *env, const MeanState *s, size_t words,
			  const int64_t *fit, TnpError *error)
{
	TnpStatus	status;

	e->kinds = tnp_alloc_zero(env, e->n_features, sizeof(TnpColumnKind));
	e->own_size = own_bytes(e->model, e->n_features);
	e->own = tnp_alloc_zero(env, e->own_size + TNP_OWN_SLACK, 1);
	if (e->kinds == NULL || e->own == NULL)
		return tnp_no_memory(error);
	status = take_places(e, s, words, fit, error);
	if (status == TNP_OK)
		status = take_stats(e, env, state_basis(s), error);
	return status == TNP_OK ? mean_set_total(e, e->n, state_sum(s), error) : status;
}

static TnpStatus
mean_encode_sums(const TnpModel *model, const TnpColumnKind *kinds, TnpSums *sums, size_t words,
				 const int64_t *fit, bool keep, TnpEncoding **encoding, TnpError *error)
{
	TnpEnv		env = keep ? tnp_lasting(&model->env) : model->env;
	TnpStatus	status = tnp_sums_check_rows(model, sums->n, error);
	TnpEncoding *e;

	(void) kinds;				/* numbers alone */
	*encoding = NULL;
	if (status != TNP_OK)
		return status;
	e = tnp_alloc_zero(&env, 1, sizeof(TnpEncoding));
	if (e == NULL)
		return tnp_no_memory(error);
	e->model = model;
	e->kept = keep;
	e->n = e->prefix = sums->n;
	e->n_features = sums->columns;
	status = fill_encoding(e, &env, (const MeanState *) sums, words, fit, error);
	if (status == TNP_OK)
		*encoding = e;
	else
		tnp_encoding_free(e);
	return status;
}

static size_t
mean_encoding_bytes(const TnpModel *model, const TnpSums *sums)
{
	return sizeof(TnpEncoding) + TNP_OWN_SLACK + own_bytes(model, sums->columns)
		+ (size_t) model->config.n_targets * 2 * sizeof(double)
		+ mean_bytes(model->config.width) + model->config.width * sizeof(float)
		+ sums->columns * (sizeof(TnpColumn) + sizeof(TnpColumnKind));
}

/* ---- drift ----------------------------------------------------------------------------------- */

static int64_t
mean_fit_rows(const TnpEncoding *e)
{
	return places_of(e)->fitted;
}

/* Exact but for the last roundings, so that what is constant has no spread. */
static TnpSpread
spread_of(int64_t n, const int64_t *place)
{
	double		all = (double) n * PLACE_UNIT;
	TnpExact	square = (TnpExact) n * place[1] - (TnpExact) place[0] * place[0];

	if (n == 0)
		return (TnpSpread) {0, 0, 0, 0};
	return (TnpSpread) {n, (double) place[0] / all, square > 0 ? sqrt((double) square) / all : 0,
		0};
}

static double
mean_drift(const TnpEncoding *e)
{
	const MeanPlaces *p = places_of(e);
	double		drift = 0;

	for (size_t f = 0; f < p->words / 2; f++)
		drift = fmax(drift, tnp_spread_drift(spread_of(p->fitted, places_fitted(e) + 2 * f),
											 spread_of(p->rows, places_now(e) + 2 * f)));
	return drift;
}

const TnpSumsOps mean_sums_ops = {
	.basis_words = mean_basis_words,
	.basis_make = mean_basis_make,
	.basis_check = mean_basis_check,
	.bytes = mean_state_bytes,
	.words = mean_state_words,
	.begin = mean_begin,
	.takes = mean_takes,
	.add = mean_add_rows,
	.merge = mean_merge,
	.write = mean_write,
	.read = mean_read,
	.fit_words = mean_fit_words,
	.fit_write = mean_fit_write,
	.encoding_bytes = mean_encoding_bytes,
	.encode = mean_encode_sums,
	.fit_rows = mean_fit_rows,
	.drift = mean_drift,
};
