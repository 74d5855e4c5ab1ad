/*
 * sums.h: contexts that are sums over rows (docs/sums.md): Bayesian regressions on fixed features
 * whose second moments are exact integers.
 *
 * A basis says what the features of a row are: centres and scales, known categories, pairs of
 * columns. Sums are the second moments of features and target of all rows. Both are memory without
 * pointers, so that copying it is copying bytes.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SUMS_H
#define TNP_SUMS_H

#include "engine/base/exact.h"
#include "engine/families/sums_ops.h"
#include "engine/features/directions.h"
#include "engine/file/model.h"
#include "engine/kernels/moments_reference.h"
#include "engine/network/encoding.h"

#define SUMS_UNIT TNP_MOMENT_UNIT	/* a feature of 1 */
/* rows that are added together */
#define SUMS_WAITING (TNP_MOMENT_BLOCKS * TNP_MOMENT_ROWS)
#define SUMS_TARGET_BITS 28		/* of a target after the point, in units of the basis */
#define SUMS_TARGET_MOST 65536	/* in these units */
#define SUMS_MOST_ROWS ((int64_t) 1 << 32)
#define SUMS_MOST_FEATURES TNP_MOMENT_MOST	/* numbers that a row becomes */
#define SUMS_MOST_LENGTHS 8
#define SUMS_MOST_POINTS 16
#define SUMS_REACH TNP_MOMENT_REACH

typedef TnpExact SumsWide;

typedef enum SumsProfile { SUMS_MATERN, SUMS_GAUSSIAN } SumsProfile;

/* Keys of the configuration that are the family's own. */
typedef struct SumsConfig
{
	int			waves,			/* of a numeric column */
				pairs,			/* of columns, at most */
				pair_waves,		/* of each column of a pair */
				levels,			/* known categories of a column, at most */
				buckets,		/* that other categories share */
				directions,		/* at most */
				steps,			/* of the evidence */
				points,			/* of the noise */
				n_lengths;
	bool		linear;
	SumsProfile profile;
	double		lengths[SUMS_MOST_LENGTHS],
				start,			/* precision that the evidence begins with */
				prior_shape,	/* of groups' precisions: a gamma distribution */
				prior_rate,
				noise_shape,	/* of the noise's precision: the same */
				noise_rate;
	TnpScaling	inputs,			/* what the file says; the common scaling is none */
				target;
} SumsConfig;

static inline const SumsConfig *
sums_config(const TnpModel *model)
{
	return TNP_OWN(&model->config, SumsConfig);
}

TnpStatus	sums_check(const TnpConfig *config, TnpError *error);
void		sums_complete(TnpConfig *config);
extern const TnpKey sums_keys[];

/* ---- the basis ------------------------------------------------------------------------------- */

/*
 * Places of a basis's words; columns follow, then pairs, and if the model has directions their
 * number and the weights of the columns in each.
 */
enum
{
	SUMS_VERSION, SUMS_MODEL, SUMS_COLUMNS, SUMS_PAIRS, SUMS_ROWS, SUMS_CENTER, SUMS_SCALE,
	SUMS_HEAD
};

/* Of a column: its kind; centre and scale, or the number of known categories; these, ascending. */
enum { SUMS_KIND, SUMS_COLUMN_CENTER, SUMS_COLUMN_SCALE, SUMS_LEVELS };

static inline const int64_t *
sums_column(const SumsConfig *c, const int64_t *basis, int column)
{
	return basis + SUMS_HEAD + (size_t) column * (SUMS_LEVELS + c->levels);
}

static inline const int64_t *
sums_pairs(const SumsConfig *c, const int64_t *basis)
{
	return sums_column(c, basis, (int) basis[SUMS_COLUMNS]);
}

static inline const int64_t *
sums_directions(const SumsConfig *c, const int64_t *basis)
{
	return sums_pairs(c, basis) + c->pairs;
}

/* How many directions, and the weights [columns] of one, in units of 1 / TNP_DIRECTION_UNIT. */
static inline int
sums_n_directions(const SumsConfig *c, const int64_t *basis)
{
	return c->directions > 0 ? (int) sums_directions(c, basis)[0] : 0;
}

static inline const int64_t *
sums_direction(const SumsConfig *c, const int64_t *basis, int direction)
{
	return sums_directions(c, basis) + 1 + (size_t) direction * basis[SUMS_COLUMNS];
}

/*
 * Find directions for a basis that is otherwise complete, and has no directions, in the rows that
 * it is of: as many as the model and the features leave room for, if the rows tell them.
 */
TnpStatus	sums_find_directions(const TnpModel *model, const TnpRows *rows, int64_t *basis,
								 TnpError *error);

/* ---- features -------------------------------------------------------------------------------- */

/* Features of a row under a basis, or -1 if they are more than SUMS_MOST_FEATURES. */
int			sums_width(const SumsConfig *c, const int64_t *basis);

/*
 * The group of each feature [width], whose precisions are one number times a profile, and the
 * square of its frequency, 0 of those that are no waves. Group 0 is the intercept alone. Returns
 * the number of groups.
 */
int			sums_groups(const SumsConfig *c, const int64_t *basis, int *group, double *frequency2);

/* phi [width] of a row's cells x, in units of 1 / SUMS_UNIT. */
void		sums_features(const SumsConfig *c, const int64_t *basis, const double *x, int16_t *phi);

/* The squashed standard score of a numeric cell that is not missing. */
double		sums_squash(const int64_t *column, double x);

/* What directions add up: the same, but squashed at twice the size. */
double		sums_wide_score(const int64_t *column, double x);

/*
 * Numbers that `sums_features_of_block` works with, and phi [width, TNP_MOMENT_ROWS] of a block of
 * rows, whose cells of a column lie together: x [columns], `stride` apart.
 */
size_t		sums_part_numbers(const SumsConfig *c, int columns);
void		sums_features_of_block(const TnpMoments *moments, const SumsConfig *c,
								   const int64_t *basis, const double *x, size_t stride,
								   double *part, int16_t *phi);

/* ---- sums ------------------------------------------------------------------------------------ */

/*
 * Sums of rows, and up to SUMS_WAITING rows that are not yet in them. What follows the structure is
 * found by the functions below.
 */
typedef struct SumsState
{
	TnpSums		common;			/* its rows include the waiting ones */
	SumsConfig	config;
	int			width,
				waiting;
} SumsState;

/* As TnpSumsOps'. */
size_t		sums_basis_words(const TnpModel *model, int n_features);
TnpStatus	sums_basis_make(const TnpModel *model, const TnpRows *rows, int64_t *basis,
							TnpError *error);
TnpStatus	sums_basis_check(const TnpModel *model, int n_features, const TnpColumnKind *kinds,
							 size_t words, const int64_t *basis, TnpError *error);
size_t		sums_state_bytes(const TnpModel *model, const int64_t *basis);
size_t		sums_state_words(const TnpModel *model, const int64_t *basis);
void		sums_begin(const TnpModel *model, const int64_t *basis, TnpSums *sums);
bool		sums_takes(const TnpModel *model, TnpSums *sums, const double *x, const double *y);
TnpStatus	sums_add(const TnpModel *model, TnpSums *sums, const TnpRows *rows, int sign,
					 TnpError *error);
TnpStatus	sums_merge(const TnpModel *model, TnpSums *into_sums, TnpSums *from_sums, int sign,
					   TnpError *error);
void		sums_write(const TnpModel *model, TnpSums *sums, int64_t *words);
TnpStatus	sums_read(const TnpModel *model, TnpSums *sums, const int64_t *words,
					  TnpError *error);

const int64_t *sums_basis(const SumsState *s);
int64_t    *sums_gram(const SumsState *s);	/* [width (width + 1) / 2] lower triangle, by rows */
int64_t    *sums_product(const SumsState *s); /* [width + 1] pairs of low and high word: features
											 * times target, and last the target's square */

/* Put the waiting rows into the sums. */
void		sums_flush(const TnpModel *model, SumsState *s);

/* Target to its fixed point; false beyond the range. */
bool		sums_target(const int64_t *basis, double y, int64_t *fixed);

/* ---- drift ----------------------------------------------------------------------------------- */

/*
 * Of sums: those that tell where rows lie, as words [sums_marks_words], to be compared with later
 * ones; `rows` are those of the marks. No rows may wait.
 */
size_t		sums_marks_words(int columns);
void		sums_marks(const SumsState *s, int64_t *marks);

/* Whether words could be marks of so many rows: they are of no use, but do no harm, if not. */
bool		sums_marks_fit(int columns, int64_t rows, const int64_t *marks);

/* How far rows have moved from those of the marks (tnp_sums_drift). */
double		sums_drift(const SumsState *s, int64_t rows, const int64_t *marks);

/* ---- answers --------------------------------------------------------------------------------- */

/* What was found at the rows that a context's statistics are of, then stays. */
typedef struct SumsFacts
{
	int			width,
				columns,
				groups,
				settings,		/* one per length */
				points;
	size_t		sums_bytes,
				solution_bytes;
	double		base[SUMS_MOST_LENGTHS]; /* log weights then, ... */
	double		determinant[SUMS_MOST_LENGTHS], /* ... and what the likelihood of later rows is */
				rest[SUMS_MOST_LENGTHS]; /* measured from */
	double		density[SUMS_MOST_LENGTHS];	/* log density of the rows, in units of the basis */
	int64_t		n,				/* rows that the first solution is of */
				measured;		/* ... and those that base, determinant and rest are of */
} SumsFacts;

/* The posterior of the weights under each setting, of exactly n rows. */
typedef struct SumsSolution
{
	int64_t		n;
	double		weight[SUMS_MOST_LENGTHS * SUMS_MOST_POINTS]; /* [settings, points], sum 1 */
} SumsSolution;

const SumsFacts *sums_facts(const TnpEncoding *e);
double	   *sums_precision(const SumsFacts *f, int setting);	/* [width] */
double	   *sums_noise(const SumsFacts *f);	/* [settings, points] standard deviations */
int64_t    *sums_facts_marks(const SumsFacts *f); /* of the rows that they were measured at */
SumsState    *sums_of(const SumsFacts *f);	/* of the rows that the facts are of */
SumsSolution *sums_first_solution(const SumsFacts *f);
/* the factor (sums_factor.h) and the mean [width] of a solution under one setting */
double	   *sums_factor(const SumsFacts *f, const SumsSolution *s, int setting);
double	   *sums_mean(const SumsFacts *f, const SumsSolution *s, int setting);

/*
 * Bytes of facts with sums and first solution. Laid out they are zeros but for the layout, and sums
 * and solution are still to be written.
 */
size_t		sums_facts_bytes(const SumsConfig *c, size_t sums_bytes, int width, int columns);
void		sums_facts_lay_out(const SumsConfig *c, size_t sums_bytes, int width, int columns,
							   SumsFacts *f);

/* Precisions by the evidence of the sums, noise, weights, and the first solution. */
TnpStatus	sums_fit(const TnpModel *model, SumsFacts *f, TnpError *error);

/* Words of what `sums_fit` finds, written and read; reading refuses what no fit has written. */
size_t		sums_fit_words(const SumsConfig *c, int width, int columns);
void		sums_fit_write(const SumsFacts *f, int64_t *words);
TnpStatus	sums_fit_read(SumsFacts *f, size_t words, const int64_t *fit, TnpError *error);

/* The solution of sums of other rows than the facts were measured at. */
TnpStatus	sums_solve(const TnpModel *model, const SumsFacts *f, const SumsState *sums,
					   SumsSolution *solution, TnpError *error);

/* The sums and the solution of exactly the encoding's rows. */
const SumsState *sums_now(const TnpEncoding *e);

/* Whether these are of the encoding's rows; rows may have been forgotten since. */
TnpStatus	sums_check_settled(const TnpEncoding *e, TnpError *error);
const SumsSolution *sums_solution_now(const TnpEncoding *e);

TnpStatus	sums_predict(const TnpEncoding *e, const TnpRows *queries, double *params,
						 TnpError *error);
TnpStatus	sums_sample(const TnpEncoding *e, const TnpRows *queries, uint64_t seed,
						uint64_t first_draw, int64_t draws, double *y, TnpError *error);
TnpStatus	sums_score(const TnpEncoding *e, const TnpRows *rows, const int64_t *place,
					   double *steps, TnpError *error);

#endif							/* TNP_SUMS_H */
