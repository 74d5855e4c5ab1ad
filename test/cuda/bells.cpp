/*
 * bells.cpp: pushes into the shared memory of other blocks, and the bells that count them, on the
 * emulator (portable.h).
 *
 * What is pushed comes at the last moment, when its round ends, so that whatever reads it before
 * reads what was there. Stopped are rounds in which more comes than was expected, threads that
 * await a round of another parity, or one after which another has ended already, pushes to a bell
 * that may not have been opened, or into a block that has ended, and blocks that end before what
 * was pushed into them has come. A round that never ends is a barrier that not all reach.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "fibers.h"

#include <algorithm>

/* ---- what is known ----------------------------------------------------------------------------*/

static size_t
warps_of(const Team *team)
{
	return team->blocks.size() * (team->blocks[0].fibers.size() / LANES);
}

/* Where it says how many rounds of a bell have ended. */
static size_t
knowledge_of_bell(const Block *block, int bell)
{
	return 2 * warps_of(block->team) +
		MOST_BELLS * (size_t) (block - block->team->blocks.data()) + (size_t) bell;
}

size_t
knowledge_size(size_t warps, size_t blocks)
{
	return 2 * warps + MOST_BELLS * blocks;
}

static void
learn(Knowledge &known, const Knowledge &more)
{
	for (size_t i = 0; i < known.size(); i++)
		known[i] = std::max(known[i], more[i]);
}

/* What a thread knows, and what its own warp has done. */
static void
tell(Knowledge &known, const Fiber &fiber)
{
	size_t		warp = 2 * (size_t) fiber.clock.warp;

	if (known.size() == 0)
		return;
	learn(known, fiber.known);
	known[warp] = std::max(known[warp], fiber.clock.warps);
	known[warp + 1] = std::max(known[warp + 1], fiber.clock.common);
}

void
share_knowledge(Team *team, size_t first, size_t end)
{
	Knowledge	all;

	if (!team->pushes)
		return;
	all.resize(team->blocks[first].fibers[0].known.size());
	for (size_t b = first; b < end; b++)
		for (const Fiber &fiber : team->blocks[b].fibers)
			tell(all, fiber);
	for (size_t b = first; b < end; b++)
		for (Fiber &fiber : team->blocks[b].fibers)
			std::copy(all.begin(), all.end(), fiber.known.begin());
}

/* ---- bells ------------------------------------------------------------------------------------*/

/* The number of the bell at this place of a block. */
static int
find_bell(const Block *block, const char *place)
{
	for (int i = 0; i < block->n_bells; i++)
		if (block->bells[i].place == place)
			return i;
	emulator_stop("a bell that was not opened");
}

/* End the round if everything has come. */
static void
ring(Block *block, int number)
{
	EmulatedBell &bell = block->bells[number];

	if (!bell.expects || bell.come < bell.expected)
		return;
	if (bell.come > bell.expected)
		emulator_stop("more is pushed than was expected");
	for (const Push &push : bell.pushes)
		memcpy(push.to, push.bytes, push.size);
	bell.pushes.clear();
	bell.expects = false;
	bell.come = 0;
	bell.rounds++;
	if (bell.known.size() > 0)
	{
		learn(bell.known, bell.told);
		bell.known[knowledge_of_bell(block, number)] = bell.rounds;
	}
}

bool
has_rung(const Fiber *fiber)
{
	return fiber->block->bells[fiber->bell].rounds >= fiber->awaited[fiber->bell];
}

void
check_bells(const Block *block)
{
	for (int i = 0; i < block->n_bells; i++)
		if (block->bells[i].pushes.size() > 0 || block->bells[i].expects)
			emulator_stop("a block ends before what is pushed into it has come");
}

/* ---- the primitives -------------------------------------------------------------------------- */

/* Where a wrong number of bytes is expected, and by how much. */
static const char *miscounted;
static int	miscounted_line,
			miscounted_by;

void
emulator_miscount(const char *file, int line, int bytes)
{
	miscounted = file;
	miscounted_line = line;
	miscounted_by = bytes;
}

void
emulator_open_bell(Bell *place, const char *file, int line)
{
	Block	   *block = current->block;

	if (!is_kept(file, line))
		return;
	if ((uintptr_t) place % sizeof(Bell) != 0)
		emulator_stop("a misaligned bell");
	if (block->n_bells == MOST_BELLS)
		emulator_stop("more bells than a block has");

	EmulatedBell &bell = block->bells[block->n_bells++];

	bell = {};
	bell.place = (const char *) place;
	bell.opened = current->clock.teams;
	bell.told.resize(current->known.size());
	bell.known.resize(current->known.size());
	block->team->pushes = true;
}

void
emulator_expect_pushes(Bell *place, int bytes, const char *file, int line)
{
	Block	   *block = current->block;
	int			number = find_bell(block, (const char *) place);
	EmulatedBell &bell = block->bells[number];

	if (!is_kept(file, line))
		return;
	if (bell.expects)
		emulator_stop("a round of a bell is expected twice");
	if (miscounted != nullptr && line == miscounted_line && strcmp(file, miscounted) == 0)
		bytes += miscounted_by;
	bell.expects = true;
	bell.expected = bytes;
	ring(block, number);
}

void
emulator_await_pushes(Bell *place, int parity, const char *file, int line)
{
	int			number = find_bell(current->block, (const char *) place);
	EmulatedBell &bell = current->block->bells[number];

	if (!is_kept(file, line))
		return;
	if (current->clock.teams == bell.opened)
		race_found("a bell is awaited that may not have been opened");
	if ((int) (current->awaited[number] & 1) != parity)
		emulator_stop("a round of another parity is awaited");
	current->awaited[number]++;
	current->bell = number;
	current->wait = PUSHES;
	leave();
	/* a GPU looks at the parity, which would be that of a round in progress again */
	if (bell.rounds > current->awaited[number])
		emulator_stop("a round is awaited after the next one has ended");
	learn(current->known, bell.known);
}

void
emulator_push(char *place, Bell *at, int rank, int team, const void *value, size_t size)
{
	const Block *own = current->block;
	Push		push = {};
	RaceClock	clock = current->clock;

	if ((size_t) team != own->team->size || rank < 0 || rank >= team)
		emulator_stop("no such block in the team");

	Block	   *peer = current->block + (rank - own->rank);
	int			number = find_bell(peer, peer->shared + ((char *) at - own->shared));
	EmulatedBell &bell = peer->bells[number];

	if (clock.teams == bell.opened)
		race_found("a block pushes to a bell that may not have been opened");
	if (peer->fibers[0].wait == DONE)
		race_found("a block pushes into one that has ended");
	push.to = peer->shared + (place - own->shared);
	push.size = size;
	if ((uintptr_t) push.to % size != 0)
		emulator_stop("a misaligned push");
	memcpy(push.bytes, value, size);
	/* it is written at some time in the round */
	clock.bell = (uint32_t) knowledge_of_bell(peer, number);
	clock.round = bell.rounds;
	race_access(&clock, push.to, size, true);
	tell(bell.told, *current);
	bell.pushes.push_back(push);
	bell.come += (int64_t) size;
	ring(peer, number);
}
