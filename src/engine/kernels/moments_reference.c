/*
 * moments_reference.c: the operations of moments.h, one number at a time.
 *
 * Nothing but additions, multiplications, divisions and one rounding of doubles in a fixed order
 * takes part in features, without the mathematical library, whose last digit differs from one
 * version to the next.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/kernels/moments_reference.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

double
tnp_squash(double x, double center, double scale)
{
	double		z = (x - center) / scale;
	double		size = fabs(z);

	if (size <= 2)
		return z;
	size = TNP_MOMENT_REACH - 4 / size;
	return z < 0 ? -size : size;
}

/* Series of sine and cosine, for t within half a turn: the error is below 1e-13. */
static double
series(double first, double t2, int from)
{
	double		sum = 0;

	/* Horner, from the last of ten terms */
	for (int k = from + 20; k > from; k -= 2)
		sum = (1 + sum) * (-t2 / ((double) k * (k - 1)));
	return first * (1 + sum);
}

void
tnp_waves(double z, int n, double *out)
{
	double		t = PI * z / (2 * TNP_MOMENT_REACH),
				sine = series(1, t * t, 0),
				twice = -2 * series(t, t * t, 1),	/* the angle is a quarter turn more than t */
				before = 0;

	for (int k = 0; k < n; k++)
	{
		double		next = twice * sine - before;

		out[k] = sine;
		before = sine;
		sine = next;
	}
}

static void
reference_waves(const double *x, double center, double scale, int waves, double *part)
{
	for (int r = 0; r < TNP_MOMENT_ROWS; r++)
	{
		double		wave[256],
					z = isnan(x[r]) ? 0 : tnp_squash(x[r], center, scale);

		tnp_waves(z, waves, wave);
		part[r] = z / TNP_MOMENT_REACH;
		for (int k = 0; k < waves; k++)
			part[(size_t) (k + 1) * TNP_MOMENT_ROWS + r] = isnan(x[r]) ? 0 : wave[k];
	}
}

static void
reference_round(const double *a, const double *b, int16_t *phi)
{
	for (int r = 0; r < TNP_MOMENT_ROWS; r++)
	{
		double		q = nearbyint((b == NULL ? a[r] : a[r] * b[r]) * TNP_MOMENT_UNIT);

		phi[r] = (int16_t) (q > TNP_MOMENT_UNIT ? TNP_MOMENT_UNIT
							: q < -TNP_MOMENT_UNIT ? -TNP_MOMENT_UNIT : q);
	}
}

/* As they are: feature by feature, two rows in a word. */
static void
reference_lay_out(int n, int pairs, const int16_t *phi, int32_t *panels, uint16_t *norms)
{
	(void) pairs;
	memcpy(panels, phi, (size_t) n * TNP_MOMENT_ROWS * sizeof(*phi));
	memset(norms, 0, TNP_MOMENT_NORMS * sizeof(*norms));	/* nothing asks for them */
}

static void
reference_product(int n, int pairs, const int32_t *panels, const int64_t *y, int64_t *product)
{
	const int16_t *phi = (const int16_t *) panels;

	for (int i = 0; i < n; i++, phi += TNP_MOMENT_ROWS)
	{
		product[i] = 0;
		for (int r = 0; r < 2 * pairs; r++)
			product[i] += phi[r] * y[r];
	}
}

static void
reference_add(int n, int blocks, int pairs, int sign, const int32_t *panels, const uint16_t *norms,
			  int64_t *gram)
{
	(void) norms;
	for (int b = 0; b < blocks; b++)
	{
		const int16_t *phi = (const int16_t *) (panels + b * tnp_panel_words(n));
		int64_t    *out = gram;

		for (int i = 0; i < n; i++)
			for (int j = 0; j <= i; j++, out++)
				for (int r = 0; r < 2 * pairs; r++)
					*out += sign * (int64_t) phi[i * TNP_MOMENT_ROWS + r]
						* phi[j * TNP_MOMENT_ROWS + r];
	}
}

static void
reference_subtract(int m, int n, int k, const double *a, size_t a_stride, const double *b,
				   size_t b_stride, double *c, size_t c_stride)
{
	for (int i = 0; i < m; i++)
		for (int p = 0; p < k; p++)
			for (int j = 0; j < n; j++)
				c[i * c_stride + j] -= a[i * a_stride + p] * b[p * b_stride + j];
}

const TnpMoments tnp_reference_moments = {
	reference_waves, reference_round, reference_lay_out, reference_product, reference_add,
	reference_subtract
};
