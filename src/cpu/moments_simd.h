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

/* ---- features -------------------------------------------------------------------------------- */

/* Of R rows: series of sine or cosine, by Horner from the last of ten terms. */
INLINE void
series(const double *first, const double *t2, int from, double *sum)
{
	for (int r = 0; r < R; r++)
		sum[r] = 0;
	for (int k = from + 20; k > from; k -= 2)
		for (int r = 0; r < R; r++)
			sum[r] = (1 + sum[r]) * (-t2[r] / ((double) k * (k - 1)));
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

static void
round_values(const double *a, const double *b, int16_t *phi)
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
#define PANEL TNP_MOMENT_PANEL
#define PAIRS (R / 2)

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

/* Features [PANEL] of each pair of rows, panel by panel; unused features are 0. */
static void
lay_out(int n, int pairs, const int16_t *phi, int32_t *panels, uint8_t *any)
{
	memset(any, 0, TNP_MOMENT_FLAGS);
	for (int i = 0; i < (n + PANEL - 1) / PANEL * PANEL; i++)
	{
		int32_t    *out = panels + (size_t) i / PANEL * PANEL * PAIRS + i % PANEL,
					mine[PAIRS] = {0},
					bits = 0;

		if (i < n)
			memcpy(mine, phi + (size_t) i * R, sizeof(mine));
		for (int p = 0; p < PAIRS; p++)
			bits |= mine[p];
		any[i / 8] |= bits != 0;
		for (int p = 0; p < pairs; p++)
			out[p * PANEL] = mine[p];
	}
}

static void
product(int n, const int16_t *phi, const int64_t *y, int64_t *out)
{
	for (int i = 0; i < n; i++, phi += R)
	{
		int64_t		sum = 0;

		for (int r = 0; r < R; r++)
			sum += phi[r] * y[r];
		out[i] = sum;
	}
}

/* Add a tile of products to total [TALL, WIDE]. */
INLINE void
add_products(int pairs, const int32_t *a, const int32_t *b, int64_t *total)
{
	Ints		sum[TALL][2] = {{{0}}};

	for (int p = 0; p < pairs; p++, a += PANEL, b += PANEL)
	{
		Ints		first,
					second;

		memcpy(&first, b, sizeof(first));
		memcpy(&second, b + LANES, sizeof(second));
#pragma GCC unroll 8
		for (int i = 0; i < TALL; i++)
		{
			Ints		mine = a[i] - (Ints) {0};

			sum[i][0] = multiply_add(sum[i][0], mine, first);
			sum[i][1] = multiply_add(sum[i][1], mine, second);
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < TALL; i++)
		for (int k = 0; k < 2; k++, total += LANES)
		{
#if KERNELS_BYTES == 64
			__m512i    *to = (__m512i *) total;

			to[0] = _mm512_add_epi64(to[0],
				_mm512_cvtepi32_epi64(_mm512_castsi512_si256((__m512i) sum[i][k])));
			to[1] = _mm512_add_epi64(to[1],
				_mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64((__m512i) sum[i][k], 1)));
#else
			for (int j = 0; j < LANES; j++)
				total[j] += sum[i][k][j];
#endif
		}
}

static void
add_row(int count, int sign, const int64_t *total, int64_t *gram)
{
	if (sign < 0)
		for (int j = 0; j < count; j++)
			gram[j] -= total[j];
	else if (count == WIDE)
		for (int j = 0; j < WIDE; j++)
			gram[j] += total[j];
	else
		for (int j = 0; j < count; j++)
			gram[j] += total[j];
}

static bool
is_any(const uint8_t *any, int from, int width)
{
	for (int k = from / 8; k <= (from + width - 1) / 8; k++)
		if (any[k])
			return true;
	return false;
}

static void
add(int n, int blocks, int pairs, int sign, const int32_t *panels, const uint8_t *any,
	int64_t *gram)
{
	size_t		words = tnp_panel_words(n);

#define AT(i) ((size_t) (i) / PANEL * PANEL * PAIRS + (i) % PANEL)
	for (int i = 0; i < n; i += TALL)
		for (int j = 0; j < i + TALL && j < n; j += WIDE)
		{
			int64_t		total[TALL * WIDE] __attribute__((aligned(64))) = {0};
			bool		some = false;

			for (int block = 0; block < blocks; block++)
			{
				const uint8_t *flags = any + block * TNP_MOMENT_FLAGS;

				/* indicators and missing cells: most of their rows are zeros */
				if (!flags[i / 8] || !is_any(flags, j, WIDE))
					continue;
				some = true;
				add_products(pairs, panels + block * words + AT(i),
							 panels + block * words + AT(j), total);
			}
			for (int t = 0; some && t < TALL && i + t < n; t++)
			{
				int			count = i + t + 1 - j;

				if (count > 0)
					add_row(count < WIDE ? count : WIDE, sign, total + t * WIDE,
							gram + (size_t) (i + t) * (i + t + 1) / 2 + j);
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

#define NUMBERS (KERNELS_BYTES / 8)

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
