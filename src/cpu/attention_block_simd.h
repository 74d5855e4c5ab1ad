/*
 * attention_block_simd.h: scores, weights and weighted values of a block of keys, and the sums that
 * they go to; included by attention_simd.h alone.
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
 * Sum of a row and head: weighted values [planes, padded head], weights [LANES], both relative to a
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
sum_stride(int head_width, int planes)
{
	return planes * padded_head(head_width) + 2 * LANES;
}

/* Floats of a head's keys, or values, of a block; vectors may reach beyond the last. */
INLINE size_t
wide_floats(int head_width)
{
	return (size_t) BLOCK * head_width + LANES;
}

/* The sums of all rows and heads. */
static size_t
sum_floats(int heads, int head_width, int planes, int n)
{
	return (size_t) n * heads * sum_stride(head_width, planes);
}

INLINE size_t
sum_floats_of(const TnpAttention *a)
{
	return sum_floats(a->heads, a->head_width, tnp_attention_planes(a), a->n);
}

/* Vectors of a sum's values. */
INLINE int
sum_vectors(const TnpAttention *a)
{
	int			planes = tnp_attention_planes(a);

	return planes == 1 ? (a->head_width + WIDTH - 1) / WIDTH
		: planes * padded_head(a->head_width) / WIDTH;
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
attend_floats(int heads, int head_width, int planes, int n)
{
	return query_floats(heads, head_width, n) + 2 * sum_floats(heads, head_width, planes, n) +
		(HALF && n >= FEWEST_ROWS ? wide_floats(head_width) + wide_floats(planes * head_width)
		 : 0);
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
	int			planes = tnp_attention_planes(a),
				padded = planes * padded_head(a->head_width);
	float	   *at = sums + ((size_t) row * a->heads + head) * sum_stride(a->head_width, planes);

	return (Sum) {at, at + padded, at + padded + LANES};
}

/* Turn `rows` sums of one plane into those of the next. */
INLINE void
next_plane(const int rows, int width, Sum *sum)
{
	for (int r = 0; r < rows; r++)
		sum[r].values += padded_head(width);
}

/* Nothing yet, for heads first … end - 1. */
static void
clear_sums(const TnpAttention *a, int first, int end, float *sums)
{
	for (int r = 0; r < a->n; r++)
		for (int h = first; h < end; h++)
		{
			Sum			sum = sum_at(a, sums, r, h);

			for (int i = 0; i < sum_stride(a->head_width, tnp_attention_planes(a)); i += WIDTH)
				store(sum.values + i, splat(0));
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
	for (int i = 0; i < tnp_attention_planes(a) * padded_head(a->head_width); i += WIDTH)
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
