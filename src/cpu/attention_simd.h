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

#define BLOCK TNP_BLOCK
#ifdef KERNELS_HALF
#define HALF true				/* keys and values are halves */
#else
#define HALF false
#endif
#define LOG2_E 1.44269504088896341f
#define MAX_VECTORS 4			/* vectors of values that are added up at once */
/* of scores of one row or two at once */
#define FEW_PANELS(rows) ((rows) == 1 ? LONE : LONE > PARTS ? LONE / PARTS : 1)
#define FEWEST_ROWS (ROWS < 3 ? ROWS : 3)	/* of a group */
/*
 * a score may exceed the reference by this much before all is made relative to a larger one:
 * weights up to 2^8 lose nothing
 */
#define SLACK 8.0f

/*
 * Sum of a row and head: weighted values [padded head], weights [LANES], both relative to a
 * reference that is about the largest score, in units of log 2.
 */
typedef struct Sum
{
	float	   *values,
			   *weights,
			   *reference;
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

/* Floats of a head's keys, or values, of a block; vectors may reach beyond the last. */
INLINE size_t
wide_floats(int head_width)
{
	return (size_t) BLOCK * head_width + LANES;
}

/* The sums of all rows and heads. */
static size_t
sum_floats(int heads, int head_width, int n)
{
	return (size_t) n * heads * sum_stride(head_width);
}

/* The scaled queries. */
INLINE size_t
query_floats(int heads, int head_width, int n)
{
	return (size_t) (n * heads * head_width + LANES - 1) / LANES * LANES;
}

/*
 * The scaled queries, the sum, that of one span, and, where numbers are not floats and rows come in
 * groups, a head's keys and values of a block.
 */
static size_t
attend_floats(int heads, int head_width, int n)
{
	return query_floats(heads, head_width, n) + 2 * sum_floats(heads, head_width, n) +
		(HALF && n >= FEWEST_ROWS ? 2 * wide_floats(head_width) : 0);
}

INLINE float *
first_sum(const TnpAttention *a)
{
	return a->scratch + query_floats(a->heads, a->head_width, a->n);
}

/* Size of the group of distinct rows that a row is in, and its first row. */
INLINE int
group_of(const TnpAttention *a, int row, int *first)
{
	int			groups = groups_of(a->distinct),
				size = a->distinct / groups,
				larger = a->distinct % groups * (size + 1);	/* rows in groups that have one more */

	if (row < larger)
	{
		*first = row - row % (size + 1);
		return size + 1;
	}
	*first = row - (row - larger) % size;
	return size;
}

/*
 * A row's scaled query of its first head, and how far features are apart; a head has head_width of
 * them.
 */
INLINE const float *
query_at(const TnpAttention *a, int row, int *stride)
{
	int			first;

	row = row < a->distinct ? row : a->distinct - 1;
	*stride = group_of(a, row, &first);
	return a->scratch + (size_t) first * a->heads * a->head_width + (row - first);
}

/*
 * Lay out the queries as they are read: of each group of rows one head after the other, of each
 * feature all rows; scaled, in units of log 2.
 */
static void
attend_begin(const TnpAttention *a)
{
	int			d = a->heads * a->head_width;

	for (int row = 0; row < a->distinct; row++)
	{
		int			stride;
		float	   *out = (float *) query_at(a, row, &stride);

		for (int h = 0; h < a->heads; h++)
		{
			float		scale = a->scale[row * a->heads + h] * LOG2_E;
			const float *q = a->q + (size_t) row * d + h * a->head_width;

			for (int f = 0; f < a->head_width; f++, out += stride)
				*out = fabsf(q[f]) <= TNP_LARGEST_KEY ? q[f] * scale : NAN;
		}
	}
}

INLINE Sum
sum_at(const TnpAttention *a, float *sums, int row, int head)
{
	float	   *at = sums + ((size_t) row * a->heads + head) * sum_stride(a->head_width);
	int			padded = padded_head(a->head_width);

	return (Sum) {at, at + padded, at + padded + LANES};
}

/* Nothing yet, for heads first … end - 1. */
static void
clear_sums(const TnpAttention *a, int first, int end, float *sums)
{
	for (int r = 0; r < a->n; r++)
		for (int h = first; h < end; h++)
		{
			Sum			sum = sum_at(a, sums, r, h);

			memset(sum.values, 0, sum_stride(a->head_width) * sizeof(float));
			*sum.reference = -INFINITY;
		}
}

/* a += b */
static __attribute__((noinline)) void
add_sum(const TnpAttention *a, Sum into, Sum from)
{
	float		reference = *from.reference > *into.reference ? *from.reference : *into.reference;
	Vector		keep,
				add;

	if (*from.reference == -INFINITY)
		return;
	keep = vector_exp2(splat(*into.reference - reference));
	add = vector_exp2(splat(*from.reference - reference));
	for (int i = 0; i < padded_head(a->head_width); i += WIDTH)
		store(into.values + i,
			  multiply_add(load(into.values + i), keep, load(from.values + i) * add));
	for (int i = 0; i < LANES; i += WIDTH)
		store(into.weights + i,
			  multiply_add(load(into.weights + i), keep, load(from.weights + i) * add));
	*into.reference = reference;
}

/*
 * The number at an index of keys or values that are halves or, like those that have been widened,
 * floats.
 */
INLINE const void *
number_at(const void *numbers, size_t index, const bool half)
{
	return (const char *) numbers + index * (half ? sizeof(uint16_t) : sizeof(float));
}

/*
 * score[r][slot] = q[r].k[slot] for `panels` panels of keys, `next` floats apart; q has a feature
 * of the rows every `stride` floats.
 */
INLINE void
score_panels(const int rows, const int panels, int head_width, size_t next, const float *q,
			 const int stride, const void *k, const bool half, float *score)
{
	Vector		sum[ROWS][LONE * PARTS];

	for (int r = 0; r < rows; r++)
		for (int p = 0; p < panels * PARTS; p++)
			sum[r][p] = splat(0);
	for (int f = 0; f < head_width; f++)
	{
		Vector		key[LONE * PARTS];

		for (int p = 0; p < panels * PARTS; p++)
			key[p] = load_numbers(k, p / PARTS * next + (size_t) f * LANES + p % PARTS * WIDTH,
								  half);
		for (int r = 0; r < rows; r++)
		{
			Vector		query = splat(q[f * stride + r]);

			for (int p = 0; p < panels * PARTS; p++)
				sum[r][p] = multiply_add(key[p], query, sum[r][p]);
		}
	}
	for (int r = 0; r < rows; r++)
		for (int p = 0; p < panels * PARTS; p++)
			store(score + r * BLOCK + p * WIDTH, sum[r][p]);
}

/*
 * Make scores of `panels` panels beyond the first n minus infinity, and raise the reference when a
 * score is far above it. This waits for the scores and decides; the weights, which do neither, are
 * taken of all rows afterwards.
 */
INLINE void
raise_reference(float *score, int panels, int n, int vectors, Sum sum)
{
	Vector		max = splat(0);

	for (int j = 0; j < panels * LANES; j += WIDTH)
	{
		Vector		v = load(score + j);

		if (j + WIDTH > n)
		{
			v = choose(lanes_below(j, n), v, splat(-INFINITY));
			store(score + j, v);
		}
		max = j == 0 ? v : vector_max(v, max);
	}
	if (__builtin_expect(any_above(max, *sum.reference + SLACK), false))
	{
		float		top = max_lane(max);

		/* before the first score the sums are zero */
		if (*sum.reference > -INFINITY)
		{
			Vector		keep = vector_exp2(splat(*sum.reference - top));

			for (int j = 0; j < vectors; j++)
				store(sum.values + j * WIDTH, load(sum.values + j * WIDTH) * keep);
			for (int p = 0; p < PARTS; p++)
				store(sum.weights + p * WIDTH, load(sum.weights + p * WIDTH) * keep);
		}
		*sum.reference = top;
	}
}

/*
 * Turn the scores of `panels` panels into weights relative to the reference. Those of minus
 * infinity mean nothing; what they add to the sum of weights, which is at least 1, is lost in
 * rounding.
 */
INLINE void
weigh_scores(float *score, int panels, Sum sum)
{
	Vector		total[PARTS];
	int			i = 0;

	for (int p = 0; p < PARTS; p++)
		total[p] = load(sum.weights + p * WIDTH);
	for (; i + EXPS * WIDTH <= panels * LANES; i += EXPS * WIDTH)
	{
		Vector		weight[EXPS];

		for (int j = 0; j < EXPS; j++)
			weight[j] = load(score + i + j * WIDTH) - *sum.reference;
		vectors_exp2(EXPS, weight);
		for (int j = 0; j < EXPS; j++)
		{
			store(score + i + j * WIDTH, weight[j]);
			total[(i / WIDTH + j) % PARTS] += weight[j];
		}
	}
	for (; i < panels * LANES; i += WIDTH)
	{
		Vector		weight = vector_exp2(load(score + i) - *sum.reference);

		store(score + i, weight);
		total[i / WIDTH % PARTS] += weight;
	}
	for (int p = 0; p < PARTS; p++)
		store(sum.weights + p * WIDTH, total[p]);
}

/* sum[r] += weight[r][s] v[r / same][at …] for one slot; see add_values. */
INLINE void
add_slot(const int rows, const int vectors, const void *const *v, const bool half, const int same,
		 size_t at, const float *weight, Vector sum[ROWS][MAX_VECTORS])
{
	Vector		value[MAX_VECTORS];

	for (int r = 0; r < rows; r++)
	{
		Vector		one = splat(weight[r * BLOCK]);

		for (int c = 0; c < vectors; c++)
		{
			if (r % same == 0)
				value[c] = load_numbers(v[r], at + c * WIDTH, half);
			sum[r][c] = multiply_add(value[c], one, sum[r][c]);
		}
	}
}

/*
 * values[r] += Σ over n slots, in order, of weight[r][slot] v[slot][f] for `vectors` vectors of
 * features from `first` on. The first `same` rows share the values v; then follow as many of the
 * next head, whose values are `apart` numbers further, and so on. A vector may reach beyond the
 * head, into the next value or the cache's slack, and is then ignored there.
 */
INLINE void
add_values(const int rows, const int vectors, int width, const void *v, const bool half,
		   const int same, const size_t apart, int n, const float *weight, const Sum *into,
		   int first)
{
	Vector		sum[ROWS][MAX_VECTORS];
	const void *from[ROWS];
	size_t		at = 0;
	int			s = 0;

	for (int r = 0; r < rows; r++)
	{
		from[r] = number_at(v, first + r / same * apart, half);
		for (int c = 0; c < vectors; c++)
			sum[r][c] = load(into[r].values + first + c * WIDTH);
	}
	/* two at a time: the loop itself costs what two additions do */
	for (; s + 2 <= n; s += 2, at += 2 * (size_t) width)
	{
		add_slot(rows, vectors, from, half, same, at, weight + s, sum);
		add_slot(rows, vectors, from, half, same, at + width, weight + s + 1, sum);
	}
	if (s < n)
		add_slot(rows, vectors, from, half, same, at, weight + s, sum);
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < vectors; c++)
			store(into[r].values + first + c * WIDTH, sum[r][c]);
}

/* The same, as many rows at a time as there are registers for. */
INLINE void
add_rows(const int rows, const int vectors, int width, const void *v, const bool half,
		 const int same, const size_t apart, int n, const float *weight, const Sum *into, int first)
{
	const int	most = VALUE_SUMS / vectors,
				together = most < rows ? most : rows;
	int			r = 0;

	for (; r + together <= rows; r += together)
		add_values(together, vectors, width, number_at(v, r / same * apart, half), half, same,
				   apart, n, weight + r * BLOCK, into + r, first);
	if (rows % together > 0)
		add_values(rows % together, vectors, width, number_at(v, r / same * apart, half), half,
				   same, apart, n, weight + r * BLOCK, into + r, first);
}

/* The same for a whole head of `vectors` vectors. */
INLINE void
add_head(const int rows, int vectors, int width, const void *v, const bool half, const int same,
		 const size_t apart, int n, const float *weight, const Sum *into)
{
	int			c = 0;

	for (; c + 4 <= vectors; c += 4)
		add_rows(rows, 4, width, v, half, same, apart, n, weight, into, c * WIDTH);
	if (vectors - c >= 2)
	{
		add_rows(rows, 2, width, v, half, same, apart, n, weight, into, c * WIDTH);
		c += 2;
	}
	if (vectors > c)
		add_rows(rows, 1, width, v, half, same, apart, n, weight, into, c * WIDTH);
}

/* Scores of `rows` rows with the keys of `panels` panels that are `next` floats apart. */
INLINE void
score_block(const int rows, int panels, int width, const float *q, const int stride, const void *k,
			const bool half, size_t next, float *score)
{
	int			p = 0;

	for (; rows <= 2 && FEW_PANELS(rows) > PANELS && p + FEW_PANELS(rows) <= panels;
		 p += FEW_PANELS(rows))
		score_panels(rows, FEW_PANELS(rows), width, next, q, stride, number_at(k, p * next, half),
					 half, score + p * LANES);
	for (; PANELS > 1 && p + PANELS <= panels; p += PANELS)
		score_panels(rows, PANELS, width, next, q, stride, number_at(k, p * next, half), half,
					 score + p * LANES);
	for (; PANELS > 2 && p + 2 <= panels; p += 2)
		score_panels(rows, 2, width, next, q, stride, number_at(k, p * next, half), half,
					 score + p * LANES);
	for (; p < panels; p++)
		score_panels(rows, 1, width, next, q, stride, number_at(k, p * next, half), half,
					 score + p * LANES);
}

/*
 * `rows` rows from `row` on with queries q, whose features are `stride` apart, and one head take
 * the first n of a block of keys: k and v are the first of its `panels` panels, `next` numbers from
 * one panel to the next, and values of `run` slots lie one after the other. All slots of the panels
 * are readable.
 */
INLINE void
take_block(const int rows, const TnpAttention *a, int row, int head, const float *q,
		   const int stride, const void *k, const void *v, const bool half, size_t next, int panels,
		   const int run, int n, float *sums)
{
	/* whose scores are computed at once: more, where there are panels for half a block only */
	const int	few = rows <= SCORE_ROWS || (panels == 2 && PANELS == 4 && rows <= 2 * SCORE_ROWS)
		? rows : (rows + 1) / 2;
	int			width = a->head_width,
				vectors = (width + WIDTH - 1) / WIDTH;
	float		score[ROWS * BLOCK] __attribute__((aligned(64)));
	Sum			sum[ROWS];

	for (int r = 0; r < rows; r++)
		sum[r] = sum_at(a, sums, row + r, head);
	score_block(few, panels, width, q, stride, k, half, next, score);
	if (rows > few)
		score_block(rows - few, panels, width, q + few, stride, k, half, next, score + few * BLOCK);
	for (int r = 0; r < rows; r++)
		raise_reference(score + r * BLOCK, panels, n, vectors, sum[r]);
	for (int r = 0; r < rows; r++)
		weigh_scores(score + r * BLOCK, panels, sum[r]);
	for (int s = 0; s < n; s += run)
		add_head(rows, vectors, width, number_at(v, s / LANES * next, half), half, rows, 0,
				 n - s < run ? n - s : run, score + s, sum);
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
	return number_at(a->v, tnp_value_at(s, BLOCK, a->heads * a->head_width, head, a->head_width),
					 HALF);
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
	int			n = seen_of_block(a->context[row], s),
				width = a->head_width,
				vectors = (width + WIDTH - 1) / WIDTH;
	const size_t next = (size_t) width * LANES,
				apart = (size_t) BLOCK * width;
	const void *k = shared_key(a, head, s);
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
		raise_reference(score + i * BLOCK, BLOCK / LANES, n, vectors, sum[i]);
		weigh_scores(score + i * BLOCK, BLOCK / LANES, sum[i]);
	}
	add_head(heads * rows, vectors, width, shared_value(a, head, s), HALF, rows, apart, n, score,
			 sum);
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
/* A head's keys or values of a block as floats. */
static const float *
widen(const void *halves, int head_width, float *wide)
{
	int			n = BLOCK * head_width;

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
				   *next_v = (const Number *) a->v + (size_t) s * a->heads * a->head_width +
					   (h + 1) * run;
#ifdef KERNELS_HALF
		/* groups of rows read each number several times */
		float	   *wide = scratch + query_floats(a->heads, a->head_width, a->n) +
			2 * sum_floats(a->heads, a->head_width, a->n);
		const float *k = widen(shared_key(a, h, s), a->head_width, wide),
				   *v = widen(shared_value(a, h, s), a->head_width,
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
				d = a->heads * width;

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
						   number_at(own->v, tnp_value_at(s, LANES, d, h, width), HALF), HALF,
						   (size_t) d * LANES, (n + LANES - 1) / LANES, LANES, n, sums);
		}
	}
}

static void
attend_span(const TnpAttention *a, int64_t span, int first, int end, float *sums, float *scratch)
{
	int64_t		keys = 0;

	for (int r = 0; r < a->distinct; r++)
		keys = a->context[r] > keys ? a->context[r] : keys;
	if (keys > (span + 1) * TNP_SPAN)
		keys = (span + 1) * TNP_SPAN;
	clear_sums(a, first, end, sums);
	for (int64_t s = span * TNP_SPAN; s < keys; s += BLOCK)
		take_shared(a, first, end, s, sums, scratch);
}

/* The sums of the first n rows. */
static void
add_sums(const TnpAttention *a, int n, float *into, float *from)
{
	for (int r = 0; r < n; r++)
		for (int h = 0; h < a->heads; h++)
			add_sum(a, sum_at(a, into, r, h), sum_at(a, from, r, h));
}

/* Add the own keys to the sums of the shared ones, and divide. */
static void
finish(const TnpAttention *a, float *sums, float *other)
{
	size_t		row_floats = (size_t) a->heads * sum_stride(a->head_width);
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
			Vector		weights[PARTS];
			float		total,
					   *out = a->out + ((size_t) r * a->heads + h) * a->head_width;
			int			f = 0;

			memcpy(weights, sum.weights, sizeof(weights));
			total = sum_lanes(weights);
			/* without any key all sums are zero */
			if (total == 0)
				total = 1;
			else if (!(fabsf(*sum.reference) <= TNP_LARGEST_SCORE))
				total = NAN;
			for (; f + WIDTH <= a->head_width; f += WIDTH)
				store(out + f, load(sum.values + f) / total);
			for (; f < a->head_width; f++)
				out[f] = sum.values[f] / total;
		}
}

static void
attend_rest(const TnpAttention *a, int64_t spans, float *sums)
{
	size_t		size = sum_floats(a->heads, a->head_width, a->n);

	for (int64_t i = 1; i < spans; i++)
		add_sums(a, a->distinct, sums, sums + i * size);
	finish(a, sums, first_sum(a));
}

static void
attend(const TnpAttention *a)
{
	float	   *sums = first_sum(a),
			   *other = sums + sum_floats(a->heads, a->head_width, a->n);
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
