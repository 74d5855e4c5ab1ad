/*
 * latent_sums.c: sums that go on where another encoding's ended, bitwise as if they had begun with
 * the first row.
 *
 * Attention takes rows in blocks, each relative to a reference that a whole block decides, and adds
 * up the sums of spans of blocks in one order (kernels.h). So what is kept ends with a whole block,
 * and keeps the span that has begun apart from those before it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/latent_sums.h"

#include <string.h>

#define HEAD_BYTES 64			/* of what is kept: the number of rows; sums follow, aligned */

static size_t
floats_of(const TnpModel *model, int64_t latents)
{
	const TnpConfig *c = &model->config;

	return (size_t) latents * model->kernels->sum_floats(c->heads, c->width / c->heads, 1, 1);
}

size_t
latent_sums_floats(const TnpModel *model, int latents)
{
	return 2 * floats_of(model, latents);
}

LatentSums
latent_sums_of(const TnpEncoding *e, int latents)
{
	LatentSums	sums = {0, NULL, NULL};
	char	   *at;
	float	   *next;

	if (e == NULL || e->own == NULL)
		return sums;
	at = tnp_encoding_own(e);
	memcpy(&sums.rows, at, sizeof(sums.rows));
	next = (float *) (void *) (at + HEAD_BYTES);
	if (sums.rows >= TNP_SPAN)
	{
		sums.whole = next;
		next += floats_of(e->model, latents);
	}
	if (sums.rows % TNP_SPAN > 0)
		sums.started = next;
	return sums;
}

/*
 * Whether a later encoding may begin with the same vectors of these rows: one of more rows, where
 * no scaling changes with them, or one of a chain, which has the same scaling.
 */
static bool
may_go_on(const TnpModel *model)
{
	return model->kernels->attend_more != NULL
		&& (!model->info.scales_by_prefix || model->config.buffer > 0);
}

TnpStatus
latent_sums_make(TnpEncoding *e, int latents, TnpError *error)
{
	const TnpEnv *env = &e->model->env;
	int64_t		rows = e->prefix / TNP_BLOCK * TNP_BLOCK;
	int			parts = (rows >= TNP_SPAN) + (rows % TNP_SPAN > 0);
	TnpStatus	status;

	if (parts == 0 || !may_go_on(e->model))
		return TNP_OK;
	e->own_size = HEAD_BYTES + parts * floats_of(e->model, latents) * sizeof(float);
	e->own = tnp_alloc(env, e->own_size + TNP_OWN_SLACK, 1);
	if (e->own == NULL)
		return tnp_no_memory(error);
	status = tnp_clear(env, e->own, e->own_size + TNP_OWN_SLACK, error);
	if (status == TNP_OK)
		memcpy(tnp_encoding_own(e), &rows, sizeof(rows));
	return status;
}

/* The sums of a tile of latents, and where they are among those of all. */
typedef struct Tile
{
	const TnpKernels *kernels;
	const TnpAttention *a;
	int64_t    *visible;		/* [a->n] */
	size_t		at,
				size;
	float	   *total,			/* of whole spans, and behind it: */
			   *sum;			/* of one span */
} Tile;

static void
keep(const Tile *t, const float *from, float *to)
{
	memcpy(to + t->at, from, t->size * sizeof(float));
}

/* Take rows [from, end) of a span into its sum, which has those before them, if there are any. */
static void
take_rows(const Tile *t, const LatentRows *part, int64_t from, int64_t end, float *sum)
{
	int64_t		slot = from - part->base;

	for (int r = 0; r < t->a->n; r++)
		t->visible[r] = end - part->base;
	if (from % TNP_SPAN == 0)
		t->kernels->attend_span(t->a, slot / TNP_SPAN, 0, t->a->heads, sum, t->a->scratch);
	else
		t->kernels->attend_more(t->a, slot, 0, t->a->heads, sum, t->a->scratch);
}

void
latent_sums_attend(const TnpModel *model, const TnpAttention *a, int64_t *visible, int64_t start,
				   const LatentRows *part, const LatentSums *from, const LatentSums *to,
				   float *work)
{
	size_t		at = floats_of(model, start),
				size = floats_of(model, a->n);
	Tile		t = {model->kernels, a, visible, at, size, work + 2 * at, work + 2 * at + size};

	t.kernels->attend_begin(a);
	if (from->whole != NULL && part->first == from->rows)
		memcpy(t.total, from->whole + at, size * sizeof(float));
	for (int64_t first = part->first / TNP_SPAN * TNP_SPAN; first < part->end; first += TNP_SPAN)
	{
		int64_t		taken = part->first > first ? part->first : first,
					end = part->end - first < TNP_SPAN ? part->end : first + TNP_SPAN;
		float	   *sum = first > 0 ? t.sum : t.total;

		/* whole spans of those that are kept */
		if (to->whole != NULL && to->rows / TNP_SPAN * TNP_SPAN == first)
			keep(&t, t.total, to->whole);
		if (taken > first)
			memcpy(sum, from->started + at, size * sizeof(float));
		if (to->rows > first && to->rows < first + TNP_SPAN)
		{
			take_rows(&t, part, taken, to->rows, sum);
			taken = to->rows;
			keep(&t, sum, to->started);
		}
		if (taken == first || taken < end)
			take_rows(&t, part, taken, end, sum);
		if (first > 0)
			t.kernels->attend_rest(a, 2, t.total);
	}
	if (part->end < part->rows)
		return;
	if (to->rows == part->rows && part->rows % TNP_SPAN == 0)
		keep(&t, t.total, to->whole);
	t.kernels->attend_rest(a, 1, t.total);
}
