/*
 * linear_simd.h: linear layers with their activations, and norms.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
/* ---- linear ---------------------------------------------------------------------------------- */

/*
 * Weights in panels of 16 outputs: packed[((o / 16) * stride + i) * 16 + o % 16], missing outputs
 * 0.
 */
static size_t
packed_floats(int out, int stride)
{
	return (size_t) tnp_blocks(out, TNP_PANEL) * stride;
}

static void
pack(const float *weight, int out, int stride, float *packed)
{
	memset(packed, 0, packed_floats(out, stride) * sizeof(float));
	for (int o = 0; o < out; o++)
		for (int i = 0; i < stride; i++)
			packed[((size_t) (o / LANES) * stride + i) * LANES + o % LANES] =
				weight[(size_t) o * stride + i];
}

#ifdef CONVERTS_HALVES
static void
pack_halves(const float *weight, int out, int stride, uint16_t *packed)
{
	float		panel[LANES];

	for (int o = 0; o < out; o += LANES)
		for (int i = 0; i < stride; i++, packed += LANES)
		{
			for (int lane = 0; lane < LANES; lane++)
				panel[lane] = o + lane < out ? weight[(size_t) (o + lane) * stride + i] : 0;
			for (int p = 0; p < PARTS; p++)
				store_half(packed + p * WIDTH, load(panel + p * WIDTH));
		}
}
#endif

/* y[0 … width) from one vector of results. */
INLINE void
finish_vector(Vector sum, TnpActivation activation, bool accumulate, int width, float *y)
{
	float		lane[WIDTH];

	if (width >= WIDTH)
	{
		store(y, accumulate ? load(y) + sum : activate(sum, activation));
		return;
	}
	store(lane, activate(sum, activation));
	for (int i = 0; i < width; i++)
		y[i] = accumulate ? y[i] + lane[i] : lane[i];
}

/*
 * The same for the first `width` outputs of `rows` rows with `vectors` vectors of results each;
 * those of a row are `out` after those of the one before.
 */
INLINE void
finish_rows(int rows, int vectors, const Vector *sum, const TnpActivation activation,
			const bool accumulate, int width, int out, float *y)
{
	for (int r = 0; r < rows; r++, y += out)
		for (int p = 0; p < vectors && p * WIDTH < width; p++)
			finish_vector(sum[r * vectors + p], activation, accumulate, width - p * WIDTH,
						  y + p * WIDTH);
}

/* Not in every tile, where it would be most of the code. */
static __attribute__((noinline)) void
finish_tile(int rows, int vectors, const Vector *sum, TnpActivation activation, bool accumulate,
			int width, int out, float *y)
{
	if (accumulate)
		finish_rows(rows, vectors, sum, TNP_IDENTITY, true, width, out, y);
	else if (activation == TNP_IDENTITY)
		finish_rows(rows, vectors, sum, TNP_IDENTITY, false, width, out, y);
	else if (activation == TNP_GELU)
		finish_rows(rows, vectors, sum, TNP_GELU, false, width, out, y);
	else
		finish_rows(rows, vectors, sum, activation, false, width, out, y);
}

/*
 * `rows` rows times `panels` panels (constants after inlining) from output o on. Meanwhile weights
 * of other panels are asked for, `step` floats with each input; 0: none.
 */
INLINE void
linear_tile(const int rows, const int panels, const bool half, const TnpLinear *w, int o,
			const float *x, TnpActivation activation, bool accumulate, float *y,
			const float *ahead, size_t step)
{
	const void *packed = half ? (const void *) (w->halves + (size_t) o * w->stride)
		: (const void *) (w->packed + (size_t) o * w->stride);
	size_t		next = (size_t) w->stride * LANES;
	Vector		sum[ROWS][LONE * PARTS],
				result[ROWS * LONE * PARTS];
	float		some[LONE * LANES];
	const float *bias = w->bias != NULL ? w->bias + o : some;
	const float *third[(ROWS + 2) / 3];
	int			width = w->out - o < panels * LANES ? w->out - o : panels * LANES;

	if (w->bias == NULL || width < panels * LANES)
	{
		for (int p = 0; p < panels * PARTS; p++)
			store(some + p * WIDTH, splat(0));
		if (w->bias != NULL)
			memcpy(some, bias, width * sizeof(float));
		bias = some;
	}
	for (int r = 0; r < rows; r++)
		for (int p = 0; p < panels * PARTS; p++)
			sum[r][p] = load(bias + p * WIDTH);
	/* every third row has a pointer, so that those of all rows and the weights fit the registers */
	for (int r = 0; r < rows; r += 3)
		third[r / 3] = x + (size_t) r * w->in;
	for (size_t i = 0, i1 = w->in, i2 = 2 * i1; i < (size_t) w->in; i++, i1++, i2++)
	{
		Vector		weight[LONE * PARTS];

		if (rows > 1)
		{
			__builtin_prefetch(ahead, 0, 2);
			ahead += step;
		}
		for (int p = 0; p < panels * PARTS; p++)
			weight[p] = load_numbers(packed, p / PARTS * next + i * LANES + p % PARTS * WIDTH,
									 half);
		for (int r = 0; r < rows; r++)
		{
			Vector		value = splat(third[r / 3][r % 3 == 0 ? i : r % 3 == 1 ? i1 : i2]);

			for (int p = 0; p < panels * PARTS; p++)
				sum[r][p] = multiply_add(weight[p], value, sum[r][p]);
		}
	}
	if (activation == TNP_IDENTITY && width == panels * LANES)
	{
		/* from the registers, where an activation would need many */
		if (accumulate)
			for (int r = 0; r < rows; r++)
				for (int p = 0; p < panels * PARTS; p++)
				{
					float	   *to = y + (size_t) r * w->out + o + p * WIDTH;

					store(to, load(to) + sum[r][p]);
				}
		else
			for (int r = 0; r < rows; r++)
				for (int p = 0; p < panels * PARTS; p++)
					store(y + (size_t) r * w->out + o + p * WIDTH, sum[r][p]);
		return;
	}
	for (int r = 0; r < rows; r++)
		for (int p = 0; p < panels * PARTS; p++)
			result[r * panels * PARTS + p] = sum[r][p];
	finish_tile(rows, panels * PARTS, result, activation, accumulate, width, w->out, y + o);
}

/* All n rows, a group at a time, times `panels` panels: the weights stay in the first cache. */
INLINE void
linear_panels(const int panels, const bool half, const TnpLinear *w, int n, int o, const float *x,
			  TnpActivation activation, bool accumulate, float *y)
{
	int			groups = groups_of(n);
	bool		more = groups > 1 && o + panels * LANES < w->out;
	/* while the first rows wait for these weights, the others ask for the next */
	size_t		step = more ? (size_t) (panels * LANES + groups - 2) / (groups - 1) : 0;
	const float *next = w->packed + (size_t) (o + (more ? panels * LANES : 0)) * w->stride;
	int			r = 0;

	for (int g = 0; g < groups; g++)
	{
		int			size = group_size(n, g);
		const float *ahead = g > 0 ? next + (g - 1) * step * w->in : next;

		switch (size)
		{
#define TILE(rows) \
			case rows: \
				linear_tile(rows, panels, half, w, o, x + (size_t) r * w->in, activation, \
							accumulate, y + (size_t) r * w->out, ahead, g > 0 ? step : 0); \
				break
				CASES(TILE);
#undef TILE
		}
		r += size;
	}
}

/* The whole layer with weights that are halves, or floats. */
INLINE void
linear_all(const bool half, const TnpLinear *w, int n, const float *x, TnpActivation activation,
		   bool accumulate, float *y)
{
	int			o = 0;

	if (n == 1)
		for (; o + (LONE - 1) * LANES < w->out; o += LONE * LANES)
			linear_tile(1, LONE, half, w, o, x, activation, accumulate, y, w->packed, 0);
	for (; LINEAR_PANELS > 1 && o + (LINEAR_PANELS - 1) * LANES < w->out;
		 o += LINEAR_PANELS * LANES)
		linear_panels(LINEAR_PANELS, half, w, n, o, x, activation, accumulate, y);
	for (; o < w->out; o += LANES)
		linear_panels(1, half, w, n, o, x, activation, accumulate, y);
}

/*
 * One group of rows waits for the weights, so that those of half the size are worth turning them
 * into floats; more rows would wait for that.
 */
static void
linear(const TnpLinear *w, int n, const float *x, TnpActivation activation, bool accumulate,
	   float *y)
{
	if (w->halves != NULL && n <= ROWS)
		linear_all(true, w, n, x, activation, accumulate, y);
	else
		linear_all(false, w, n, x, activation, accumulate, y);
}

#define LARGEST_SQUARE 1e38f	/* a sum of squares beyond it, or NaN, is taken again */

/* ---- norm ------------------------------------------------------------------------------------ */

/* Sum over i of x[i] - mean, or of its square: 16 lanes, then the rest. */
INLINE float
sum_row(int d, const float *x, float mean, bool square)
{
	int			whole = d / LANES * LANES;
	Vector		sum[PARTS];
	float		rest = 0;

	for (int p = 0; p < PARTS; p++)
		sum[p] = splat(0);
	for (int i = 0; i < whole; i += LANES)
		for (int p = 0; p < PARTS; p++)
		{
			Vector		v = load(x + i + p * WIDTH) - mean;

			sum[p] = square ? multiply_add(v, v, sum[p]) : sum[p] + v;
		}
	for (int i = whole; i < d; i++)
		rest += square ? (x[i] - mean) * (x[i] - mean) : x[i] - mean;
	return sum_lanes(sum) + rest;
}

/* One row in double precision: float32 has no room for the squares of numbers beyond about 1e18. */
static __attribute__((noinline)) void
norm_large(const TnpNorm *norm, const float *x, float *y)
{
	int			d = norm->width;
	double		mean = 0,
				square = 0,
				scale;

	for (int i = 0; norm->kind == TNP_LAYER_NORM && i < d; i++)
		mean += (double) x[i] / d;
	for (int i = 0; i < d; i++)
		square += (x[i] - mean) * (x[i] - mean);
	scale = 1 / sqrt(square / d + norm->eps);
	for (int i = 0; i < d; i++)
		y[i] = (float) ((x[i] - mean) * scale * norm->weight[i] +
						(norm->bias != NULL ? norm->bias[i] : 0));
}

static void
norm(const TnpNorm *norm, int n, const float *x, float *y)
{
	int			d = norm->width,
				whole = d / WIDTH * WIDTH;

	for (int r = 0; r < n; r++, x += d, y += d)
	{
		float		mean = norm->kind == TNP_LAYER_NORM ? sum_row(d, x, 0, false) / d : 0,
					square = sum_row(d, x, mean, true),
					scale = 1 / sqrtf(square / d + norm->eps);

		if (__builtin_expect(!(square <= LARGEST_SQUARE), false))
		{
			norm_large(norm, x, y);
			continue;
		}
		for (int i = 0; i < whole; i += WIDTH)
		{
			Vector		v = (load(x + i) - mean) * scale,
						weight = load(norm->weight + i);

			store(y + i, norm->bias != NULL ? multiply_add(v, weight, load(norm->bias + i)) :
				  v * weight);
		}
		for (int i = whole; i < d; i++)
			y[i] = (x[i] - mean) * scale * norm->weight[i] +
				(norm->bias != NULL ? norm->bias[i] : 0);
	}
}
