/*
 * mean_basis.c: what sums of a mean process are under: the statistics of a sample of rows, and the
 * weights that make vectors of rows (docs/families.md, "Contexts that are sums").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/mean_merge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/families/mean.h"
#include "engine/features/scale.h"
#include "engine/features/stats.h"
#include "engine/file/bind.h"

#define VERSION 1

/* ---- the model's number ---------------------------------------------------------------------- */

static uint64_t
mix(uint64_t hash, uint64_t more)
{
	hash = (hash ^ more) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* Of the file's numbers, so that it is the same however a provider lays them out. */
static uint64_t
mix_tensor(uint64_t hash, const TnpFileTensor *tensor)
{
	for (int64_t i = 0; i < tensor->n_elements; i++)
	{
		float		number;
		uint32_t	bits;

		(void) tnp_file_widen(tensor, i, 1, &number);
		memcpy(&bits, &number, sizeof(bits));
		hash = mix(hash, bits);
	}
	return hash;
}

void
mean_bind_number(TnpBinder *b)
{
	const TnpConfig *c = &b->model->config;
	uint64_t   *number = tnp_bind_memory(b, sizeof(uint64_t)),
				hash = mix(0, VERSION);

	if (number == NULL)
		return;
	hash = mix(mix(hash, c->width), c->n_features);
	/* with one target the number is what it was before there could be several */
	if (c->n_targets > 1)
		hash = mix(hash, c->n_targets);
	hash = mix(mix(hash, c->input_scaling), c->target_scaling);
	hash = mix(mix(hash, sums_word(c->input_clip)), sums_word(c->target_clip));
	hash = mix(hash, c->embedder_activation);
	for (int f = 0; c->input_scaling == TNP_SCALE_FIXED && f < c->n_features; f++)
		hash = mix(mix(hash, sums_word(c->input_center[f])), sums_word(c->input_scale[f]));
	for (int i = 0; i < b->model->embed_xy.n; i++)
		for (int bias = 0; bias < 2; bias++)
		{
			char		name[64];
			const TnpFileTensor *tensor;

			snprintf(name, sizeof(name), "embed.xy.%d.%s", i, bias ? "bias" : "weight");
			tensor = tnp_file_find(b->file, name);
			if (tensor != NULL)
				hash = mix_tensor(hash, tensor);
		}
	*number = hash;
	b->model->own = number;
}

static int64_t
model_number(const TnpModel *model)
{
	return (int64_t) (*(const uint64_t *) model->own >> 1);
}

/* ---- bases ----------------------------------------------------------------------------------- */

size_t
mean_basis_words(const TnpModel *model, int n_features)
{
	return MEAN_HEAD + (size_t) model->config.n_targets * MEAN_TARGET
		+ (size_t) n_features * MEAN_COLUMN;
}

static void
write_stats(const TnpModel *model, const TnpStats *stats, int64_t *basis)
{
	int			targets = model->config.n_targets;

	for (int t = 0; t < targets; t++)
	{
		int64_t    *target = (int64_t *) mean_target(basis, t);

		target[MEAN_CENTER] = sums_word(tnp_target_center(stats, t));
		target[MEAN_SCALE] = sums_word(tnp_target_scale(stats, t));
	}
	for (int f = 0; model->config.input_scaling == TNP_SCALE_PREFIX && f < stats->n_columns; f++)
	{
		int64_t    *column = (int64_t *) mean_column(basis, targets, f);

		column[MEAN_COLUMN_CENTER] = sums_word(stats->columns[f].mean);
		column[MEAN_COLUMN_SCALE] = sums_word(stats->columns[f].sd);
		column[MEAN_COLUMN_CONSTANT] = stats->columns[f].constant;
	}
}

/* Under `prefix` scaling of all rows, which are min_rows at least. */
TnpStatus
mean_basis_make(const TnpModel *model, const TnpRows *rows, int64_t *basis, TnpError *error)
{
	TnpStatus	status = tnp_rows_check(model, rows, true, error);
	TnpStats	stats;

	if (status == TNP_OK && model->info.scales_by_prefix)
		status = tnp_sums_check_rows(model, rows->n, error);
	if (status == TNP_OK)
		status = tnp_stats_build(model, rows, rows->n, &stats, error);
	if (status != TNP_OK)
		return status;
	memset(basis, 0, mean_basis_words(model, rows->n_features) * sizeof(int64_t));
	basis[MEAN_VERSION] = VERSION;
	basis[MEAN_MODEL] = model_number(model);
	basis[MEAN_COLUMNS] = rows->n_features;
	basis[MEAN_BASIS_ROWS] = rows->n;
	write_stats(model, &stats, basis);
	tnp_stats_free(&model->env, &stats);
	return TNP_OK;
}

/* Whether these are a centre and a scale, which is 0 only of what is constant. */
static bool
is_scale(int64_t center, int64_t scale, bool constant)
{
	return isfinite(sums_number(center)) && isfinite(sums_number(scale))
		&& (sums_number(scale) > 0 || (constant && sums_number(scale) == 0));
}

static bool
is_column(const TnpModel *model, const int64_t *column)
{
	if (model->config.input_scaling != TNP_SCALE_PREFIX)
		return column[MEAN_COLUMN_CENTER] == 0 && column[MEAN_COLUMN_SCALE] == 0
			&& column[MEAN_COLUMN_CONSTANT] == 0;
	return (column[MEAN_COLUMN_CONSTANT] == 0 || column[MEAN_COLUMN_CONSTANT] == 1)
		&& is_scale(column[MEAN_COLUMN_CENTER], column[MEAN_COLUMN_SCALE],
					column[MEAN_COLUMN_CONSTANT] == 1);
}

TnpStatus
mean_basis_check(const TnpModel *model, int n_features, const TnpColumnKind *kinds, size_t words,
				 const int64_t *basis, TnpError *error)
{
	int			targets = model->config.n_targets;

	if (words < MEAN_HEAD || basis[MEAN_VERSION] != VERSION
		|| basis[MEAN_MODEL] != model_number(model))
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the basis was made with another model");
	if (basis[MEAN_COLUMNS] != n_features || n_features != model->config.n_features)
		return tnp_fail(error, TNP_BAD_SHAPE, "%d feature columns given, the basis has %lld",
						n_features, (long long) basis[MEAN_COLUMNS]);
	if (words != mean_basis_words(model, n_features) || basis[MEAN_BASIS_ROWS] < 0)
		return tnp_fail(error, TNP_BAD_VALUE, "the basis is damaged");
	for (int t = 0; t < targets; t++)
		if (!is_scale(mean_target(basis, t)[MEAN_CENTER], mean_target(basis, t)[MEAN_SCALE],
					  false))
			return tnp_fail(error, TNP_BAD_VALUE, "the basis is damaged");
	for (int f = 0; f < n_features; f++)
		if (!is_column(model, mean_column(basis, targets, f))
			|| (kinds != NULL && kinds[f] != TNP_NUMERIC))
			return tnp_fail(error, TNP_BAD_VALUE, "the basis does not fit feature %d", f + 1);
	return TNP_OK;
}
