/*
 * moments_simd.h: the operations of moments.h in vectors of KERNELS_BYTES. Included once per
 * instruction set by moments_*.c.
 *
 * Features are computed by plain loops over rows, which the compiler makes vectors of: each number
 * is the same operations in the same order as in the reference, and none is contracted. Second
 * moments are integers, whose sums have no order.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "cpu/moments_tables.h"

#define R TNP_MOMENT_ROWS
#define INLINE static inline __attribute__((always_inline))

typedef int32_t Ints __attribute__((vector_size(KERNELS_BYTES)));
typedef double Doubles __attribute__((vector_size(KERNELS_BYTES)));
typedef int64_t Longs __attribute__((vector_size(KERNELS_BYTES)));

/* ---- features -------------------------------------------------------------------------------- */

/*
 * a / b, correctly rounded, of an integer b below 2^9 and its inverse. The remainder a - q b is a
 * multiple of the last bit of q, hence exact, and an exact quotient is never as near to a number
 * that lies midway between two doubles as what the inverse lacks: midway itself would need 54 bits
 * of a. Where a is below 2^-900 the quotient may be another, whose sum with 1 is 1.
 */
INLINE double
divided(double a, double b, double inverse)
{
#if KERNELS_BYTES >= 32 || defined(__aarch64__)
	double		q = a * inverse;

	return fma(fma(-q, b, a), inverse, q);
#else
	(void) inverse;
	return a / b;
#endif
}

/* Of R rows: series of sine or cosine, by Horner from the last of ten terms. */
INLINE void
series(const double *first, const double *t2, int from, double *sum)
{
	for (int r = 0; r < R; r++)
		sum[r] = 0;
	for (int k = from + 20; k > from; k -= 2)
	{
		const double by = (double) k * (k - 1),
					inverse = 1 / by;

		for (int r = 0; r < R; r++)
			sum[r] = (1 + sum[r]) * divided(-t2[r], by, inverse);
	}
	for (int r = 0; r < R; r++)
		sum[r] = first[r] * (1 + sum[r]);
}

static void
waves(const double *x, double center, double scale, int n, double *part)
{
	double		t[R],
				t2[R],
				one[R],
				sine[R],
				twice[R],
				before[R];

	for (int r = 0; r < R; r++)
	{
		double		z = (x[r] - center) / scale,
					size = z < 0 ? -z : z,
					far = TNP_MOMENT_REACH - 4 / (size > 2 ? size : 2);

		far = z < 0 ? -far : far;
		z = size <= 2 ? z : far;
		z = x[r] == x[r] ? z : 0;
		part[r] = z / TNP_MOMENT_REACH;
		t[r] = 3.14159265358979323846 * z / (2 * TNP_MOMENT_REACH);
		t2[r] = t[r] * t[r];
		one[r] = 1;
		before[r] = 0;
	}
	series(one, t2, 0, sine);
	series(t, t2, 1, twice);
	for (int r = 0; r < R; r++)
		twice[r] = -2 * twice[r];
	for (int k = 1; k <= n; k++)
	{
		double	   *out = part + (size_t) k * R;

		for (int r = 0; r < R; r++)
		{
			double		next = twice[r] * sine[r] - before[r];

			out[r] = x[r] == x[r] ? sine[r] : 0;
			before[r] = sine[r];
			sine[r] = next;
		}
	}
}

#if KERNELS_BYTES >= 32
/* Four of the numbers, or of the products, in units, ties to even. */
INLINE __m128i
rounded(const double *a, const double *b, int r)
{
	__m256d		q = _mm256_loadu_pd(a + r);

	if (b != NULL)
		q = _mm256_mul_pd(q, _mm256_loadu_pd(b + r));
	return _mm256_cvtpd_epi32(_mm256_mul_pd(q, _mm256_set1_pd(TNP_MOMENT_UNIT)));
}

INLINE void
round_all(const double *a, const double *b, int16_t *phi)
{
	const __m128i unit = _mm_set1_epi16(TNP_MOMENT_UNIT),
				less = _mm_set1_epi16(-TNP_MOMENT_UNIT);

	for (int r = 0; r < R; r += 8)
	{
		__m128i		q = _mm_packs_epi32(rounded(a, b, r), rounded(a, b, r + 4));

		_mm_storeu_si128((__m128i *) (phi + r), _mm_max_epi16(_mm_min_epi16(q, unit), less));
	}
}
#else
INLINE void
round_all(const double *a, const double *b, int16_t *phi)
{
	/* what is below 2^51 and added to this is rounded to an integer, ties to even */
	const double magic = 6755399441055744.0;

	for (int r = 0; r < R; r++)
	{
		double		q = (b == NULL ? a[r] : a[r] * b[r]) * TNP_MOMENT_UNIT;

		q = (q + magic) - magic;
		q = q > TNP_MOMENT_UNIT ? TNP_MOMENT_UNIT : q;
		q = q < -TNP_MOMENT_UNIT ? -TNP_MOMENT_UNIT : q;
		phi[r] = (int16_t) (int32_t) q;
	}
}
#endif

static void
round_values(const double *a, const double *b, int16_t *phi)
{
	if (b == NULL)
		round_all(a, NULL, phi);
	else
		round_all(a, b, phi);
}

/* ---- second moments -------------------------------------------------------------------------- */

/*
 * A tile is TALL features by two vectors of features. Pairs of rows lie in one lane, so that one
 * instruction multiplies both and adds the products.
 */
#if KERNELS_BYTES == 64
#define TALL 8
#else
#define TALL 4
#endif
#define LANES (KERNELS_BYTES / 4)
#define WIDE (2 * LANES)
#define PANEL WIDE
#define PAIRS (R / 2)
#define NUMBERS (KERNELS_BYTES / 8)	/* that are 64 bits wide, of a vector */

/* sum + a b, of pairs */
INLINE Ints
multiply_add(Ints sum, Ints a, Ints b)
{
#if KERNELS_BYTES == 64 && defined(__AVX512VNNI__)
	return (Ints) _mm512_dpwssd_epi32((__m512i) sum, (__m512i) a, (__m512i) b);
#elif KERNELS_BYTES == 64
	return sum + (Ints) _mm512_madd_epi16((__m512i) a, (__m512i) b);
#elif KERNELS_BYTES == 32
	return sum + (Ints) _mm256_madd_epi16((__m256i) a, (__m256i) b);
#elif defined(__x86_64__)
	return sum + (Ints) _mm_madd_epi16((__m128i) a, (__m128i) b);
#else
	return sum + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}

/* Eight features' pairs of rows, from [8, PAIRS] to [pairs, PANEL]. */
INLINE void
turn_eight(int pairs, const int32_t *in, int32_t *out)
{
#if KERNELS_BYTES >= 32 && defined(__AVX2__)
	for (int p = 0; p < pairs; p += 8, in += 8, out += 8 * PANEL)
	{
		__m256i		row[8],
					two[8],
					four[8];

#pragma GCC unroll 8
		for (int i = 0; i < 8; i++)
			row[i] = _mm256_loadu_si256((const __m256i *) (in + i * PAIRS));
#pragma GCC unroll 4
		for (int i = 0; i < 8; i += 2)
		{
			two[i] = _mm256_unpacklo_epi32(row[i], row[i + 1]);
			two[i + 1] = _mm256_unpackhi_epi32(row[i], row[i + 1]);
		}
#pragma GCC unroll 2
		for (int i = 0; i < 8; i += 4)
		{
			four[i] = _mm256_unpacklo_epi64(two[i], two[i + 2]);
			four[i + 1] = _mm256_unpackhi_epi64(two[i], two[i + 2]);
			four[i + 2] = _mm256_unpacklo_epi64(two[i + 1], two[i + 3]);
			four[i + 3] = _mm256_unpackhi_epi64(two[i + 1], two[i + 3]);
		}
#pragma GCC unroll 4
		for (int i = 0; i < 4; i++)
		{
			_mm256_storeu_si256((__m256i *) (out + i * PANEL),
								_mm256_permute2x128_si256(four[i], four[i + 4], 0x20));
			_mm256_storeu_si256((__m256i *) (out + (i + 4) * PANEL),
								_mm256_permute2x128_si256(four[i], four[i + 4], 0x31));
		}
	}
#else
	for (int i = 0; i < 8; i++)
		for (int p = 0; p < pairs; p++)
			out[p * PANEL + i] = in[i * PAIRS + p];
#endif
}

/* Features [PANEL] of each pair of rows, panel by panel; unused features are 0. */
static void
lay_out(int n, int pairs, const int16_t *phi, int32_t *panels, uint16_t *norms)
{
	memset(norms, 0, TNP_MOMENT_NORMS * sizeof(*norms));
	for (int i = 0; i < (n + PANEL - 1) / PANEL * PANEL; i += 8)
	{
		int16_t		eight[8 * R] = {0};
		const int16_t *mine = phi + (size_t) i * R;
		int32_t		most = 0;

		if (i + 8 > n)
		{
			if (i < n)
				memcpy(eight, mine, (size_t) (n - i) * R * sizeof(*phi));
			mine = eight;
		}
		for (int k = 0; k < 8; k++)
		{
			int32_t		square = 0;

			for (int r = 0; r < R; r++)
				square += mine[k * R + r] * mine[k * R + r];
			most = square > most ? square : most;
		}
		norms[i / 8] = (uint16_t) ceil(sqrt(most));
		turn_eight(pairs, (const int32_t *) (const void *) mine,
				   panels + (size_t) i / PANEL * PANEL * PAIRS + i % PANEL);
	}
}

#define DIGITS 4

/*
 * Targets are four digits of 14 bits, from -2^13 on, so that sums of products with one of them are
 * 32 bits: two rows' digits in a word, as the features of a panel are.
 */
static void
product(int n, int pairs, const int32_t *panels, const int64_t *y, int64_t *out)
{
	int16_t		digit[PAIRS][DIGITS][2];

	for (int r = 0; r < 2 * pairs; r++)
	{
		int64_t		rest = y[r];

		for (int d = 0; d < DIGITS; d++)
		{
			digit[r / 2][d][r % 2] = (int16_t) (((rest + 8192) & 16383) - 8192);
			rest = (rest - digit[r / 2][d][r % 2]) / 16384;
		}
	}
	for (int i = 0; i < n; i += WIDE, panels += PANEL * PAIRS)
	{
		Ints		sum[DIGITS][2] = {{{0}}};
		int32_t		sums[DIGITS][WIDE];

		for (int p = 0; p < pairs; p++)
		{
			int32_t		words[DIGITS];
			Ints		first,
						second;

			memcpy(words, digit[p], sizeof(words));
			memcpy(&first, panels + p * PANEL, sizeof(first));
			memcpy(&second, panels + p * PANEL + LANES, sizeof(second));
#pragma GCC unroll 4
			for (int d = 0; d < DIGITS; d++)
			{
				Ints		mine = words[d] - (Ints) {0};

				sum[d][0] = multiply_add(sum[d][0], mine, first);
				sum[d][1] = multiply_add(sum[d][1], mine, second);
			}
		}
		memcpy(sums, sum, sizeof(sums));
		for (int j = 0; j < WIDE && i + j < n; j++)
			out[i + j] = sums[0][j]
				+ 16384 * (sums[1][j] + 16384 * (sums[2][j] + (int64_t) 16384 * sums[3][j]));
	}
}

/*
 * Sums [TALL, WIDE] of products of a tile, of `blocks` blocks that lie `words` apart. A narrow one
 * has nothing of the triangle in its second vector, which becomes 0.
 */
INLINE void
tile_products(bool narrow, int blocks, int pairs, size_t words, const int32_t *a,
			  const int32_t *b, int32_t *out)
{
	Ints		sum[TALL][2] = {{{0}}};

	for (; blocks > 0; blocks--, a += words, b += words)
		for (int p = 0; p < pairs; p++)
		{
			Ints		first,
						second;

			memcpy(&first, b + p * PANEL, sizeof(first));
			memcpy(&second, b + p * PANEL + LANES, sizeof(second));
#pragma GCC unroll 8
			for (int i = 0; i < TALL; i++)
			{
				Ints		mine = a[p * PANEL + i] - (Ints) {0};

				sum[i][0] = multiply_add(sum[i][0], mine, first);
				if (!narrow)
					sum[i][1] = multiply_add(sum[i][1], mine, second);
			}
		}
#pragma GCC unroll 8
	for (int i = 0; i < TALL; i++, out += WIDE)
	{
		memcpy(out, &sum[i][0], sizeof(Ints));
		memcpy(out + LANES, &sum[i][1], sizeof(Ints));
	}
}

/* The largest norm of features from a multiple of eight on. */
INLINE int32_t
norm_of(const uint16_t *norms, int from, int width)
{
	int32_t		most = 0;

	for (int k = from / 8; k <= (from + width - 1) / 8; k++)
		most = norms[k] > most ? norms[k] : most;
	return most;
}

/* NUMBERS of the integers, 64 bits wide. */
INLINE Longs
longs_of(const int32_t *in)
{
#if KERNELS_BYTES == 64
	return (Longs) _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *) in));
#elif KERNELS_BYTES == 32
	return (Longs) _mm256_cvtepi32_epi64(_mm_loadu_si128((const __m128i *) in));
#else
	return (Longs) {in[0], in[1]};
#endif
}

/* gram [WIDE] += sign times a row of `tiles` tiles of sums. */
INLINE void
add_row(int tiles, int sign, const int32_t *sums, int64_t *gram)
{
#pragma GCC unroll 4
	for (int j = 0; j < WIDE; j += NUMBERS)
	{
		Longs		total = longs_of(sums + j),
					old;

		for (int b = 1; b < tiles; b++)
			total += longs_of(sums + b * TALL * WIDE + j);
		memcpy(&old, gram + j, sizeof(old));
		old = sign < 0 ? old - total : old + total;
		memcpy(gram + j, &old, sizeof(old));
	}
}

/* Add the tile from feature (i, j) on to what of it lies in the triangle. */
INLINE void
add_tile(int n, int i, int j, int tiles, int sign, const int32_t *sums, int64_t *gram)
{
	for (int t = 0; t < TALL && i + t < n; t++)
	{
		int			count = i + t + 1 - j;
		int64_t    *to = gram + (size_t) (i + t) * (i + t + 1) / 2 + j;

		if (count >= WIDE)
			add_row(tiles, sign, sums + t * WIDE, to);
		else
		{
			int64_t		edge[WIDE] = {0};

			add_row(tiles, sign, sums + t * WIDE, edge);
			for (int k = 0; k < count; k++)
				to[k] += edge[k];
		}
	}
}

static void
add(int n, int blocks, int pairs, int sign, const int32_t *panels, const uint16_t *norms,
	int64_t *gram)
{
	const int32_t most = INT32_MAX;
	size_t		words = tnp_panel_words(n);
	int32_t		sums[TNP_MOMENT_BLOCKS * TALL * WIDE] __attribute__((aligned(64)));

#define AT(i) ((size_t) (i) / PANEL * PANEL * PAIRS + (i) % PANEL)
	for (int j = 0; j < n; j += WIDE)
	{
		int32_t		norm[TNP_MOMENT_BLOCKS];

		for (int b = 0; b < blocks; b++)
			norm[b] = norm_of(norms + b * TNP_MOMENT_NORMS, j, WIDE);
		for (int i = j; i < n; i += TALL)
		{
			int			tiles = 0,
						first = 0;
			int32_t		bound = 0;

			for (int t = 0; t < TALL && i + t < n; t++)
				for (int k = 0; k < WIDE; k += 8)
					__builtin_prefetch(gram + (size_t) (i + t) * (i + t + 1) / 2 + j + k, 1);
			for (int b = 0; b <= blocks; b++)
			{
				int32_t		more = b == blocks ? 0
					: norm[b] * norm_of(norms + b * TNP_MOMENT_NORMS, i, TALL);

				/* indicators and missing cells: most of their rows are zeros */
				if (more > 0 && bound <= most - more)
				{
					first = bound == 0 ? b : first;
					bound += more;
					continue;
				}
				if (bound > 0)
				{
					const int32_t *from = panels + first * words;
					int32_t    *to = sums + tiles++ * TALL * WIDE;

					if (i + TALL <= j + LANES)
						tile_products(true, b - first, pairs, words, from + AT(i), from + AT(j),
									  to);
					else
						tile_products(false, b - first, pairs, words, from + AT(i), from + AT(j),
									  to);
				}
				first = b;
				bound = more;
			}
			/* rows that come, the many, by loops of a known length */
			if (tiles == 1 && sign > 0)
				add_tile(n, i, j, 1, 1, sums, gram);
			else if (tiles == 2 && sign > 0)
				add_tile(n, i, j, 2, 1, sums, gram);
			else if (tiles == TNP_MOMENT_BLOCKS && sign > 0)
				add_tile(n, i, j, TNP_MOMENT_BLOCKS, 1, sums, gram);
			else if (tiles > 0)
				add_tile(n, i, j, tiles, sign, sums, gram);
		}
	}
#undef AT
}

/* ---- products of doubles --------------------------------------------------------------------- */

/* c - a b */
INLINE Doubles
multiply_subtract(Doubles c, Doubles a, Doubles b)
{
#if KERNELS_BYTES == 64
	return (Doubles) _mm512_fnmadd_pd((__m512d) a, (__m512d) b, (__m512d) c);
#elif KERNELS_BYTES == 32
	return (Doubles) _mm256_fnmadd_pd((__m256d) a, (__m256d) b, (__m256d) c);
#elif defined(__aarch64__)
	return (Doubles) vfmsq_f64((float64x2_t) c, (float64x2_t) a, (float64x2_t) b);
#else
	return c - a * b;
#endif
}

static void
subtract(int m, int n, int k, const double *a, size_t a_stride, const double *b, size_t b_stride,
		 double *c, size_t c_stride)
{
	for (int i = 0; i < m; i += TALL)
		for (int j = 0; j < n; j += 2 * NUMBERS)
		{
			Doubles		sum[TALL][2];
			double	   *out = c + i * c_stride + j;
			const double *mine = a + i * a_stride,
					   *other = b + j;

#pragma GCC unroll 8
			for (int t = 0; t < TALL; t++)
			{
				memcpy(&sum[t][0], out + t * c_stride, sizeof(Doubles));
				memcpy(&sum[t][1], out + t * c_stride + NUMBERS, sizeof(Doubles));
			}
			for (int p = 0; p < k; p++, other += b_stride)
			{
				Doubles		first,
							second;

				memcpy(&first, other, sizeof(first));
				memcpy(&second, other + NUMBERS, sizeof(second));
#pragma GCC unroll 8
				for (int t = 0; t < TALL; t++)
				{
					Doubles		v = mine[t * a_stride + p] - (Doubles) {0};

					sum[t][0] = multiply_subtract(sum[t][0], v, first);
					sum[t][1] = multiply_subtract(sum[t][1], v, second);
				}
			}
#pragma GCC unroll 8
			for (int t = 0; t < TALL; t++)
			{
				memcpy(out + t * c_stride, &sum[t][0], sizeof(Doubles));
				memcpy(out + t * c_stride + NUMBERS, &sum[t][1], sizeof(Doubles));
			}
		}
}

const TnpMoments MOMENTS_TABLE = {waves, round_values, lay_out, product, add, subtract};
