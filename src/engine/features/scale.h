/*
 * scale.h: from raw rows to what the network sees: statistics frozen at the prefix, scaling,
 * clipping, cells (docs/model-format.md sections 3 and 5).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SCALE_H
#define TNP_SCALE_H

#include "engine/file/model.h"

#define TNP_EDGES 7				/* cuts between the bins of a numeric column */
#define TNP_MISSING_BIN 16		/* after 16 bins for categories, or 8 for numbers */
#define TNP_BINS 17

/* One column's frozen statistics. */
typedef struct TnpColumn
{
	TnpColumnKind kind;
	bool		constant;
	double		mean,
				sd;
	double		edges[TNP_EDGES];
	int64_t		n_levels;		/* categories known from the prefix */
	double	   *levels;			/* [n_levels] ascending identities */
	unsigned char *level_bin;	/* [n_levels] */
	double		count[TNP_BINS],
				sum[TNP_BINS];	/* of scaled, clipped targets */
	double		correlation,
				between,		/* adjusted between-bin variance share */
				missing_rate;
} TnpColumn;

#define TNP_LARGEST_DESIGN 128	/* entries of a regression's design, the intercept included */

/* What a regression knows of a row (design.c). */
typedef struct TnpDesign
{
	int			n;				/* entries, the intercept last; 0: there is no regression */
	unsigned char slot[TNP_LARGEST_DESIGN]; /* slot of every other entry */
	unsigned char kind[TNP_LARGEST_DESIGN]; /* what it is of its slot */
} TnpDesign;

#define TNP_RIDGES 2			/* a linear regression, and one with splines */

/* One regression of the prefix (ridge_fit.c). */
typedef struct TnpRidge
{
	TnpDesign	design;
	int			n_targets;		/* 1, or in a classifier the K classes */
	double	   *weights;		/* [n_targets, n] */
	double	   *factor;			/* [n, n] lower Cholesky factor of U'U + penalty * I */
	double		log_noise;		/* log of the noise's standard deviation */
	double		penalty;

	/* of a classifier: the classes' probabilities are the softmax of multiple * answer + shift */
	double		multiple;
	double	   *shift;			/* [K], behind the weights */
	/* mean log of how much more probable than by chance the prefix rows' classes are */
	double		quality;
} TnpRidge;

/* The logistic regression of a classifier's prefix (logistic_fit.c). */
typedef struct TnpLogistic
{
	TnpDesign	design;
	int			n_classes;		/* K */
	int64_t		n0;				/* rows of the fit */
	double	   *weights;		/* [K, n] */
	double	   *shift;			/* [K] log of the classes' shares, behind the weights */
	/*
	 * [n0, K] log probabilities of the n0 rows, each left out: wanted as often as these are
	 * encoded, for a merge too
	 */
	float	   *left_out;
	/* mean log of how much more probable than by chance the prefix rows' classes are */
	double		quality;
} TnpLogistic;

typedef struct TnpStats
{
	int64_t		n0;				/* rows they come from */
	double		y_center,
				y_scale;
	int			n_columns;
	TnpColumn  *columns;		/* [n_columns] with prefix scaling, else NULL */
	int			n_slots;		/* row tokeniser: columns used */
	int		   *slot;			/* [n_slots] column of each slot */
	int			n_classes;		/* K; 0 in a regression model */
	int			class_room;		/* C, with cells of a classifier, else 0 */
	double	   *class_blend_weight;	/* [C] of the n0 rows, or NULL; behind it: */
	/* [n_columns, TNP_BINS, C] members of a class in a bin beyond those expected */
	double	   *class_excess;
	TnpRidge	ridge[TNP_RIDGES];
	TnpLogistic logistic;
} TnpStats;

/*
 * Refuse rows that the model cannot take: wrong count or kind of columns, missing cells,
 * infinities, NaN targets when y is needed.
 */
TnpStatus	tnp_rows_check(const TnpModel *model, const TnpRows *rows, bool need_y,
						   TnpError *error);

/* Statistics of the first n0 rows; tnp_stats_free is safe after failure and on zeroed memory. */
TnpStatus	tnp_stats_build(const TnpModel *model, const TnpRows *rows, int64_t n0, TnpStats *stats,
							TnpError *error);
void		tnp_stats_free(const TnpEnv *env, TnpStats *stats);
size_t		tnp_stats_bytes(const TnpStats *stats);

/*
 * How many numbers stand in front of a row's cells: what TNP_RIDGES regressions say, 3 or C + 2
 * each, if there are any, ...
 */
int			tnp_ridge_width(const TnpModel *model);

/* ... and the C + 1 of a logistic regression, if there is one. */
int			tnp_logistic_width(const TnpModel *model);

/* Both. */
int			tnp_regression_features_width(const TnpModel *model);

/*
 * How many of the logistic regression's C + 1 the head takes a share of (section 8): the first C,
 * or none.
 */
int			tnp_prior_logits_width(const TnpModel *model);

/* Width of the vector that tnp_scale_features writes for a row. */
int			tnp_features_width(const TnpModel *model, const TnpStats *stats);

/*
 * Scaled features of one of the rows; for the row tokeniser its regression features
 * [tnp_regression_features_width], if it has them, and its cells [n_slots, cell width]. What is
 * said of a row of the context (in_context) that is one of the n0 is said without it.
 */
void		tnp_scale_features(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
							   int64_t row, bool in_context, float *out);

/* Whether all of n numbers are finite. */
bool		tnp_all_finite(size_t n, const float *x);

/*
 * Refuse a row whose features [tnp_features_width], or what becomes of them, are too large for
 * float32; names the column and the row.
 */
TnpStatus	tnp_feature_too_large(const TnpModel *model, const TnpStats *stats,
								  const float *features, int64_t row, TnpError *error);

/* The target as the network's input. */
float		tnp_scale_target(const TnpModel *model, const TnpStats *stats, double y);

#endif							/* TNP_SCALE_H */
