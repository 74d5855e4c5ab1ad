/*
 * copy.c: encodings made from encodings: copies with room to grow, and views of the first rows.
 *
 * A causal row's keys and values depend on nothing after it, so the first n rows of an encoding are
 * the encoding of the first n rows, as long as what all of them depend on (the prefix, the
 * statistics' rows) is among them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/inference/encode.h"

#include "engine/features/class_counts.h"

#include <string.h>

#include "engine/features/donors.h"
#include "engine/features/shift.h"
#include "engine/features/logistic.h"
#include "engine/features/process.h"
#include "engine/features/ridge.h"
#include "engine/features/class_process.h"
#include "engine/features/trees.h"

int64_t
tnp_encoding_base_rows(const TnpEncoding *e)
{
	return e->prefix > e->stats.n0 ? e->prefix : e->stats.n0;
}

int64_t
tnp_encoding_capacity(const TnpEncoding *e)
{
	return e->capacity;
}

static TnpStatus
check_first(const TnpEncoding *e, int64_t n, TnpError *error)
{
	if (n >= tnp_encoding_base_rows(e) && n <= e->n)
		return TNP_OK;
	tnp_fail(error, TNP_BAD_ARGUMENT, "these rows are not an encoding of their own");
	tnp_detail(error, "first %lld of %lld rows, at least %lld needed", (long long) n,
			   (long long) e->n, (long long) tnp_encoding_base_rows(e));
	return TNP_BAD_ARGUMENT;
}

/* A copy of `size` bytes, or NULL. */
static void *
duplicate(const TnpEnv *env, const void *from, size_t size)
{
	void	   *p = tnp_alloc(env, 1, size);

	if (p != NULL && size > 0)
		memcpy(p, from, size);
	return p;
}

/*
 * What of `from` can be copied without allocating is in `to`; copy the rest. False when memory ran
 * out: `to` can be freed.
 */
static bool
copy_stats(const TnpEnv *env, const TnpStats *from, TnpStats *to)
{
	*to = *from;
	memset(to->ridge, 0, sizeof(to->ridge));
	memset(&to->process, 0, sizeof(to->process));
	memset(&to->logistic, 0, sizeof(to->logistic));
	memset(&to->trees, 0, sizeof(to->trees));
	memset(&to->class_process, 0, sizeof(to->class_process));
	memset(&to->donors, 0, sizeof(to->donors));
	memset(&to->shifts, 0, sizeof(to->shifts));
	to->columns = NULL;
	to->slot = NULL;
	to->y_more = NULL;
	to->n_columns = 0;
	if (!tnp_class_stats_copy(env, from, to))
		return false;
	if (from->y_more != NULL
		&& (to->y_more = duplicate(env, from->y_more, (size_t) from->n_more * 2 * sizeof(double)))
		== NULL)
		return false;
	if (from->slot != NULL && (to->slot = duplicate(env, from->slot,
													(size_t) from->n_columns * sizeof(int)))
													== NULL)
		return false;
	for (int k = 0; k < TNP_RIDGES; k++)
		if (!tnp_ridge_copy(env, &from->ridge[k], &to->ridge[k]))
			return false;
	if (!tnp_process_copy(env, &from->process, &to->process))
		return false;
	if (!tnp_logistic_copy(env, &from->logistic, &to->logistic))
		return false;
	if (!tnp_trees_copy(env, &from->trees, &to->trees)
		|| !tnp_class_process_copy(env, &from->class_process, &to->class_process))
		return false;
	if (!tnp_donors_copy(env, &from->donors, &to->donors)
		|| !tnp_shifts_copy(env, &from->shifts, &to->shifts))
		return false;
	if (from->columns == NULL)
		return true;
	to->columns = tnp_alloc_zero(env, from->n_columns, sizeof(TnpColumn));
	if (to->columns == NULL)
		return false;
	to->n_columns = from->n_columns;
	for (int f = 0; f < from->n_columns; f++)
	{
		const TnpColumn *column = &from->columns[f];

		to->columns[f] = *column;
		to->columns[f].levels = NULL;
		to->columns[f].level_bin = NULL;
		if (column->levels == NULL)
			continue;
		/* the first part of a feature comes before the others and lends them its levels */
		to->columns[f].levels = column->part > 0 ? to->columns[column->feature].levels
			: duplicate(env, column->levels, (size_t) column->n_levels * sizeof(double));
		if (column->level_bin != NULL)
			to->columns[f].level_bin = duplicate(env, column->level_bin, column->n_levels);
		if (to->columns[f].levels == NULL
			|| (to->columns[f].level_bin == NULL) != (column->level_bin == NULL))
			return false;
	}
	return true;
}

/* What a family that answers for itself keeps; it is of all rows. */
static TnpStatus
copy_own(const TnpEnv *env, const TnpEncoding *e, TnpEncoding *copy, TnpError *error)
{
	copy->own = tnp_alloc(env, e->own_size + TNP_OWN_SLACK, 1);
	if (copy->own == NULL)
		return tnp_no_memory(error);
	copy->own_size = e->own_size;
	memset((char *) copy->own + e->own_size, 0, TNP_OWN_SLACK);
	return tnp_copy(env, tnp_encoding_own(copy), tnp_encoding_own(e), e->own_size, error);
}

TnpStatus
tnp_encoding_copy(const TnpEncoding *e, int64_t n, int64_t capacity, bool keep, TnpEncoding **copy,
				  TnpError *error)
{
	const TnpModel *model = e->model;
	TnpEnv		env = keep ? tnp_lasting(&model->env) : model->env;
	const TnpFamily *family = model->config.family;
	int64_t		slots = family->slots(model, e->prefix, n);
	size_t		target = model->config.n_targets * sizeof(double);
	TnpEncoding *c;
	TnpStatus	status = check_first(e, n, error);

	*copy = NULL;
	if (status != TNP_OK)
		return status;
	if (capacity < n)
		capacity = n;
	if (capacity < 1)
		capacity = 1;
	c = tnp_alloc_zero(&env, 1, sizeof(TnpEncoding));
	if (c == NULL)
		return tnp_no_memory(error);
	c->model = model;
	c->kept = keep;
	c->prefix = e->prefix;
	c->estimators = e->estimators;
	c->n_features = e->n_features;
	c->capacity = capacity;
	c->kinds = duplicate(&env, e->kinds, e->n_features * sizeof(TnpColumnKind));
	c->x = tnp_alloc(&env, capacity, (size_t) e->n_features * sizeof(double));
	c->y = tnp_alloc(&env, capacity, target);
	if (c->kinds == NULL || c->x == NULL || c->y == NULL || !copy_stats(&env, &e->stats, &c->stats))
		status = tnp_no_memory(error);
	if (status == TNP_OK)
		status = tnp_cache_make(&env, &e->cache.shape, e->cache.block,
								family->slots(model, e->prefix, capacity), &c->cache, error);
	if (status == TNP_OK)
		status = tnp_copy(&env, c->x, e->x, (size_t) n * e->n_features * sizeof(double), error);
	if (status == TNP_OK)
		status = tnp_copy(&env, c->y, e->y, (size_t) n * target, error);
	if (status == TNP_OK)
		status = tnp_cache_copy(&env, &e->cache, slots, &c->cache, error);
	if (status == TNP_OK && e->own != NULL)
		status = copy_own(&env, e, c, error);
	c->n = n;
	c->viewed = e;
	if (status == TNP_OK)
		status = tnp_encoding_settle(c, error);
	c->viewed = NULL;
	if (status != TNP_OK)
	{
		tnp_encoding_free(c);
		return status;
	}
	*copy = c;
	return TNP_OK;
}

TnpStatus
tnp_encoding_first(const TnpEncoding *e, int64_t n, TnpEncoding **view, TnpError *error)
{
	TnpEncoding *v;
	TnpStatus	status = check_first(e, n, error);

	*view = NULL;
	if (status != TNP_OK)
		return status;
	v = tnp_alloc(&e->model->env, 1, sizeof(TnpEncoding));
	if (v == NULL)
		return tnp_no_memory(error);
	*v = *e;
	v->n = n;
	v->borrowed = true;
	v->kept = false;
	v->total = NULL;
	v->viewed = e;
	status = tnp_encoding_settle(v, error);
	if (status != TNP_OK)
	{
		tnp_encoding_free(v);
		return status;
	}
	*view = v;
	return TNP_OK;
}

void
tnp_encoding_forget(TnpEncoding *e, int64_t n)
{
	if (n >= e->n)
		return;
	e->n = n;
	/* rows that come instead may be others */
	if (e->totalled > n)
		e->totalled = -1;
}
