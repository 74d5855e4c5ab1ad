/*
 * model.h: a model in memory: configuration and weights bound to the places where they are used.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_MODEL_H
#define TNP_MODEL_H

#include "engine/base/error.h"
#include "engine/file/config.h"

/* Linears with the activation between them and none after the last. */
typedef struct TnpMlp
{
	int			n;
	TnpActivation activation;
	TnpLinear	linear[TNP_MAX_HIDDEN + 1];
} TnpMlp;

/* A transformer block. */
typedef struct TnpLayer
{
	TnpLinear	q,
				k,
				v,
				o,
				ff0,
				ff1;
	TnpNorm		norm1,
				norm2;
	const float *log_scale;		/* [heads, 2] or NULL */
} TnpLayer;

/* E_x or E_y (section 4). */
typedef struct TnpEncoder
{
	TnpMlp		mlp;			/* linear: one linear; skip-mlp: the rest */
	TnpLinear	first;			/* skip-mlp */
	const float *table;			/* classes: [C, d] */
} TnpEncoder;

/* The row tokeniser (section 5). */
typedef struct TnpTokeniser
{
	TnpLinear	slot;			/* [hidden, regression features + cell * max_features] */
	TnpLinear	out;
	TnpMlp		cell;			/* path B, from here on */
	const float *code;			/* [max_features, width] */
	const float *readout;		/* [readouts, width] */
	TnpLayer   *blocks;
	TnpLinear	pool;
} TnpTokeniser;

struct TnpModel
{
	TnpEnv		env;
	const TnpKernels *kernels;	/* never NULL */
	TnpConfig	config;
	TnpModelInfo info;

	TnpMlp		embed_xy;		/* concat, parts */
	const float *observed;		/* parts: [2, width] of queries, of rows */
	TnpNorm		embed_norm;		/* parts, if there is one */
	TnpEncoder	embed_x,		/* additive */
				embed_y;
	TnpTokeniser tokeniser;
	const float *role;			/* [3, d] or NULL: query, prefix, later rows */
	const float *position;		/* [positions, d] or NULL */
	const float *sinks;			/* [sinks, d] or NULL */
	TnpLayer   *layers;			/* packed: the stack; two-stream: self */
	TnpLayer   *cross;			/* two-stream */
	TnpNorm		final_norm;
	TnpMlp		head;			/* joint-gaussian: of the means */
	TnpMlp		gate;			/* mixture: to the answer of a process */
	TnpLayer   *head_blocks;	/* joint-gaussian */
	TnpMlp		projector;
	const float *borders;		/* bars: [buckets + 1] */

	void	   *own;			/* weights of a family that has others */
	bool		borrowed;		/* all but the struct is another model's (tnp_model_several) */

	void	  **blocks;			/* everything allocated for the weights */
	int			n_blocks,
				max_blocks;
};

/*
 * What it costs to carry `rows` rows through the model, each seeing `keys` keys: its
 * multiplications.
 */
static inline double
tnp_cost(const TnpModel *model, double rows, double keys)
{
	return model->config.family->cost(model, rows, keys);
}

#define TNP_RIDGES 2			/* a linear regression, and one with splines */
#define TNP_GATE_NUMBERS 10		/* that the gate of a process's answer reads */
#define TNP_GATE_ROWS 1024		/* of the prefix that it counts, as many as gates are fitted to */
#define TNP_GATE_BEHIND 512		/* rows behind the prefix that it counts at most */
#define TNP_RECORD_NUMBERS 7	/* that it reads of the process's record, where it does */
#define TNP_PROCESS_NUMBERS 4	/* that a process says of a row */

/* numbers per cell of the row tokeniser, before its classes' shares */
#define TNP_CELL 8

/* Classes that the model has room for, 0 in a regression model. */
static inline int
tnp_classes(const TnpModel *model)
{
	return model->config.head == TNP_HEAD_CLASSES ? model->config.head_outputs : 0;
}

/*
 * Whether the columns of a table, of all kinds and with missing cells, fill slots in the order of
 * their relevance, with cells of several numbers.
 */
static inline bool
tnp_fills_slots(const TnpModel *model)
{
	return model->info.takes_missing && model->config.embedder != TNP_SET;
}

/* Numbers per cell of the row tokeniser. */
static inline int
tnp_cell_width(const TnpModel *model)
{
	return TNP_CELL + tnp_classes(model);
}

/*
 * How many numbers stand in front of a row's cells: what TNP_RIDGES regressions say, 3 or C + 2
 * each, if there are any, ...
 */
int			tnp_ridge_width(const TnpModel *model);

/* ... the four of a process, ... */
int			tnp_process_width(const TnpModel *model);

/* ... and the C + 1 of a logistic regression, if there is one. */
int			tnp_logistic_width(const TnpModel *model);

/* All of them. */
int			tnp_regression_features_width(const TnpModel *model);

/*
 * How many numbers the head takes a share of (section 8): the C of a classifier's regression and
 * trees, and behind them whether trees speak; those of a process, and behind them one of trees; or
 * none.
 */
int			tnp_prior_logits_width(const TnpModel *model);

#endif							/* TNP_MODEL_H */
