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
#define MOST_BELLS 2

/* For functions that touch what the emulator keeps and nothing else: they run all the time. */
#define UNCHECKED __attribute__((no_sanitize("address")))

enum Wait { READY, WARP, BLOCK, TEAM, GRID, PUSHES, DONE };

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

/*
 * What comes before anything that a thread does from now on, beside what its own barriers say: of
 * each warp, accesses before its so many-th barrier, and reads before its so many-th common
 * operation; of each bell, what was pushed in its first rounds. Empty where no races are looked
 * for.
 */
typedef std::vector<uint32_t> Knowledge;

/* Eight bytes at most, on their way to a place in shared memory. */
struct Push
{
	char	   *to;
	char		bytes[8];
	size_t		size;
};

/* A bell of a block (portable.h). */
struct EmulatedBell
{
	const char *place;
	uint32_t	opened;			/* barriers of the team that had passed */
	uint32_t	rounds;			/* that have ended */
	bool		expects;		/* of the round in progress: whether it is known how much comes, */
	int64_t		expected,		/* how much, */
				come;			/* and what has */
	std::vector<Push> pushes;	/* which come at the last moment: when it ends */
	Knowledge	told,			/* by its pushers; */
				known;			/* of those that have ended */
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
	/* of each bell of the block: rounds that were awaited, the one that is waited for included */
	uint32_t	awaited[MOST_BELLS];
	int			bell;			/* that waits */
	Knowledge	known;
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
	int			n_bells;
	EmulatedBell bells[MOST_BELLS];
};

/* Blocks that run side by side: those of a team, or of all teams of a launch. */
struct Team
{
	std::vector<Block> blocks;
	size_t		size;			/* blocks of a team: the first so many, the next, ... */
	bool		pushes;			/* whether anything has been pushed */
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

/* Whether the round that a thread waits for has ended. (bells.cpp) */
bool		has_rung(const Fiber *fiber);

/* Stop where something is on its way into a block that ends. (bells.cpp) */
void		check_bells(const Block *block);

/* How much Knowledge there is of so many warps and blocks, which run at once. (bells.cpp) */
size_t		knowledge_size(size_t warps, size_t blocks);

/* Threads of blocks [first, end) have met at a barrier: all know what any did. (bells.cpp) */
void		share_knowledge(Team *team, size_t first, size_t end);

#endif							/* FIBERS_H */
