/*
 * process_line.h: a linear regression of the prefix in the place of its process
 * (docs/model-format.md section 5, "Line").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PROCESS_LINE_H
#define TNP_PROCESS_LINE_H

#include "engine/features/statistics.h"

/* A line must predict rows left out this much better than the process: nats a row. */
#define TNP_LINE_AHEAD 0.1
/* Or say this much of them: inside a process may know as much, but not far from the prefix. */
#define TNP_LINE_EXACT 5.0
/* Of the prefix's rows a line must leave so many free: fewer are near it by luck. */
#define TNP_LINE_FREE 5.0
/* Beyond this mean log density of rows left out a line is certain, and says the other for it. */
#define TNP_LINE_CERTAIN 3.0
#define TNP_LINE_SAYS_CERTAIN 8.0

/* Make `line` one of the rows' design: what its features are. Needs the slots of stats. */
TnpStatus	tnp_line_choose(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
							TnpProcess *line, TnpError *error);

/* The features [n_features] of a row of raw cells x [F]. */
void		tnp_line_features(const TnpModel *model, const TnpStats *stats, const TnpProcess *line,
							  const double *x, double *features);

#endif							/* TNP_PROCESS_LINE_H */
