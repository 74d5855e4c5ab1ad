/*
 * bumps_simd.h: attention of one row whose scores have bumps of distances (kernels.h, TnpBumps;
 * Jenson et al. 2024, eq. (4) to (8)), in one pass over the keys like that of attention_simd.h,
 * whose sums it uses.
 *
 * SPDX-License-Identifier: PostgreSQL
 */

/* The sum of a head. */
INLINE Sum
bump_sum(const TnpBumps *b, int head)
{
	float	   *at = b->sums + (size_t) head * sum_stride(b->value_width, 1);
	int			padded = padded_head(b->value_width);

	return (Sum) {at, at + padded, at + padded + LANES};
}

static size_t
bump_floats(int heads, int value_width)
{
	return (size_t) heads * sum_stride(value_width, 1);
}

static void
bump_begin(const TnpBumps *b)
{
	memset(b->sums, 0, bump_floats(b->heads, b->value_width) * sizeof(float));
	for (int h = 0; h < b->heads; h++)
		*bump_sum(b, h).reference = -INFINITY;
}

/* Add the bumps of one head to the scores of `vectors` vectors of slots, EXPS at most. */
INLINE void
add_bumps(const int vectors, const TnpBumps *b, int head, const float *distance, float *score)
{
	Vector		sum[EXPS];

	for (int j = 0; j < vectors; j++)
		sum[j] = load(score + j * WIDTH);
	for (int g = 0; g < b->components; g++)
	{
		size_t		at = ((size_t) g * b->heads + head) * b->basis;

		for (int i = 0; i < b->basis; i++)
		{
			Vector		bump[EXPS];

			for (int j = 0; j < vectors; j++)
				bump[j] = load(distance + g * BLOCK + j * WIDTH) - b->center[at + i];
			for (int j = 0; j < vectors; j++)
				bump[j] = bump[j] * bump[j] * b->rate[at + i];
			vectors_exp2(vectors, bump);
			for (int j = 0; j < vectors; j++)
				sum[j] = multiply_add(bump[j], splat(b->height[at + i]), sum[j]);
		}
	}
	for (int j = 0; j < vectors; j++)
		store(score + j * WIDTH, sum[j]);
}

/* Make the scores of what is hidden minus infinity; whether one of the first n is NaN. */
INLINE bool
hide_scores(int n, const bool *hidden, float *score)
{
	IntVector	nan = {0};

	for (int i = 0; hidden != NULL && i < n; i++)
		if (hidden[i])
			score[i] = -INFINITY;
	for (int i = 0; i < n; i += WIDTH)
	{
		Vector		v = load(score + i);

		nan |= (v != v) & lanes_below(i, n);
	}
	return any_above(choose(nan, splat(1), splat(0)), 0);
}

/*
 * One head's weights of a block from its scores, with bumps; a sum that has no key yet, or is no
 * number, gets weights of zero.
 */
INLINE void
bump_weights(const TnpBumps *b, int head, int vectors, int panels, int n, const float *distance,
			 const bool *hidden, float *score, Sum sum)
{
	int			lanes = panels * LANES,
				i = 0;

	for (; i + EXPS * WIDTH <= lanes; i += EXPS * WIDTH)
		add_bumps(EXPS, b, head, distance + i, score + i);
	for (; i < lanes; i += WIDTH)
		add_bumps(1, b, head, distance + i, score + i);
	if (hide_scores(n, hidden, score))
	{
		*sum.reference = NAN;
		*sum.weights = 1;
	}
	raise_reference(score, panels, n, vectors, sum);
	if (*sum.reference == -INFINITY || isnan(*sum.reference))
	{
		memset(score, 0, n * sizeof(float));
		return;
	}
	weigh_scores(score, panels, sum);
	/* what is hidden adds nothing to sums of values that are zero otherwise */
	for (i = 0; hidden != NULL && i < n; i++)
		if (hidden[i])
			score[i] = 0;
}

/* `heads` heads from `head` on, whose sums do not wait for each other, take a block. */
INLINE void
bump_heads(const int heads, const TnpBumps *b, int head, const float *k, const float *v, int block,
		   int n, const float *distance, const bool *hidden)
{
	int			panels = (n + LANES - 1) / LANES,
				vectors = (b->value_width + WIDTH - 1) / WIDTH;
	const size_t apart = (size_t) block * b->value_width;
	float		score[ROWS * BLOCK] __attribute__((aligned(64)));
	Sum			sum[ROWS];

	for (int h = 0; h < heads; h++)
		score_block(1, panels, b->key_width, b->q + (size_t) (head + h) * b->key_width, 1,
					k + (size_t) (head + h) * block * b->key_width, false,
					(size_t) b->key_width * LANES, score + h * BLOCK);
	for (int h = 0; h < heads; h++)
	{
		sum[h] = bump_sum(b, head + h);
		bump_weights(b, head + h, vectors, panels, n, distance, hidden, score + h * BLOCK, sum[h]);
	}
	add_head(heads, vectors, b->value_width, v + head * apart, false, 1, apart, n, score, sum);
}

static void
bump_take(const TnpBumps *b, const float *k, const float *v, int block, int n,
		  const float *distance, const bool *hidden)
{
	const int	most = ROWS >= 4 ? 4 : 2;	/* heads, which are so many sums together */
	int			h = 0;

	for (; h + most <= b->heads; h += most)
		bump_heads(most, b, h, k, v, block, n, distance, hidden);
	for (; h < b->heads; h++)
		bump_heads(1, b, h, k, v, block, n, distance, hidden);
}

static void
bump_end(const TnpBumps *b, float *out)
{
	for (int h = 0; h < b->heads; h++)
		divide_sum(bump_sum(b, h), b->value_width, out + (size_t) h * b->value_width);
}
