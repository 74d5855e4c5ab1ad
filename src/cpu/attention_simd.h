/*
 * attention_simd.h: softmax attention in one pass over the keys (Milakov and Gimelshein, Online normalizer calculation for softmax; Dao, FlashAttention-2).
 *
 * Keys are taken in blocks of BLOCK slots. Of each row and head there is a sum: the largest score so far, and weights and weighted values relative to it.
 * All heads and all rows of the tile take a block before the next is looked at, so that keys and values are read once, in order.
 *
 * SPDX-License-Identifier: PostgreSQL
 */

#define BLOCK TNP_BLOCK
#define LOG2_E 1.44269504088896341f
#define MAX_VECTORS 4			/* vectors of values that are added up at once */

/* Sum of a row and head: weighted values [padded head], weights [LANES], largest score, in units of log 2. */
typedef struct Sum
{
	float	   *values,
			   *weights,
			   *max;
} Sum;

INLINE int
padded_head(int head_width)
{
	return (head_width + LANES - 1) / LANES * LANES;
}

INLINE int
sum_stride(int head_width)
{
	return padded_head(head_width) + 2 * LANES;
}

static size_t
sum_floats(int heads, int head_width, int n)
{
	return (size_t) n * heads * sum_stride(head_width);
}

/* The scaled queries, the sum, and that of one span. */
static size_t
attend_floats(int heads, int head_width, int n)
{
	return (size_t) (n * heads * head_width + LANES - 1) / LANES * LANES + 2 * sum_floats(heads, head_width, n);
}

INLINE float *
first_sum(const TnpAttention *a)
{
	return a->scratch + (size_t) (a->n * a->heads * a->head_width + LANES - 1) / LANES * LANES;
}

/* Rows that are taken together: ROWS, what is left over by three, and one by one. Returns how many row is among, and the first of them. */
INLINE int
group_of(const TnpAttention *a, int row, int *first)
{
	int			whole = a->n / ROWS * ROWS,
				threes = ROWS > 3 ? (a->n - whole) / 3 * 3 : 0;

	if (row < whole)
	{
		*first = row / ROWS * ROWS;
		return ROWS;
	}
	if (row < whole + threes)
	{
		*first = whole + (row - whole) / 3 * 3;
		return 3;
	}
	*first = row;
	return 1;
}

/* A row's scaled query of a head, and how far its features are apart. */
INLINE const float *
query_at(const TnpAttention *a, int row, int head, int *stride)
{
	int			first;

	*stride = group_of(a, row, &first);
	return a->scratch + (size_t) first * a->heads * a->head_width + (size_t) head * a->head_width * *stride + (row - first);
}

/* Lay out the queries as they are read: of each group of rows one head after the other, of each feature all rows; scaled, in units of log 2. */
static void
attend_begin(const TnpAttention *a)
{
	int			d = a->heads * a->head_width;

	for (int row = 0; row < a->n; row++)
		for (int h = 0; h < a->heads; h++)
		{
			float		scale = a->scale[row * a->heads + h] * LOG2_E;
			const float *q = a->q + (size_t) row * d + h * a->head_width;
			int			stride;
			float	   *out = (float *) query_at(a, row, h, &stride);

			for (int f = 0; f < a->head_width; f++)
				out[f * stride] = q[f] * scale;
		}
}

INLINE Sum
sum_at(const TnpAttention *a, float *sums, int row, int head)
{
	float	   *at = sums + ((size_t) row * a->heads + head) * sum_stride(a->head_width);
	int			padded = padded_head(a->head_width);

	return (Sum) {at, at + padded, at + padded + LANES};
}

static void
clear_sums(const TnpAttention *a, float *sums)
{
	memset(sums, 0, sum_floats(a->heads, a->head_width, a->n) * sizeof(float));
	for (int r = 0; r < a->n; r++)
		for (int h = 0; h < a->heads; h++)
			*sum_at(a, sums, r, h).max = -INFINITY;
}

/* a += b */
static __attribute__((noinline)) void
add_sum(const TnpAttention *a, Sum into, Sum from)
{
	float		max = *from.max > *into.max ? *from.max : *into.max;
	Vector		keep,
				add;

	if (*from.max == -INFINITY)
		return;
	keep = vector_exp2(splat(*into.max - max));
	add = vector_exp2(splat(*from.max - max));
	for (int i = 0; i < padded_head(a->head_width); i += WIDTH)
		store(into.values + i, load(into.values + i) * keep + load(from.values + i) * add);
	for (int i = 0; i < LANES; i += WIDTH)
		store(into.weights + i, load(into.weights + i) * keep + load(from.weights + i) * add);
	*into.max = max;
}

/* score[r][slot] = q[r].k[slot] for `panels` panels of keys, `next` floats apart; q has a feature of the rows every `stride` floats. */
INLINE void
score_panels(const int rows, const int panels, int head_width, size_t next, const float *q, const int stride, const float *k, float *score)
{
	Vector		sum[ROWS][LONE * PARTS];

	for (int r = 0; r < rows; r++)
		for (int p = 0; p < panels * PARTS; p++)
			sum[r][p] = splat(0);
	for (int f = 0; f < head_width; f++)
	{
		Vector		key[LONE * PARTS];

		for (int p = 0; p < panels * PARTS; p++)
			key[p] = load(k + p / PARTS * next + (size_t) f * LANES + p % PARTS * WIDTH);
		for (int r = 0; r < rows; r++)
		{
			Vector		query = splat(q[f * stride + r]);

			for (int p = 0; p < panels * PARTS; p++)
				sum[r][p] += key[p] * query;
		}
	}
	for (int r = 0; r < rows; r++)
		for (int p = 0; p < panels * PARTS; p++)
			store(score + r * BLOCK + p * WIDTH, sum[r][p]);
}

/* Turn the first n scores of a block into weights relative to the largest score so far, which they may raise. */
INLINE void
weigh_block(float *score, int n, int vectors, Sum sum)
{
	int			panels = (n + LANES - 1) / LANES;
	Vector		max = splat(*sum.max),
				total[PARTS];
	float		top;

	if (n % LANES != 0)
		for (int i = (panels - 1) * LANES; i < panels * LANES; i += WIDTH)
			store(score + i, choose(lanes_below(i % LANES, n - (panels - 1) * LANES), load(score + i), splat(-INFINITY)));
	for (int i = 0; i < panels * LANES; i += WIDTH)
		max = vector_max(load(score + i), max);
	top = max_lane(max);
	for (int p = 0; p < PARTS; p++)
		total[p] = load(sum.weights + p * WIDTH);
	if (top > *sum.max)
	{
		Vector		keep = vector_exp2(splat(*sum.max - top));

		for (int i = 0; i < vectors; i++)
			store(sum.values + i * WIDTH, load(sum.values + i * WIDTH) * keep);
		for (int p = 0; p < PARTS; p++)
			total[p] *= keep;
		*sum.max = top;
	}
	for (int i = 0; i < panels * LANES; i += LANES)
		for (int p = 0; p < PARTS; p++)
		{
			Vector		weight = vector_exp2(load(score + i + p * WIDTH) - top);

			if (i + LANES > n)
				weight = choose(lanes_below(i + p * WIDTH, n), weight, splat(0));
			store(score + i + p * WIDTH, weight);
			total[p] += weight;
		}
	for (int p = 0; p < PARTS; p++)
		store(sum.weights + p * WIDTH, total[p]);
}

/*
 * values[r] += Σ over n slots, in order, of weight[r][slot] v[slot][f] for `vectors` vectors of features from `first` on. All rows have the same values if
 * `apart` is 0; else "rows" are heads of one row, and the values of each are that many floats after those of the one before. A vector may reach beyond the
 * head, into the next value or the cache's slack, and is then ignored there.
 */
INLINE void
add_values(const int rows, const int vectors, int width, const float *v, const size_t apart, int n, const float *weight, const Sum *into, int first)
{
	Vector		sum[ROWS][MAX_VECTORS];

	for (int r = 0; r < rows; r++)
		for (int c = 0; c < vectors; c++)
			sum[r][c] = load(into[r].values + first + c * WIDTH);
	for (int s = 0; s < n; s++)
	{
		Vector		value[MAX_VECTORS];

		for (int c = 0; c < vectors; c++)
			value[c] = load(v + (size_t) s * width + first + c * WIDTH);
		for (int r = 0; r < rows; r++)
			for (int c = 0; c < vectors; c++)
			{
				if (apart > 0 && r > 0)
					value[c] = load(v + r * apart + (size_t) s * width + first + c * WIDTH);
				sum[r][c] += value[c] * weight[r * BLOCK + s];
			}
	}
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < vectors; c++)
			store(into[r].values + first + c * WIDTH, sum[r][c]);
}

/* The same for a whole head of `vectors` vectors. */
INLINE void
add_head(const int rows, int vectors, int width, const float *v, const size_t apart, int n, const float *weight, const Sum *into)
{
	int			c = 0;

	for (; c + 4 <= vectors; c += 4)
		add_values(rows, 4, width, v, apart, n, weight, into, c * WIDTH);
	switch (vectors - c)
	{
		case 3:
			add_values(rows, 3, width, v, apart, n, weight, into, c * WIDTH);
			break;
		case 2:
			add_values(rows, 2, width, v, apart, n, weight, into, c * WIDTH);
			break;
		case 1:
			add_values(rows, 1, width, v, apart, n, weight, into, c * WIDTH);
			break;
	}
}

/*
 * `rows` rows from `row` on with queries q, whose features are `stride` apart, and one head take the first n of a block of keys: k and v are the block's first,
 * `next` floats from one panel to the next.
 */
INLINE void
take_block(const int rows, const TnpAttention *a, int row, int head, const float *q, const int stride, const float *k, const float *v, size_t next,
		   int n, float *sums)
{
	int			width = a->head_width,
				vectors = (width + WIDTH - 1) / WIDTH,
				panels = (n + LANES - 1) / LANES,
				run,
				p = 0;
	float		score[ROWS * BLOCK] __attribute__((aligned(64)));
	Sum			sum[ROWS];

	for (int r = 0; r < rows; r++)
		sum[r] = sum_at(a, sums, row + r, head);
	for (; rows == 1 && p + LONE <= panels; p += LONE)
		score_panels(1, LONE, width, next, q, stride, k + p * next, score + p * LANES);
	for (; PANELS > 1 && p + PANELS <= panels; p += PANELS)
		score_panels(rows, PANELS, width, next, q, stride, k + p * next, score + p * LANES);
	for (; p < panels; p++)
		score_panels(rows, 1, width, next, q, stride, k + p * next, score + p * LANES);
	for (int r = 0; r < rows; r++)
		weigh_block(score + r * BLOCK, n, vectors, sum[r]);
	/* in a large block the values of a head lie one after the other */
	run = next == (size_t) width * LANES ? BLOCK : LANES;
	for (p = 0; p * LANES < n; p += run / LANES)
	{
		int			here = n - p * LANES < run ? n - p * LANES : run;

		if (rows <= VALUE_ROWS || vectors <= 2)
			add_head(rows, vectors, width, v + p * next, 0, here, score + p * LANES, sum);
		else
			for (int r = 0; r < rows; r += VALUE_ROWS)
				add_head(VALUE_ROWS, vectors, width, v + p * next, 0, here, score + r * BLOCK + p * LANES, sum + r);
	}
}

/* Keys of this block, from slot s on, that a row with `count` keys sees. */
INLINE int
seen_of_block(int64_t count, int64_t s)
{
	return count <= s ? 0 : count - s < BLOCK ? (int) (count - s) : BLOCK;
}

/* One row takes a block of shared keys, or of its own. */
static void
take_shared_one(const TnpAttention *a, int row, int head, int64_t s, float *sums)
{
	int			n = seen_of_block(a->context[row], s),
				width = a->head_width,
				d = a->heads * width,
				stride;
	const float *q = query_at(a, row, head, &stride);

	if (n > 0)
		take_block(1, a, row, head, q, stride, a->k + tnp_key_at(s, BLOCK, d, head, width, 0), a->v + tnp_value_at(s, BLOCK, d, head, width),
				   (size_t) width * LANES, n, sums);
}

static void
take_own_one(const TnpAttention *a, int row, int head, int64_t s, float *sums)
{
	const TnpKeys *own = &a->own[row];
	int			width = a->head_width,
				d = a->heads * width,
				stride;
	const float *q = query_at(a, row, head, &stride);

	take_block(1, a, row, head, q, stride, own->k + tnp_key_at(s, LANES, d, head, width, 0), own->v + tnp_value_at(s, LANES, d, head, width),
			   (size_t) d * LANES, seen_of_block(own->n, s), sums);
}

/* The same for `heads` heads at once, whose sums do not wait for each other. */
INLINE void
take_shared_heads(const int heads, const TnpAttention *a, int row, int head, int64_t s, float *sums)
{
	int			n = seen_of_block(a->context[row], s),
				width = a->head_width,
				d = a->heads * width,
				vectors = (width + WIDTH - 1) / WIDTH,
				panels = (n + LANES - 1) / LANES;
	const size_t next = (size_t) width * LANES,
				apart = (size_t) BLOCK * width;
	const float *k = a->k + tnp_key_at(s, BLOCK, d, head, width, 0),
			   *v = a->v + tnp_value_at(s, BLOCK, d, head, width);
	float		score[ROWS * BLOCK] __attribute__((aligned(64)));
	Sum			sum[ROWS];

	if (n == 0)
		return;
	for (int h = 0; h < heads; h++)
	{
		int			stride,
					p = 0;
		const float *q = query_at(a, row, head + h, &stride);

		sum[h] = sum_at(a, sums, row, head + h);
		for (; p + LONE <= panels; p += LONE)
			score_panels(1, LONE, width, next, q, stride, k + h * apart + p * next, score + h * BLOCK + p * LANES);
		for (; p < panels; p++)
			score_panels(1, 1, width, next, q, stride, k + h * apart + p * next, score + h * BLOCK + p * LANES);
	}
	for (int h = 0; h < heads; h++)
		weigh_block(score + h * BLOCK, n, vectors, sum[h]);
	add_head(heads, vectors, width, v, apart, n, score, sum);
}

/* One row takes a block with all its heads. */
static void
take_shared_row(const TnpAttention *a, int row, int64_t s, float *sums)
{
	int			vectors = (a->head_width + WIDTH - 1) / WIDTH,
				h = 0;

	for (; ROWS > 4 && vectors <= 2 && h + 4 <= a->heads; h += 4)
		take_shared_heads(4, a, row, h, s, sums);
	for (; h + 2 <= a->heads; h += 2)
		take_shared_heads(2, a, row, h, s, sums);
	for (; h < a->heads; h++)
		take_shared_one(a, row, h, s, sums);
}

/* A group of rows takes what it sees of a block of shared keys, together if it is the same for all. */
INLINE void
take_rows(const int rows, const TnpAttention *a, int row, int head, int64_t s, float *sums)
{
	int			n = seen_of_block(a->context[row], s),
				width = a->head_width,
				d = a->heads * width,
				stride;
	bool		same = n > 0;

	for (int i = 1; i < rows; i++)
		same = same && seen_of_block(a->context[row + i], s) == n;
	if (same)
		take_block(rows, a, row, head, query_at(a, row, head, &stride), rows, a->k + tnp_key_at(s, BLOCK, d, head, width, 0),
				   a->v + tnp_value_at(s, BLOCK, d, head, width), (size_t) width * LANES, n, sums);
	else
		for (int i = 0; i < rows; i++)
			take_shared_one(a, row + i, head, s, sums);
}

/* All rows and heads of the tile take the block of shared keys that starts at slot s. What is needed next is asked for meanwhile. */
static void
take_shared(const TnpAttention *a, int64_t s, float *sums)
{
	size_t		run = (size_t) BLOCK * a->head_width;
	int			groups = a->n / ROWS;
	size_t		share = groups > 1 ? (run / (groups - 1) + LANES - 1) / LANES * LANES : 0;

	for (int h = 0; h < a->heads; h++)
	{
		size_t		next = (size_t) s * a->heads * a->head_width + (h + 1) * run;
		int			r = 0;

		/* few rows are done with a block before memory is: ask for all of the next at once */
		for (size_t i = 0; groups < 2 && i < run; i += LANES)
		{
			__builtin_prefetch(a->k + next + i, 0, 2);
			__builtin_prefetch(a->v + next + i, 0, 2);
		}
		for (; r + ROWS <= a->n; r += ROWS)
		{
			for (size_t i = r / ROWS * share; r > 0 && i < (r / ROWS + 1) * share; i += LANES)
			{
				__builtin_prefetch(a->k + next + i - share, 0, 2);
				__builtin_prefetch(a->v + next + i - share, 0, 2);
			}
			take_rows(ROWS, a, r, h, s, sums);
		}
		for (; ROWS > 3 && r + 3 <= a->n; r += 3)
			take_rows(3, a, r, h, s, sums);
	}
	/* what is left over of groups, row by row */
	for (int r = a->n - (ROWS > 3 ? a->n % ROWS % 3 : a->n % ROWS); r < a->n; r++)
		take_shared_row(a, r, s, sums);
}

/* Each row takes its own keys. */
static void
take_own(const TnpAttention *a, float *sums)
{
	for (int r = 0; r < a->n; r++)
		for (int64_t s = 0; s < a->own[r].n; s += BLOCK)
			for (int h = 0; h < a->heads; h++)
				take_own_one(a, r, h, s, sums);
}

static void
attend_span(const TnpAttention *a, int64_t span, float *sums)
{
	int64_t		end = 0;

	for (int r = 0; r < a->n; r++)
		end = a->context[r] > end ? a->context[r] : end;
	if (end > (span + 1) * TNP_SPAN)
		end = (span + 1) * TNP_SPAN;
	clear_sums(a, sums);
	for (int64_t s = span * TNP_SPAN; s < end; s += BLOCK)
		take_shared(a, s, sums);
}

static void
add_sums(const TnpAttention *a, float *into, float *from)
{
	for (int r = 0; r < a->n; r++)
		for (int h = 0; h < a->heads; h++)
			add_sum(a, sum_at(a, into, r, h), sum_at(a, from, r, h));
}

/* Add the own keys to the sums of the shared ones, and divide. */
static void
finish(const TnpAttention *a, float *sums, float *other)
{
	bool		any = false;

	for (int r = 0; r < a->n; r++)
		any = any || a->own[r].n > 0;
	if (any)
	{
		clear_sums(a, other);
		take_own(a, other);
		add_sums(a, sums, other);
	}
	for (int r = 0; r < a->n; r++)
		for (int h = 0; h < a->heads; h++)
		{
			Sum			sum = sum_at(a, sums, r, h);
			Vector		weights[PARTS];
			float		total,
					   *out = a->out + ((size_t) r * a->heads + h) * a->head_width;

			memcpy(weights, sum.weights, sizeof(weights));
			total = sum_lanes(weights);
			for (int f = 0; f < a->head_width; f++)
				out[f] = total > 0 ? sum.values[f] / total : 0;
		}
}

static void
attend_rest(const TnpAttention *a, int64_t spans, float *sums)
{
	size_t		size = sum_floats(a->heads, a->head_width, a->n);

	for (int64_t i = 1; i < spans; i++)
		add_sums(a, sums, sums + i * size);
	finish(a, sums, first_sum(a));
}

static void
attend(const TnpAttention *a)
{
	float	   *sums = first_sum(a),
			   *other = sums + sum_floats(a->heads, a->head_width, a->n);
	int64_t		most = 0;

	for (int r = 0; r < a->n; r++)
		most = a->context[r] > most ? a->context[r] : most;
	attend_begin(a);
	attend_span(a, 0, sums);
	for (int64_t span = 1; span * TNP_SPAN < most; span++)
	{
		attend_span(a, span, other);
		add_sums(a, sums, other);
	}
	finish(a, sums, other);
}
