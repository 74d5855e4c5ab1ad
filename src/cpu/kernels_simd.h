/*
 * kernels_simd.h: the kernels in portable vectors. Included once per instruction set by
 * kernels_{baseline,avx2,avx512}.c, which set KERNELS_BYTES, the size of a machine vector.
 *
 * Whatever the number of rows in a call, an output element is the same sequence of operations: sums over features run left
 * to right, sums over keys run left to right within a lane (lane = slot mod 16) and lanes are added in one fixed order. Blocking over rows only
 * shares loads.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <string.h>

#include "cpu.h"

#define LANES TNP_PANEL			/* of a panel */
#define ROWS TNP_ATTEND_ROWS
#define INLINE static inline __attribute__((always_inline))

/*
 * A panel of 16 is PARTS machine vectors. The tile of linear is chosen so that its sums fit the registers.
 */
#if KERNELS_BYTES == 64
#define LINEAR_ROWS 6
#define LINEAR_PANELS 2
#elif KERNELS_BYTES == 32
#define LINEAR_ROWS 6
#define LINEAR_PANELS 1
#else
#define LINEAR_ROWS 2
#define LINEAR_PANELS 1
#endif
#define WIDTH (KERNELS_BYTES / 4)	/* lanes of a machine vector */
#define PARTS (LANES / WIDTH)

typedef float Vector __attribute__((vector_size(KERNELS_BYTES)));
typedef int32_t IntVector __attribute__((vector_size(KERNELS_BYTES)));

INLINE Vector
load(const float *p)
{
	Vector		v;

	memcpy(&v, p, sizeof(v));
	return v;
}

INLINE void
store(float *p, Vector v)
{
	memcpy(p, &v, sizeof(v));
}

INLINE Vector
splat(float s)
{
	return (Vector) {} + s;
}

/* a where mask is all ones, else b. */
INLINE Vector
choose(IntVector mask, Vector a, Vector b)
{
	return (Vector) ((mask & (IntVector) a) | (~mask & (IntVector) b));
}

INLINE Vector
vector_max(Vector a, Vector b)
{
	return choose(a > b, a, b);
}

/* Lanes of a vector whose first lane is number `first` that are below n. */
INLINE IntVector
lanes_below(int64_t first, int64_t n)
{
	static const int32_t number[LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	IntVector	lanes;
	int64_t		rest = n - first;

	memcpy(&lanes, number, sizeof(lanes));
	return lanes < (int32_t) (rest < 0 ? 0 : rest > LANES ? LANES : rest);
}

/* Sum and maximum of a panel's lanes, always in the same order. */
INLINE float
sum_lanes(const Vector *v)
{
	float		lane[LANES],
				sum = 0;

	memcpy(lane, v, sizeof(lane));
	for (int i = 0; i < LANES; i++)
		sum += lane[i];
	return sum;
}

INLINE float
max_lanes(const Vector *v)
{
	float		lane[LANES],
				max;

	memcpy(lane, v, sizeof(lane));
	max = lane[0];
	for (int i = 1; i < LANES; i++)
		max = lane[i] > max ? lane[i] : max;
	return max;
}

/*
 * exp(x) to about 2e-7 relative error: x = n ln 2 + f with |f| <= ln 2 / 2, a polynomial of degree 6 for exp(f), and n added to the exponent.
 * Below -87 the result is 0, above 88 it is that of 88.
 */
INLINE Vector
vector_exp(Vector x)
{
	const float magic = 12582912.0f;	/* 1.5 * 2^23: adding it rounds to an integer */
	IntVector	tiny = x < splat(-87.0f);
	Vector		clamped = choose(x > splat(88.0f), splat(88.0f), choose(tiny, splat(-87.0f), x)),
				n = (clamped * 1.44269504088896341f + magic) - magic,
				f = clamped - n * 0.693359375f + n * 2.12194440e-4f,
				p = splat(1.3981999507e-3f);
	IntVector	exponent = __builtin_convertvector(n, IntVector);

	p = p * f + 8.3334519073e-3f;
	p = p * f + 4.1665795894e-2f;
	p = p * f + 1.6666665459e-1f;
	p = p * f + 5.0000001201e-1f;
	p = p * f * f + f + 1.0f;
	return choose(tiny, splat(0), p * (Vector) ((exponent + 127) << 23));
}

/* erf(x) to 1.5e-7 absolute error (Abramowitz and Stegun, formula 7.1.26). */
INLINE Vector
vector_erf(Vector x)
{
	Vector		a = choose(x < splat(0), -x, x),
				t = 1.0f / (1.0f + 0.3275911f * a),
				p = splat(1.061405429f),
				result;

	p = p * t - 1.453152027f;
	p = p * t + 1.421413741f;
	p = p * t - 0.284496736f;
	p = p * t + 0.254829592f;
	result = 1.0f - p * t * vector_exp(-a * a);
	return choose(x < splat(0), -result, result);
}

INLINE Vector
activate(Vector v, TnpActivation activation)
{
	switch (activation)
	{
		case TNP_IDENTITY:
			return v;
		case TNP_RELU:
			return vector_max(v, splat(0));
		case TNP_GELU:
			return 0.5f * v * (1.0f + vector_erf(v * 0.70710678118654752f));
		case TNP_GELU_TANH:
			/* tanh(u) = 1 - 2 / (exp(2u) + 1) */
			return v * (1.0f - 1.0f / (vector_exp(1.5957691216057308f * (v + 0.044715f * v * v * v)) + 1.0f));
	}
	return v;
}

/* ---- linear ------------------------------------------------------------------------------------------------ */

/* Weights in panels of 16 outputs: packed[((o / 16) * stride + i) * 16 + o % 16], missing outputs 0. */
static size_t
packed_floats(int out, int stride)
{
	return (size_t) tnp_panels(out) * stride;
}

static void
pack(const float *weight, int out, int stride, float *packed)
{
	memset(packed, 0, packed_floats(out, stride) * sizeof(float));
	for (int o = 0; o < out; o++)
		for (int i = 0; i < stride; i++)
			packed[((size_t) (o / LANES) * stride + i) * LANES + o % LANES] = weight[(size_t) o * stride + i];
}

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

/* `rows` rows times `panels` panels (constants after inlining) from output o on. */
INLINE void
linear_tile(const int rows, const int panels, const TnpLinear *w, int o, const float *x, TnpActivation activation, bool accumulate, float *y)
{
	const float *packed = w->packed + (size_t) o * w->stride;
	size_t		next = (size_t) w->stride * LANES;
	Vector		sum[LINEAR_ROWS][LINEAR_PANELS * PARTS];
	float		bias[LINEAR_PANELS * LANES] = {0};
	int			width = w->out - o < panels * LANES ? w->out - o : panels * LANES;

	if (w->bias != NULL)
		memcpy(bias, w->bias + o, width * sizeof(float));
	for (int r = 0; r < rows; r++)
		for (int p = 0; p < panels * PARTS; p++)
			sum[r][p] = load(bias + p * WIDTH);
	for (int i = 0; i < w->in; i++)
	{
		Vector		weight[LINEAR_PANELS * PARTS];

		for (int p = 0; p < panels * PARTS; p++)
			weight[p] = load(packed + p / PARTS * next + (size_t) i * LANES + p % PARTS * WIDTH);
		for (int r = 0; r < rows; r++)
		{
			Vector		value = splat(x[(size_t) r * w->in + i]);

			for (int p = 0; p < panels * PARTS; p++)
				sum[r][p] += weight[p] * value;
		}
	}
	for (int r = 0; r < rows; r++)
		for (int p = 0; p < panels * PARTS; p++)
			finish_vector(sum[r][p], activation, accumulate, width - p * WIDTH, y + (size_t) r * w->out + o + p * WIDTH);
}

INLINE void
linear_rows(const int rows, const TnpLinear *w, const float *x, TnpActivation activation, bool accumulate, float *y)
{
	int			o = 0;

	for (; o + (LINEAR_PANELS - 1) * LANES < w->out; o += LINEAR_PANELS * LANES)
		linear_tile(rows, LINEAR_PANELS, w, o, x, activation, accumulate, y);
	if (o < w->out)
		linear_tile(rows, 1, w, o, x, activation, accumulate, y);
}

static void
linear(const TnpLinear *w, int n, const float *x, TnpActivation activation, bool accumulate, float *y)
{
	int			r = 0;

	for (; r + LINEAR_ROWS <= n; r += LINEAR_ROWS)
		linear_rows(LINEAR_ROWS, w, x + (size_t) r * w->in, activation, accumulate, y + (size_t) r * w->out);
	for (; r < n; r++)
		linear_rows(1, w, x + (size_t) r * w->in, activation, accumulate, y + (size_t) r * w->out);
}

/* ---- norm -------------------------------------------------------------------------------------------------- */

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

			sum[p] += square ? v * v : v;
		}
	for (int i = whole; i < d; i++)
		rest += square ? (x[i] - mean) * (x[i] - mean) : x[i] - mean;
	return sum_lanes(sum) + rest;
}

static void
norm(const TnpNorm *norm, int n, const float *x, float *y)
{
	int			d = norm->width,
				whole = d / WIDTH * WIDTH;

	for (int r = 0; r < n; r++, x += d, y += d)
	{
		float		mean = norm->kind == TNP_LAYER_NORM ? sum_row(d, x, 0, false) / d : 0,
					scale = 1 / sqrtf(sum_row(d, x, mean, true) / d + norm->eps);

		for (int i = 0; i < whole; i += WIDTH)
		{
			Vector		v = (load(x + i) - mean) * scale * load(norm->weight + i);

			store(y + i, norm->bias != NULL ? v + load(norm->bias + i) : v);
		}
		for (int i = whole; i < d; i++)
			y[i] = (x[i] - mean) * scale * norm->weight[i] + (norm->bias != NULL ? norm->bias[i] : 0);
	}
}

/* ---- attention --------------------------------------------------------------------------------------------- */

/* Scores of `rows` rows against all panels of n keys: score[r][slot] = scale[r] * q[r].k[slot]; lanes beyond n are garbage. */
INLINE void
score_panels(const int rows, int d, int head_width, const float *q, const float *scale, int heads, const float *k, int64_t n, float *score,
			 int64_t score_row)
{
	for (int64_t s = 0; s < n; s += LANES)
	{
		const float *panel = k + s * d;
		Vector		sum[ROWS][PARTS];

		for (int r = 0; r < rows; r++)
			for (int p = 0; p < PARTS; p++)
				sum[r][p] = splat(0);
		for (int f = 0; f < head_width; f++)
			for (int p = 0; p < PARTS; p++)
			{
				Vector		key = load(panel + (size_t) f * LANES + p * WIDTH);

				for (int r = 0; r < rows; r++)
					sum[r][p] += key * q[(size_t) r * d + f];
			}
		for (int r = 0; r < rows; r++)
			for (int p = 0; p < PARTS; p++)
				store(score + r * score_row + s + p * WIDTH, sum[r][p] * scale[r * heads]);
	}
}

/* Raise max, 16 lanes, to the largest of n scores of each lane. */
INLINE void
max_scores(const float *score, int64_t n, Vector *max)
{
	for (int64_t s = 0; s < n; s += LANES)
		for (int p = 0; p < PARTS; p++)
		{
			Vector		v = load(score + s + p * WIDTH);

			if (s + LANES > n)
				v = choose(lanes_below(s + p * WIDTH, n), v, max[p]);
			max[p] = vector_max(v, max[p]);
		}
}

/* Turn n scores into weights exp(score - max) in place, zero in the last panel's unused lanes, and add them to sum, 16 lanes. */
INLINE void
weigh_scores(float *score, int64_t n, float max, Vector *sum)
{
	for (int64_t s = 0; s < n; s += LANES)
		for (int p = 0; p < PARTS; p++)
		{
			Vector		weight = vector_exp(load(score + s + p * WIDTH) - max);

			if (s + LANES > n)
				weight = choose(lanes_below(s + p * WIDTH, n), weight, splat(0));
			store(score + s + p * WIDTH, weight);
			sum[p] += weight;
		}
}

/* mean[r][f] += Σ over slots [from, to), in order, of weight[r][slot] v[slot][f], for `chunks` vectors of features. */
INLINE void
add_chunks(const int rows, const int chunks, int d, const float *v, int64_t from, int64_t to, const float *weight, int64_t weight_row,
		   float *mean, int64_t mean_row)
{
	Vector		sum[ROWS][2];

	for (int r = 0; r < rows; r++)
		for (int c = 0; c < chunks; c++)
			sum[r][c] = load(mean + r * mean_row + c * WIDTH);
	for (int64_t s = from; s < to; s++)
	{
		Vector		value[2];

		for (int c = 0; c < chunks; c++)
			value[c] = load(v + s * d + c * WIDTH);
		for (int r = 0; r < rows; r++)
			for (int c = 0; c < chunks; c++)
				sum[r][c] += value[c] * weight[r * weight_row + s];
	}
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < chunks; c++)
			store(mean + r * mean_row + c * WIDTH, sum[r][c]);
}

/* The same for all features of a head; a vector may reach beyond them, into the next head or the cache's slack, and is then ignored. */
INLINE void
add_values(const int rows, int d, int head_width, const float *v, int64_t from, int64_t to, const float *weight, int64_t weight_row, float *mean,
		   int64_t mean_row)
{
	int			f = 0;

	for (; head_width - f > WIDTH; f += 2 * WIDTH)
		add_chunks(rows, 2, d, v + f, from, to, weight, weight_row, mean + f, mean_row);
	if (f < head_width)
		add_chunks(rows, 1, d, v + f, from, to, weight, weight_row, mean + f, mean_row);
}

/* One head of `rows` rows from row `row` on. Scores lie as [shared keys, rounded up to panels | own keys]. */
INLINE void
attend_rows(const int rows, const TnpAttention *a, int row, int head)
{
	int			d = a->heads * a->head_width,
				first = head * a->head_width,
				padded = (a->head_width + 2 * LANES - 1) / (2 * LANES) * (2 * LANES);
	const float *q = a->q + (size_t) row * d + first,
			   *scale = a->scale + row * a->heads + head;
	const float *k = a->k + (size_t) first * LANES;
	int64_t		least = a->context[row],
				most = a->context[row];
	float		sum[ROWS];
	float		mean[ROWS * (TNP_MAX_WIDTH + 2 * LANES)];

	for (int r = 1; r < rows; r++)
	{
		least = a->context[row + r] < least ? a->context[row + r] : least;
		most = a->context[row + r] > most ? a->context[row + r] : most;
	}
	score_panels(rows, d, a->head_width, q, scale, a->heads, k, most, a->scratch, a->scratch_row);
	for (int r = 0; r < rows; r++)
	{
		int64_t		n = a->context[row + r];
		const TnpKeys *own = &a->own[row + r];
		float	   *score = a->scratch + r * a->scratch_row,
				   *own_score = score + tnp_panels(n);
		Vector		max[PARTS],
					total[PARTS];
		float		top;

		for (int p = 0; p < PARTS; p++)
		{
			max[p] = splat(-INFINITY);
			total[p] = splat(0);
		}
		max_scores(score, n, max);
		if (own->n > 0)
		{
			score_panels(1, d, a->head_width, q + (size_t) r * d, scale + r * a->heads, a->heads, own->k + (size_t) first * LANES, own->n,
						 own_score, 0);
			max_scores(own_score, own->n, max);
		}
		top = max_lanes(max);
		weigh_scores(score, n, top, total);
		weigh_scores(own_score, own->n, top, total);
		sum[r] = sum_lanes(total);
	}
	memset(mean, 0, rows * padded * sizeof(float));
	add_values(rows, d, a->head_width, a->v + first, 0, least, a->scratch, a->scratch_row, mean, padded);
	for (int r = 0; r < rows; r++)
	{
		int64_t		n = a->context[row + r];
		const TnpKeys *own = &a->own[row + r];
		float	   *score = a->scratch + r * a->scratch_row,
				   *out = a->out + (size_t) (row + r) * d + first;

		add_values(1, d, a->head_width, a->v + first, least, n, score, 0, mean + r * padded, 0);
		if (own->n > 0)
			add_values(1, d, a->head_width, own->v + first, 0, own->n, score + tnp_panels(n), 0, mean + r * padded, 0);
		for (int f = 0; f < a->head_width; f++)
			out[f] = sum[r] > 0 ? mean[r * padded + f] / sum[r] : 0;
	}
}

static void
attend(const TnpAttention *a)
{
	for (int h = 0; h < a->heads; h++)
	{
		int			r = 0;

		for (; r + ROWS <= a->n; r += ROWS)
			attend_rows(ROWS, a, r, h);
		for (; r < a->n; r++)
			attend_rows(1, a, r, h);
	}
}

const TnpKernels KERNELS_TABLE = {
	TNP_KERNELS_API, sizeof(TnpKernels), KERNELS_NAME, packed_floats, pack, linear, norm, attend
};
