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
 * Values of posterior.kernels; the last one is only in the keys of entries that a device encodes.
 */
enum
{
	POSTERIOR_KERNELS_CPU,
	POSTERIOR_KERNELS_REFERENCE,
	POSTERIOR_KERNELS_HALF,
	POSTERIOR_KERNELS_DEVICE
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

#endif							/* POSTERIOR_ENGINE_ENV_H */
