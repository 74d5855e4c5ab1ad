/*
 * sums_factor.c: Cholesky factors of symmetric matrices and their inverses, in blocks, by the
 * provider's product of matrices (Golub and Van Loan 2013, section 4.2.5).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums_factor.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"

#define B SUMS_FACTOR_BLOCK

size_t
sums_factor_numbers(int n)
{
	/* inverses of the diagonal's blocks, a panel, one block */
	return (size_t) n * B + (size_t) n * B + B * B;
}

static double *
panel_of(int n, double *scratch)
{
	return scratch + (size_t) n * B;
}

/*
 * The factor of one block of the diagonal, rows n apart, in place; what is above the diagonal
 * becomes 0.
 */
static bool
factor_block(size_t n, double *a)
{
	for (int i = 0; i < B; i++)
	{
		double	   *row = a + i * n;

		for (int j = 0; j <= i; j++)
		{
			const double *other = a + j * n;
			double		sum = row[j];

			for (int k = 0; k < j; k++)
				sum -= row[k] * other[k];
			if (i != j)
				row[j] = sum / other[j];
			else if (sum > 0)
				row[j] = sqrt(sum);
			else
				return false;
		}
		for (int j = i + 1; j < B; j++)
			row[j] = 0;
	}
	return true;
}

/* Minus the inverse [B, B] of such a factor. */
static void
invert_block(size_t n, const double *a, double *minus)
{
	memset(minus, 0, B * B * sizeof(double));
	for (int i = 0; i < B; i++)
	{
		const double *row = a + i * n;
		double	   *out = minus + (size_t) i * B;

		out[i] = 1;
		for (int k = 0; k < i; k++)
			for (int j = 0; j <= k; j++)
				out[j] += row[k] * minus[(size_t) k * B + j];
		for (int j = 0; j <= i; j++)
			out[j] /= -row[i];
	}
}

/* A block below the diagonal, rows n apart: times the inverse's transpose. */
static void
solve_below(const TnpMoments *moments, size_t n, double *below, const double *transpose,
			double *before)
{
	for (int i = 0; i < B; i++)
	{
		memcpy(before + i * B, below + i * n, B * sizeof(double));
		memset(below + i * n, 0, B * sizeof(double));
	}
	moments->subtract(B, B, B, before, B, transpose, B, below, n);
}

bool
sums_factorise(const TnpMoments *moments, int n, double *a, double *scratch)
{
	double	   *panel = panel_of(n, scratch),
			   *transpose = panel + (size_t) n * B;

	for (int j = 0; j < n; j += B)
	{
		double	   *rows = a + sums_stair(j),
				   *minus = scratch + (size_t) j * B;
		size_t		stride = sums_stair_stride(j);

		for (int i = 0; i < B; i++)
			for (int k = 0; k < j; k++)
				panel[(size_t) k * B + i] = rows[i * stride + k];
		for (int r = j; r < n; r += B)
			moments->subtract(B, B, j, a + sums_stair(r), sums_stair_stride(r), panel, B,
							  a + sums_stair(r) + j, sums_stair_stride(r));
		if (!factor_block(stride, rows + j))
			return false;
		invert_block(stride, rows + j, minus);
		for (int i = 0; i < B; i++)
			for (int k = 0; k < B; k++)
				transpose[k * B + i] = minus[i * B + k];
		for (int r = j + B; r < n; r += B)
			solve_below(moments, sums_stair_stride(r), a + sums_stair(r) + j, transpose, panel);
	}
	return true;
}

void
sums_invert(const TnpMoments *moments, int n, const double *factor, double *scratch,
			double *inverse)
{
	double	   *panel = panel_of(n, scratch);

	memset(inverse, 0, (size_t) n * n * sizeof(double));
	for (int i = 0; i < n; i += B)
	{
		const double *minus = scratch + (size_t) i * B;

		memset(panel, 0, (size_t) n * B * sizeof(double));
		for (int k = 0; k < i; k += B)
			moments->subtract(B, B, i - k, factor + sums_stair(i) + k, sums_stair_stride(i),
							  inverse + (size_t) k * n + k, n, panel + k, n);
		moments->subtract(B, i, B, minus, B, panel, n, inverse + (size_t) i * n, n);
		for (int r = 0; r < B; r++)
			for (int c = 0; c <= r; c++)
				inverse[(size_t) (i + r) * n + i + c] = -minus[r * B + c];
	}
}

void
sums_solve_lower(const double *factor, int n, double *v)
{
	for (int i = 0; i < n; i++)
	{
		const double *row = factor + sums_stair(i);

		v[i] = (v[i] - tnp_dot(i, row, v)) / row[i];
	}
}

void
sums_solve_upper(const double *factor, int n, double *v)
{
	for (int i = n - 1; i >= 0; i--)
	{
		const double *row = factor + sums_stair(i);

		v[i] /= row[i];
		for (int j = 0; j < i; j++)
			v[j] -= row[j] * v[i];
	}
}
