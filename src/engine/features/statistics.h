/*
 * statistics.h: what is known of the rows that a context's statistics come from. Structures only:
 * stats.c makes them, what is of one column is in column.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_STATISTICS_H
#define TNP_STATISTICS_H

#include "engine/features/outliers.h"
#include "engine/file/model.h"

#define TNP_EDGES 7				/* cuts between the bins of a numeric column */
#define TNP_MISSING_BIN 16		/* after 16 bins for categories, or 8 for numbers */
#define TNP_BINS 17

/* How the scaling "power" makes a column normal (power_column.c). */
typedef struct TnpPowerScale
{
	double		least,			/* of the prefix, standardised */
				largest;
	double		power,			/* of Yeo and Johnson; what it makes has */
				mean,
				sd;
	TnpBounds	bounds;
} TnpPowerScale;

/* Cells of a column that are farther from the middle count as missing (far.c). */
typedef struct TnpReach
{
	bool		is_set;
	double		middle,
				farthest;
} TnpReach;

/*
 * One column's frozen statistics. A categorical feature of many labels is split into several
 * columns, its parts: each tells other labels apart (levels.c). So may numbers that name groups,
 * which then stand as labels, too.
 */
typedef struct TnpColumn
{
	TnpColumnKind kind;
	int			feature;		/* whose cells these are */
	int			part;			/* of the feature, from 0 */
	int			n_parts;		/* of the feature */
	bool		of_number;		/* a part that has labels of a numeric feature */
	bool		constant;
	bool		turned;			/* a number counts as its negative */
	TnpReach	reach;
	double		mean,
				sd;
	double		edges[TNP_EDGES];
	int64_t		n_levels;		/* categories known from the prefix */
	double	   *levels;			/* [n_levels] ascending identities; parts of a feature share it */
	unsigned char *level_bin;	/* [n_levels] */
	bool		by_bin;			/* a category's code is that of its bin, and not its level */
	unsigned char bin_code[TNP_MISSING_BIN];
	union
	{
		struct					/* of slots' cells */
		{
			double		count[TNP_BINS],
						sum[TNP_BINS];	/* of scaled, clipped targets */
		};
		TnpPowerScale power;	/* of the cells of whole tables */
	};
	double		correlation,
				between,		/* adjusted between-bin variance share */
				unadjusted,		/* both shares of variance, added up before that */
				missing_rate;
} TnpColumn;

#define TNP_LARGEST_DESIGN 128	/* entries of a regression's design, the intercept included */

/* What a regression knows of a row (design.c). */
typedef struct TnpDesign
{
	int			n;				/* entries, the intercept last; 0: there is no regression */
	bool		is_whole;		/* numbers are not clipped */
	unsigned char slot[TNP_LARGEST_DESIGN]; /* slot of every other entry */
	unsigned char kind[TNP_LARGEST_DESIGN]; /* what it is of its slot */
} TnpDesign;

/* One regression of the prefix (ridge_fit.c). */
typedef struct TnpRidge
{
	TnpDesign	design;
	int			n_targets;		/* 1, or in a classifier the K classes */
	double	   *weights;		/* [n_targets, n] */
	double	   *factor;			/* [n, n] lower Cholesky factor of U'U + penalty * I */
	double		log_noise;		/* log of the noise's standard deviation */
	double		penalty;
	/*
	 * [n_slots] variance of what a slot's cell says, in units of the noise's, which a missing one
	 * adds to the leverage; or NULL
	 */
	double	   *absent;
	int			n_slots;		/* with absent */

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

/*
 * Rows as the process of the prefix sees them (process_points.c), axis by axis, so that loops run
 * along rows. Axes are the slots and, after them, the directions.
 */
typedef struct TnpPoints
{
	int			n,
				n_axes;
	double	   *value;			/* [n_axes, n] scaled; 0 where missing, and of a category */
	double	   *label;			/* [n_axes, n] a category's bin, 0 of numbers; NaN where missing */
} TnpPoints;

#define TNP_TREE_EDGES 31		/* cuts of a number's bins */
#define TNP_TREE_LEAVES 32
#define TNP_TREE_SPLITS (TNP_TREE_LEAVES - 1)	/* level by level */
#define TNP_TREE_FOLDS 3

/* Where a tree's rows part: left are those of a label's bin, or of a number's bins up to it. */
typedef struct TnpTreeSplit
{
	short		slot;			/* -1: all go left */
	unsigned char bin;
	bool		label;
} TnpTreeSplit;

/* Boosted trees of the prefix (trees.c); a fold has those of the rows not in it. */
typedef struct TnpTrees
{
	int			n_classes;		/* K; 1: of a number; 0: there are none */
	int			n_slots;
	int			rounds;			/* trees of a fold */
	int			channels;		/* scores: K, of two classes 1, that of the second; of a number 1 */
	double	   *edges;			/* [n_slots, TNP_TREE_EDGES] ascending */
	double	   *start;			/* [TNP_TREE_FOLDS, channels] */
	TnpTreeSplit *split;		/* [TNP_TREE_FOLDS, rounds, TNP_TREE_SPLITS] */
	float	   *value;			/* [TNP_TREE_FOLDS, rounds, TNP_TREE_LEAVES, channels] */
	double		loss;			/* mean of the rows', each by the trees of its fold */
	double		sharpness;		/* classes: what those scores are best multiplied by */
	double		share;			/* of a number: how far an answer's mean moves to them */
	int64_t    *known_until;	/* [n_slots] where the cells of a slot end in known */
	double	   *known;			/* ascending cells of each slot of few values (trees_known.c) */
} TnpTrees;

/* A process of the prefix's classes (class_process.c). */
typedef struct TnpClassProcess
{
	int			n_classes,		/* K; 0: there is none */
				channels;		/* means: K, of two classes 1, that of the second */
	TnpPoints	points;			/* the rows that carry it */
	double	   *weight;			/* [points.n_axes], behind it: */
	double	   *means;			/* [channels, points.n] that make means of correlations */
	double	   *log_share;		/* [n_classes] of the n0 rows */
	double		sharpness,		/* what scores are best multiplied by */
				loss;			/* of rows left out, and what the weights cost, per row */
} TnpClassProcess;

/*
 * What the mean of a mixture moves to: the sum, so weighted, of what trees, the process and the
 * additive regression say (wanted_mean.c).
 */
typedef struct TnpWantedMean
{
	double		share,			/* of the way that it moves; 0: it stays */
				trees,
				process,
				ridge;
} TnpWantedMean;

/* Targets far from all others, above and below, in units of the scaled target (rare.c). */
typedef struct TnpRare
{
	int			n;				/* 0, 1 or 2 kinds */
	double		weight[2],		/* how many are not foreseen, of all rows and one more */
				mean[2],
				sd[2];
} TnpRare;

#define TNP_TARGET_LEVELS 64

/* The values that targets have, ascending, scaled; n = 0 where they are many (target_levels.c). */
typedef struct TnpTargetLevels
{
	int			n;
	double		value[TNP_TARGET_LEVELS];
} TnpTargetLevels;

#define TNP_NEAR_AXES 3		/* slots at most, of which nearest rows may tell */

/* All rows of the prefix, of which the nearest tell of a row (process_near.c). */
typedef struct TnpNearRows
{
	TnpPoints	points;			/* n: 0 where the process tells */
	double	   *target;			/* [n] behind the points; clipped */
	double		weight[TNP_NEAR_AXES],	/* of squared distances */
				noise,			/* in units of the variance */
				variance;
	bool		is_rough;		/* the correlation falls with the distance, not with its square */
} TnpNearRows;

/* The Gaussian process of the prefix (process.c), or a line in its place (process_line.c). */
typedef struct TnpProcess
{
	int			n_features;		/* of a row; 0: there is no process */
	bool		is_line,
				is_certain;		/* a line that leaves next to nothing */
	TnpDesign	design;			/* of a line, which times `unit` is a row's features */
	double		unit;
	TnpPoints	points;			/* of the rows that carry a process, one for each feature */
	int64_t		n0;				/* rows of the fit */
	int			n_directions;
	double	   *direction;		/* [n_directions, n_slots] weights of the slots' values, or NULL */
	double	   *weight;			/* [n_axes] of squared distances; behind it: */
	double	   *coefficients;	/* [n_features] */
	double	   *factor;			/* [n, n] upper factor of the carriers' correlations */
	double	   *outer;			/* [n_features, n_features] that of the sum of their products */
	double		share,			/* of the correlation that is a mean over axes, mostly 0 */
				noise,			/* in units of the variance */
				variance;
	TnpNearRows	nearest;		/* what it says of rows may be theirs, and what follows is then */
	float	   *left_out;		/* [n0, 2] mean and log of the deviation of rows left out */
	double		density,		/* mean log density of the prefix rows, left out, and */
				quality,		/* what is said of it */
				square,			/* mean square of their targets' distance in deviations, and */
				square_near,	/* that of rows by how much they lean on themselves */
				left_free;		/* rows less those that its weights are worth */
} TnpProcess;

#define TNP_RELATED_FEATURES 128

/* A feature of the slots, as a regression on others sees it. */
typedef struct TnpRelatedFeature
{
	int			column;
	bool		is_label,
				has_steps;		/* numbers of few values, between which nothing lies */
	int			first,			/* entry of the design: the number, or */
				entries;		/* whether it has one of its labels */
} TnpRelatedFeature;

typedef struct TnpRelatedEntry
{
	int			of;				/* the features of TnpRelated */
	double		label;
} TnpRelatedEntry;

/* What the cells of rows that lend tell of each other (related.c). */
typedef struct TnpRelated
{
	int			n,				/* rows */
				n_features,
				n_entries;		/* of the design of all features */
	double	   *u,				/* [n_entries, n] in standard deviations, NaN where missing; and */
			   *moment,			/* [n_entries, n_entries] behind it, */
			   *mean,			/* [n_entries] */
			   *sd,				/* [n_entries] */
			   *bin,			/* [n_features, n] -1 where missing */
			   *low,			/* [n_features] cells of numbers */
			   *high;			/* [n_features] */
	TnpRelatedFeature *feature; /* [n_features] */
	TnpRelatedEntry *entry;		/* [n_entries] */
} TnpRelated;

/* Rows of the prefix that lend their cells to queries that lack them (donors.c). */
typedef struct TnpDonors
{
	int			n,				/* 0: there are none */
				n_features;
	bool		levels;			/* the targets have few values, between which nothing lies */
	double	   *x;				/* [n, n_features] raw, in ascending order of their targets */
	double	   *told;			/* [n_features] by a missing cell, 0 … 1; behind x */
	double	   *alike;			/* [n_features] how probably two rows have one label; behind told */
	TnpRelated	related;
} TnpDonors;

#define TNP_SHIFTED 64			/* features that may shift targets */

/* By what each cell that some rows of the prefix lack shifts targets, if it does (shift.c). */
typedef struct TnpShifts
{
	int			n,
				feature[TNP_SHIFTED],
				n_kept,			/* features whose missing cells are not lent */
				kept[TNP_SHIFTED];
	double	   *covariance,		/* [n, n] in units of the scaled target; behind it: */
			   *mean;			/* [n] */
} TnpShifts;

/* Targets that are farther from the middle count as if they were at the limit (far.c). */
typedef struct TnpTargetBound
{
	bool		is_set;
	double		middle,
				farthest,
				limit;
} TnpTargetBound;

typedef struct TnpStats TnpStats;
struct TnpStats
{
	int64_t		n0;				/* rows they come from */
	double		y_center,		/* of the first target */
				y_scale;		/* negative where the targets are turned */
	TnpTargetBound y_bound;		/* of the only target */
	int			n_more;			/* targets after it, and */
	double	   *y_more;			/* [n_more, 2] their centers and scales, or NULL */
	int			n_columns;		/* features, and behind them the other parts of some */
	TnpColumn  *columns;		/* [n_columns] with prefix scaling, else NULL */
	uint64_t   *digest;			/* [n0] while labels are ordered (row_digest.h), else NULL */
	int			n_slots;		/* row tokeniser: columns used, */
	int			n_pruned;		/* and those that look like noise */
	int		   *slot;			/* [n_slots] column of each slot */
	int			n_classes;		/* K; 0 in a regression model */
	/* what a classifier's network sees of the caller's classes, once orders_classes is said */
	bool		orders_classes;
	unsigned char class_place[TNP_MAX_CLASS_ROOM];
	int			class_room;		/* C, with cells of a classifier, else 0 */
	double	   *class_blend_weight;	/* [C] of the n0 rows, or NULL; behind it: */
	/* [n_columns, TNP_BINS, C] members of a class in a bin beyond those expected */
	double	   *class_excess;
	TnpRidge	ridge[TNP_RIDGES];
	TnpProcess	process;
	TnpLogistic logistic;
	TnpTrees	trees;
	TnpClassProcess class_process;
	TnpWantedMean wanted_mean;
	TnpRare		rare;
	TnpTargetLevels target_levels;
	float		record[TNP_RECORD_NUMBERS];	/* of the process, for its gate */
	TnpDonors	donors;
	TnpShifts	shifts;
};

static inline const TnpColumn *
tnp_slot_column(const TnpStats *stats, int slot)
{
	return &stats->columns[stats->slot[slot]];
}

/* The cell of a slot in a raw row x. */
static inline double
tnp_slot_cell(const TnpStats *stats, int slot, const double *x)
{
	return x[tnp_slot_column(stats, slot)->feature];
}

/* Center and scale of target number t. */
static inline double
tnp_target_center(const TnpStats *stats, int t)
{
	return t == 0 ? stats->y_center : stats->y_more[2 * (t - 1)];
}

static inline double
tnp_target_scale(const TnpStats *stats, int t)
{
	return t == 0 ? stats->y_scale : stats->y_more[2 * (t - 1) + 1];
}

#endif							/* TNP_STATISTICS_H */
