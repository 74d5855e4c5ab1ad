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
				looks;
} GpuEmulated;

extern GpuEmulated gpu_emulated;

/* Run a kernel of two blocks that makes the given mistake (1 ... 9), or none (0). */
void		gpu_emulated_broken(int mistake);

/* In which order warps run: 0 forward, 1 backward, 2 shuffled. */
void		gpu_emulated_order(int order);

#ifdef __cplusplus
}
#endif

#endif							/* GPU_EMULATED_H */
