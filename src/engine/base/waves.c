/*
 * waves.c: sines of many angles, and sums over many rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/base/waves.h"

#include <stddef.h>

#include "engine/base/wide.h"

#define SUMS 8					/* of products, side by side */

/* To the nearest integer, of numbers below 2^51. */
static inline __attribute__((always_inline)) double
nearest(double x)
{
	const double shift = 6755399441055744.0;

	return (x + shift) - shift;
}

/* Series within an eighth of a turn; which quarter it is decides their places and signs. */
TNP_WIDE_ANY
sines_any(int n, const double *restrict angle, double *restrict sine, double *restrict cosine)
{
	for (int i = 0; i < n; i++)
	{
		/* a quarter turn in two parts, the first of 33 bits */
		const double turns = nearest(angle[i] * 0.63661977236758134308),
					r = (angle[i] - turns * 1.57079632673412561417) -
			turns * 6.07710050650619224932e-11,
					r2 = r * r,
					quarter = turns - 4 * nearest(turns * 0.25);	/* -2 … 2 */
		const bool	odd = quarter * quarter == 1;
		double		s = 0,
					c = 0;

		for (int k = 16; k > 0; k -= 2)
		{
			s = (1 + s) * (r2 * (-1.0 / (k * (k + 1))));
			c = (1 + c) * (r2 * (-1.0 / (k * (k - 1))));
		}
		s = r * (1 + s);
		c = 1 + c;
		sine[i] = (odd ? c : s) * (quarter == -1 || quarter * quarter == 4 ? -1 : 1);
		cosine[i] = (odd ? s : c) * (quarter == 1 || quarter * quarter == 4 ? -1 : 1);
	}
}

TNP_WIDE(sines, (int n, const double *restrict angle, double *restrict sine,
				 double *restrict cosine), (n, angle, sine, cosine))

void
tnp_sines(int n, const double *angle, double *sine, double *cosine)
{
	sines(n, angle, sine, cosine);
}

TNP_WIDE_ANY
weighted_sum_any(int n, int columns, const double *restrict x, const double *restrict weight,
				 double *restrict out)
{
	for (int i = 0; i < n; i++)
		out[i] = 0;
	for (int c = 0; c < columns; c++)
		for (int i = 0; i < n; i++)
			out[i] += weight[c] * x[(size_t) c * n + i];
}

TNP_WIDE(weighted_sum, (int n, int columns, const double *restrict x,
						const double *restrict weight, double *restrict out),
		 (n, columns, x, weight, out))

void
tnp_weighted_sum(int n, int columns, const double *x, const double *weight, double *out)
{
	weighted_sum(n, columns, x, weight, out);
}

TNP_WIDE_ANY
sum_of_products_any(int n, const double *a, const double *b, double *out)
{
	double		sum[SUMS] = {0};
	int			i = 0;

	for (; i + SUMS <= n; i += SUMS)
		for (int k = 0; k < SUMS; k++)
			sum[k] += a[i + k] * b[i + k];
	for (int k = 0; i + k < n; k++)
		sum[k] += a[i + k] * b[i + k];
	*out = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

TNP_WIDE(sum_of_products, (int n, const double *a, const double *b, double *out), (n, a, b, out))

double
tnp_sum_of_products(int n, const double *a, const double *b)
{
	double		sum;

	sum_of_products(n, a, b, &sum);
	return sum;
}
