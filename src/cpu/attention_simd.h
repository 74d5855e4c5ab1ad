/*
 * attention_simd.h: softmax attention in one pass over the keys (Milakov and Gimelshein, Online
 * normalizer calculation for softmax; Dao, FlashAttention-2).
 *
 * Keys are taken in blocks of BLOCK slots. Of each row and head there is a sum: a reference near
 * the largest score so far, and weights and weighted values relative to it. All heads and all rows
 * of the tile take a block before the next is looked at, so that keys and values are read once, in
 * order.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "cpu/attention_block_simd.h"

/*
 * `rows` rows from `row` on with queries q, whose features are `stride` apart, and one head take
 * the first n of a block of keys: k and v are the first of its `panels` panels, `next` numbers of a
 * key from one panel to the next, and values of `run` slots of a plane lie one after the other. All
 * slots of the panels are readable.
 */
INLINE void
take_block(const int rows, const TnpAttention *a, int row, int head, const float *q,
		   const int stride, const void *k, const void *v, const bool half, size_t next, int panels,
		   const int run, int n, float *sums)
{
	/* whose scores are computed at once: more, where there are panels for half a block only */
	const int	few = rows <= SCORE_ROWS || (panels == 2 && PANELS == 4 && rows <= 2 * SCORE_ROWS)
		? rows : (rows + 1) / 2;
	const int	planes = tnp_attention_planes(a);
	int			width = a->head_width,
				vectors = (width + WIDTH - 1) / WIDTH,
				all = sum_vectors(a);
	float		score[ROWS * BLOCK] __attribute__((aligned(64)));
	Sum			sum[ROWS];

	for (int r = 0; r < rows; r++)
		sum[r] = sum_at(a, sums, row + r, head);
	score_block(few, panels, width, q, stride, k, half, next, score);
	if (rows > few)
		score_block(rows - few, panels, width, q + few, stride, k, half, next, score + few * BLOCK);
	for (int r = 0; r < rows; r++)
		raise_reference(score + r * BLOCK, panels, n, all, sum[r]);
	for (int r = 0; r < rows; r++)
		weigh_scores(score + r * BLOCK, panels, sum[r]);
	for (int p = 0; p < planes; p++)
	{
		for (int s = 0; s < n; s += run)
			add_head(rows, vectors, width,
					 number_at(v, s / LANES * next * planes + (size_t) p * run * width, half),
					 half, rows, 0, n - s < run ? n - s : run, score + s, sum);
		next_plane(rows, width, sum);
	}
}

/* Keys of this block, from slot s on, that a row with `count` keys sees. */
INLINE int
seen_of_block(int64_t count, int64_t s)
{
	return count <= s ? 0 : count - s < BLOCK ? (int) (count - s) : BLOCK;
}

/* The first key and value of a head in the block of shared keys that starts at slot s. */
INLINE const void *
shared_key(const TnpAttention *a, int head, int64_t s)
{
	return number_at(a->k, tnp_key_at(s, BLOCK, a->heads * a->head_width, head, a->head_width, 0),
					 HALF);
}

INLINE const void *
shared_value(const TnpAttention *a, int head, int64_t s)
{
	int			planes = tnp_attention_planes(a);

	return number_at(a->v, tnp_value_at(s, BLOCK, planes * a->heads * a->head_width, planes * head,
										a->head_width), HALF);
}

/* One row, with query q of this head, takes what it sees of the block of shared keys at slot s. */
static void
take_shared_one(const TnpAttention *a, int row, int head, const float *q, int stride, const void *k,
				const void *v, const bool half, int64_t s, float *sums)
{
	int			n = seen_of_block(a->context[row], s);

	if (n > 0)
		take_block(1, a, row, head, q, stride, k, v, half, (size_t) a->head_width * LANES,
				   BLOCK / LANES, BLOCK, n, sums);
}

/*
 * The same for one or two rows, which see the same, and `heads` heads at once, whose sums do not
 * wait for each other.
 */
INLINE void
take_shared_heads(const int heads, const int rows, const TnpAttention *a, int row, int head,
				  int64_t s, float *sums)
{
	const int	planes = tnp_attention_planes(a);
	int			n = seen_of_block(a->context[row], s),
				width = a->head_width,
				vectors = (width + WIDTH - 1) / WIDTH,
				all = sum_vectors(a);
	const size_t next = (size_t) width * LANES,
				apart = (size_t) BLOCK * width;
	const void *k = shared_key(a, head, s),
			   *v = shared_value(a, head, s);
	const float *q = a->scratch + (size_t) row * a->heads * width + (size_t) head * width * rows;
	float		score[ROWS * BLOCK] __attribute__((aligned(64)));
	Sum			sum[ROWS];

	if (n == 0)
		return;
	for (int h = 0; h < heads; h++)
		score_block(rows, BLOCK / LANES, width, q + h * rows * width, rows,
					number_at(k, h * apart, HALF), HALF, next, score + h * rows * BLOCK);
	for (int i = 0; i < heads * rows; i++)
	{
		sum[i] = sum_at(a, sums, row + i % rows, head + i / rows);
		raise_reference(score + i * BLOCK, BLOCK / LANES, n, all, sum[i]);
		weigh_scores(score + i * BLOCK, BLOCK / LANES, sum[i]);
	}
	for (int p = 0; p < planes; p++)
	{
		add_head(heads * rows, vectors, width, number_at(v, p * apart, HALF), HALF, rows,
				 planes * apart, n, score, sum);
		next_plane(heads * rows, width, sum);
	}
}

/* One row or two take a block with heads h … end - 1. */
INLINE void
take_few(const int rows, const TnpAttention *a, int row, int h, int end, int64_t s, float *sums)
{
	const int	most = ROWS >= 4 ? 4 / rows : 2 / rows;	/* heads, which are so many sums together */
	int			vectors = (a->head_width + WIDTH - 1) / WIDTH;

	for (; most > 1 && vectors <= 2 && h + most <= end; h += most)
		take_shared_heads(most, rows, a, row, h, s, sums);
	for (; rows == 1 && h + 2 <= end; h += 2)
		take_shared_heads(2, rows, a, row, h, s, sums);
	for (; h < end; h++)
		take_shared_heads(1, rows, a, row, h, s, sums);
}

static void
take_shared_row(const TnpAttention *a, int row, int first, int end, int64_t s, float *sums)
{
	take_few(1, a, row, first, end, s, sums);
}

#if ROWS > 2
static void
take_shared_pair(const TnpAttention *a, int row, int first, int end, int64_t s, float *sums)
{
	if (seen_of_block(a->context[row], s) == seen_of_block(a->context[row + 1], s))
		take_few(2, a, row, first, end, s, sums);
	else
		for (int i = 0; i < 2; i++)
			for (int h = first; h < end; h++)
				take_shared_one(a, row + i, h, a->scratch + (size_t) row * a->heads *
								a->head_width + (size_t) h * a->head_width * 2 + i, 2,
								shared_key(a, h, s), shared_value(a, h, s), HALF, s, sums);
}
#endif

/*
 * A group of rows takes what it sees of a block of shared keys, which are floats here, together if
 * it is the same for all.
 */
INLINE void
take_rows(const int rows, const TnpAttention *a, int row, int head, const float *k, const float *v,
		  int64_t s, float *sums)
{
	int			n = seen_of_block(a->context[row], s),
				width = a->head_width;
	const float *q = a->scratch + (size_t) row * a->heads * width + (size_t) head * width * rows;
	bool		same = n > 0;

	for (int i = 1; i < rows; i++)
		same = same && seen_of_block(a->context[row + i], s) == n;
	/* what the other half would add is lost in rounding, see weigh_scores */
	if (same && n <= BLOCK / 2)
		take_block(rows, a, row, head, q, rows, k, v, false, (size_t) width * LANES,
				   BLOCK / LANES / 2, BLOCK, n, sums);
	else if (same)
		take_block(rows, a, row, head, q, rows, k, v, false, (size_t) width * LANES, BLOCK / LANES,
				   BLOCK, n, sums);
	else
		for (int i = 0; i < rows; i++)
			take_shared_one(a, row + i, head, q + i, rows, k, v, false, s, sums);
}

#ifdef KERNELS_HALF
/* A head's keys or values of a block, `width` numbers of each slot, as floats. */
static const float *
widen(const void *halves, int width, float *wide)
{
	int			n = BLOCK * width;

	for (int i = 0; i < n; i += WIDTH)
		store(wide + i, load_half((const uint16_t *) halves + i));
	return wide;
}
#endif

/* A function for each number of rows: all in one are more than compilers like. */
#define TAKE_ROWS(rows) \
static __attribute__((noinline)) void \
take_rows_##rows(const TnpAttention *a, int row, int head, const float *k, const float *v, \
				 int64_t s, float *sums) \
{ \
	take_rows(rows, a, row, head, k, v, s, sums); \
}
CASES(TAKE_ROWS);
#undef TAKE_ROWS

/* take_rows for a number of rows that is known when it runs. */
static void
take_group(int rows, const TnpAttention *a, int row, int head, const float *k, const float *v,
		   int64_t s, float *sums)
{
	switch (rows)
	{
#define TAKE_ROWS(rows) \
		case rows: \
			take_rows_##rows(a, row, head, k, v, s, sums); \
			break
		CASES(TAKE_ROWS);
#undef TAKE_ROWS
	}
}

/*
 * All distinct rows of the tile and heads first … end - 1 take the block of shared keys that starts
 * at slot s. Many rows have time to ask for what is needed next; few would only keep the caches
 * busy, which fetch what is read in order by themselves.
 */
static void
take_shared(const TnpAttention *a, int first, int end, int64_t s, float *sums, float *scratch)
{
	const size_t line = 64 / sizeof(Number);
	const int	planes = tnp_attention_planes(a);
	size_t		run = (size_t) BLOCK * a->head_width;
	int			n = a->distinct,
				groups = groups_of(n);
	size_t		share = groups > 1 ? (run / (groups - 1) + line - 1) / line * line : 0;

	if (n == 1)
	{
		take_shared_row(a, 0, first, end, s, sums);
		return;
	}
#if ROWS > 2
	if (n == 2)
	{
		take_shared_pair(a, 0, first, end, s, sums);
		return;
	}
#endif
	for (int h = first; h < end; h++)
	{
		const Number *next_k = (const Number *) a->k + (size_t) s * a->heads * a->head_width +
			(h + 1) * run,
				   *next_v = (const Number *) a->v
					   + planes * ((size_t) s * a->heads * a->head_width + (h + 1) * run);
#ifdef KERNELS_HALF
		/* groups of rows read each number several times */
		float	   *wide = scratch + query_floats(a->heads, a->head_width, a->n) +
			2 * sum_floats_of(a);
		const float *k = widen(shared_key(a, h, s), a->head_width, wide),
				   *v = widen(shared_value(a, h, s), planes * a->head_width,
							  wide + wide_floats(a->head_width));
#else
		const float *k = shared_key(a, h, s),
				   *v = shared_value(a, h, s);

		(void) scratch;
#endif
		int			row = 0;

		for (int g = 0; g < groups; g++)
		{
			int			rows = group_size(n, g);

			for (size_t i = g * share; g > 0 && i < (g + 1) * share; i += line)
			{
				__builtin_prefetch(next_k + i - share, 0, 2);
				__builtin_prefetch(next_v + i - share, 0, 2);
			}
			take_group(rows, a, row, h, k, v, s, sums);
			row += rows;
		}
	}
}

/* Each row takes its own keys. */
static void
take_own(const TnpAttention *a, float *sums)
{
	int			width = a->head_width,
				d = a->heads * width,
				planes = tnp_attention_planes(a);

	for (int r = 0; r < a->n; r++)
	{
		const TnpKeys *own = &a->own[r];
		int			stride;
		const float *q = query_at(a, r, &stride);

		for (int64_t s = 0; s < own->n; s += BLOCK)
		{
			int			n = seen_of_block(own->n, s);

			for (int h = 0; h < a->heads; h++)
				take_block(1, a, r, h, q + (size_t) h * width * stride,
						   stride, number_at(own->k, tnp_key_at(s, LANES, d, h, width, 0), HALF),
						   number_at(own->v, tnp_value_at(s, LANES, planes * d, planes * h, width),
									 HALF),
						   HALF, (size_t) d * LANES, (n + LANES - 1) / LANES, LANES, n, sums);
		}
	}
}

static void
attend_more(const TnpAttention *a, int64_t from, int first, int end, float *sums, float *scratch)
{
	int64_t		keys = 0,
				limit = (from / TNP_SPAN + 1) * TNP_SPAN;

	for (int r = 0; r < a->distinct; r++)
		keys = a->context[r] > keys ? a->context[r] : keys;
	if (keys > limit)
		keys = limit;
	for (int64_t s = from; s < keys; s += BLOCK)
		take_shared(a, first, end, s, sums, scratch);
}

static void
attend_span(const TnpAttention *a, int64_t span, int first, int end, float *sums, float *scratch)
{
	clear_sums(a, first, end, sums);
	attend_more(a, span * TNP_SPAN, first, end, sums, scratch);
}

/* The sums of the first n rows. */
static void
add_sums(const TnpAttention *a, int n, float *into, float *from)
{
	for (int r = 0; r < n; r++)
		for (int h = 0; h < a->heads; h++)
			add_sum(a, sum_at(a, into, r, h), sum_at(a, from, r, h));
}

/* The mean that a sum stands for. */
INLINE void
divide_sum(Sum sum, int width, float *out)
{
	Vector		weights[PARTS];
	float		total;
	int			f = 0;

	for (int p = 0; p < PARTS; p++)
		weights[p] = load(sum.weights + p * WIDTH);
	total = sum_lanes(weights);
	/* without any key all sums are zero */
	if (total == 0)
		total = 1;
	else if (!(fabsf(*sum.reference) <= TNP_LARGEST_SCORE))
		total = NAN;
	for (; f + WIDTH <= width; f += WIDTH)
		store(out + f, load(sum.values + f) / total);
	for (; f < width; f++)
		out[f] = sum.values[f] / total;
}

/* Add the own keys to the sums of the shared ones, and divide. */
static void
finish(const TnpAttention *a, float *sums, float *other)
{
	const int	planes = tnp_attention_planes(a);
	size_t		row_floats = (size_t) a->heads * sum_stride(a->head_width, planes);
	bool		any = false;

	for (int r = a->distinct; r < a->n; r++)
		memcpy(sums + r * row_floats, sums + (a->distinct - 1) * row_floats,
			   row_floats * sizeof(float));
	for (int r = 0; r < a->n; r++)
		any = any || a->own[r].n > 0;
	if (any)
	{
		clear_sums(a, 0, a->heads, other);
		take_own(a, other);
		add_sums(a, a->n, sums, other);
	}
	for (int r = 0; r < a->n; r++)
		for (int h = 0; h < a->heads; h++)
		{
			Sum			sum = sum_at(a, sums, r, h);

			for (int p = 0; p < planes; p++)
			{
				divide_sum(sum, a->head_width,
						   a->out + (((size_t) r * planes + p) * a->heads + h) * a->head_width);
				next_plane(1, a->head_width, &sum);
			}
		}
}

static void
attend_rest(const TnpAttention *a, int64_t spans, float *sums)
{
	size_t		size = sum_floats_of(a);

	for (int64_t i = 1; i < spans; i++)
		add_sums(a, a->distinct, sums, sums + i * size);
	finish(a, sums, first_sum(a));
}

static void
attend(const TnpAttention *a)
{
	float	   *sums = first_sum(a),
			   *other = sums + sum_floats_of(a);
	int64_t		most = 0;

	for (int r = 0; r < a->distinct; r++)
		most = a->context[r] > most ? a->context[r] : most;
	attend_begin(a);
	attend_span(a, 0, 0, a->heads, sums, a->scratch);
	for (int64_t span = 1; span * TNP_SPAN < most; span++)
	{
		attend_span(a, span, 0, a->heads, other, a->scratch);
		add_sums(a, a->distinct, sums, other);
	}
	finish(a, sums, other);
}

#ifdef KERNELS_HALF
static void
narrow(int n, const float *x, void *y)
{
	uint16_t   *half = y;

	for (int i = 0; i < n; i += WIDTH)
	{
		int			here = n - i < WIDTH ? n - i : WIDTH;
		float		piece[WIDTH] = {0};
		uint16_t	result[WIDTH];

		memcpy(piece, x + i, here * sizeof(float));
		store_half(result, vector_max(vector_min(load(piece), splat(TNP_LARGEST_HALF)),
									  splat(-TNP_LARGEST_HALF)));
		memcpy(half + i, result, here * sizeof(uint16_t));
	}
}
#endif
