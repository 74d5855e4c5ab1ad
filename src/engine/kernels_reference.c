/*
 * kernels_reference.c: the reference provider. Straightforward loops, float64 accumulation, no tricks: the oracle of
 * the fast ones. Keep it readable rather than quick.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "kernels.h"

#include <math.h>
#include <string.h>

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
			return v > 0 ? v : 0;
		case TNP_GELU:
			return 0.5 * v * (1 + erf(v * 0.70710678118654752440));
		case TNP_GELU_TANH:
			return 0.5 * v * (1 + tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
	}
	return v;
}

static void
reference_linear(const TnpLinear *w, int n, const float *x, TnpActivation activation, bool accumulate, float *y)
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
			y[i] = (float) ((x[i] - mean) * scale * norm->weight[i] + (norm->bias != NULL ? norm->bias[i] : 0));
	}
}

static double
key_score(const float *q, const float *k, int64_t slot, int d, int first, int width)
{
	double		sum = 0;

	for (int f = 0; f < width; f++)
		sum += (double) q[f] * k[((slot / TNP_PANEL) * d + first + f) * TNP_PANEL + slot % TNP_PANEL];
	return sum;
}

/* One row and one head; two passes over the keys: the maximum, then the weighted mean. */
static void
attend_head(const TnpAttention *a, int row, int head)
{
	int			d = a->heads * a->head_width,
				first = head * a->head_width;
	const float *q = a->q + (size_t) row * d + first;
	float	   *out = a->out + (size_t) row * d + first;
	double		scale = a->scale[row * a->heads + head],
				max = -INFINITY,
				sum = 0;
	TnpKeys		part[2] = {{a->k, a->v, a->context[row]}, a->own[row]};

	for (int p = 0; p < 2; p++)
		for (int64_t s = 0; s < part[p].n; s++)
			max = fmax(max, scale * key_score(q, part[p].k, s, d, first, a->head_width));

	double		mean[TNP_MAX_WIDTH];

	for (int f = 0; f < a->head_width; f++)
		mean[f] = 0;
	for (int p = 0; p < 2; p++)
		for (int64_t s = 0; s < part[p].n; s++)
		{
			double		weight = exp(scale * key_score(q, part[p].k, s, d, first, a->head_width) - max);

			sum += weight;
			for (int f = 0; f < a->head_width; f++)
				mean[f] += weight * part[p].v[s * d + first + f];
		}
	for (int f = 0; f < a->head_width; f++)
		out[f] = (float) (sum > 0 ? mean[f] / sum : 0);
}

static void
reference_attend(const TnpAttention *a)
{
	for (int r = 0; r < a->n; r++)
		for (int h = 0; h < a->heads; h++)
			attend_head(a, r, h);
}

const TnpKernels tnp_reference_kernels = {
	TNP_KERNELS_API, sizeof(TnpKernels), "reference",
	reference_packed_floats, reference_pack, reference_linear, reference_norm, reference_attend
};
