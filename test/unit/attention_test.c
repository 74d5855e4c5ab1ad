/*
 * attention_test.c: attention of every table of kernels against the reference provider, in one
 * piece and, bitwise the same, in parts; of several planes of values, and of each plane alone.
 *
 * Tiles of all sizes: shared keys of several spans, which rows see to the same or to different
 * lengths or not at all, keys of their own, rows that are alike. Slots that no row sees hold NaN.
 * Tables whose keys and values are halves are compared with the reference on the same halves, so
 * that only arithmetic differs.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "models.h"
#include "tables.h"
#include "tap.h"

#define MOST_SHARED (3 * TNP_SPAN)
#define MOST_OWN 40
#define SLACK 31				/* floats after the last value, which vectors may reach into */
#define TOLERANCE 2e-5			/* values are at most 2 */

static const TnpKernels *table;
static unsigned state;

/*
 * Keys and values in the layout of kernels.h, of floats for the reference and of the table's
 * numbers.
 */
typedef struct Cache
{
	float	   *k,
			   *v;
	void	   *table_k,
			   *table_v;
} Cache;

/* A random tile: what is in it, and its memory. */
typedef struct Tile
{
	TnpAttention a;				/* as the table sees it */
	TnpKeys	   *own;			/* as the reference does */
	Cache		shared,
				private[TNP_TILE];
	int64_t		shared_n,		/* shared keys, and those that any row sees */
				most;
} Tile;

static bool
chance(double p)
{
	return test_uniform(&state) < p;
}

/* 0 … most - 1 */
static int
below(int most)
{
	return (int) (test_uniform(&state) * most);
}

/* 1 … most, half of the time a small one. */
static int
size(int most)
{
	return 1 + below(chance(0.5) && most > 9 ? 9 : most);
}

/* As many bytes as asked for and not one more, so that reading beyond them is seen. */
static void *
allocate(size_t n)
{
	void	   *p;

	if (posix_memalign(&p, 64, n > 0 ? n : 1) != 0)
		exit(1);
	return p;
}

static float
number(void)
{
	return (float) (4 * (test_uniform(&state) - 0.5));
}

/* The same in 11 bits, so that halves and floats are the same number. */
static float
short_number(void)
{
	return truncf(number() * 512) / 512;
}

static void *
table_numbers(size_t n, const float *x)
{
	void	   *y = allocate((n + SLACK) * table->number);

	memset(y, 0, (n + SLACK) * table->number);
	if (table->narrow != NULL)
		table->narrow((int) n, x, y);
	else
		memcpy(y, x, n * sizeof(float));
	return y;
}

/*
 * Memory for n slots of heads of a width, with planes of values, in blocks of a size; those that no
 * row sees hold NaN. `growth` is what later keys are multiplied with, a power of two, so that they
 * stay halves.
 */
static Cache
fill(int64_t n, int block, int heads, int head_width, int planes, double growth)
{
	int			d = heads * head_width;
	size_t		all = (size_t) tnp_blocks(n, block) * d;
	Cache		c = {allocate(all * sizeof(float)), allocate(all * planes * sizeof(float)), NULL,
					 NULL};

	for (size_t i = 0; i < all; i++)
		c.k[i] = NAN;
	for (size_t i = 0; i < all * planes; i++)
		c.v[i] = NAN;
	for (int64_t s = 0; s < n; s++)
		for (int h = 0; h < heads; h++)
			for (int f = 0; f < head_width; f++)
			{
				float		factor = growth > 1 && s > n / 2 ? (float) growth : 1;

				c.k[tnp_key_at(s, block, d, h, head_width, f)] = factor * short_number();
				for (int p = 0; p < planes; p++)
					c.v[tnp_value_at(s, block, planes * d, h * planes + p, head_width) + f] =
						short_number();
			}
	c.table_k = table_numbers(all, c.k);
	c.table_v = table_numbers(all * planes, c.v);
	return c;
}

/* Values of one plane alone. */
static void *
plane_alone(const void *values, int64_t n, int block, const TnpAttention *a, int plane)
{
	size_t		head = (size_t) block * a->head_width * table->number,
				blocks = (size_t) tnp_blocks(n, block) / block,
				all = blocks * a->heads * head;
	char	   *alone = allocate(all + SLACK * table->number);

	memset(alone, 0, all + SLACK * table->number);
	for (size_t i = 0; i < blocks * a->heads; i++)
		memcpy(alone + i * head,
			   (const char *) values + (i * tnp_attention_planes(a) + plane) * head, head);
	return alone;
}

static void
empty(Cache *c)
{
	free(c->k);
	free(c->v);
	free(c->table_k);
	free(c->table_v);
}

static size_t
out_numbers(const TnpAttention *a)
{
	return (size_t) a->n * tnp_attention_planes(a) * a->heads * a->head_width;
}

static void
tile_make(Tile *t)
{
	TnpAttention *a = &t->a;
	int64_t		shared = chance(0.1) ? 0 : size(chance(0.3) ? MOST_SHARED : 200);
	double		growth = chance(0.3) ? 2 : 1,
				keep_own = chance(0.4) ? 0 : 0.7;
	bool		shared_rows = chance(0.5);
	int			d;
	float	   *q,
			   *scale;
	int64_t    *context;
	TnpKeys    *own;

	memset(t, 0, sizeof(*t));
	t->shared_n = shared;
	a->heads = size(5);
	a->head_width = size(chance(0.8) ? 33 : 130);
	a->planes = chance(0.6) ? below(2) : size(7);
	a->n = size(chance(0.8) ? 20 : TNP_TILE);
	a->distinct = chance(0.5) ? a->n : size(a->n);
	d = a->heads * a->head_width;
	q = allocate((size_t) a->n * d * sizeof(float));
	scale = allocate((size_t) a->n * a->heads * sizeof(float));
	context = allocate(a->n * sizeof(int64_t));
	own = allocate(a->n * sizeof(TnpKeys));
	t->own = allocate(a->n * sizeof(TnpKeys));
	t->shared = fill(shared, TNP_BLOCK, a->heads, a->head_width, tnp_attention_planes(a), growth);
	for (int r = 0; r < a->n; r++)
	{
		int			n = chance(keep_own) ? below(MOST_OWN) : 0,
					from = r < a->distinct ? r : a->distinct - 1;

		for (int i = 0; i < d; i++)
			q[r * d + i] = from < r ? q[from * d + i] : number();
		for (int h = 0; h < a->heads; h++)
			scale[r * a->heads + h] = from < r ? scale[from * a->heads + h]
				: (float) ((0.5 + 2 * test_uniform(&state)) / sqrt(a->head_width));
		context[r] = from < r ? context[from] : shared_rows || chance(0.3) ? shared : chance(0.1)
			? 0 : below((int) shared + 1);
		t->most = context[r] > t->most ? context[r] : t->most;
		t->private[r] = fill(n, TNP_PANEL, a->heads, a->head_width, tnp_attention_planes(a), 1);
		t->own[r] = (TnpKeys) {t->private[r].k, t->private[r].v, n};
		own[r] = (TnpKeys) {t->private[r].table_k, t->private[r].table_v, n};
	}
	a->q = q;
	a->scale = scale;
	a->k = t->shared.table_k;
	a->v = t->shared.table_v;
	a->context = context;
	a->own = own;
	a->scratch = allocate(table->attend_floats(a->heads, a->head_width, tnp_attention_planes(a),
											   a->n) * sizeof(float));
	a->out = allocate(out_numbers(a) * sizeof(float));
}

static void
tile_free(Tile *t)
{
	empty(&t->shared);
	for (int r = 0; r < t->a.n; r++)
		empty(&t->private[r]);
	free((void *) t->a.q);
	free((void *) t->a.scale);
	free((void *) t->a.context);
	free((void *) t->a.own);
	free(t->own);
	free(t->a.scratch);
	free(t->a.out);
}

/* The largest difference from the reference; NaN is the largest of all. */
static double
difference(const Tile *t)
{
	size_t		n = out_numbers(&t->a);
	TnpAttention a = t->a;
	double		worst = 0;

	a.k = t->shared.k;
	a.v = t->shared.v;
	a.own = t->own;
	a.scratch = NULL;
	a.out = allocate(n * sizeof(float));
	tnp_reference_kernels.attend(&a);
	for (size_t i = 0; i < n; i++)
	{
		double		error = fabs((double) t->a.out[i] - a.out[i]);

		worst = isnan(error) ? INFINITY : fmax(worst, error);
	}
	free(a.out);
	return worst;
}

/* The same spans and heads one by one, the last first, give the same bits. */
static bool
same_in_parts(const Tile *t)
{
	int			planes = tnp_attention_planes(&t->a);
	size_t		n = out_numbers(&t->a),
				sum = table->sum_floats(t->a.heads, t->a.head_width, planes, t->a.n),
				scratch = table->attend_floats(t->a.heads, t->a.head_width, planes, t->a.n);
	int64_t		spans = (t->most + TNP_SPAN - 1) / TNP_SPAN;
	float	   *whole = allocate(n * sizeof(float)),
			   *sums = allocate(spans * sum * sizeof(float)),
			   *own_scratch = allocate(scratch * sizeof(float));
	bool		same;

	memcpy(whole, t->a.out, n * sizeof(float));
	for (size_t i = 0; i < n; i++)
		t->a.out[i] = NAN;
	table->attend_begin(&t->a);
	for (int64_t span = spans; span-- > 0;)
		for (int end = t->a.heads, first; end > 0; end = first)
		{
			first = end - size(end);
			table->attend_span(&t->a, span, first, end, sums + span * sum, own_scratch);
		}
	table->attend_rest(&t->a, spans, sums);
	same = memcmp(whole, t->a.out, n * sizeof(float)) == 0;
	free(whole);
	free(sums);
	free(own_scratch);
	return same;
}

/* The values of each plane by themselves give the same bits. */
static bool
same_alone(const Tile *t)
{
	const TnpAttention *all = &t->a;
	TnpAttention a = *all;
	int			planes = tnp_attention_planes(all),
				d = all->heads * all->head_width;
	TnpKeys    *own = allocate(all->n * sizeof(TnpKeys));
	bool		same = true;

	a.planes = 1;
	a.own = own;
	a.out = allocate((size_t) a.n * d * sizeof(float));
	for (int p = 0; p < planes; p++)
	{
		a.v = plane_alone(all->v, t->shared_n, TNP_BLOCK, all, p);
		for (int r = 0; r < a.n; r++)
			own[r] = (TnpKeys) {all->own[r].k, plane_alone(all->own[r].v, all->own[r].n, TNP_PANEL,
														   all, p), all->own[r].n};
		table->attend(&a);
		for (int r = 0; r < a.n; r++)
		{
			same = same && memcmp(a.out + (size_t) r * d,
								  all->out + ((size_t) r * planes + p) * d, d * sizeof(float)) == 0;
			free((void *) own[r].v);
		}
		free((void *) a.v);
	}
	free(own);
	free(a.out);
	return same;
}

static void
test_table(void)
{
	int			rounds = getenv("TNP_QUICK") != NULL ? 6 : 400,
				parts = 0;
	double		worst = 0;
	bool		same = true,
				alone = true;

	state = 7;
	for (int i = 0; i < rounds; i++)
	{
		Tile		t;

		tile_make(&t);
		table->attend(&t.a);
		worst = fmax(worst, difference(&t));
		if (table->attend_begin != NULL && t.most > 0)
		{
			same = same_in_parts(&t) && same;
			parts++;
		}
		if (t.a.planes > 1)
			alone = same_alone(&t) && alone;
		tile_free(&t);
	}
	if (!ok(worst <= TOLERANCE, "%s: attention is the reference's", table->name))
		diag("largest difference %g", worst);
	ok(same && parts > 0, "%s: attention in parts is the same, bitwise", table->name);
	ok(alone, "%s: each plane of values alone is the same, bitwise", table->name);
}

int
main(void)
{
	const KnownTable *known;

	for (int i = 0; (known = known_table(i)) != NULL; i++)
	{
		const char *why;

		if ((table = known_kernels(known, &why)) != NULL)
			test_table();
		else
			skip(why, "%s of %s: attention", known->name, known->architecture);
	}
	return done_testing();
}
