/*
 * warps.cpp: what the lanes of a warp do together on the emulator, and arithmetic of one lane.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "fibers.h"

#include <cmath>

/* In the emulator's own functions; kernels call half_to_float. */
UNCHECKED static inline float
half_value(uint16_t bits)
{
	/* the exponent in place, too small by 112: a product with 2^112 is exact, and normalises */
	uint32_t	magnitude = (uint32_t) (bits & 0x7fff) << 13,
				scale = 0x77800000;
	float		v,
				power;

	memcpy(&v, &magnitude, sizeof(v));
	memcpy(&power, &scale, sizeof(power));
	v *= power;
	if ((bits & 0x7c00) == 0x7c00)
		v = (bits & 0x3ff) != 0 ? NAN : INFINITY;
	return (bits & 0x8000) != 0 ? -v : v;
}

float
half_to_float(uint16_t bits)
{
	return half_value(bits);
}

uint16_t
float_to_half(float v)
{
	uint32_t	bits;
	uint16_t	sign;

	memcpy(&bits, &v, sizeof(bits));
	sign = (uint16_t) (bits >> 16 & 0x8000);
	bits &= 0x7fffffff;
	if (bits > 0x7f800000)
		return sign | 0x7e00;
	if (bits >= 0x477ff000)
		return sign | 0x7c00;
	if (bits < 0x38800000)
	{
		/* subnormal: the sum's last bits are the result, rounded to even */
		float		magnitude,
					sum;
		uint32_t	out;

		memcpy(&magnitude, &bits, sizeof(magnitude));
		sum = magnitude + 0.5f;
		memcpy(&out, &sum, sizeof(out));
		return sign | (uint16_t) (out - 0x3f000000);
	}
	bits += 0xfff + (bits >> 13 & 1);
	return sign | (uint16_t) ((bits - 0x38000000) >> 13);
}

/* What gcc does for all loops at -O3 alone, and clang at -O2. */
#ifdef __clang__
#define VECTORS
#else
#define VECTORS __attribute__((optimize("O3")))
#endif

/* Nothing but numbers of its own is read here: without checks the compiler computes in vectors. */
UNCHECKED VECTORS static void
multiply(Fiber *const *lanes, int k, const float a[16][16], const float b[16][8])
{
	float		sums[16][8];

	for (int lane = 0; lane < LANES; lane++)
		for (int i = 0; i < 4; i++)
			sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = lanes[lane]->offer.c[i];
	for (int row = 0; row < 16; row++)
		for (int j = 0; j < k; j++)
			for (int column = 0; column < 8; column++)
				sums[row][column] = (float) ((double) sums[row][column]
											 + (double) a[row][j] * (double) b[j][column]);
	for (int lane = 0; lane < LANES; lane++)
		for (int i = 0; i < 4; i++)
			lanes[lane]->offer.c[i] = sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}

UNCHECKED static void
multiply_half(Fiber *const *lanes)
{
	float		a[16][16],
				b[16][8];

	for (int lane = 0; lane < LANES; lane++)
	{
		const Offer &o = lanes[lane]->offer;
		int			g = lane / 4,
					t = lane % 4;

		for (int e = 0; e < 2; e++)
		{
			for (int i = 0; i < 4; i++)
				a[g + i % 2 * 8][2 * t + i / 2 * 8 + e] =
					half_value((uint16_t) (o.a[i] >> 16 * e));
			b[2 * t + e][g] = half_value((uint16_t) (o.b0 >> 16 * e));
			b[2 * t + 8 + e][g] = half_value((uint16_t) (o.b1 >> 16 * e));
		}
	}
	multiply(lanes, 16, a, b);
}

UNCHECKED static float
tf32_value(uint32_t bits)
{
	float		v;

	if ((bits & 0x1fff) != 0)
		emulator_stop("an operand of a tf32 product was not rounded");
	memcpy(&v, &bits, sizeof(v));
	return v;
}

UNCHECKED static void
multiply_tf32(Fiber *const *lanes)
{
	float		a[16][16],
				b[16][8];

	for (int lane = 0; lane < LANES; lane++)
	{
		const Offer &o = lanes[lane]->offer;
		int			g = lane / 4,
					t = lane % 4;

		for (int i = 0; i < 4; i++)
			a[g + i % 2 * 8][t + i / 2 * 4] = tf32_value(o.a[i]);
		b[t][g] = tf32_value(o.b0);
		b[t + 4][g] = tf32_value(o.b1);
	}
	multiply(lanes, 8, a, b);
}

/* Words of whatever type: the sanitizer turns a memcpy of them into a call, which takes longer. */
typedef uint32_t __attribute__((may_alias)) AnyWord;

/* What nearly all shuffles exchange. */
static void
shuffle_words(Fiber *const *lanes)
{
	uint32_t	values[LANES];

	for (int lane = 0; lane < LANES; lane++)
		values[lane] = *(const AnyWord *) lanes[lane]->offer.value;
	for (int lane = 0; lane < LANES; lane++)
	{
		Offer	   &o = lanes[lane]->offer;

		if (o.from < 0 || o.from >= LANES || o.size != sizeof(uint32_t))
			emulator_stop("a shuffle names no lane, or its values differ in size");
		*(AnyWord *) o.value = values[o.from];
	}
}

static void
shuffle(Fiber *const *lanes)
{
	char		values[LANES][16];

	if (lanes[0]->offer.size == sizeof(uint32_t))
	{
		shuffle_words(lanes);
		return;
	}

	for (int lane = 0; lane < LANES; lane++)
		memcpy(values[lane], lanes[lane]->offer.value, lanes[lane]->offer.size);
	for (int lane = 0; lane < LANES; lane++)
	{
		Offer	   &o = lanes[lane]->offer;

		if (o.from < 0 || o.from >= LANES || o.size > sizeof(values[0])
			|| o.size != lanes[0]->offer.size)
			emulator_stop("a shuffle names no lane, or its values differ in size");
		memcpy(o.value, values[o.from], o.size);
	}
}

static void
vote(Fiber *const *lanes)
{
	unsigned	votes = 0;

	for (int lane = 0; lane < LANES; lane++)
		votes |= (unsigned) lanes[lane]->offer.holds << lane;
	for (int lane = 0; lane < LANES; lane++)
		lanes[lane]->offer.votes = votes;
}

/* As ldmatrix does: each lane names a row, rows of a matrix are those of eight lanes. */
static void
load_tiles(Fiber *const *lanes)
{
	for (int lane = 0; lane < LANES; lane++)
	{
		race_access(&lanes[lane]->clock, lanes[lane]->offer.row, 16, false);
		for (int i = 0; i < 4; i++)
			lanes[lane]->offer.tile[i] =
				*(const AnyWord *) (lanes[8 * i + lane / 4]->offer.row + lane % 4 * 2);
	}
}

UNCHECKED void
together(Fiber *const *lanes)
{
	for (int lane = 1; lane < LANES; lane++)
		if (lanes[lane]->offer.kind != lanes[0]->offer.kind
			|| lanes[lane]->place != lanes[0]->place)
			emulator_stop("the lanes of a warp meet in different operations");
	switch (lanes[0]->offer.kind)
	{
		case SHUFFLE:
			shuffle(lanes);
			break;
		case BALLOT:
			vote(lanes);
			break;
		case MMA_HALF:
			multiply_half(lanes);
			break;
		case MMA_TF32:
			multiply_tf32(lanes);
			break;
		case LOAD_TILE:
			load_tiles(lanes);
			break;
	}
	for (int lane = 0; lane < LANES; lane++)
	{
		/* nothing else orders the memory accesses of a warp's lanes */
		lanes[lane]->clock.warps += lanes[lane]->offer.kind == SYNC;
		lanes[lane]->clock.common++;
		lanes[lane]->wait = READY;
	}
}

/* ---- the primitives -------------------------------------------------------------------------- */

/* What the current thread brings is in its offer: wait until all lanes have brought theirs. */
static void
offer(int kind, void *place)
{
	current->offer.kind = kind;
	current->wait = WARP;
	current->place = place;
	leave();
}

__attribute__((noinline)) void
emulator_sync_warp(const char *file, int line)
{
	if (is_kept(file, line))
		offer(SYNC, __builtin_return_address(0));
}

int
emulator_lane(void)
{
	return current->thread % LANES;
}

void
emulator_shuffle(void *value, size_t size, int from)
{
	Offer	   &o = current->offer;

	o.value = value;
	o.size = size;
	o.from = from;
	offer(SHUFFLE, nullptr);
}

unsigned
warp_ballot(bool holds)
{
	current->offer.holds = holds;
	offer(BALLOT, nullptr);
	return current->offer.votes;
}

static void
offer_product(int kind, float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	Offer	   &o = current->offer;

	/* the warp's product reads these unchecked */
	(void) *(volatile const float *) &c[0];
	(void) *(volatile const float *) &c[3];
	(void) *(volatile const uint32_t *) &a[0];
	(void) *(volatile const uint32_t *) &a[3];
	o.c = c;
	o.a = a;
	o.b0 = b0;
	o.b1 = b1;
	offer(kind, nullptr);
}

void
mma_half(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	offer_product(MMA_HALF, c, a, b0, b1);
}

void
mma_tf32(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	offer_product(MMA_TF32, c, a, b0, b1);
}

static void
check_aligned(const void *place)
{
	if ((uintptr_t) place % 16 != 0)
		emulator_stop("a misaligned vector access");
}

TilePlace
tile_place(const half16 *x, int stride, int lane)
{
	check_aligned(x);
	if (stride % 8 != 0)
		emulator_stop("rows of a tile are misaligned");
	if (lane != emulator_lane())
		emulator_stop("a lane gives another one's number");
	return x + (lane % 16) * stride + lane / 16 * 8;
}

void
load_tile(uint32_t a[4], TilePlace place, int offset)
{
	check_aligned(place + offset);
	current->offer.tile = a;
	current->offer.row = place + offset;
	offer(LOAD_TILE, nullptr);
}

/* To nearest, ties away from zero. */
uint32_t
to_tf32(float v)
{
	uint32_t	bits;

	memcpy(&bits, &v, sizeof(bits));
	if ((bits & 0x7f800000) == 0x7f800000)
		return bits & ~(uint32_t) 0x1fff;
	return (bits + 0x1000) & ~(uint32_t) 0x1fff;
}

/* Inputs and results that are subnormal count as zero. */
float
exp2_fast(float v)
{
	float		result = std::exp2(v);

	return result < 1.17549435e-38f ? 0.0f : result;
}

float
reciprocal_fast(float v)
{
	return 1.0f / v;
}

/* Here, because the kernels give a name of the above another meaning. */
#include "gpu_emulated.h"
#include "products.h"

float
gpu_emulated_activate(float v, int activation)
{
	activate<1>(&v, activation);
	return v;
}
