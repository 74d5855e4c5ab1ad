/*
 * fibers.h: what the parts of the emulator share: threads, blocks and teams as they run.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef FIBERS_H
#define FIBERS_H

#include <memory>
#include <vector>

#include <ucontext.h>

#include "emulator.h"
#include "races.h"

#define LANES 32

enum Wait { READY, WARP, BLOCK, TEAM, GRID, DONE };

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
	uint32_t   *tile;			/* loads of tiles */
	const half16 *row;
};

enum { SYNC, SHUFFLE, BALLOT, MMA_HALF, MMA_TF32, LOAD_TILE };

struct Block;

/* Four words on their way from device memory to shared memory. */
struct Copy
{
	uint32_t   *to;
	const uint32_t *from;
	unsigned	group;			/* how many groups were closed before it */
};

struct Fiber
{
	Block	   *block;
	int			thread;
	Wait		wait;
	void	   *place;			/* of the call that waits */
	Offer		offer;
	RaceClock	clock;
	std::vector<Copy> copies;
	unsigned	groups;			/* closed so far */
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
	int64_t		stored;			/* barriers of the team before the last store of another block */
	std::vector<Fiber> fibers;
};

/* Blocks that run side by side: those of a team, or of all teams of a launch. */
struct Team
{
	std::vector<Block> blocks;
	size_t		size;			/* blocks of a team: the first so many, the next, ... */
	const std::function<void ()> *body;
};

/* The thread that runs, or NULL. (emulator.cpp) */
extern Fiber *current;

/* Let others run until what the current thread waits for has come. (emulator.cpp) */
void		leave(void);

/* Note a barrier; false when it is the one that is left out. (emulator.cpp) */
bool		is_kept(const char *file, int line);

/* All lanes of a warp wait in something that they do together: do it. (warps.cpp) */
void		together(Fiber *const *lanes);

#endif							/* FIBERS_H */
