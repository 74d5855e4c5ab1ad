/*
 * encode.c: builds, extends and merges encodings. The sinks and the rows of the prefix see each
 * other; later rows see what came before them. Everything that can fail happens before the
 * encoding's row count moves, so a failed append leaves the encoding as it was.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/inference/encode.h"

#include "engine/features/class_counts.h"

#include <math.h>
#include <string.h>

TnpRows
tnp_encoding_view(const TnpEncoding *e)
{
	return (TnpRows) {e->n, e->n_features, e->kinds, e->x, e->y, e->stats.n_classes, 0,
		e->model->config.n_targets};
}

int64_t
tnp_encoding_rows(const TnpEncoding *encoding)
{
	return encoding->n;
}

int64_t
tnp_encoding_prefix(const TnpEncoding *encoding)
{
	return encoding->prefix;
}

int
tnp_encoding_views(const TnpEncoding *encoding)
{
	return encoding->estimators;
}

size_t
tnp_encoding_bytes(const TnpEncoding *e)
{
	int			numbers = e->n_features + e->model->config.n_targets;

	return sizeof(*e) + (size_t) e->capacity * numbers * sizeof(double)
		+ tnp_stats_bytes(&e->stats) + tnp_cache_bytes(&e->cache)
		+ (e->own != NULL ? e->own_size + TNP_OWN_SLACK : 0)
		+ (e->total != NULL ? e->total_size : 0);
}

int64_t
tnp_whole_prefix(const TnpModel *model, int64_t n)
{
	return model->config.context == TNP_CAUSAL ? 0 : n;
}

double
tnp_encoding_cost(const TnpModel *model, int64_t n)
{
	double		slots = (double) (model->config.sinks + n);

	if (model->config.family->encoding_cost != NULL)
		return model->config.family->encoding_cost(model, n);
	return tnp_cost(model, slots, model->config.context == TNP_CAUSAL ? slots / 2 : slots);
}

int64_t
tnp_canonical_prefix(const TnpModel *model, int64_t n)
{
	const TnpConfig *c = &model->config;
	int64_t		p = 1;

	if (c->context == TNP_CAUSAL || n <= 0)
		return 0;
	if (c->context == TNP_FULL && c->buffer > 0)
		return n < c->min_rows ? 0 : c->min_rows + (n - c->min_rows) / c->buffer * c->buffer;
	while (p <= n / 2)
		p *= 2;
	return p;
}

void
tnp_encoding_free(TnpEncoding *e)
{
	TnpEnv		env;

	if (e == NULL)
		return;
	env = e->kept ? tnp_lasting(&e->model->env) : e->model->env;
	tnp_free(&env, e->total);
	if (!e->borrowed)
		tnp_free(&env, e->own);
	if (!e->borrowed)
	{
		tnp_free(&env, e->kinds);
		tnp_free(&env, e->x);
		tnp_free(&env, e->y);
		if (!e->borrowed_stats)
			tnp_stats_free(&env, &e->stats);
		tnp_cache_free(&env, &e->cache);
	}
	tnp_free(&env, e);
}

/* Room for `capacity` rows in x and y, keeping what is there. */
static TnpStatus
reserve_rows(TnpEncoding *e, int64_t capacity, TnpError *error)
{
	const TnpEnv *env = &e->model->env;
	size_t		target = e->model->config.n_targets * sizeof(double);
	double	   *x,
			   *y;

	if (capacity <= e->capacity)
		return TNP_OK;
	if (capacity < 2 * e->capacity)
		capacity = 2 * e->capacity;
	x = tnp_alloc(env, capacity, (size_t) e->n_features * sizeof(double));
	y = tnp_alloc(env, capacity, target);
	if (x == NULL || y == NULL)
	{
		tnp_free(env, x);
		tnp_free(env, y);
		return tnp_no_memory(error);
	}
	if (e->n > 0)
	{
		memcpy(x, e->x, (size_t) e->n * e->n_features * sizeof(double));
		memcpy(y, e->y, (size_t) e->n * target);
	}
	tnp_free(env, e->x);
	tnp_free(env, e->y);
	e->x = x;
	e->y = y;
	e->capacity = capacity;
	return TNP_OK;
}

/* Copy rows behind the e->n rows that are there; capacity is reserved. */
static void
copy_rows(TnpEncoding *e, int64_t at, const TnpRows *rows)
{
	int			targets = e->model->config.n_targets;

	if (rows->n == 0)
		return;
	memcpy(e->x + at * e->n_features, rows->x, (size_t) rows->n * e->n_features * sizeof(double));
	memcpy(e->y + at * targets, rows->y, (size_t) rows->n * targets * sizeof(double));
}

/*
 * Room for the slots of `rows` rows. Rows after the prefix may take more slots than those in it.
 */
static int64_t
encoding_slots_for(const TnpEncoding *e, int64_t rows)
{
	return e->model->config.family->slots(e->model, e->prefix, rows);
}

/* An encoding without rows, with room for `capacity`. */
static TnpStatus
make_encoding(const TnpModel *model, int n_features, const TnpColumnKind *kinds, int64_t prefix,
			  int64_t capacity,
			  TnpEncoding **out, TnpError *error)
{
	TnpEncoding *e = tnp_alloc_zero(&model->env, 1, sizeof(TnpEncoding));
	TnpStatus	status;

	*out = NULL;
	if (e == NULL)
		return tnp_no_memory(error);
	e->model = model;
	e->n_features = n_features;
	e->prefix = prefix;
	e->kinds = tnp_alloc_zero(&model->env, n_features, sizeof(TnpColumnKind));
	status = e->kinds == NULL ? tnp_no_memory(error)
		: reserve_rows(e, capacity > 0 ? capacity : 1, error);
	if (status == TNP_OK && kinds != NULL)
		memcpy(e->kinds, kinds, n_features * sizeof(TnpColumnKind));
	if (status == TNP_OK)
	{
		TnpCacheShape shape;

		model->config.family->cache_shape(model, &shape);
		status = tnp_cache_make(&model->env, &shape, TNP_BLOCK, encoding_slots_for(e, capacity),
								&e->cache, error);
	}
	if (status != TNP_OK)
	{
		tnp_encoding_free(e);
		return status;
	}
	*out = e;
	return TNP_OK;
}

TnpStatus
tnp_encoding_settle(TnpEncoding *e, TnpError *error)
{
	const TnpFamily *family = e->model->config.family;

	return family->settle == NULL ? TNP_OK : family->settle(e, error);
}

static TnpStatus
too_few_rows(const TnpModel *model, int64_t n, TnpError *error)
{
	tnp_fail(error, TNP_TOO_FEW_ROWS, "the context has too few rows for the model");
	tnp_detail(error, "%lld row%s given, at least %d needed", (long long) n, n == 1 ? "" : "s",
			   model->config.min_rows);
	return TNP_TOO_FEW_ROWS;
}

/*
 * Whether `later` rows after the prefix fit the chain buffer of a model whose rows otherwise all
 * belong to the prefix.
 */
static TnpStatus
check_buffer(const TnpModel *model, int64_t later, TnpError *error)
{
	const TnpConfig *c = &model->config;

	if (c->context != TNP_FULL || c->buffer == 0 || later < c->buffer)
		return TNP_OK;
	tnp_fail(error, TNP_BAD_ARGUMENT, "more rows after the prefix than the model's buffer stores");
	tnp_detail(error, "%lld rows, the buffer stores %d", (long long) later, c->buffer - 1);
	return TNP_BAD_ARGUMENT;
}

TnpStatus
tnp_build(const TnpModel *model, const TnpRows *rows, int64_t prefix, TnpEncoding **encoding,
		  TnpError *error)
{
	return tnp_build_views(model, rows, prefix, 0, encoding, error);
}

TnpStatus
tnp_build_views(const TnpModel *model, const TnpRows *rows, int64_t prefix, int views,
				TnpEncoding **encoding, TnpError *error)
{
	return tnp_build_from(model, rows, prefix, views, NULL, 0, encoding, error);
}

/* Encode the rows, taking over stretches; of a family that has no other way what begins both. */
static TnpStatus
encode_from(TnpEncoding *e, int64_t rows, const TnpStretch *stretches, int64_t n, TnpError *error)
{
	const TnpFamily *family = e->model->config.family;
	int64_t		taken = n > 0 ? stretches[n - 1].to + stretches[n - 1].n : 0;
	TnpStatus	status;

	if (n > 0 && family->take_over == NULL)
		return family->go_on(e, rows, stretches[0].from, stretches[0].n, error);
	status = n > 0 ? family->take_over(e, stretches, n, error) : TNP_OK;

	return status == TNP_OK ? family->encode(e, taken, rows - taken, n == 0, error) : status;
}

TnpStatus
tnp_build_from(const TnpModel *model, const TnpRows *rows, int64_t prefix, int views,
			   const TnpStretch *stretches, int64_t n_stretches, TnpEncoding **encoding,
			   TnpError *error)
{
	TnpEncoding *e;
	TnpStatus	status;
	int64_t		n0 = prefix > model->config.min_rows ? prefix : model->config.min_rows;

	*encoding = NULL;
	if ((status = tnp_rows_check(model, rows, true, error)) != TNP_OK)
		return status;
	if (rows->n < model->config.min_rows)
		return too_few_rows(model, rows->n, error);
	if (prefix < 0 || prefix > rows->n || (model->config.context == TNP_CAUSAL && prefix > 0))
		return tnp_fail(error, TNP_BAD_ARGUMENT, "a prefix of %lld rows is not possible here",
						(long long) prefix);
	if ((status = check_buffer(model, rows->n - prefix, error)) != TNP_OK)
		return status;
	if ((status = make_encoding(model, rows->n_features, rows->kinds, prefix, rows->n, &e, error))
		!= TNP_OK)
		return status;
	copy_rows(e, 0, rows);
	e->estimators = views > 0 ? views : tnp_estimators(&model->env);
	status = tnp_stats_build(model, rows, n0, &e->stats, error);
	if (status == TNP_OK)
		status = encode_from(e, rows->n, stretches, n_stretches, error);
	if (status == TNP_OK)
	{
		e->n = rows->n;
		status = tnp_encoding_settle(e, error);
	}
	if (status != TNP_OK)
	{
		tnp_encoding_free(e);
		return status;
	}
	*encoding = e;
	return TNP_OK;
}

/* Further rows must have the columns of the encoding. */
static TnpStatus
check_columns(const TnpEncoding *e, const TnpRows *rows, TnpError *error)
{
	if (rows->n_features != e->n_features)
		return tnp_fail(error, TNP_BAD_SHAPE, "%d feature columns given, the context has %d",
						rows->n_features, e->n_features);
	for (int f = 0; f < e->n_features; f++)
		if ((rows->kinds != NULL ? rows->kinds[f] : TNP_NUMERIC) != e->kinds[f])
			return tnp_fail(error, TNP_BAD_VALUE, "feature %d is %s, in the context it is %s",
							f + 1,
							e->kinds[f] == TNP_NUMERIC ? "categorical" : "numeric",
							e->kinds[f] == TNP_NUMERIC ? "numeric" : "categorical");
	return TNP_OK;
}

TnpStatus
tnp_queries_check(const TnpEncoding *e, const TnpRows *rows, bool need_y, TnpError *error)
{
	TnpStatus	status = check_columns(e, rows, error);
	int			classes = e->stats.n_classes;

	if (status == TNP_OK)
		status = tnp_rows_check(e->model, rows, need_y, error);
	if (status != TNP_OK || !need_y || classes == 0)
		return status;
	if (rows->n_classes != 0 && rows->n_classes != classes)
		return tnp_fail(error, TNP_BAD_VALUE, "%d classes given, the context has %d",
						rows->n_classes, classes);
	for (int64_t i = 0; status == TNP_OK && i < rows->n; i++)
		status = tnp_class_check(rows->y[i], classes, rows->before + i, error);
	return status;
}

TnpStatus
tnp_append_begin(TnpEncoding *e, const TnpRows *rows, TnpError *error)
{
	TnpStatus	status = tnp_queries_check(e, rows, true, error);

	if (status == TNP_OK)
		status = check_buffer(e->model, e->n + rows->n - e->prefix, error);
	if (status == TNP_OK && (e->borrowed || (e->kept && e->n + rows->n > e->capacity)))
		status = tnp_fail(error, TNP_BAD_ARGUMENT, "the encoding has no room for more rows");
	if (status == TNP_OK)
		status = reserve_rows(e, e->n + rows->n, error);
	if (status == TNP_OK)
		status = tnp_cache_reserve(&e->model->env, tnp_encoding_slots(e),
								   encoding_slots_for(e, e->n + rows->n), &e->cache, error);
	if (status == TNP_OK)
		copy_rows(e, e->n, rows);
	return status;
}

TnpStatus
tnp_append(TnpEncoding *e, const TnpRows *rows, TnpError *error)
{
	TnpStatus	status = tnp_append_begin(e, rows, error);

	if (status == TNP_OK)
		status = e->model->config.family->encode(e, e->n, rows->n, false, error);
	if (status != TNP_OK)
		return status;
	e->n += rows->n;
	status = tnp_encoding_settle(e, error);
	if (status != TNP_OK)
		e->n -= rows->n;
	return status;
}

TnpStatus
tnp_grow(TnpEncoding *e, const TnpRows *rows, TnpError *error)
{
	const TnpModel *model = e->model;
	int64_t		n = e->n + rows->n,
				prefix = tnp_canonical_prefix(model, n);
	TnpEncoding *fresh,
				swap;
	TnpRows		all;
	TnpStretch	own = {e, 0, 0, e->n};
	bool		takes = tnp_takes_over(e, NULL, prefix);
	TnpStatus	status;

	if (prefix == e->prefix || e->borrowed || e->kept)
		return prefix == e->prefix ? tnp_append(e, rows, error)
			: tnp_fail(error, TNP_BAD_ARGUMENT, "the encoding's prefix cannot move");
	status = tnp_queries_check(e, rows, true, error);
	if (status == TNP_OK)
		status = reserve_rows(e, n, error);
	if (status != TNP_OK)
		return status;
	copy_rows(e, e->n, rows);
	all = tnp_encoding_view(e);
	all.n = n;
	status = tnp_build_from(model, &all, prefix, e->estimators, &own, takes ? 1 : 0, &fresh, error);
	if (status != TNP_OK)
		return status;
	swap = *e;
	*e = *fresh;
	*fresh = swap;
	tnp_encoding_free(fresh);
	return TNP_OK;
}

TnpStatus
tnp_merge(const TnpEncoding *e, const TnpRows *more, TnpEncoding **merged, TnpError *error)
{
	const TnpFamily *family = e->model->config.family;
	TnpRows		own = tnp_encoding_view(e);
	TnpEncoding *m;
	TnpStatus	status = make_encoding(e->model, e->n_features, e->kinds, e->n + more->n,
									   e->n + more->n, &m,
									   error);

	*merged = NULL;
	if (status != TNP_OK)
		return status;
	copy_rows(m, 0, &own);
	copy_rows(m, e->n, more);
	m->stats = e->stats;
	m->borrowed_stats = true;
	m->estimators = e->estimators;
	status = family->go_on != NULL ? family->go_on(m, m->prefix, e, e->n, error)
		: family->encode(m, 0, m->prefix, true, error);
	m->n = m->prefix;
	if (status == TNP_OK)
		status = tnp_encoding_settle(m, error);
	if (status != TNP_OK)
	{
		tnp_encoding_free(m);
		return status;
	}
	*merged = m;
	return TNP_OK;
}
