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
/* One that is certain may be behind by this: outside it knows more than a process does. */
#define TNP_LINE_BEHIND 0.3
/*
 * One that says this much, and half the log of the rows, is as good as exact, to some ten-
 * thousandths of a deviation: inside a process may say more of it, and knows less.
 */
#define TNP_LINE_EXACT 4.0
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
