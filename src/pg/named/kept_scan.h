/*
 * kept_scan.h: adds up the rows of a named context, in parallel where the planner finds that worth
 * while.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_KEPT_SCAN_H
#define POSTERIOR_KEPT_SCAN_H

#include "pg/models/model_cache.h"
#include "pg/named/definition.h"

/*
 * The sums of all rows that the active snapshot shows, under the definition's basis, allocated; the
 * same bits however they are read. Others can watch.
 */
TnpSums    *posterior_kept_scan(const PosteriorModel *model, const PosteriorNamed *named);

/* The aggregate has taken so many rows more in this process: posterior.stat_progress shows it. */
void		posterior_kept_scan_taken(int64 rows);

#endif							/* POSTERIOR_KEPT_SCAN_H */
