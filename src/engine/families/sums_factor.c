/*
 * sums_factor.c: Cholesky factors of symmetric matrices and their inverses, in blocks, by the
 * provider's product of matrices (Golub and Van Loan 2013, section 4.2.5).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums_factor.h"

#include <math.h>
#include <string.h>

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

/* The factor of one block of the diagonal, in place; what is above the diagonal becomes 0. */
static bool
factor_block(int n, double *a)
{
	for (int i = 0; i < B; i++)
	{
		double	   *row = a + (size_t) i * n;

		for (int j = 0; j <= i; j++)
		{
			const double *other = a + (size_t) j * n;
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
invert_block(int n, const double *a, double *minus)
{
	memset(minus, 0, B * B * sizeof(double));
	for (int i = 0; i < B; i++)
	{
		const double *row = a + (size_t) i * n;
		double	   *out = minus + (size_t) i * B;

		out[i] = 1;
		for (int k = 0; k < i; k++)
			for (int j = 0; j <= k; j++)
				out[j] += row[k] * minus[(size_t) k * B + j];
		for (int j = 0; j <= i; j++)
			out[j] /= -row[i];
	}
}

/* Columns of a block below the diagonal: times the inverse's transpose. */
static void
solve_below(const TnpMoments *moments, int n, int rows, double *below, const double *minus,
			double *panel, double *transpose)
{
	for (int i = 0; i < rows; i++)
	{
		memcpy(panel + (size_t) i * B, below + (size_t) i * n, B * sizeof(double));
		memset(below + (size_t) i * n, 0, B * sizeof(double));
	}
	for (int i = 0; i < B; i++)
		for (int j = 0; j < B; j++)
			transpose[j * B + i] = minus[i * B + j];
	moments->subtract(rows, B, B, panel, B, transpose, B, below, n);
}

bool
sums_factorise(const TnpMoments *moments, int n, double *a, double *scratch)
{
	double	   *panel = panel_of(n, scratch);

	for (int j = 0; j < n; j += B)
	{
		double	   *diagonal = a + (size_t) j * n + j,
				   *minus = scratch + (size_t) j * B;

		for (int i = 0; i < B; i++)
			for (int k = 0; k < j; k++)
				panel[(size_t) k * B + i] = a[(size_t) (j + i) * n + k];
		moments->subtract(n - j, B, j, a + (size_t) j * n, n, panel, B, diagonal, n);
		if (!factor_block(n, diagonal))
			return false;
		invert_block(n, diagonal, minus);
		solve_below(moments, n, n - j - B, diagonal + (size_t) B * n, minus, panel,
					panel + (size_t) n * B);
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
			moments->subtract(B, B, i - k, factor + (size_t) i * n + k, n,
							  inverse + (size_t) k * n + k, n, panel + k, n);
		moments->subtract(B, i, B, minus, B, panel, n, inverse + (size_t) i * n, n);
		for (int r = 0; r < B; r++)
			for (int c = 0; c <= r; c++)
				inverse[(size_t) (i + r) * n + i + c] = -minus[r * B + c];
	}
}
