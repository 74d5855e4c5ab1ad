/*
 * emulator.cpp: fibers, barriers and warp operations of emulator.h.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "emulator.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <ucontext.h>

#define LANES 32
#define STACK_BYTES ((size_t) 128 << 10)

EmulatorOrder emulator_order = EMULATOR_FORWARD;

namespace
{

enum Wait { READY, WARP, BLOCK, TEAM, DONE };

/* What a thread brings to something that its warp does together. */
struct Offer
{
	int			kind;			/* which operation */
	void	   *value;			/* shuffle: read and replaced */
	size_t		size;
	int			from;
	float	   *c;				/* products */
	const uint32_t *a;
	uint32_t	b0,
				b1;
	bool		holds;
	unsigned	votes;
};

enum { SYNC, SHUFFLE, BALLOT, MMA_HALF, MMA_TF32 };

struct Block;

struct Fiber
{
	Block	   *block;
	int			thread;
	Wait		wait;
	void	   *place;			/* of the call that waits */
	Offer		offer;
#if defined(__x86_64__)
	void	   *stack_pointer;
#else
	ucontext_t	context;
#endif
	std::unique_ptr<char[]> stack;
};

struct Team;

struct Block
{
	Team	   *team;
	int			index,
				rank;
	char	   *shared;
	std::vector<Fiber> fibers;
};

struct Team
{
	std::vector<Block> blocks;
	const std::function<void ()> *body;
};

Fiber	   *current;
#if defined(__x86_64__)
void	   *scheduler_pointer;
#else
ucontext_t	scheduler_context;
#endif

}								/* namespace */

void
emulator_stop(const char *reason)
{
	fprintf(stderr, "emulator: %s", reason);
	if (current != nullptr)
		fprintf(stderr, " (block %d, thread %d)", current->block->index, current->thread);
	fprintf(stderr, "\n");
	fflush(stderr);
	abort();
}

/* ---- switching ------------------------------------------------------------------------------- */

#if defined(__x86_64__)

/* Save what the calling convention preserves on this stack and continue on the other. */
extern "C" void emulator_switch(void **save, void *to);
asm(".text\n"
	".globl emulator_switch\n"
	".type emulator_switch,@function\n"
	"emulator_switch:\n"
	"	pushq %rbp\n	pushq %rbx\n	pushq %r12\n"
	"	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbx\n	popq %rbp\n"
	"	ret\n"
	".size emulator_switch,.-emulator_switch\n");

static void
enter(Fiber *fiber)
{
	current = fiber;
	emulator_switch(&scheduler_pointer, fiber->stack_pointer);
	current = nullptr;
}

static void
leave(void)
{
	emulator_switch(&current->stack_pointer, scheduler_pointer);
}

#else

static void
enter(Fiber *fiber)
{
	current = fiber;
	swapcontext(&scheduler_context, &fiber->context);
	current = nullptr;
}

static void
leave(void)
{
	swapcontext(&current->context, &scheduler_context);
}

#endif

static void
fiber_main(void)
{
	(*current->block->team->body)();
	current->wait = DONE;
	leave();
	abort();
}

static void
start(Fiber *fiber)
{
	if (fiber->stack == nullptr)
		fiber->stack.reset(new char[STACK_BYTES]);
	fiber->wait = READY;
#if defined(__x86_64__)
	uintptr_t	top = ((uintptr_t) fiber->stack.get() + STACK_BYTES) & ~(uintptr_t) 15;
	void	  **slot = (void **) top;

	/* as if fiber_main had been called: its return address, then six registers */
	*--slot = nullptr;
	*--slot = (void *) fiber_main;
	for (int i = 0; i < 6; i++)
		*--slot = nullptr;
	fiber->stack_pointer = slot;
#else
	getcontext(&fiber->context);
	fiber->context.uc_stack.ss_sp = fiber->stack.get();
	fiber->context.uc_stack.ss_size = STACK_BYTES;
	fiber->context.uc_link = nullptr;
	makecontext(&fiber->context, fiber_main, 0);
#endif
}

/* ---- what warps do together ------------------------------------------------------------------ */

float
half_to_float(uint16_t bits)
{
	int			exponent = bits >> 10 & 31,
				mantissa = bits & 1023;
	float		v = exponent == 0 ? std::ldexp((float) mantissa, -24)
		: exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
			: std::ldexp((float) (mantissa + 1024), exponent - 25);

	return (bits & 0x8000) != 0 ? -v : v;
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

static void
multiply(Fiber *const *lanes, int k, float a[16][16], float b[16][8])
{
	for (int lane = 0; lane < LANES; lane++)
		for (int i = 0; i < 4; i++)
		{
			int			row = lane / 4 + i / 2 * 8,
						column = lane % 4 * 2 + i % 2;
			float		sum = lanes[lane]->offer.c[i];

			for (int j = 0; j < k; j++)
				sum = (float) ((double) sum + (double) a[row][j] * b[j][column]);
			lanes[lane]->offer.c[i] = sum;
		}
}

static void
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
					half_to_float((uint16_t) (o.a[i] >> 16 * e));
			b[2 * t + e][g] = half_to_float((uint16_t) (o.b0 >> 16 * e));
			b[2 * t + 8 + e][g] = half_to_float((uint16_t) (o.b1 >> 16 * e));
		}
	}
	multiply(lanes, 16, a, b);
}

static float
tf32_value(uint32_t bits)
{
	float		v;

	if ((bits & 0x1fff) != 0)
		emulator_stop("an operand of a tf32 product was not rounded");
	memcpy(&v, &bits, sizeof(v));
	return v;
}

static void
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

static void
shuffle(Fiber *const *lanes)
{
	char		values[LANES][16];

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

/* All lanes wait in a warp operation: do it. */
static void
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
	}
	for (int lane = 0; lane < LANES; lane++)
		lanes[lane]->wait = READY;
}

/* Run one warp until its threads wait for others or have ended. */
static void
run_warp(Block *block, int warp)
{
	Fiber	   *lanes[LANES];

	for (int lane = 0; lane < LANES; lane++)
		lanes[lane] = &block->fibers[warp * LANES + lane];
	for (;;)
	{
		int			in_warp = 0;

		for (int lane = 0; lane < LANES; lane++)
		{
			if (lanes[lane]->wait == READY)
				enter(lanes[lane]);
			in_warp += lanes[lane]->wait == WARP;
		}
		if (in_warp == 0)
			return;
		if (in_warp != LANES)
			emulator_stop("some lanes of a warp do not reach what it does together");
		together(lanes);
	}
}

/* Release a barrier that all of these have reached. */
static bool
release(Team *team, size_t first, size_t end, Wait wait)
{
	size_t		waiting = 0,
				all = 0;
	void	   *place = nullptr;

	for (size_t b = first; b < end; b++)
		for (Fiber &fiber : team->blocks[b].fibers)
		{
			all++;
			if (fiber.wait != wait)
				continue;
			if (waiting++ > 0 && fiber.place != place)
				emulator_stop("threads wait at different barriers");
			place = fiber.place;
		}
	if (waiting == 0 || waiting < all)
		return false;
	for (size_t b = first; b < end; b++)
		for (Fiber &fiber : team->blocks[b].fibers)
			fiber.wait = READY;
	return true;
}

static unsigned order_state = 1;

static void
run_team(Team *team, int warps)
{
	size_t		units = team->blocks.size() * (size_t) warps;
	std::vector<size_t> order(units);

	for (size_t i = 0; i < units; i++)
		order[i] = emulator_order == EMULATOR_BACKWARD ? units - 1 - i : i;
	for (;;)
	{
		bool		released = false,
					done = true;

		if (emulator_order == EMULATOR_SHUFFLED)
			for (size_t i = units - 1; i > 0; i--)
			{
				order_state = order_state * 1664525u + 1013904223u;
				std::swap(order[i], order[(order_state >> 8) % (i + 1)]);
			}
		for (size_t unit : order)
			run_warp(&team->blocks[unit / warps], (int) (unit % warps));
		for (Block &block : team->blocks)
			for (Fiber &fiber : block.fibers)
				done = done && fiber.wait == DONE;
		if (done)
			return;
		for (size_t b = 0; b < team->blocks.size(); b++)
			released = release(team, b, b + 1, BLOCK) || released;
		if (!released)
			released = release(team, 0, team->blocks.size(), TEAM);
		if (!released)
			emulator_stop("a barrier that not all threads reach");
	}
}

void
emulator_run(int teams, int team, int threads, size_t shared, const std::function<void ()> &body)
{
	Team		t;

	t.body = &body;
	t.blocks.resize((size_t) team);
	for (Block &block : t.blocks)
	{
		block.team = &t;
		block.fibers.resize((size_t) threads);
	}
	for (int number = 0; number < teams; number++)
	{
		for (int rank = 0; rank < team; rank++)
		{
			Block	   &block = t.blocks[(size_t) rank];

			block.rank = rank;
			block.index = number * team + rank;
			block.shared = (char *) aligned_alloc(128, (shared + 127) / 128 * 128);
			memset(block.shared, 0xff, shared);
			for (int i = 0; i < threads; i++)
			{
				block.fibers[(size_t) i].block = &block;
				block.fibers[(size_t) i].thread = i;
				start(&block.fibers[(size_t) i]);
			}
		}
		run_team(&t, threads / LANES);
		for (Block &block : t.blocks)
			free(block.shared);
	}
}

/* ---- the primitives -------------------------------------------------------------------------- */

int
thread_index(void)
{
	return current->thread;
}

int
block_index(void)
{
	return current->block->index;
}

int
team_rank(void)
{
	return current->block->rank;
}

char *
shared_memory(void)
{
	return current->block->shared;
}

__attribute__((noinline)) void
sync_block(void)
{
	current->wait = BLOCK;
	current->place = __builtin_return_address(0);
	leave();
}

__attribute__((noinline)) void
sync_team(int team)
{
	if ((size_t) team != current->block->team->blocks.size())
		emulator_stop("the barrier of a team of another size");
	current->wait = TEAM;
	current->place = __builtin_return_address(0);
	leave();
}

char *
emulator_peer(char *place, int rank, int team)
{
	std::vector<Block> &blocks = current->block->team->blocks;

	if ((size_t) team != blocks.size() || rank < 0 || rank >= team)
		emulator_stop("no such block in the team");
	return blocks[(size_t) rank].shared + (place - current->block->shared);
}

static void
offer(const Offer &o, void *place)
{
	current->offer = o;
	current->wait = WARP;
	current->place = place;
	leave();
}

__attribute__((noinline)) void
sync_warp(void)
{
	Offer		o = {};

	o.kind = SYNC;
	offer(o, __builtin_return_address(0));
}

int
emulator_lane(void)
{
	return current->thread % LANES;
}

void
emulator_shuffle(void *value, size_t size, int from)
{
	Offer		o = {};

	o.kind = SHUFFLE;
	o.value = value;
	o.size = size;
	o.from = from;
	offer(o, nullptr);
}

unsigned
warp_ballot(bool holds)
{
	Offer		o = {};

	o.kind = BALLOT;
	o.holds = holds;
	offer(o, nullptr);
	return current->offer.votes;
}

void
mma_half(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	Offer		o = {};

	o.kind = MMA_HALF;
	o.c = c;
	o.a = a;
	o.b0 = b0;
	o.b1 = b1;
	offer(o, nullptr);
}

void
mma_tf32(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	Offer		o = {};

	o.kind = MMA_TF32;
	o.c = c;
	o.a = a;
	o.b0 = b0;
	o.b1 = b1;
	offer(o, nullptr);
}

static void
check_aligned(const void *place)
{
	if ((uintptr_t) place % 16 != 0)
		emulator_stop("a misaligned vector access");
}

void
load_tile(uint32_t a[4], const half16 *place, int stride, int lane)
{
	check_aligned(place);
	if (stride % 8 != 0)
		emulator_stop("rows of a tile are misaligned");
	for (int i = 0; i < 4; i++)
		memcpy(&a[i], place + (lane / 4 + i % 2 * 8) * stride + lane % 4 * 2 + i / 2 * 8,
			   sizeof(uint32_t));
}

Words
load_words(const uint32_t *place)
{
	Words		words;

	check_aligned(place);
	memcpy(&words, place, sizeof(words));
	return words;
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
