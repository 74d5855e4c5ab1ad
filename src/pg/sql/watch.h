/*
 * watch.h: the triggers of watched tables.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_WATCH_H
#define POSTERIOR_WATCH_H

#include "pg/sql/call_site.h"

/* The call site of the statement whose trigger is firing, or NULL outside of triggers. */
PosteriorCall *posterior_watching(void);

#endif							/* POSTERIOR_WATCH_H */
