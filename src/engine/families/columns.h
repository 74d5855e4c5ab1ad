/*
 * columns.h: models that read a table by columns, then each row, then all rows in context: the
 * architecture of TabICL (Qu et al. 2025, arXiv:2502.05564, and its second version). Its files are
 * conversions of that package's weights (docs/models.md).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_COLUMNS_H
#define TNP_COLUMNS_H

#include "engine/features/prepare.h"
#include "engine/file/bind.h"
#include "engine/network/block.h"
#include "engine/network/encoding.h"

/* Which cells make a group, whose embedding the column stage computes. */
typedef enum ColumnsGrouping
{
	COLUMNS_ALONE,				/* one cell */
	COLUMNS_CIRCULAR,			/* of group j the columns j + 1, j + 2, j + 4, … in a circle */
	COLUMNS_PADDED				/* neighbours, the last group filled up with zeros */
} ColumnsGrouping;

/* How queries are scaled by the number of keys, and perhaps by themselves. */
typedef enum ColumnsScaling
{
	COLUMNS_SCALE_NONE,
	COLUMNS_SCALE_HEADS,		/* a factor per head times ln n */
	COLUMNS_SCALE_MLP,			/* an MLP of ln n: a factor per head, … */
	COLUMNS_SCALE_MLP_EACH,		/* … or per feature */
	COLUMNS_SCALE_AWARE,		/* times 1 + tanh(an MLP of the query): a factor, … */
	COLUMNS_SCALE_AWARE_EACH	/* … or one per feature */
} ColumnsScaling;

#define COLUMNS_SCALE_HIDDEN 64	/* width of these MLPs */
#define COLUMNS_TEMPERATURE 0.9	/* of a classifier's softmax */

/* The package's own configuration, without what only training knows. */
typedef struct ColumnsConfig
{
	int			max_classes,	/* 0: regression */
				quantiles,
				embed,
				activation;
	int			column_blocks,
				column_heads,
				inducing,
				grouping,
				group_size,
				column_scaling;
	int			row_blocks,
				row_heads,
				cls;
	int			context_blocks,
				context_heads,
				context_scaling;
	int			ff_factor;
	bool		affine,
				target_aware,
				interleaved,
				norm_first,
				plain_norms;
	double		rotary_base;
} ColumnsConfig;

/* A block, whose queries may be scaled. */
typedef struct ColumnsBlock
{
	TnpLayer	layer;
	ColumnsScaling scaling;
	const float *factors;		/* [heads] */
	TnpLinear	base[2],		/* 1 -> 64 -> heads or width */
				aware[2];		/* head width -> 64 -> head width or 1 */
} ColumnsBlock;

/* A block of the column stage: inducing points read the rows, then the rows read those. */
typedef struct ColumnsInduced
{
	const float *points;		/* [inducing, embed] */
	ColumnsBlock read,
				write;
} ColumnsInduced;

/* A target's embedding: weight [width, 1 or classes] and bias. */
typedef struct ColumnsTarget
{
	const float *weight,
			   *bias;
	int			width,
				n;				/* 1 or classes */
} ColumnsTarget;

typedef struct ColumnsWeights
{
	TnpLinear	cell;			/* group -> embed */
	ColumnsTarget column_target,
				context_target;
	ColumnsInduced *columns;
	TnpLinear	affine[2];		/* weights and biases of v1 */
	TnpNorm		affine_norm[2];
	const float *cls;			/* [cls, embed] */
	const float *frequencies;	/* [head width / 2] */
	ColumnsBlock *rows;
	TnpNorm		rows_norm;
	ColumnsBlock *context;
	TnpNorm		context_norm;
	TnpLinear	decoder[2];
} ColumnsWeights;

static inline const ColumnsConfig *
columns_config(const TnpModel *model)
{
	return TNP_OWN(&model->config, ColumnsConfig);
}

static inline const ColumnsWeights *
columns_weights(const TnpModel *model)
{
	return model->own;
}

/* Width of the in-context stage. */
static inline int
columns_width(const ColumnsConfig *c)
{
	return c->embed * c->cls;
}

/* Groups of a table of so many prepared columns. */
static inline int
columns_groups(const ColumnsConfig *c, int columns)
{
	return c->grouping == COLUMNS_PADDED ? (columns + c->group_size - 1) / c->group_size : columns;
}

/* ---- columns_config.c, columns_bind.c -------------------------------------------------------- */

extern const TnpKey columns_published[];
TnpStatus	columns_check(const TnpConfig *config, TnpError *error);
void		columns_complete(TnpConfig *config);
void		columns_bind(TnpBinder *b);

/* ---- columns_stages.c: arithmetic of tiles --------------------------------------------------- */

/* What one thread needs; tiles of up to TNP_TILE rows. */
typedef struct ColumnsWork
{
	TnpBlockWork narrow,		/* of width embed */
				wide;			/* of the in-context stage */
	TnpKvCache	keys;			/* one layer of width embed, reused */
	float	   *tokens,			/* [cls + groups, embed] of a row */
			   *column,			/* [rows of the column stage, embed] */
			   *cells,			/* [tile, columns or group] */
			   *hidden,			/* [tile, the widest hidden layer] */
			   *modulation,		/* [tile, widest head, or outputs] */
			   *h,				/* [tile, width] */
			   *embedded,		/* [tile, groups, embed] */
			   *query;			/* [tile, columns] prepared cells of queries */
	void	   *memory;
} ColumnsWork;

/* What the tiles of a call share. */
typedef struct ColumnsCall
{
	const TnpModel *model;
	int			columns,
				groups;
	int64_t		n;				/* rows of the context */
	float	   *cosine,			/* [cls + groups, head width / 2] of rotary positions */
			   *sine,
			   *column_base,	/* [column blocks, embed] factors of queries from ln n */
			   *context_base;	/* [context blocks, width] */
	float	   *memory;
} ColumnsCall;

TnpStatus	columns_call_make(const TnpModel *model, int columns, int64_t n, ColumnsCall *call,
							  TnpError *error);
void		columns_call_free(ColumnsCall *call);

/* Scratch for column stages of `rows` rows at a time, and predictions of `tile` rows. */
TnpStatus	columns_work_make(const ColumnsCall *call, int64_t rows, int tile, ColumnsWork *work,
							  TnpError *error);
void		columns_work_free(const TnpModel *model, ColumnsWork *work);

/* Embeddings [n, embed] of group g of prepared cells [n, columns]; without a target. */
void		columns_embed_cells(const ColumnsCall *call, int n, const float *cells, int g,
								ColumnsWork *work, float *e);

/* Add the embedding of a target, scaled or a class, to a state. */
void		columns_add_target(const ColumnsTarget *target, double y, float *state);

/* n <= TNP_TILE states of one width through a block that reads m keys; factors: call's base. */
void		columns_block(const TnpModel *model, const ColumnsBlock *block, int heads, int n,
						  float *h, const void *k, const void *v, int64_t m, const float *factors,
						  ColumnsWork *work, TnpBlockWork *blocks);

/*
 * Store keys and values of n states from slot on, as `block` makes them. False: too large.
 */
bool		columns_store(const TnpModel *model, const ColumnsBlock *block, int n, const float *h,
						  TnpKvCache *cache, int64_t slot, TnpBlockWork *blocks);

/* v1: embeddings e [n, embed] of group g become weights and biases of its cells. */
void		columns_affine(const ColumnsCall *call, int n, const float *cells, int g,
						   ColumnsWork *work, float *e);

/* Row stage: embeddings [groups, embed] of a row -> r [width]. False: too large. */
bool		columns_row(const ColumnsCall *call, const float *embedded, ColumnsWork *work,
						float *r);

/* ---- columns_encode.c: the state of a context ------------------------------------------------ */

/*
 * One block of memory: this, then prepared statistics, orders of columns, and per estimator the
 * keys and values of inducing points of each group and block, and of the rows in each layer.
 */
typedef struct ColumnsState
{
	int			estimators,
				columns,
				groups;
	int64_t		n;
	TnpOrder	order[TNP_MAX_ESTIMATORS];
	size_t		prepared,		/* offsets */
				column_order,
				keys;
	size_t		column_bytes,	/* of the keys of one group and block; the values are as many */
				context_bytes;	/* of one layer */
} ColumnsState;

static inline const TnpPrepared *
columns_prepared(const ColumnsState *s)
{
	return (const TnpPrepared *) (const void *) ((const char *) s + s->prepared);
}

/* Which prepared column stands where for an estimator. */
static inline const int *
columns_order(const ColumnsState *s, int estimator)
{
	return (const int *) (const void *) ((const char *) s + s->column_order)
		+ (size_t) estimator * s->columns;
}

/* Keys of a group and block of the column stage; values = column_bytes further. */
char	   *columns_column_keys(const ColumnsState *s, const ColumnsConfig *c, int estimator,
								int group, int block);

/* Keys of a layer of the in-context stage; values = context_bytes further. */
char	   *columns_context_keys(const ColumnsState *s, const ColumnsConfig *c, int estimator,
								 int layer);

/* Prepared cells [columns] of a row in the order of an estimator; scratch [columns]. */
void		columns_cells(const ColumnsState *s, int estimator, const double *x, float *scratch,
						  float *cells);

TnpStatus	columns_encode(TnpEncoding *e, int64_t first, int64_t n, bool anew, TnpError *error);
TnpStatus	columns_predict(const TnpEncoding *e, const TnpRows *queries, double *params,
							TnpError *error);

/* About the multiplications of the whole network for rows that read `keys` rows. */
double		columns_cost(const TnpModel *model, double rows, double keys);

/* A team whose workers have scratch of their own. */
typedef struct ColumnsTeam
{
	TnpTeam    *team;
	ColumnsWork *work;			/* one per worker */
	double	   *numbers;		/* [outputs] per worker */
} ColumnsTeam;

TnpStatus	columns_team_make(const ColumnsCall *call, int64_t rows, int tile, int64_t most,
							  double cost, ColumnsTeam *team, TnpError *error);
void		columns_team_free(const TnpModel *model, ColumnsTeam *team);

#endif							/* TNP_COLUMNS_H */
