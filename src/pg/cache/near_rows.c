/*
 * near_rows.c: answers from the rows that are nearest to each question.
 *
 * The handle has all rows that the snapshot shows, as plain rows: an entry of the cache or the
 * session's own, found and kept like any encoding (lookup.c, named/acquire.c). From them the engine
 * says which block a question belongs to and which rows the block has (tnp_nearest_make), which is
 * a matter of milliseconds and done again by each call site. What takes long, the encoding of a
 * block's rows, is looked up by its content like that of any rows. So the cache needs no rule for
 * blocks: where an INSERT, UPDATE or DELETE leaves a block's rows what they were, its encoding is
 * found, and where it does not, no encoding is. Encodings are shared where the rows are.
 *
 * Memory. A handle keeps the encodings of the last BLOCKS blocks that it has asked, pinned or its
 * own, whatever the number of questions; all others are the cache's to evict. Index and handles go
 * with the rows' handle.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/near_rows.h"

#include "pg/base/bridge.h"
#include "pg/cache/execute.h"
#include "pg/shmem/progress.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#define BLOCKS 8				/* whose encodings a handle holds on to */
#define ALL (-1)				/* in place of a block: that of several blocks */

typedef struct NearBlock
{
	int64		block;
	PosteriorContextHandle *encoding;	/* or NULL */
} NearBlock;

typedef struct PosteriorNear
{
	PosteriorDelegate delegate; /* comes first */
	PosteriorNearOptions options;
	TnpNearest *index;			/* NULL before the first question */
	NearBlock	held[BLOCKS];
	int			next;			/* place of the next one */
} PosteriorNear;

static PosteriorNear *
near_of(const PosteriorContextHandle *e)
{
	return (PosteriorNear *) e->delegate;
}

static void
near_end(PosteriorDelegate *delegate)
{
	PosteriorNear *near = (PosteriorNear *) delegate;

	for (int i = 0; i < BLOCKS; i++)
		if (near->held[i].encoding != NULL)
			posterior_handle_release(near->held[i].encoding);
	tnp_nearest_free(near->index);
	pfree(near);
}

int64
posterior_near_most(const PosteriorContextHandle *e, int64 n)
{
	int64		all = posterior_cached_rows(e->cached),
				k = near_of(e)->options.k;

	return n < all / k ? n * k : all;
}

/* ---- rows of a block ------------------------------------------------------------------------- */

static TnpNearest *
near_index(PosteriorContextHandle *e)
{
	PosteriorNear *near = near_of(e);
	TnpRows		rows = posterior_cached_view(e->cached);
	TnpError	error;

	if (near->index == NULL
		&& tnp_nearest_make(e->model->model, &rows, near->options.k, &near->index, &error)
		!= TNP_OK)
		posterior_raise(&error, e->model->name);
	return near->index;
}

/* The rows of these numbers, as they are encoded, in the current memory context. */
static TnpRows
rows_pick(const TnpNearest *index, const TnpRows *all, const int64_t *numbers, int64 n)
{
	int			targets = tnp_rows_targets(all),
				d = all->n_features;
	TnpRows		rows = *all;
	double	   *x = MemoryContextAllocHuge(CurrentMemoryContext,
										   Max(n * d, 1) * sizeof(double)),
			   *y = MemoryContextAllocHuge(CurrentMemoryContext,
										   Max(n * targets, 1) * sizeof(double));

	for (int64 i = 0; i < n; i++)
	{
		memcpy(x + i * d, all->x + numbers[i] * d, d * sizeof(double));
		for (int t = 0; t < targets; t++)
			y[i * targets + t] = tnp_nearest_target(index, all->y[numbers[i] * targets + t]);
	}
	rows.n = n;
	rows.x = x;
	rows.y = y;
	return rows;
}

/* Hold on to an encoding, and let go of the one that has been held longest. */
static void
near_hold(PosteriorNear *near, int64 block, PosteriorContextHandle *encoding)
{
	NearBlock  *place = &near->held[near->next];
	PosteriorContextHandle *before = place->encoding;

	*place = (NearBlock) {block, encoding};
	near->next = (near->next + 1) % BLOCKS;
	if (before != NULL)
		posterior_handle_release(before);
}

/* The encoding of the rows of these numbers; held. */
static PosteriorContextHandle *
near_encode(PosteriorContextHandle *e, int64 block, const int64_t *numbers, int64 n)
{
	PosteriorNear *near = near_of(e);
	TnpRows		all = posterior_cached_view(e->cached);
	PosteriorLookup lookup = {.model = e->model,
							  .context = near->options.context,
							  .kinds = e->kinds,
							  .labels = e->labels,
							  .rows = rows_pick(near_index(e), &all, numbers, n),
							  .prefix = tnp_whole_prefix(e->model->model, n),
							  .views = near->options.views,
							  .publish = e->entry != NULL};
	PosteriorLookupOutcome outcome;
	PosteriorContextHandle *found;
	bool		shown = posterior_progress_begin(&near->options.id);

	CHECK_FOR_INTERRUPTS();
	found = near->options.fresh ? posterior_handle_build_uncached(&lookup)
		: posterior_handle_lookup(&lookup, &outcome);
	near_hold(near, block, found);
	if (shown)
		posterior_progress_end();
	pfree((double *) lookup.rows.x);
	pfree((double *) lookup.rows.y);
	found->only = e->only;
	return found;
}

static void
block_numbers(PosteriorContextHandle *e, int64 block, int64_t *numbers)
{
	TnpError	error;

	if (tnp_nearest_rows(near_index(e), block, numbers, &error) != TNP_OK)
		posterior_raise(&error, e->model->name);
}

static PosteriorContextHandle *
near_block(PosteriorContextHandle *e, int64 block)
{
	PosteriorNear *near = near_of(e);
	int64		n;
	int64_t    *numbers;
	PosteriorContextHandle *found;

	for (int i = 0; i < BLOCKS; i++)
		if (near->held[i].encoding != NULL && near->held[i].block == block)
			return near->held[i].encoding;
	n = tnp_nearest_size(near_index(e));
	numbers = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(int64_t));
	block_numbers(e, block, numbers);
	found = near_encode(e, block, numbers, n);
	pfree(numbers);
	return found;
}

/* The encoding of the rows of several blocks, each row once, in the context's order. */
static PosteriorContextHandle *
near_blocks(PosteriorContextHandle *e, const int64 *blocks, int64 n)
{
	int64		size = tnp_nearest_size(near_index(e)),
				all = posterior_cached_rows(e->cached),
				count = 0;
	int64_t    *numbers = MemoryContextAllocHuge(CurrentMemoryContext,
												 Max(all, 1) * sizeof(int64_t));
	bool	   *taken = MemoryContextAllocHuge(CurrentMemoryContext, Max(all, 1));
	PosteriorContextHandle *found;

	memset(taken, 0, all);
	for (int64 i = 0; i < n; i++)
	{
		if (i > 0 && blocks[i] == blocks[i - 1])
			continue;
		CHECK_FOR_INTERRUPTS();
		block_numbers(e, blocks[i], numbers);
		for (int64 j = 0; j < size; j++)
			taken[numbers[j]] = true;
	}
	for (int64 i = 0; i < all; i++)
		if (taken[i])
			numbers[count++] = i;
	found = near_encode(e, ALL, numbers, count);
	pfree(numbers);
	pfree(taken);
	return found;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* A question and its block. */
typedef struct Place
{
	int64		block;
	int64		question;
} Place;

static int
compare_places(const void *a, const void *b)
{
	const Place *p = a,
			   *q = b;

	return p->block != q->block ? (p->block > q->block) - (p->block < q->block)
		: (p->question > q->question) - (p->question < q->question);
}

/* The questions of a request, those of a block together. */
static Place *
request_places(PosteriorContextHandle *e, const TnpRequest *r)
{
	Place	   *places = MemoryContextAllocHuge(CurrentMemoryContext,
												r->queries.n * sizeof(Place));

	for (int64 i = 0; i < r->queries.n; i++)
	{
		int64_t		block;
		TnpError	error;

		if (tnp_nearest_block(near_index(e), r->queries.x + i * r->queries.n_features, &block,
							  &error) != TNP_OK)
			posterior_raise(&error, e->model->name);
		places[i] = (Place) {block, i};
	}
	qsort(places, r->queries.n, sizeof(Place), compare_places);
	return places;
}

/* Numbers of the answer to one question. */
static int64
answer_width(const PosteriorContextHandle *e, const TnpRequest *r)
{
	return r->kind == TNP_REQUEST_PREDICT ? tnp_answer_size(e->model->model)
		: (int64) tnp_model_info(e->model->model)->n_targets * tnp_reduction_width(r);
}

static void
execute_by(PosteriorContextHandle *e, PosteriorContextHandle *encoding, TnpRequest *r)
{
	posterior_execute(encoding, r);
	if (encoding->by == POSTERIOR_BY_DEVICE || e->by == POSTERIOR_BY_RULE)
		e->by = encoding->by;
}

/* Answer the n questions at these places, which are of one block. */
static void
execute_block(PosteriorContextHandle *e, TnpRequest *r, const Place *places, int64 n)
{
	int			d = r->queries.n_features,
				targets = tnp_rows_targets(&r->queries);
	int64		width = answer_width(e, r);
	TnpRequest	part = *r;
	double	   *x = palloc_extended(Max(n * d, 1) * sizeof(double), MCXT_ALLOC_HUGE),
			   *y = palloc_extended(n * targets * sizeof(double), MCXT_ALLOC_HUGE);

	part.answer = palloc_extended(n * width * sizeof(double), MCXT_ALLOC_HUGE);
	for (int64 i = 0; i < n; i++)
	{
		int64		at = places[i].question;

		memcpy(x + i * d, r->queries.x + at * d, d * sizeof(double));
		if (r->queries.y != NULL)
			memcpy(y + i * targets, r->queries.y + at * targets, targets * sizeof(double));
	}
	part.queries.n = n;
	part.queries.before = TNP_UNNUMBERED;
	part.queries.x = x;
	if (r->queries.y != NULL)
		part.queries.y = y;
	execute_by(e, near_block(e, places[0].block), &part);
	for (int64 i = 0; i < n; i++)
		memcpy(r->answer + places[i].question * width, part.answer + i * width,
			   width * sizeof(double));
	pfree(part.answer);
	pfree(x);
	pfree(y);
}

/* Answer a request whose questions belong together. */
static void
execute_joint(PosteriorContextHandle *e, TnpRequest *r, const Place *places)
{
	int64	   *blocks = MemoryContextAllocHuge(CurrentMemoryContext,
												r->queries.n * sizeof(int64));
	bool		one = places[0].block == places[r->queries.n - 1].block;

	for (int64 i = 0; i < r->queries.n; i++)
		blocks[i] = places[i].block;
	execute_by(e, one ? near_block(e, blocks[0]) : near_blocks(e, blocks, r->queries.n), r);
	pfree(blocks);
}

static void
near_execute(PosteriorContextHandle *e, TnpRequest *r)
{
	bool		marginal = r->kind == TNP_REQUEST_PREDICT || r->kind == TNP_REQUEST_REDUCE;
	Place	   *places;

	if (r->queries.n == 0)
	{
		/* nothing is asked: a density of no rows is one */
		if (r->kind == TNP_REQUEST_SCORE)
			*r->answer = 0;
		return;
	}
	e->by = POSTERIOR_BY_RULE;
	places = request_places(e, r);
	if (!marginal)
		execute_joint(e, r, places);
	for (int64 i = 0, next; marginal && i < r->queries.n; i = next)
	{
		for (next = i + 1; next < r->queries.n && places[next].block == places[i].block; next++)
			;
		execute_block(e, r, places + i, next - i);
	}
	pfree(places);
}

void
posterior_near_begin(PosteriorContextHandle *e, const PosteriorNearOptions *options)
{
	PosteriorNear *near = MemoryContextAllocExtended(TopMemoryContext, sizeof(PosteriorNear),
													 MCXT_ALLOC_ZERO | MCXT_ALLOC_NO_OOM);

	if (near == NULL)
	{
		posterior_handle_release(e);
		posterior_raise_no_memory();
	}
	near->delegate.execute = near_execute;
	near->delegate.end = near_end;
	near->options = *options;
	e->delegate = &near->delegate;
}
