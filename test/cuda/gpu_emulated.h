/*
 * gpu_emulated.h: what a test can ask of the emulated GPU.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef GPU_EMULATED_H
#define GPU_EMULATED_H

#include "gpu.h"

#ifdef __cplusplus
extern "C"
{
#endif

typedef struct GpuEmulated
{
	int			multiprocessors,	/* 0: a usual value */
				shared_bytes,
				team;
	long		live,			/* allocations not yet released */
				calls,
				fail_at,		/* from this call on everything fails; 0: nothing does */
				allocations,
				no_memory_at,	/* this allocation finds no memory; 0: none */
				launches,
				refuse_at,		/* this launch is refused; 0: none */
				refuse_teams,	/* launches of larger teams are refused; 0: none */
				refuse_copies,	/* launches of teams that wait for each other are refused */
				refused,
				no_products,	/* whether there is no library of matrix products, */
				crooked,		/* or one in which a row's bits depend on its place */
				races,			/* found so far, in a build that looks for them (races.h) */
				quiet,			/* races are counted, not shown */
				looks;
	size_t		held,			/* bytes allocated, or released and not trimmed */
				most_held;
	/*
	 * Whether a queue does what it is asked for as late as it may: when it is found to be done, or
	 * the other one follows it. Else everything is done at once.
	 */
	bool		late;
	/*
	 * What the queues are asked for, a letter and the queue: u(pload), l(aunch), d(ownload),
	 * f(ollow), s(tep), m(ultiply), and w when one is found to be done, for which the host waited.
	 */
	char		trace[256];
	size_t		trace_room;		/* characters that may still be written */
} GpuEmulated;

extern GpuEmulated gpu_emulated;

/* Run a kernel of two teams of two blocks that makes the given mistake (1 ... 23), or none (0). */
void		gpu_emulated_broken(int mistake);

/* An activation of the kernels (products.h) of one number. */
float		gpu_emulated_activate(float v, int activation);

/*
 * Run a kernel in which bells order all accesses, or miss one in the given way (1 ... 5); returns
 * how many races were found. 1: nothing lies between a read and the push that tells of it; 2: it is
 * a write, which is not told; 3: the push is not awaited; 4: what is pushed is read too early; 5:
 * another block reads what was stored in it before the push, and a barrier.
 */
long		gpu_emulated_pushed_back(int mistake);

/*
 * In which order warps run, and the lanes of each: 0 forward, 1 backward, 2 shuffled; 3: forward,
 * each block as far as it gets before the next, so that blocks of a team are many barriers apart.
 */
void		gpu_emulated_order(int order);

/*
 * Barriers of the kernels that threads have come to so far, and what they do with bells: file and
 * line of number i, or NULL; and one that is left out from now on (NULL: none), or, of expected
 * pushes, gets so many bytes more.
 */
const char *gpu_emulated_barrier(int i, int *line);
void		gpu_emulated_leave_out(const char *file, int line);
void		gpu_emulated_miscount(const char *file, int line, int bytes);

#ifdef __cplusplus
}
#endif

#endif							/* GPU_EMULATED_H */
