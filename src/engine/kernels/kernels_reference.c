/*
 * kernels_reference.c: the reference provider. Straightforward loops, float64 accumulation, no
 * tricks: the oracle of the fast ones. Keep it readable rather than quick.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/kernels/kernels.h"
#include "engine/kernels/moments_reference.h"

#include <math.h>
#include <string.h>

#define MOST_SCORE (TNP_LARGEST_SCORE * 0.69314718055994530942)	/* in natural units */

static size_t
reference_packed_floats(int out, int stride)
{
	(void) out;
	(void) stride;
	return 0;
}

static void
reference_pack(const float *weight, int out, int stride, float *packed)
{
	(void) weight;
	(void) out;
	(void) stride;
	(void) packed;
}

static double
activate(double v, TnpActivation activation)
{
	switch (activation)
	{
		case TNP_IDENTITY:
			return v;
		case TNP_RELU:
			return v < 0 ? 0 : v;	/* NaN stays NaN */
		case TNP_GELU:
			return 0.5 * v * (1 + erf(v * 0.70710678118654752440));
		case TNP_GELU_TANH:
			return 0.5 * v * (1 + tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
	}
	return v;
}

static void
reference_linear(const TnpLinear *w, int n, const float *x, TnpActivation activation,
				 bool accumulate, float *y)
{
	for (int r = 0; r < n; r++)
		for (int o = 0; o < w->out; o++)
		{
			const float *row = w->weight + (size_t) o * w->stride;
			double		sum = w->bias != NULL ? w->bias[o] : 0;
			float	   *target = &y[(size_t) r * w->out + o];

			for (int i = 0; i < w->in; i++)
				sum += (double) row[i] * x[(size_t) r * w->in + i];
			*target = (float) (accumulate ? *target + sum : activate(sum, activation));
		}
}

static void
reference_norm(const TnpNorm *norm, int n, const float *x, float *y)
{
	int			d = norm->width;

	for (int r = 0; r < n; r++, x += d, y += d)
	{
		double		mean = 0,
					square = 0,
					scale;

		if (norm->kind == TNP_LAYER_NORM)
		{
			for (int i = 0; i < d; i++)
				mean += x[i];
			mean /= d;
		}
		for (int i = 0; i < d; i++)
			square += (x[i] - mean) * (x[i] - mean);
		scale = 1 / sqrt(square / d + norm->eps);
		for (int i = 0; i < d; i++)
			y[i] = (float) ((x[i] - mean) * scale * norm->weight[i]
							+ (norm->bias != NULL ? norm->bias[i] : 0));
	}
}

/* q . k of one head of a slot. */
static double
key_score(const TnpAttention *a, int block, const float *q, const void *k, int64_t slot, int head)
{
	const float *key = (const float *) k + tnp_key_at(slot, block, a->heads * a->head_width, head,
													  a->head_width, 0);
	double		sum = 0;

	for (int f = 0; f < a->head_width; f++)
		sum += (double) q[f] * key[(size_t) f * TNP_PANEL];
	return sum;
}

/* One row, head and plane; two passes over the keys: the maximum, then the weighted mean. */
static void
attend_head(const TnpAttention *a, int row, int head, int plane)
{
	int			d = a->heads * a->head_width,
				planes = tnp_attention_planes(a),
				first = head * a->head_width;
	const float *q = a->q + (size_t) row * d + first;
	float	   *out = a->out + ((size_t) row * planes + plane) * d + first;
	double		scale = a->scale[row * a->heads + head],
				max = -INFINITY,
				sum = 0;
	TnpKeys		part[2] = {{a->k, a->v, a->context[row]}, a->own[row]};
	const int	block[2] = {TNP_BLOCK, TNP_PANEL};

	for (int p = 0; p < 2; p++)
		for (int64_t s = 0; s < part[p].n; s++)
			max = fmax(max, scale * key_score(a, block[p], q, part[p].k, s, head));

	double		mean[TNP_MAX_WIDTH];

	for (int f = 0; f < a->head_width; f++)
		mean[f] = 0;
	for (int p = 0; p < 2; p++)
		for (int64_t s = 0; s < part[p].n; s++)
		{
			const float *value = (const float *) part[p].v
				+ tnp_value_at(s, block[p], planes * d, head * planes + plane, a->head_width);
			double		weight = exp(scale * key_score(a, block[p], q, part[p].k, s, head) - max);

			sum += weight;
			for (int f = 0; f < a->head_width; f++)
				mean[f] += weight * value[f];
		}
	for (int f = 0; f < a->head_width; f++)
		out[f] = (float) (fabs(max) > MOST_SCORE && sum != 0 ? NAN : sum == 0 ? 0 : mean[f] / sum);
}

static void
reference_attend(const TnpAttention *a)
{
	for (int r = 0; r < a->n; r++)
		for (int h = 0; h < a->heads; h++)
			for (int p = 0; p < tnp_attention_planes(a); p++)
				attend_head(a, r, h, p);
}

static size_t
reference_sum_floats(int heads, int head_width, int planes, int n)
{
	(void) heads;
	(void) head_width;
	(void) planes;
	(void) n;
	return 0;
}

/* Sums of a head, relative to its largest score so far: that score, of weights, of values. */
static double *
bump_sum(const TnpBumps *b, int head)
{
	return (double *) (void *) b->sums + (size_t) head * (2 + b->value_width);
}

static size_t
reference_bump_floats(int heads, int value_width)
{
	return (size_t) heads * (2 + value_width) * (sizeof(double) / sizeof(float));
}

static void
reference_bump_begin(const TnpBumps *b)
{
	for (int h = 0; h < b->heads; h++)
	{
		double	   *sum = bump_sum(b, h);

		sum[0] = -INFINITY;
		memset(sum + 1, 0, (1 + b->value_width) * sizeof(double));
	}
}

/* The score of a slot of a block. */
static double
bump_score(const TnpBumps *b, int head, const float *k, int block, int slot, const float *distance)
{
	const float *q = b->q + head * b->key_width,
			   *key = k + tnp_key_at(slot, block, b->heads * b->key_width, head, b->key_width, 0);
	double		score = 0;

	for (int f = 0; f < b->key_width; f++)
		score += (double) q[f] * key[(size_t) f * TNP_PANEL];
	for (int g = 0; g < b->components; g++)
		for (int i = 0; i < b->basis; i++)
		{
			size_t		at = ((size_t) g * b->heads + head) * b->basis + i;
			double		away = distance[g * TNP_BLOCK + slot] - (double) b->center[at];

			score += b->height[at] * exp2(b->rate[at] * away * away);
		}
	return score;
}

/* Take a slot with this score into a head's sums. */
static void
bump_take_slot(double *sum, int width, double score, const float *value)
{
	double		weight;

	if (score > sum[0] || isnan(score))
	{
		double		shrink = sum[0] == -INFINITY ? 0 : exp2(sum[0] - score);

		sum[0] = score;
		for (int i = 1; i < 2 + width; i++)
			sum[i] *= shrink;
	}
	weight = exp2(score - sum[0]);
	sum[1] += weight;
	for (int f = 0; f < width; f++)
		sum[2 + f] += weight * value[f];
}

static void
reference_bump_take(const TnpBumps *b, const float *k, const float *v, int block, int n,
					const float *distance, const bool *hidden)
{
	for (int h = 0; h < b->heads; h++)
		for (int i = 0; i < n; i++)
			if (hidden == NULL || !hidden[i])
				bump_take_slot(bump_sum(b, h), b->value_width,
							   bump_score(b, h, k, block, i, distance),
							   v + tnp_value_at(i, block, b->heads * b->value_width, h,
												b->value_width));
}

static void
reference_bump_end(const TnpBumps *b, float *out)
{
	for (int h = 0; h < b->heads; h++)
	{
		const double *sum = bump_sum(b, h);

		for (int f = 0; f < b->value_width; f++, out++)
			*out = (float) (sum[1] == 0 ? 0 : fabs(sum[0]) <= TNP_LARGEST_SCORE
							? sum[2 + f] / sum[1] : NAN);
	}
}

static const TnpMoments *
reference_moments(void)
{
	return &tnp_reference_moments;
}

static float
reference_sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

static void
reference_gate(bool cells, int d, const float *gates, const float *before, float *s)
{
	float	   *c = s + d;

	for (int f = 0; f < d; f++)
	{
		if (!cells)
		{
			s[f] = tanhf(gates[f]);
			continue;
		}
		c[f] = reference_sigmoid(gates[d + f]) * (before != NULL ? before[f] : 0)
			+ reference_sigmoid(gates[f]) * tanhf(gates[2 * d + f]);
		s[f] = reference_sigmoid(gates[3 * d + f]) * tanhf(c[f]);
	}
}

const TnpKernels tnp_reference_kernels = {
	TNP_KERNELS_API, sizeof(TnpKernels), "reference", sizeof(float), NULL,
	reference_packed_floats, reference_pack, NULL, reference_linear, reference_norm,
	reference_sum_floats, reference_sum_floats, reference_attend, NULL, NULL, NULL, NULL,
	reference_bump_floats, reference_bump_begin, reference_bump_take, reference_bump_end,
	reference_gate, reference_moments
};
