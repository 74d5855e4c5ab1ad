/*
 * races.h: finds data races of kernels on the emulator: two accesses of the same memory, one of
 * them a write, with nothing between them that orders them.
 *
 * Kernels are compiled with -fsanitize=thread, which has the compiler call a function for every
 * access; races.cpp has these functions instead of ThreadSanitizer's library. That library would
 * take one fiber per thread of a team with a clock of all others each. Here nothing orders threads
 * but barriers, which whole warps, blocks, teams or grids pass together, so four counters say
 * everything: an access is before another one of the same warp, block, team or grid exactly if its
 * thread had passed fewer barriers of that size, or larger. Threads of teams of a launch that do
 * not run at once are never ordered; launches are.
 *
 * Bells (portable.h) order what barriers do not: a thread that has awaited a round knows what its
 * pushers knew, and barriers spread that. A read of a warp then comes before if a barrier, or
 * anything else that the warp did together, lay between it and the push, which was computed from
 * it; a store does into the block's own memory alone, and after a barrier. What is pushed comes
 * before accesses of those threads alone that have awaited its round, or have heard of that.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef RACES_H
#define RACES_H

#include <cstddef>
#include <cstdint>

/* Where a thread is. */
struct RaceClock
{
	uint32_t	launch;
	/* number, over all launches, of the run of a team, or of teams that run at once */
	uint32_t	run;
	uint16_t	team,			/* in its run, as block, warp and thread are */
				block,
				warp,
				thread;
	uint32_t	warps,			/* barriers passed: of the warp and larger, */
				blocks,			/* of the block and larger, */
				teams,			/* of the team and larger, */
				grids,			/* of all teams that run at once */
				common;			/* what the warp did together, barriers or not */
	/*
	 * of something that was pushed: where `known` says how many rounds of its bell have ended, and
	 * which round it belongs to; 0: an access of the thread itself
	 */
	uint32_t	bell,
				round;
	/* what else comes before it: of each warp its barriers and its common operations; of bells */
	const uint32_t *known;
};

/* The clock of the thread that runs, or NULL outside of kernels. */
const RaceClock *race_now(void);

/*
 * Memory in which races are looked for: of one block if `shared`, which the next team's blocks have
 * again; else of the device, which is used again when all of it has been released.
 */
void	   *race_allocate(size_t bytes, bool shared);
void		race_begin_team(void);
void		race_free_all(void);

/* An access that no compiler has seen: of the emulator, for the thread with this clock. */
void		race_access(const RaceClock *clock, const void *place, size_t bytes, bool writes);

/* One that the emulator has found. */
void		race_found(const char *what);

#endif							/* RACES_H */
