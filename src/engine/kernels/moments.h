/*
 * moments.h: what a CPU-class provider does for contexts that are sums (docs/sums.md): features of
 * rows, their second moments, and products of matrices of doubles.
 *
 * All operations but the last are exact: every provider gives the same bits, so that sums are those
 * of their rows wherever they were made. Products of doubles are sums in a provider's own order.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_MOMENTS_H
#define TNP_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#define TNP_MOMENT_ROWS 32		/* rows whose products an int32 holds the sum of */
#define TNP_MOMENT_UNIT 8191	/* a feature of 1 */
#define TNP_MOMENT_REACH 4		/* squashed values lie between minus this and this */
#define TNP_MOMENT_TILE 16		/* that matrices of doubles are a multiple of */
#define TNP_MOMENT_PANEL 32		/* features that are laid out together, at most */
#define TNP_MOMENT_NORMS 128	/* of a block: of eight features each */
#define TNP_MOMENT_BLOCKS 4		/* that are added together, at most */
#define TNP_MOMENT_MOST 1024	/* features */

/* Words of a block of rows of n features that was laid out. */
static inline size_t
tnp_panel_words(int n)
{
	return (size_t) (n + TNP_MOMENT_PANEL - 1) / TNP_MOMENT_PANEL * TNP_MOMENT_PANEL
		* (TNP_MOMENT_ROWS / 2);
}

typedef struct TnpMoments
{
	/*
	 * part [1 + waves, TNP_MOMENT_ROWS] of the numbers x [TNP_MOMENT_ROWS]: their squashed standard
	 * score by TNP_MOMENT_REACH, then waves 1 … `waves` (docs/sums.md, "Features"); all 0 of a NaN.
	 */
	void		(*waves) (const double *x, double center, double scale, int waves, double *part);

	/*
	 * phi [TNP_MOMENT_ROWS] = a, or the products a b unless b is NULL, all of them within 4, in
	 * units of 1 / TNP_MOMENT_UNIT, ties to even, none beyond a unit.
	 */
	void		(*round) (const double *a, const double *b, int16_t *phi);

	/*
	 * Lay out phi [n, TNP_MOMENT_ROWS], each within a unit, for add: panels [tnp_panel_words(n)],
	 * norms [TNP_MOMENT_NORMS], of eight features the largest root of a sum of squares, rounded up.
	 * Rows from the first 2 `pairs` on are left out.
	 */
	void		(*lay_out) (int n, int pairs, const int16_t *phi, int32_t *panels, uint16_t *norms);

	/*
	 * product [n] = phi y, of a block that was laid out with as many pairs; y [TNP_MOMENT_ROWS]
	 * within 2^44.
	 */
	void		(*product) (int n, int pairs, const int32_t *panels, const int64_t *y,
							int64_t *product);

	/*
	 * gram [n (n + 1) / 2], a lower triangle by rows, += sign phi phi', of up to TNP_MOMENT_BLOCKS
	 * blocks of rows that were laid out with as many pairs, one behind the other.
	 */
	void		(*add) (int n, int blocks, int pairs, int sign, const int32_t *panels,
						const uint16_t *norms, int64_t *gram);

	/*
	 * c [m, n] -= a [m, k] b [k, n]; strides are in numbers. m and n are multiples of
	 * TNP_MOMENT_TILE.
	 */
	void		(*subtract) (int m, int n, int k, const double *a, size_t a_stride,
							 const double *b, size_t b_stride, double *c, size_t c_stride);
} TnpMoments;

#endif							/* TNP_MOMENTS_H */
