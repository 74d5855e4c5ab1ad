/*
 * bridge.h: what the engine's callbacks and status codes are to PostgreSQL: memory, interrupts,
 * errors.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_BRIDGE_H
#define POSTERIOR_BRIDGE_H

#include "pg/base/compat.h"

#include "engine/tnp.h"

/* A device or its server has failed, not the request. Beyond the engine's own statuses. */
#define POSTERIOR_FAULT ((TnpStatus) 100)

/* SQLSTATE of the last POSTERIOR_FAULT. */
extern int	posterior_fault_sqlstate;

/* TNP_NO_MEMORY, with its description. */
TnpStatus	posterior_no_memory(TnpError *error);

/* Raise 53200: out of memory. */
pg_noreturn extern void posterior_raise_no_memory(void);

/* Memory of a context of any size that PostgreSQL allows; NULL where there is none. */
void	   *posterior_alloc_or_null(MemoryContext context, size_t size);

/* Memory of this process that lasts until it is freed by pfree; NULL where there is none. */
void	   *posterior_scratch_alloc(size_t size);

/* Whether a cancel or the end of the process is requested and may be heeded now. */
bool		posterior_interrupted(void);

/* The engine's detail as a sentence: capital letter, full stop. */
const char *posterior_sentence(const char *detail);

/*
 * Raise the engine's failure as an error of the right class. `model`, or NULL, is the name that the
 * DETAIL gives. Never returns; a pending cancel is raised as such.
 */
pg_noreturn extern void posterior_raise(const TnpError *error, const char *model);

#endif							/* POSTERIOR_BRIDGE_H */
