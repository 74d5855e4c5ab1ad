/*
 * portable.h: the few primitives that the kernels are written in.
 *
 * nvcc maps them to the machine; any other compiler gets them from test/cuda/emulator.h, which runs
 * the threads of a block as fibers of one process. No kernel source uses anything of CUDA that is
 * not named here, so what the tests run without a GPU is the source that runs on one.
 *
 * A team is a cluster of blocks that share one tile of rows (one block where clusters do not
 * exist). A warp is 32 lanes; every function whose comment says "warp" must be called by all of
 * them together.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_PORTABLE_H
#define CUDA_PORTABLE_H

#include <math.h>
#include <stdint.h>

#if defined(__CUDACC__)

#include <cooperative_groups.h>
#include <cuda_fp16.h>

/*
 * DEVICE is inlined; DEVICE_CALL is one copy of code per kernel, called: what is large and used
 * from many places.
 */
#define DEVICE __device__ __forceinline__
#define DEVICE_CALL inline __device__ __noinline__
#define GRID_CONSTANT __grid_constant__
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#define KERNEL(threads, blocks) __global__ void __launch_bounds__(threads, blocks)

typedef __half half16;

struct alignas(16) Words
{
	uint32_t	x,
				y,
				z,
				w;
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HAVE_CLUSTERS 1
#else
#define HAVE_CLUSTERS 0
#endif

DEVICE int
thread_index(void)
{
	return (int) threadIdx.x;
}

DEVICE int
block_index(void)
{
	return (int) blockIdx.x;
}

DEVICE int
team_rank(void)
{
#if HAVE_CLUSTERS
	return (int) cooperative_groups::this_cluster().block_rank();
#else
	return 0;
#endif
}

DEVICE char *
shared_memory(void)
{
	extern __shared__ __align__(128) char shared_bytes[];

	return shared_bytes;
}

DEVICE void
sync_block(void)
{
	__syncthreads();
}

DEVICE void
sync_warp(void)
{
	__syncwarp();
}

/*
 * Barrier of all threads of the team; what any of them wrote before is visible to all of them
 * afterwards.
 */
DEVICE void
sync_team(int team)
{
#if HAVE_CLUSTERS
	if (team > 1)
	{
		cooperative_groups::this_cluster().sync();
		return;
	}
#endif
	(void) team;
	__syncthreads();
}

/*
 * Barrier of all blocks of a launch that runs at once: *arrived, zero before, counts them. What any
 * thread wrote before is visible to all threads afterwards.
 */
DEVICE void
sync_grid(unsigned *arrived, int blocks)
{
	__syncthreads();
	if (threadIdx.x == 0)
	{
		unsigned	seen;

		asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(arrived) : "memory");
		do
			asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
						 : "=r"(seen) : "l"(arrived) : "memory");
		while (seen < (unsigned) blocks);
	}
	__syncthreads();
}

/* The address of a place in shared memory, as its own instructions take it: 32 bits. */
DEVICE uint32_t
shared_address(const void *place)
{
	return (uint32_t) __cvta_generic_to_shared(place);
}

/*
 * Store to the same place in the shared memory of block `rank` of the team: 16 bits, 32 bits, and
 * two floats at a multiple of 8 bytes.
 */
#if HAVE_CLUSTERS
DEVICE uint32_t
team_address(const void *place, int rank)
{
	uint32_t	address;

	asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
				 : "=r"(address) : "r"(shared_address(place)), "r"(rank));
	return address;
}
#endif

DEVICE void
team_store(half16 *place, int rank, int team, half16 v)
{
#if HAVE_CLUSTERS
	if (team > 1)
	{
		asm volatile("st.shared::cluster.u16 [%0], %1;"
					 :: "r"(team_address(place, rank)), "h"(__half_as_ushort(v)) : "memory");
		return;
	}
#endif
	(void) rank;
	(void) team;
	*place = v;
}

DEVICE void
team_store(uint32_t *place, int rank, int team, uint32_t v)
{
#if HAVE_CLUSTERS
	if (team > 1)
	{
		asm volatile("st.shared::cluster.u32 [%0], %1;"
					 :: "r"(team_address(place, rank)), "r"(v) : "memory");
		return;
	}
#endif
	(void) rank;
	(void) team;
	*place = v;
}

DEVICE void
team_store(float *place, int rank, int team, float v)
{
	team_store((uint32_t *) place, rank, team, __float_as_uint(v));
}

DEVICE void
team_store_pair(float *place, int rank, int team, float a, float b)
{
#if HAVE_CLUSTERS
	if (team > 1)
	{
		asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};"
					 :: "r"(team_address(place, rank)), "f"(a), "f"(b) : "memory");
		return;
	}
#endif
	(void) rank;
	(void) team;
	*(float2 *) place = make_float2(a, b);
}

/*
 * Two or four numbers, or two words, side by side, the first on a multiple of all of them, in
 * whatever memory; of what is not written while the kernel runs, `constant`.
 */
struct Two
{
	float		a,
				b;
};

struct Four
{
	float		a,
				b,
				c,
				d;
};

DEVICE Two
load_two(const float *place)
{
	float2		v = *(const float2 *) place;

	return Two{v.x, v.y};
}

DEVICE Two
load_two_constant(const float *place)
{
	float2		v = __ldg((const float2 *) place);

	return Two{v.x, v.y};
}

DEVICE void
store_two(float *place, float a, float b)
{
	*(float2 *) place = make_float2(a, b);
}

DEVICE void
store_two_words(uint32_t *place, uint32_t a, uint32_t b)
{
	*(uint2 *) place = make_uint2(a, b);
}

DEVICE Four
load_four(const float *place)
{
	float4		v = *(const float4 *) place;

	return Four{v.x, v.y, v.z, v.w};
}

DEVICE Four
load_four_constant(const float *place)
{
	float4		v = __ldg((const float4 *) place);

	return Four{v.x, v.y, v.z, v.w};
}

DEVICE void
store_four(float *place, const Four &v)
{
	*(float4 *) place = make_float4(v.a, v.b, v.c, v.d);
}

/*
 * A bell: a word of a block's shared memory that says when what other blocks push into that block
 * has come (an mbarrier). It has rounds. In each, one thread of the block says how many bytes it
 * expects, before or after some of them have come, and all threads that read them, or that push
 * something in their turn, await the round: parity is that of its number, from 0. Whatever its
 * pushers had read before, themselves or before a barrier of their block, comes before that, and
 * what a barrier of their block had ended of stores into its own shared memory; of what they had
 * stored elsewhere nothing is known. A round must be awaited by all threads of the
 * block before the next but one can end.
 *
 * Blocks that can push are those of a team of more than one.
 */
typedef uint64_t Bell;

/* One thread: a bell for its block, before a barrier of the team. */
DEVICE void
open_bell(Bell *bell)
{
#if HAVE_CLUSTERS
	asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(bell)) : "memory");
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
	*bell = 0;
#endif
}

/* One thread of the block. */
DEVICE void
expect_pushes(Bell *bell, int bytes)
{
#if HAVE_CLUSTERS
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
				 :: "r"(shared_address(bell)), "r"(bytes) : "memory");
#else
	(void) bell;
	(void) bytes;
#endif
}

/*
 * What follows is ordered in shared memory alone, so that the first-level cache is not dropped.
 * Before 12.8 nvcc knows no such fence.
 */
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208
#define AWAIT_ORDER "relaxed"
#define AWAIT_FENCE "fence.acquire.sync_restrict::shared::cluster.cluster;"
#else
#define AWAIT_ORDER "acquire"
#define AWAIT_FENCE ""
#endif

DEVICE void
await_pushes(Bell *bell, int parity)
{
#if HAVE_CLUSTERS
	unsigned	come;

	do
		asm volatile("{ .reg .pred p;\n"
					 "mbarrier.try_wait.parity." AWAIT_ORDER
					 ".cluster.shared::cta.b64 p, [%1], %2;\n"
					 "selp.u32 %0, 1, 0, p; }"
					 : "=r"(come) : "r"(shared_address(bell)), "r"(parity) : "memory");
	while (come == 0);
	asm volatile(AWAIT_FENCE ::: "memory");
#else
	(void) bell;
	(void) parity;
#endif
}

/*
 * Push 32 bits, or two floats to a multiple of 8 bytes, to the same place in the shared memory of
 * block `rank`, whose bell counts them. Until its round has ended nothing is known of the place.
 */
DEVICE void
push_word(uint32_t *place, Bell *bell, int rank, int, uint32_t v)
{
#if HAVE_CLUSTERS
	asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
				 :: "r"(team_address(place, rank)), "r"(v), "r"(team_address(bell, rank))
				 : "memory");
#else
	(void) place;
	(void) bell;
	(void) rank;
	(void) v;
#endif
}

DEVICE void
push_two(float *place, Bell *bell, int rank, int, float a, float b)
{
#if HAVE_CLUSTERS
	asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 "
				 "[%0], {%1, %2}, [%3];"
				 :: "r"(team_address(place, rank)), "f"(a), "f"(b), "r"(team_address(bell, rank))
				 : "memory");
#else
	(void) place;
	(void) bell;
	(void) rank;
	(void) a;
	(void) b;
#endif
}

/*
 * Warp: the value of the lane whose number differs in the bits of mask, of the lane delta below,
 * and of one lane.
 */
template <class E> DEVICE E
shuffle_xor(E value, int mask)
{
	return __shfl_xor_sync(0xffffffffu, value, mask);
}

template <class E> DEVICE E
shuffle_up(E value, int delta)
{
	return __shfl_up_sync(0xffffffffu, value, delta);
}

template <class E> DEVICE E
shuffle_from(E value, int lane)
{
	return __shfl_sync(0xffffffffu, value, lane);
}

/* Warp: the lanes whose condition holds, as bits. */
DEVICE unsigned
warp_ballot(bool holds)
{
	return __ballot_sync(0xffffffffu, holds);
}

DEVICE void
atomic_or(int *place, int bits)
{
	atomicOr(place, bits);
}

/*
 * What is not written while the kernel runs: a structure of a multiple of 8 bytes, a float, four
 * words; and four words of device memory that the kernel itself may have written.
 */
template <class S> DEVICE S
constant(const S *place)
{
	static_assert(sizeof(S) % 8 == 0, "whole words of 8 bytes");
	union
	{
		unsigned long long words[sizeof(S) / 8];
		S			value;
	}			copy;

	UNROLL
	for (int i = 0; i < (int) (sizeof(S) / 8); i++)
		copy.words[i] = __ldg((const unsigned long long *) place + i);
	return copy.value;
}

DEVICE float
load_float(const float *place)
{
	return __ldg(place);
}

/* A kernel's parameter that was handed to a call, where what memory it lies in is not seen. */
template <class E> DEVICE E
load_parameter(const E *place)
{
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1203
	const size_t at = __cvta_generic_to_grid_constant(place);
	E			value;

	static_assert(sizeof(E) == 4 || sizeof(E) == 8, "one word or two");
	if constexpr (sizeof(E) == 8)
	{
		uint64_t	word;

		asm("ld.param::entry.b64 %0, [%1];" : "=l"(word) : "l"(at));
		memcpy(&value, &word, sizeof(word));
	}
	else
	{
		uint32_t	word;

		asm("ld.param::entry.b32 %0, [%1];" : "=r"(word) : "l"(at));
		memcpy(&value, &word, sizeof(word));
	}
	return value;
#else							/* there is no such instruction yet */
	return *place;
#endif
}

DEVICE Words
load_constant(const uint32_t *place)
{
	uint4		v = __ldg((const uint4 *) place);

	return Words{v.x, v.y, v.z, v.w};
}

DEVICE Words
load_words(const uint32_t *place)
{
	uint4		v;

	__builtin_assume(__isGlobal(place));
	v = *(const uint4 *) place;
	return Words{v.x, v.y, v.z, v.w};
}

/*
 * A lane's copies of four words from device memory into shared memory, which go on meanwhile: all
 * since the last close_copies() are closed by it; await_copies<N>() waits for this lane's copies
 * but those that were closed by the last N calls. Until then nothing is known of either place, and
 * only the lane that waited knows of it then.
 */
DEVICE void
copy_ahead(uint32_t *to, const uint32_t *from)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
				 :: "r"((uint32_t) __cvta_generic_to_shared(to)),
				 "l"(__cvta_generic_to_global(from)) : "memory");
}

DEVICE void
close_copies(void)
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> DEVICE void
await_copies(void)
{
	asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

/* Four words of shared memory. */
DEVICE Words
load_shared(const uint32_t *place)
{
	Words		v;

	asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
				 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
				 : "r"((uint32_t) __cvta_generic_to_shared(place)) : "memory");
	return v;
}

DEVICE void
store_shared(uint32_t *place, Words v)
{
	asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
				 :: "r"(shared_address(place)), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

/* Four words of device memory. */
DEVICE void
store_words(uint32_t *place, Words v)
{
	__builtin_assume(__isGlobal(place));
	*(uint4 *) place = make_uint4(v.x, v.y, v.z, v.w);
}

/* The bits of a number in shared memory, read where it is asked for and not before. */
DEVICE uint32_t
load_shared_bits(const float *place)
{
	uint32_t	bits;

	asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(bits) : "r"(shared_address(place))
				 : "memory");
	return bits;
}

/*
 * The same number, of which the compiler knows nothing: what is made of it is made behind here, and
 * takes no registers before.
 */
DEVICE int
anew(int v)
{
	asm volatile("" : "+r"(v));
	return v;
}

/* A place of which the compiler cannot see that it lies in device memory. */
template <class E> DEVICE E *
in_device_memory(E *place)
{
	__builtin_assume(__isGlobal(place));
	return place;
}

/*
 * What 16 bits cannot hold becomes NaN, which stays to the end: a number in its place would be a
 * wrong answer.
 */
DEVICE float
within_half(float v)
{
	return fabsf(v) <= 65504.0f ? v : NAN;
}

/* Rounded to 16 bits. */
DEVICE half16
to_half(float v)
{
	return __float2half_rn(within_half(v));
}

DEVICE uint32_t
pack_halves(float low, float high)
{
	__half2		v = __floats2half2_rn(within_half(low), within_half(high));

	return *(const uint32_t *) &v;
}

/* The same for numbers that are known to fit, or to be NaN: weights of a softmax. */
DEVICE uint32_t
pack_weights(float low, float high)
{
	__half2		v = __floats2half2_rn(low, high);

	return *(const uint32_t *) &v;
}

/* The bits of a float rounded to the 10 bits of mantissa that a tf32 product reads. */
DEVICE uint32_t
to_tf32(float v)
{
	uint32_t	bits;

	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
	return bits;
}

DEVICE float
float_of(uint32_t bits)
{
	return __uint_as_float(bits);
}

DEVICE uint32_t
bits_of(float v)
{
	return __float_as_uint(v);
}

/* 2^v to about two units in the last place; 0 far below. */
DEVICE float
exp2_fast(float v)
{
	float		result;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
	return result;
}

/* 1 / v to about a unit in the last place. */
DEVICE float
reciprocal_fast(float v)
{
	float		result;

	asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
	return result;
}

/*
 * Warp: c [16, 8] += a [16, 16] b [16, 8] with 16-bit inputs; and c += a [16, 8] b [8, 8] with tf32
 * inputs. Lane l with g = l / 4, t = l % 4 holds c: (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1). 16
 * bit: a: columns 2t, 2t+1 of rows g and g+8, then columns 2t+8, 2t+9 of the same; b: rows 2t,
 * 2t+1, then 2t+8, 2t+9 of column g. tf32: a: (g, t), (g+8, t), (g, t+4), (g+8, t+4); b: (t, g),
 * (t+4, g).
 */
DEVICE void
mma_half(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
				 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
				 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
				 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

DEVICE void
mma_tf32(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
				 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
				 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
				 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/*
 * What a lane reads of the 16 x 16 tile at x, in shared memory, rows `stride` apart (a multiple of
 * 8): its place is found once, and counted on by elements.
 */
typedef uint32_t TilePlace;

DEVICE TilePlace
tile_place(const half16 *x, int stride, int lane)
{
	return shared_address(x + (lane % 16) * stride + lane / 16 * 8);
}

DEVICE TilePlace
tile_forward(TilePlace place, int offset)
{
	return place + 2 * offset;
}

/* Warp: the a of mma_half for the tile `offset` elements after the one whose place this is. */
DEVICE void
load_tile(uint32_t a[4], TilePlace place, int offset)
{
	uint32_t	address = tile_forward(place, offset);

	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
				 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(address) : "memory");
}

/*
 * Multiply-add with one rounding, and a product that is never fused into an addition: results must
 * not depend on the compiler's choice.
 */
DEVICE float
fused(float a, float b, float c)
{
	return __fmaf_rn(a, b, c);
}

DEVICE float
product(float a, float b)
{
	return __fmul_rn(a, b);
}

#else

#include "emulator.h"

#endif

#define WARP 32
#define MINUS_INFINITY (-INFINITY)

/* Warp: sums and maxima over all lanes. */
template <class E> DEVICE E
warp_sum(E value)
{
	for (int mask = 16; mask > 0; mask /= 2)
		value += shuffle_xor(value, mask);
	return value;
}

/*
 * Warp: sums over all lanes of N numbers, 1, 2, 4 ...: a lane gets that of number lane / (32 / N).
 * While there are several, lanes swap halves of what they have, so that 8 sums take 9 shuffles and
 * not 40. The bits are those of warp_sum().
 */
template <int N, int MASK> struct WarpSums
{
	static DEVICE float
	of(const float *value, int lane)
	{
		bool		upper = (lane & MASK) != 0;
		float		half[N / 2];

		UNROLL
		for (int i = 0; i < N / 2; i++)
			half[i] = (upper ? value[i + N / 2] : value[i]) +
				shuffle_xor(upper ? value[i] : value[i + N / 2], MASK);
		return WarpSums<N / 2, MASK / 2>::of(half, lane);
	}
};

template <int MASK> struct WarpSums<1, MASK>
{
	static DEVICE float
	of(const float *value, int)
	{
		float		sum = value[0];

		UNROLL
		for (int mask = MASK; mask > 0; mask /= 2)
			sum += shuffle_xor(sum, mask);
		return sum;
	}
};

template <int N> DEVICE float
warp_sums(const float *value, int lane)
{
	return WarpSums<N, WARP / 2>::of(value, lane);
}

/* Warp: number i of N such sums, or what a lane made of it. */
template <int N> DEVICE float
of_warp_sums(float value, int i)
{
	return shuffle_from(value, i * (WARP / N));
}

template <class E> DEVICE E
warp_max(E value)
{
	for (int mask = 16; mask > 0; mask /= 2)
	{
		E			other = shuffle_xor(value, mask);

		value = other > value ? other : value;
	}
	return value;
}

#endif							/* CUDA_PORTABLE_H */
