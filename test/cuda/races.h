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
				grids;			/* of all teams that run at once */
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
