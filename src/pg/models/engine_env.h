/*
 * engine_env.h: the environments in which the engine computes: memory, interrupts, threads,
 * kernels.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ENGINE_ENV_H
#define POSTERIOR_ENGINE_ENV_H

#include "pg/base/compat.h"

#include "engine/tnp.h"

/*
 * Values of posterior.kernels; the last two are only in the keys of entries: that a device
 * encodes, and of rows that nothing is encoded of.
 */
enum
{
	POSTERIOR_KERNELS_CPU,
	POSTERIOR_KERNELS_REFERENCE,
	POSTERIOR_KERNELS_HALF,
	POSTERIOR_KERNELS_DEVICE,
	POSTERIOR_KERNELS_NONE
};
extern int	posterior_kernels;	/* posterior.kernels */
extern int	posterior_threads;	/* posterior.threads; 0: four, or as many as there are processors */
extern int	posterior_estimators;	/* posterior.estimators */

/* An environment whose memory belongs to `context`; interrupts and kernels as the settings say. */
TnpEnv		posterior_env(MemoryContext context);

/*
 * The environment of a model that all sessions share: what lasts lies in the arena, what a call
 * needs in this process's own memory.
 */
TnpEnv		posterior_shared_env(void);

/*
 * The same in this session's memory: *bytes grows by what lasting memory would take of the arena.
 */
TnpEnv		posterior_counting_env(Size *bytes);

/*
 * While the engine encodes in this process, pg_stat_activity shows the wait event PosteriorEncode
 * (Extension before PostgreSQL 17). Nothing between begin and end may raise an error. The first
 * function gives the event its number, may raise, and comes before the others.
 */
void		posterior_encode_event_init(void);
void		posterior_encode_event_begin(void);
void		posterior_encode_event_end(void);

/* What the engine has encoded in this process so far. */
typedef struct PosteriorEncodeCounters
{
	int64		calls;			/* to build or to append */
	double		seconds;
} PosteriorEncodeCounters;
extern PosteriorEncodeCounters posterior_encode_counters;

#endif							/* POSTERIOR_ENGINE_ENV_H */
