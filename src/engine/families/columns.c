/*
 * columns.c: models that read a table by columns, then each row, then all rows in context: their
 * place among the families, and their predictions.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/columns.h"

#include <math.h>
#include <string.h>

#include "engine/distribution/quantiles.h"
#include "engine/families/families.h"

#define TYPICAL_GROUPS 16		/* of a table, where its width is not known */

/* ---- predictions ----------------------------------------------------------------------------- */

typedef struct Predict
{
	const TnpEncoding *e;
	const ColumnsState *state;
	const ColumnsConfig *c;
	const ColumnsWeights *w;
	ColumnsCall call;
	ColumnsTeam team;
	const TnpRows *queries;
	int			tile,
				size;			/* numbers of a distribution */
	double	   *params;
} Predict;

static TnpStatus
not_finite(TnpError *error)
{
	return tnp_fail(error, TNP_BAD_VALUE, "the model's prediction is not finite for these values");
}

/*
 * Embeddings e [some, n, embed] of `some` groups of n queries through a block of the column stage.
 * Each group has keys of its own; the layers are those of all, and take all groups as one tile.
 */
static void
write_groups(Predict *p, int estimator, int block, int first, int some, int n, float *e,
			 ColumnsWork *work)
{
	const TnpModel *model = p->e->model;
	const TnpLayer *layer = &p->w->columns[block].write.layer;
	int			embed = p->c->embed,
				heads = p->c->column_heads;
	int64_t		visible[TNP_TILE];
	TnpKeys		own[TNP_TILE];
	TnpView		view = {NULL, NULL, visible, own, 0};
	TnpAttention all;

	for (int r = 0; r < some * n; r++)
	{
		visible[r] = p->c->inducing;
		own[r] = (TnpKeys) {NULL, NULL, 0};
	}
	tnp_block_query(model, layer, heads, false, some * n, e, &view, &work->narrow, &all);
	for (int g = 0; g < some; g++)
	{
		TnpAttention one = all;
		char	   *keys = columns_column_keys(p->state, p->c, estimator, first + g, block);

		one.n = one.distinct = n;
		one.q += (size_t) g * n * embed;
		one.scale += (size_t) g * n * heads;
		one.out += (size_t) g * n * embed;
		one.k = keys;
		one.v = keys + p->state->column_bytes;
		model->kernels->attend(&one);
	}
	tnp_block_finish(model, layer, false, some * n, e, &work->narrow);
}

/* Embeddings [n, groups, embed] of the prepared cells [n, columns] of queries. */
static void
embed_queries(Predict *p, int estimator, int n, const float *cells, ColumnsWork *work)
{
	int			embed = p->c->embed,
				groups = p->call.groups,
				most = TNP_TILE / n;

	for (int first = 0; first < groups; first += most)
	{
		int			some = groups - first < most ? groups - first : most;
		size_t		size = (size_t) n * embed;
		float	   *e = work->column;

		for (int g = 0; g < some; g++)
			columns_embed_cells(&p->call, n, cells, first + g, work, e + g * size);
		for (int l = 0; l < p->c->column_blocks; l++)
			write_groups(p, estimator, l, first, some, n, e, work);
		for (int g = 0; g < some; g++, e += size)
		{
			columns_affine(&p->call, n, cells, first + g, work, e);
			for (int r = 0; r < n; r++)
				memcpy(work->embedded + ((size_t) r * groups + first + g) * embed,
					   e + (size_t) r * embed, embed * sizeof(float));
		}
	}
}

/* What the network says of n queries, raw [n, outputs] in the worker's modulation. */
static TnpStatus
run_queries(Predict *p, TnpWorker *worker, int estimator, int n, const float *cells,
			TnpError *error)
{
	const TnpModel *model = p->e->model;
	const TnpKernels *kernels = model->kernels;
	ColumnsWork *work = &p->team.work[worker->number];
	int			width = columns_width(p->c);
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status != TNP_OK)
		return status;
	embed_queries(p, estimator, n, cells, work);
	for (int r = 0; r < n; r++)
		if (!columns_row(&p->call, work->embedded + (size_t) r * p->call.groups * p->c->embed,
						 work, work->h + (size_t) r * width))
			return tnp_fail(error, TNP_BAD_VALUE,
							"the values of a row are too large for the model");
	for (int l = 0; status == TNP_OK && l < p->c->context_blocks; l++)
	{
		char	   *keys = columns_context_keys(p->state, p->c, estimator, l);

		columns_block(model, &p->w->context[l], p->c->context_heads, n, work->h, keys,
					  keys + p->state->context_bytes, p->call.n,
					  p->call.context_base + (size_t) l * width, work, &work->wide);
		status = tnp_worker_check(worker, error);
	}
	kernels->norm(&p->w->context_norm, n, work->h, work->h);
	kernels->linear(&p->w->decoder[0], n, work->h, TNP_GELU, false, work->hidden);
	kernels->linear(&p->w->decoder[1], n, work->hidden, TNP_IDENTITY, false, work->modulation);
	return status;
}

/* Add an estimator's outputs to the sums of n answers; quantiles in ascending order. */
static TnpStatus
add_outputs(const Predict *p, int estimator, int n, const float *raw, double *numbers,
			double *params, TnpError *error)
{
	int			outputs = p->e->model->config.head_outputs,
				classes = p->e->stats.n_classes,
				shift = p->state->order[estimator].shift;

	for (int r = 0; r < n; r++)
	{
		double	   *sum = params + (size_t) r * p->size;

		for (int i = 0; i < outputs; i++)
		{
			numbers[i] = raw[(size_t) r * outputs + i];
			if (!isfinite(numbers[i]))
				return not_finite(error);
		}
		if (p->c->max_classes == 0)
			tnp_quantiles_sort(outputs, numbers);
		for (int i = 0; i < (p->c->max_classes > 0 ? classes : outputs); i++)
			sum[i] += numbers[p->c->max_classes > 0 ? (i - shift + classes) % classes : i];
	}
	return TNP_OK;
}

/* From the sums of one answer to its parameters. */
static TnpStatus
settle_answer(const Predict *p, double *numbers, double *params, TnpError *error)
{
	const TnpPrepared *prepared = columns_prepared(p->state);
	int			outputs = p->e->model->config.head_outputs,
				classes = p->e->stats.n_classes;
	TnpDistribution d = {p->c->max_classes > 0 ? TNP_CLASSES : TNP_QUANTILES, outputs, params};

	for (int i = 0; i < outputs; i++)
		numbers[i] = params[i] / p->state->estimators;
	if (p->c->max_classes == 0)
		tnp_quantiles_make(outputs, numbers, prepared->y_center, prepared->y_scale, params);
	else
	{
		double		most = numbers[0],
					sum = 0;

		for (int i = 1; i < classes; i++)
			most = numbers[i] > most ? numbers[i] : most;
		for (int i = 0; i < outputs; i++)
			sum += params[i] = i < classes ? exp((numbers[i] - most) / COLUMNS_TEMPERATURE) : 0;
		for (int i = 0; i < classes; i++)
			params[i] /= sum;
	}
	return tnp_distribution_check(&d, NULL) == TNP_OK ? TNP_OK : not_finite(error);
}

static TnpStatus
predict_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Predict    *p = state;
	ColumnsWork *work = &p->team.work[worker->number];
	int64_t		first = item * p->tile;
	int			n = p->queries->n - first < p->tile ? (int) (p->queries->n - first) : p->tile;
	double	   *params = p->params + first * p->size,
			   *numbers = p->team.numbers
		+ (size_t) worker->number * p->e->model->config.head_outputs;
	TnpStatus	status = TNP_OK;

	memset(params, 0, (size_t) n * p->size * sizeof(double));
	for (int e = 0; status == TNP_OK && e < p->state->estimators; e++)
	{
		for (int r = 0; r < n; r++)
			columns_cells(p->state, e, p->queries->x + (first + r) * p->queries->n_features,
						  work->cells, work->query + (size_t) r * p->call.columns);
		status = run_queries(p, worker, e, n, work->query, error);
		if (status == TNP_OK)
			status = add_outputs(p, e, n, work->modulation, numbers, params, error);
	}
	for (int r = 0; status == TNP_OK && r < n; r++)
		status = settle_answer(p, numbers, params + (size_t) r * p->size, error);
	if (status == TNP_OK)
		tnp_worker_answered(worker, n);
	return status;
}

TnpStatus
columns_predict(const TnpEncoding *e, const TnpRows *queries, double *params, TnpError *error)
{
	const TnpModel *model = e->model;
	const ColumnsState *state = tnp_encoding_own(e);
	int			outputs = model->config.head_outputs;
	Predict		p = {.e = e, .state = state, .c = columns_config(model),
					 .w = columns_weights(model), .queries = queries, .params = params};
	double		cost = columns_cost(model, (double) queries->n, (double) e->n)
		* state->estimators;
	TnpStatus	status = columns_call_make(model, state->columns, e->n, &p.call, error);

	if (status != TNP_OK)
		return status;
	p.size = tnp_distribution_size(p.c->max_classes > 0 ? TNP_CLASSES : TNP_QUANTILES, outputs);
	status = columns_team_make(&p.call, TNP_TILE, queries->n < TNP_TILE ? (int) queries->n
							   : TNP_TILE, tnp_team_most(queries->n), cost, &p.team, error);
	if (status == TNP_OK)
	{
		p.tile = tnp_team_tile(p.team.team, queries->n);
		status = tnp_team_run(p.team.team, (queries->n + p.tile - 1) / p.tile, predict_item, &p,
							  error);
		columns_team_free(model, &p.team);
	}
	columns_call_free(&p.call);
	return status;
}

/* ---- the family ------------------------------------------------------------------------------ */

double
columns_cost(const TnpModel *model, double rows, double keys)
{
	const ColumnsConfig *c = columns_config(model);
	double		d = columns_width(c),
				e = c->embed,
				column = c->column_blocks * (6 + 4.0 * c->ff_factor) * e * e,
				row = c->row_blocks * (4 + 2.0 * c->ff_factor) * e * e;

	return rows * (TYPICAL_GROUPS * (column + row)
				   + c->context_blocks * ((4 + 2.0 * c->ff_factor) * d * d + 2 * d * keys)
				   + 2 * d * (d + model->config.head_outputs));
}

static const TnpKey no_keys[] = {TNP_END};

static bool
columns_appendable(const TnpConfig *config)
{
	(void) config;
	return false;
}

static int
columns_head_width(const TnpConfig *config)
{
	return config->width;
}

/* The common cache has nothing in it; it cannot be without a number. */
static void
columns_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	(void) model;
	*shape = (TnpCacheShape) {.layers = 1, .heads = 1, .key_width = 1, .value_width = 1,
		.number = sizeof(float)};
}

static int64_t
columns_slots(const TnpModel *model, int64_t prefix, int64_t rows)
{
	(void) model;
	(void) prefix;
	(void) rows;
	return 0;
}

static size_t
columns_row_bytes(const TnpModel *model)
{
	const TnpConfig *c = &model->config;

	return (size_t) c->layers * 2 * c->width * model->kernels->number;
}

const TnpFamily tnp_columns_family = {
	.name = "columns",
	.published = columns_published,
	.complete = columns_complete,
	.keys = no_keys,
	.check = columns_check,
	.bind = columns_bind,
	.head_width = columns_head_width,
	.appendable = columns_appendable,
	.takes_any_cells = true,
	.cache_shape = columns_cache_shape,
	.slots = columns_slots,
	.row_bytes = columns_row_bytes,
	.encode = columns_encode,
	.predict = columns_predict,
	.cost = columns_cost,
};
