/*
 * products_marks.c: the marks of attention without softmax, and reading from them.
 *
 * Sums are in double precision and in the order of the rows, so that they depend neither on
 * threads nor on which tokens are read for together.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/products_marks.h"

#include <string.h>

#include "engine/families/products_sums.h"

#define SHARE TNP_PRODUCTS_TOGETHER	/* features whose sums one item makes */
#define READ (2 * (TNP_MAX_WIDTH + 1))	/* numbers that queries read together at most */
#define LINE 64

/* ---- sizes ----------------------------------------------------------------------------------- */

static size_t
shape_slot_bytes(const TnpCacheShape *s)
{
	return ((size_t) s->heads * s->key_width + tnp_value_numbers(s)) * s->number;
}

void
tnp_products_shape_marks(TnpCacheShape *s)
{
	size_t		sums = (size_t) s->heads * tnp_value_planes(s) * s->key_width
		* (s->value_width + 1) * sizeof(double),
				of_plane = sums / tnp_value_planes(s),
				row = (size_t) s->heads * (s->key_width + s->value_width) * s->number;

	/* as far apart for any number of planes: what comes of each is what would come of it alone */
	s->mark = (sums + LINE - 1) / LINE * LINE;
	s->mark_slots = (int) ((of_plane / row + TNP_PANEL / 2) / TNP_PANEL * TNP_PANEL);
	if (s->mark_slots == 0)
		s->mark_slots = TNP_PANEL;
}

size_t
tnp_products_slot_bytes(const TnpCacheShape *s)
{
	size_t		mark = s->mark_slots == 0 ? 0 : (s->mark + s->mark_slots - 1) / s->mark_slots;

	return s->layers * (shape_slot_bytes(s) + mark);
}

double
tnp_products_slots_cost(const TnpCacheShape *s, double slots)
{
	double		met = s->mark_slots > 0 && slots > s->mark_slots ? s->mark_slots : slots;

	return met > 0 ? met * (s->heads * s->key_width + tnp_value_numbers(s)) : 0;
}

/* ---- marks ----------------------------------------------------------------------------------- */

/* The mark of at most n slots, 0 for none, and where its sums begin. */
static int64_t
mark_before(const TnpKvCache *cache, const TnpProducts *p, int64_t n)
{
	return cache->shape.mark_slots > 0 ? (n - p->base) / cache->shape.mark_slots : 0;
}

/* Sums up to a mark, [heads, planes, features, width + 1]; NULL where there is nothing to sum. */
static double *
mark_sums(const TnpKvCache *cache, int layer, const TnpProducts *p, int64_t mark)
{
	if (mark > 0)
		return (double *) (cache->marks[layer] + (mark - 1) * cache->shape.mark);
	return p->base > 0 ? cache->v[layer] : NULL;
}

/* So many slots from this on, at most to the end, lie in one block. */
static int
slots_of_block(int64_t slot, int64_t end)
{
	int			rest = TNP_BLOCK - (int) (slot % TNP_BLOCK);

	return end - slot < rest ? (int) (end - slot) : rest;
}

/* Where a head's keys and values of a plane are, of the slots from a panel's first on. */
static const float *
head_keys(const TnpProducts *p, const TnpKeys *keys, int block, int64_t slot, int head)
{
	return (const float *) keys->k + tnp_key_at(slot, block, p->heads * p->features, head,
												p->features, 0);
}

static const float *
head_values(const TnpProducts *p, const TnpKeys *keys, int block, int64_t slot, int head, int plane)
{
	return (const float *) keys->v + tnp_value_at(slot, block, p->heads * p->planes * p->width,
												  head * p->planes + plane, p->width);
}

/* Marks first + 1 … end of a cache layer. */
typedef struct Marks
{
	const TnpProducts *p;
	const TnpKvCache *cache;
	int			layer;
	int64_t		first,
				end;
} Marks;

/* The sums of some features of one head and plane, from mark to mark. */
static TnpStatus
mark_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	const Marks *m = state;
	const TnpProducts *p = m->p;
	TnpKeys		keys = {m->cache->k[m->layer], m->cache->v[m->layer], 0};
	int			shares = (p->features + SHARE - 1) / SHARE,
				of_head = (int) (item / shares),
				first = (int) (item % shares) * SHARE,
				some = p->features - first < SHARE ? p->features - first : SHARE,
				slots = m->cache->shape.mark_slots;
	size_t		at = of_head * tnp_products_sums(p) + (size_t) first * (p->width + 1),
				bytes = (size_t) some * (p->width + 1) * sizeof(double);
	TnpStatus	status = TNP_OK;

	for (int64_t mark = m->first + 1; status == TNP_OK && mark <= m->end; mark++)
	{
		const double *before = mark_sums(m->cache, m->layer, p, mark - 1);
		double	   *sums = mark_sums(m->cache, m->layer, p, mark) + at;
		int64_t		end = p->base + mark * slots;

		if (before != NULL)
			memcpy(sums, before + at, bytes);
		else
			memset(sums, 0, bytes);
		for (int64_t slot = end - slots; slot < end; slot += slots_of_block(slot, end))
		{
			TnpProductRows rows = {
				head_keys(p, &keys, TNP_BLOCK, slot, of_head / p->planes) + first * TNP_PANEL,
				head_values(p, &keys, TNP_BLOCK, slot, of_head / p->planes, of_head % p->planes),
				0, p->width, (size_t) p->features * TNP_PANEL, slots_of_block(slot, end), some,
				p->width
			};

			tnp_products_add(&rows, sums);
		}
		status = tnp_worker_check(worker, error);
	}
	return status;
}

TnpStatus
tnp_products_mark(TnpWalk *w, const TnpProducts *p, int64_t end, TnpError *error)
{
	Marks		m = {p, w->context, w->at, 0, 0};
	int64_t		first = INT64_MAX,
				last = -1,
				items = (int64_t) p->heads * p->planes * ((p->features + SHARE - 1) / SHARE);
	TnpStatus	status = TNP_OK;

	/* rows go to slots one behind the other; those of a chain to its own */
	for (int64_t i = 0; i < end; i++)
		if (w->tokens[i].own == NULL)
		{
			first = w->tokens[i].slot < first ? w->tokens[i].slot : first;
			last = w->tokens[i].slot > last ? w->tokens[i].slot : last;
		}
	if (last < 0)
		return TNP_OK;
	m.first = mark_before(m.cache, p, first);
	m.end = mark_before(m.cache, p, last + 1);
	if (m.first == m.end)
		return TNP_OK;
	if (w->team != NULL)
		return tnp_team_run(w->team, items, mark_item, &m, error);
	for (int64_t i = 0; status == TNP_OK && i < items; i++)
		status = mark_item(&m, w->worker, i, error);
	return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Queries i … i + n - 1 of a tile that have a mark in common, or one query of all heads. */
typedef struct Readers
{
	const TnpProducts *p;
	const TnpView *view;
	const TnpAttention *a;
	int			i,
				n;
	int64_t		first;			/* slot behind the mark */
} Readers;

/* One head and plane of the queries, block by block, to values [n, width + 1]. */
static void
read_rows(const Readers *r, const TnpProductQueries *q, int head, int plane, double *values)
{
	const TnpProducts *p = r->p;
	TnpKeys		keys = {r->view->k, r->view->v, 0};
	const int64_t *context = r->view->context + r->i;
	int64_t		end = 0;
	int			seen[TNP_PRODUCTS_READERS];

	for (int i = 0; i < r->n; i++)
		end = context[i] > end ? context[i] : end;
	for (int64_t slot = r->first; slot < end; slot += slots_of_block(slot, end))
	{
		TnpProductSlots slots = {head_keys(p, &keys, TNP_BLOCK, slot, head),
								 head_values(p, &keys, TNP_BLOCK, slot, head, plane),
								 slots_of_block(slot, end), seen};

		for (int i = 0; i < r->n; i++)
			seen[i] = context[i] <= slot ? 0
				: context[i] - slot < slots.n ? (int) (context[i] - slot) : slots.n;
		tnp_products_read_slots(q, &slots, values);
	}
}

/* The rows of one query's chain. */
static void
read_chain(const Readers *r, int i, TnpProductQueries q, int head, int plane, double *values)
{
	const TnpKeys *own = &r->view->own[r->i + i];

	q.q += i * q.next_q;
	q.n = 1;
	for (int64_t slot = 0; slot < own->n; slot += TNP_PANEL)
	{
		int			some = own->n - slot < TNP_PANEL ? (int) (own->n - slot) : TNP_PANEL;
		TnpProductSlots slots = {head_keys(r->p, own, TNP_PANEL, slot, head),
								 head_values(r->p, own, TNP_PANEL, slot, head, plane), some, &some};

		tnp_products_read_slots(&q, &slots, values);
	}
}

/* What has been summed up for query i becomes what it reads. */
static void
divide(const Readers *r, int i, int head, int plane, const double *values)
{
	const TnpProducts *p = r->p;
	int64_t		seen = p->rows + r->view->context[r->i + i] - p->base + r->view->own[r->i + i].n;
	double		divisor = p->divisor(seen, values[p->width]);
	float	   *out = r->a->out
		+ (((size_t) (r->i + i) * p->planes + plane) * p->heads + head) * p->width;

	for (int f = 0; f < p->width; f++)
		out[f] = (float) (values[f] / divisor);
}

/* Heads from `head` on, `together` of them, with sums up to the mark that the queries share. */
static void
read_heads(const Readers *r, const double *sums, int head, int plane, int together)
{
	const TnpProducts *p = r->p;
	double		values[READ];
	TnpProductQueries q = {r->a->q + ((size_t) r->i * p->heads + head) * p->features,
						   (size_t) p->heads * p->features, p->width + 1, r->n, together,
						   p->features, p->width};

	memset(values, 0, (size_t) r->n * together * (p->width + 1) * sizeof(double));
	if (sums != NULL)
		tnp_products_read(&q, sums + ((size_t) head * p->planes + plane) * tnp_products_sums(p),
						  values);
	q.heads = 1;
	for (int h = 0; h < together; h++, q.q += p->features)
	{
		double	   *of_head = values + h * q.next_value;

		read_rows(r, &q, head + h, plane, of_head);
		for (int i = 0; i < r->n; i++)
		{
			read_chain(r, i, q, head + h, plane, of_head + i * q.next_value);
			divide(r, i, head + h, plane, of_head + i * q.next_value);
		}
	}
}

/* How many tokens from the first on, at most `most`, see the same mark. */
static int
same_mark(const TnpKvCache *cache, const TnpProducts *p, const int64_t *context, int most)
{
	int64_t		mark = mark_before(cache, p, context[0]);
	int			n = 1;

	while (n < most && mark_before(cache, p, context[n]) == mark)
		n++;
	return n;
}

void
tnp_products_attend(const TnpWalk *w, const TnpProducts *p, int n, const TnpView *view,
					const TnpAttention *a)
{
	const TnpKvCache *cache = w->context;
	int			most = READ / (p->width + 1),
				together = n == 1 && p->planes == 1 ? p->heads : 1;

	if (most > TNP_PRODUCTS_READERS)
		most = TNP_PRODUCTS_READERS;
	/* one head after the other, whose sums stay in the nearest cache; of one query all heads */
	for (int head = 0; head < p->heads; head += together)
		for (int plane = 0; plane < p->planes; plane++)
			for (int i = 0; i < n;)
			{
				int64_t		mark = mark_before(cache, p, view->context[i]);
				Readers		r = {p, view, a, i, 0, p->base};

				r.n = same_mark(cache, p, view->context + i, n - i < most ? n - i : most);
				r.first += mark * cache->shape.mark_slots;
				read_heads(&r, mark_sums(cache, w->at, p, mark), head, plane, together);
				i += r.n;
			}
}
