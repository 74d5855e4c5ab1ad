/*
 * launcher.h: the launcher of maintenance workers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_LAUNCHER_H
#define POSTERIOR_LAUNCHER_H

#include "postgres.h"

/* Called by _PG_init while libraries are preloaded: have the launcher started. */
void		posterior_launcher_register(void);

/* Entry point of its process. */
extern PGDLLEXPORT void posterior_launcher_main(Datum argument);

#endif							/* POSTERIOR_LAUNCHER_H */
