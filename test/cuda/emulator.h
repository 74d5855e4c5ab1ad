/*
 * emulator.h: the primitives of cuda/portable.h on the processor: every thread of a block is a
 * fiber that runs until it comes to a barrier or to something that its warp does together.
 *
 * It stops the program, with a message, where a GPU would go wrong silently: a barrier or a warp
 * operation that not all reach, one that different threads reach at different kinds of places, a
 * misaligned vector access, an operand that was not rounded. Shared memory is one heap block of
 * the size that was asked for, so AddressSanitizer sees every access beyond it, and it starts as
 * NaN. The order in which warps and lanes run between two barriers can be changed: results that
 * change with it miss a barrier. A build with EMULATOR_RACES also compares all accesses (races.h).
 * Barriers know their line, so that a test can leave each of them out, and see that it is missed.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <math.h>

#define DEVICE inline
#define DEVICE_CALL inline __attribute__((noinline))
#define UNROLL
#define ROLLED
#define KERNEL(threads, blocks) static void
#define GRID_CONSTANT

struct half16
{
	uint16_t	bits;
};

struct alignas(16) Words
{
	uint32_t	x,
				y,
				z,
				w;
};

/* ---- for tests ------------------------------------------------------------------------------- */

enum EmulatorOrder { EMULATOR_FORWARD, EMULATOR_BACKWARD, EMULATOR_SHUFFLED, EMULATOR_SKEWED };

/*
 * In which order the warps of all blocks run between barriers, and the lanes of a warp between what
 * they do together. SKEWED: a block runs until it waits for its team, then the next.
 */
extern EmulatorOrder emulator_order;

/* As in gpu_emulated.h. */
const char *emulator_barrier(int i, int *line);
void		emulator_leave_out(const char *file, int line);
void		emulator_miscount(const char *file, int line, int bytes);

/*
 * Run body in every thread of teams * team blocks, a team at a time, or all `at_once`, which alone
 * can wait for each other.
 */
void		emulator_run(int teams, int team, int threads, size_t shared, bool at_once,
						 const std::function<void ()> &body);

[[noreturn]] void emulator_stop(const char *reason);

float		half_to_float(uint16_t bits);
uint16_t	float_to_half(float v);

/* ---- the primitives -------------------------------------------------------------------------- */

int			thread_index(void);
int			block_index(void);
int			team_rank(void);
char	   *shared_memory(void);
/* Barriers are told apart by where they are called: the compiler makes no two calls one. */
#if defined(__clang__)
#define UNMERGED __attribute__((nomerge))
#else
#define UNMERGED
#endif

UNMERGED void emulator_sync_block(const char *file, int line);
UNMERGED void emulator_sync_warp(const char *file, int line);
UNMERGED void emulator_sync_team(int team, const char *file, int line);
UNMERGED void emulator_sync_grid(unsigned *arrived, int blocks, const char *file, int line);
char	   *emulator_peer(char *place, int rank, int team);
void		emulator_shuffle(void *value, size_t size, int from);
int			emulator_lane(void);
unsigned	warp_ballot(bool holds);
void		mma_half(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1);
void		mma_tf32(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1);
typedef const half16 *TilePlace;
TilePlace	tile_place(const half16 *x, int stride, int lane);
void		load_tile(uint32_t a[4], TilePlace place, int offset);
Words		load_words(const uint32_t *place);
uint32_t	to_tf32(float v);
float		exp2_fast(float v);
float		reciprocal_fast(float v);

/* Bells: bells.cpp. */
typedef uint64_t Bell;
void		emulator_open_bell(Bell *bell, const char *file, int line);
void		emulator_expect_pushes(Bell *bell, int bytes, const char *file, int line);
void		emulator_await_pushes(Bell *bell, int parity, const char *file, int line);
void		emulator_push(char *place, Bell *bell, int rank, int team, const void *value,
						  size_t size);

#define open_bell(bell) emulator_open_bell(bell, __FILE__, __LINE__)
#define expect_pushes(bell, bytes) emulator_expect_pushes(bell, bytes, __FILE__, __LINE__)
#define await_pushes(bell, parity) emulator_await_pushes(bell, parity, __FILE__, __LINE__)
#define sync_block() emulator_sync_block(__FILE__, __LINE__)
#define sync_warp() emulator_sync_warp(__FILE__, __LINE__)
#define sync_team(team) emulator_sync_team(team, __FILE__, __LINE__)
#define sync_grid(arrived, blocks) emulator_sync_grid(arrived, blocks, __FILE__, __LINE__)

template <class E> E *
team_peer(E *place, int rank, int team)
{
	return (E *) emulator_peer((char *) place, rank, team);
}

template <class E> E
shuffle_from(E value, int lane)
{
	emulator_shuffle(&value, sizeof(value), lane);
	return value;
}

template <class E> E
shuffle_xor(E value, int mask)
{
	return shuffle_from(value, emulator_lane() ^ mask);
}

template <class E> E
shuffle_up(E value, int delta)
{
	int			lane = emulator_lane();

	return shuffle_from(value, lane >= delta ? lane - delta : lane);
}

template <class E> void
team_store(E *place, int rank, int team, E v)
{
	*team_peer(place, rank, team) = v;
}

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

inline void
check_together(const void *place, size_t size)
{
	if ((uintptr_t) place % size != 0)
		emulator_stop("misaligned numbers side by side");
}

inline Two
load_two(const float *place)
{
	check_together(place, 8);
	return Two{place[0], place[1]};
}

inline Two
load_two_constant(const float *place)
{
	return load_two(place);
}

inline void
store_two(float *place, float a, float b)
{
	check_together(place, 8);
	place[0] = a;
	place[1] = b;
}

inline void
store_two_words(uint32_t *place, uint32_t a, uint32_t b)
{
	check_together(place, 8);
	place[0] = a;
	place[1] = b;
}

inline Four
load_four(const float *place)
{
	check_together(place, 16);
	return Four{place[0], place[1], place[2], place[3]};
}

inline Four
load_four_constant(const float *place)
{
	return load_four(place);
}

inline void
store_four(float *place, const Four &v)
{
	check_together(place, 16);
	place[0] = v.a;
	place[1] = v.b;
	place[2] = v.c;
	place[3] = v.d;
}

inline void
team_store_pair(float *place, int rank, int team, float a, float b)
{
	float	   *to = team_peer(place, rank, team);

	if ((uintptr_t) to % 8 != 0)
		emulator_stop("a misaligned pair of numbers");
	to[0] = a;
	to[1] = b;
}

inline void
push_word(uint32_t *place, Bell *bell, int rank, int team, uint32_t v)
{
	emulator_push((char *) place, bell, rank, team, &v, sizeof(v));
}

inline void
push_two(float *place, Bell *bell, int rank, int team, float a, float b)
{
	float		both[2] = {a, b};

	emulator_push((char *) place, bell, rank, team, both, sizeof(both));
}

inline TilePlace
tile_forward(TilePlace place, int offset)
{
	return place + offset;
}

template <class S> S
constant(const S *place)
{
	static_assert(sizeof(S) % 8 == 0, "whole words of 8 bytes");
	return *place;
}

inline float
load_float(const float *place)
{
	return *place;
}

template <class E> E
load_parameter(const E *place)
{
	return *place;
}

/* Copies that go on meanwhile come at the last moment: what is read before is what was there. */
void		copy_ahead(uint32_t *to, const uint32_t *from);
void		close_copies(void);
void		emulator_await_copies(size_t closed);

template <int N> void
await_copies(void)
{
	emulator_await_copies(N);
}

inline Words
load_shared(const uint32_t *place)
{
	return load_words(place);
}

inline void
store_shared(uint32_t *place, Words v)
{
	place[0] = v.x;
	place[1] = v.y;
	place[2] = v.z;
	place[3] = v.w;
}

inline void
store_words(uint32_t *place, Words v)
{
	check_together(place, 16);
	store_shared(place, v);
}

inline int
anew(int v)
{
	return v;
}

template <class E> E *
in_device_memory(E *place)
{
	return place;
}

inline Words
load_constant(const uint32_t *place)
{
	return load_words(place);
}

inline void
atomic_or(int *place, int bits)
{
	__atomic_fetch_or(place, bits, __ATOMIC_RELAXED);
}

/* NaN compares with nothing and stays what it is. */
inline half16
to_half(float v)
{
	return half16{float_to_half(fabsf(v) <= 65504.0f ? v : NAN)};
}

inline uint32_t
pack_halves(float low, float high)
{
	return (uint32_t) to_half(low).bits | (uint32_t) to_half(high).bits << 16;
}

inline uint32_t
pack_weights(float low, float high)
{
	return pack_halves(low, high);
}

inline float
float_of(uint32_t bits)
{
	float		v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

inline uint32_t
bits_of(float v)
{
	uint32_t	bits;

	memcpy(&bits, &v, sizeof(v));
	return bits;
}

inline uint32_t
load_shared_bits(const float *place)
{
	return bits_of(*place);
}

inline float
fused(float a, float b, float c)
{
	return __builtin_fmaf(a, b, c);
}

inline float
product(float a, float b)
{
	volatile float result = a * b;

	return result;
}

#endif							/* EMULATOR_H */
