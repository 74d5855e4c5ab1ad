/*
 * shared.h: attaching to shared memory, which every entry point does first.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_SHARED_H
#define POSTERIOR_SHARED_H

#include "pg/shmem/incarnation.h"
#include "pg/shmem/segment.h"

/*
 * Before anything else in a backend: attach to the segment, or make the session's own, and join the
 * life of the database, by which all that lies there is keyed. May raise; a second call is cheap.
 */
void		posterior_shared_attach(void);

#endif							/* POSTERIOR_SHARED_H */
