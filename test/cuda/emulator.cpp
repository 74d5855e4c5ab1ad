/*
 * emulator.cpp: fibers, barriers and copies of emulator.h.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "fibers.h"

#include <cstdio>
#include <cstdlib>

#define STACK_BYTES ((size_t) 128 << 10)

EmulatorOrder emulator_order = EMULATOR_FORWARD;

static unsigned order_state = 1;

#ifndef EMULATOR_RACES
/* What a build that looks for races has (races.cpp). */
void
race_access(const RaceClock *, const void *, size_t, bool)
{
}

void
race_found(const char *what)
{
	emulator_stop(what);
}
#endif

Fiber	   *current;

namespace
{

/*
 * Stacks that no thread has, and shared memory of one size that no block has: the next launch takes
 * them, for the system would take longer to make them than most launches take.
 */
std::vector<std::unique_ptr<char[]>> free_stacks;
#ifndef EMULATOR_RACES
struct Free
{
	void operator()(char *memory) const { free(memory); }
};

std::vector<std::unique_ptr<char, Free>> free_shared;
size_t		free_shared_bytes;
#endif

uint32_t	launches,
			runs;

/* Barriers that threads have come to, and the one that is left out. */
struct Barrier
{
	const char *file;
	int			line;
};

Barrier		barriers[256];
int			n_barriers;
Barrier		left_out;
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

UNCHECKED static void
enter(Fiber *fiber)
{
	current = fiber;
	emulator_switch(&scheduler_pointer, fiber->stack_pointer);
	current = nullptr;
}

UNCHECKED void
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

void
leave(void)
{
	swapcontext(&current->context, &scheduler_context);
}

#endif

static void
fiber_main(void)
{
	(*current->block->team->body)();
	if (current->block->stored >= (int64_t) current->clock.teams)
		race_found("a block ends while another one writes into it");
	if (current->copies.size() != 0)
		emulator_stop("a thread ends that has not awaited its copies");
	check_bells(current->block);
	current->wait = DONE;
	leave();
	abort();
}

static void
start(Fiber *fiber)
{
	if (fiber->stack == nullptr && !free_stacks.empty())
	{
		fiber->stack = std::move(free_stacks.back());
		free_stacks.pop_back();
	}
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

/* ---- scheduling ------------------------------------------------------------------------------ */

/* Run one warp until its threads wait for others or have ended. */
UNCHECKED static void
run_warp(Block *block, int warp)
{
	Fiber	   *lanes[LANES];

	for (int lane = 0; lane < LANES; lane++)
		lanes[lane] = &block->fibers[warp * LANES + lane];
	for (;;)
	{
		int			in_warp = 0;

		for (int i = 0; i < LANES; i++)
		{
			int			lane = emulator_order == EMULATOR_BACKWARD ? LANES - 1 - i
				: emulator_order == EMULATOR_SHUFFLED ? (i * 13 + (int) (order_state >> 8)) % LANES
				: i;

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
		{
			fiber.wait = READY;
			fiber.clock.warps++;
			fiber.clock.blocks++;
			fiber.clock.teams += wait >= TEAM;
			fiber.clock.grids += wait == GRID;
		}
	share_knowledge(team, first, end);
	return true;
}

/* Let threads of a block go on for which a bell has rung. */
static bool
wake(Block *block)
{
	bool		woken = false;

	for (Fiber &fiber : block->fibers)
		if (fiber.wait == PUSHES && has_rung(&fiber))
		{
			fiber.wait = READY;
			woken = true;
		}
	return woken;
}

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
		{
			run_warp(&team->blocks[unit / warps], (int) (unit % warps));
			/* the last warp of a block: it goes on alone while it can */
			if (emulator_order == EMULATOR_SKEWED && (int) (unit % warps) == warps - 1)
				while (release(team, unit / warps, unit / warps + 1, BLOCK)
					   || wake(&team->blocks[unit / warps]))
					for (int warp = 0; warp < warps; warp++)
						run_warp(&team->blocks[unit / warps], warp);
		}
		for (Block &block : team->blocks)
			for (Fiber &fiber : block.fibers)
				done = done && fiber.wait == DONE;
		if (done)
			return;
		for (size_t b = 0; b < team->blocks.size(); b++)
			released = release(team, b, b + 1, BLOCK) || wake(&team->blocks[b]) || released;
		for (size_t b = 0; !released && b < team->blocks.size(); b += team->size)
			released = release(team, b, b + team->size, TEAM);
		if (!released)
			released = release(team, 0, team->blocks.size(), GRID);
		if (!released)
			emulator_stop("a barrier that not all threads reach");
	}
}

#ifndef EMULATOR_RACES

/* Shared memory of a block, with nothing behind its end that may be touched. */
static char *
take_shared(size_t bytes)
{
	char	   *memory;

	if (bytes != free_shared_bytes)
	{
		free_shared.clear();
		free_shared_bytes = bytes;
	}
	if (free_shared.empty())
		return (char *) aligned_alloc(128, (bytes + 127) / 128 * 128);
	memory = free_shared.back().release();
	free_shared.pop_back();
	return memory;
}

#endif

/* Begin block i of those that run side by side; they begin with block `first` of the launch. */
static void
begin_block(Team *t, size_t i, int first, int threads, size_t shared)
{
	Block	   &block = t->blocks[i];
	int			number = (int) i;

	block.rank = number % (int) t->size;
	block.index = first + number;
	block.stored = -1;
	block.n_bells = 0;
#ifdef EMULATOR_RACES
	block.shared = (char *) race_allocate(shared, true);
#else
	block.shared = take_shared(shared);
#endif
	memset(block.shared, 0xff, shared);
	for (int thread = 0; thread < threads; thread++)
	{
		Fiber	   &fiber = block.fibers[(size_t) thread];

		fiber.block = &block;
		fiber.thread = thread;
		fiber.clock = {
			launches, runs, (uint16_t) (number / (int) t->size), (uint16_t) number,
			(uint16_t) (number * threads / LANES + thread / LANES),
			(uint16_t) (number * threads + thread), 0, 0, 0, 0, 0, 0, 0, nullptr
		};
		memset(fiber.awaited, 0, sizeof(fiber.awaited));
#ifdef EMULATOR_RACES
		fiber.known.assign(knowledge_size(t->blocks.size() * (size_t) (threads / LANES),
										  t->blocks.size()), 0);
		fiber.clock.known = fiber.known.data();
#endif
		start(&fiber);
	}
}

void
emulator_run(int teams, int team, int threads, size_t shared, bool at_once,
			 const std::function<void ()> &body)
{
	Team		t;
	int			blocks = at_once ? teams * team : team;

	if (blocks * threads > UINT16_MAX)
		emulator_stop("more threads at once than have a number");
	launches++;
	t.body = &body;
	t.size = (size_t) team;
	t.pushes = false;
	t.blocks.resize((size_t) blocks);
	for (Block &block : t.blocks)
	{
		block.team = &t;
		block.fibers.resize((size_t) threads);
	}
	for (int first = 0; first < teams * team; first += blocks)
	{
		runs++;
#ifdef EMULATOR_RACES
		race_begin_team();
#endif
		for (size_t i = 0; i < t.blocks.size(); i++)
			begin_block(&t, i, first, threads, shared);
		run_team(&t, threads / LANES);
#ifndef EMULATOR_RACES
		for (Block &block : t.blocks)
			free_shared.emplace_back(block.shared);
#endif
	}
	for (Block &block : t.blocks)
		for (Fiber &fiber : block.fibers)
			free_stacks.push_back(std::move(fiber.stack));
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

bool
is_kept(const char *file, int line)
{
	static Barrier known[1024];
	Barrier    &last = known[((uintptr_t) file / 8 + (uintptr_t) line) % 1024];
	int			i = 0;

	if (left_out.file == nullptr && last.file == file && last.line == line)
		return true;
	last = {file, line};
	/* a file has one name for each list of kernels, mostly the same one */
	while (i < n_barriers && (barriers[i].line != line
							  || (barriers[i].file != file && strcmp(barriers[i].file, file) != 0)))
		i++;
	if (i == n_barriers && i < (int) (sizeof(barriers) / sizeof(barriers[0])))
		barriers[n_barriers++] = {file, line};
	return left_out.file == nullptr || left_out.line != line || strcmp(left_out.file, file) != 0;
}

const char *
emulator_barrier(int i, int *line)
{
	if (i >= n_barriers)
		return nullptr;
	*line = barriers[i].line;
	return barriers[i].file;
}

void
emulator_leave_out(const char *file, int line)
{
	left_out = {file, line};
}

const RaceClock *
race_now(void)
{
	return current != nullptr ? &current->clock : nullptr;
}

__attribute__((noinline)) void
emulator_sync_block(const char *file, int line)
{
	if (!is_kept(file, line))
		return;
	current->wait = BLOCK;
	current->place = __builtin_return_address(0);
	leave();
}

__attribute__((noinline)) void
emulator_sync_team(int team, const char *file, int line)
{
	if (!is_kept(file, line))
		return;
	if ((size_t) team != current->block->team->size)
		emulator_stop("the barrier of a team of another size");
	current->wait = TEAM;
	current->place = __builtin_return_address(0);
	leave();
}

__attribute__((noinline)) void
emulator_sync_grid(unsigned *arrived, int blocks, const char *file, int line)
{
	if (!is_kept(file, line))
		return;
	if ((size_t) blocks != current->block->team->blocks.size())
		emulator_stop("the barrier of a grid of another size");
	current->wait = GRID;
	current->place = __builtin_return_address(0);
	/* it counts up once: a counter that was used, or is not zero, would let blocks pass */
	if (current->thread == 0
		&& __atomic_fetch_add(arrived, 1, __ATOMIC_RELAXED) >= (unsigned) blocks)
		emulator_stop("the counter of a barrier was not zero");
	leave();
	if (current->thread == 0 && *arrived != (unsigned) blocks)
		emulator_stop("the counter of a barrier was not zero");
}

char *
emulator_peer(char *place, int rank, int team)
{
	const Block *own = current->block;

	if ((size_t) team != own->team->size || rank < 0 || rank >= team)
		emulator_stop("no such block in the team");

	Block	   &peer = current->block[rank - own->rank];

	if (rank != own->rank)
	{
		/* it may not have begun: only a barrier tells */
		if (current->clock.teams == 0)
			race_found("a block writes into one that may not have begun");
		if (peer.fibers[0].wait == DONE)
			race_found("a block writes into one that has ended");
		if (peer.stored < (int64_t) current->clock.teams)
			peer.stored = current->clock.teams;
	}
	return peer.shared + (place - own->shared);
}

static void
check_aligned(const void *place)
{
	if ((uintptr_t) place % 16 != 0)
		emulator_stop("a misaligned vector access");
}

Words
load_words(const uint32_t *place)
{
	Words		words;

	check_aligned(place);
	race_access(race_now(), place, sizeof(words), false);
	memcpy(&words, place, sizeof(words));
	return words;
}

void
copy_ahead(uint32_t *to, const uint32_t *from)
{
	check_aligned(to);
	check_aligned(from);
	/* at any time from now on it may read the one and write the other */
	race_access(race_now(), from, sizeof(Words), false);
	race_access(race_now(), to, sizeof(Words), true);
	current->copies.push_back({to, from, current->groups});
}

void
close_copies(void)
{
	current->groups++;
}

void
emulator_await_copies(size_t closed)
{
	size_t		done = 0;

	for (const Copy &copy : current->copies)
	{
		if (copy.group + closed >= current->groups)
			break;
		memcpy(copy.to, copy.from, sizeof(Words));
		done++;
	}
	current->copies.erase(current->copies.begin(), current->copies.begin() + (ptrdiff_t) done);
}
