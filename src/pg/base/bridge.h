/*
 * bridge.h: between PostgreSQL and the engine: memory, interrupts, errors, settings.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_BRIDGE_H
#define POSTERIOR_BRIDGE_H

#include "pg/base/compat.h"

#include "engine/tnp.h"

typedef enum PosteriorCacheMode { POSTERIOR_CACHE_ON, POSTERIOR_CACHE_OFF, POSTERIOR_CACHE_VERIFY } PosteriorCacheMode;

typedef enum PosteriorRowSecurity { POSTERIOR_ROW_SECURITY_REFUSE, POSTERIOR_ROW_SECURITY_PRIVATE } PosteriorRowSecurity;

extern char *posterior_model_name;	/* posterior.model */
extern char *posterior_class_model_name;	/* posterior.class_model */
extern int	posterior_cache_mode;	/* posterior.cache */
extern int	posterior_cache_size;	/* posterior.cache_size, kB */
extern int	posterior_maintenance_delay;	/* posterior.maintenance_delay, ms, -1: off */
extern double posterior_drift_limit;	/* posterior.drift_limit, 0: off */
extern int	posterior_row_security; /* posterior.row_security */
extern int	posterior_row_limit;	/* posterior.row_limit, -1: as the model says, 0: any number */
/* posterior.kernels, and in the keys of runs whose rows a device encodes the last */
enum
{
	POSTERIOR_KERNELS_CPU,
	POSTERIOR_KERNELS_REFERENCE,
	POSTERIOR_KERNELS_HALF,
	POSTERIOR_KERNELS_DEVICE
};
extern int	posterior_kernels;
extern int	posterior_threads;	/* posterior.threads, 0: as the machine has */

/* An environment whose memory belongs to `context`; interrupts and kernels as the settings say. */
TnpEnv		posterior_env(MemoryContext context);

/*
 * The environment of a model that all sessions share: what it keeps lies in the arena, what it needs for a call in this process's own memory.
 */
TnpEnv		posterior_shared_env(void);

/* TNP_NO_MEMORY, with its description. */
TnpStatus	posterior_no_memory(TnpError *error);

/* SQLSTATE of the last POSTERIOR_FAULT. */
extern int	posterior_fault_sqlstate;

/* Memory of this process that lasts until it is freed; NULL if there is none. */
void	   *posterior_scratch_alloc(size_t size);

/* Whether a cancel or the end of the process is asked for and may be heeded now. */
bool		posterior_interrupted(void);

/* The engine's detail as a sentence: capital letter, full stop. */
const char *posterior_sentence(const char *detail);

/*
 * Raise the engine's failure as an error of the right class. what names the operation for the CONTEXT-free message, e.g. the model's name. Never
 * returns; a pending cancel is raised as such.
 */
pg_noreturn extern void posterior_raise(const TnpError *error, const char *model);

#endif							/* POSTERIOR_BRIDGE_H */
