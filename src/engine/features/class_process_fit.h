/*
 * class_process_fit.h: the weights of the axes and the noise of the process of a classifier's
 * prefix, for class_process.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CLASS_PROCESS_FIT_H
#define TNP_CLASS_PROCESS_FIT_H

#include "engine/features/statistics.h"

/*
 * theta [n_axes + 1]: the logs of the axes' weights and of the noise, in units of the process's
 * variance.
 */
TnpStatus	tnp_class_process_climb(const TnpModel *model, const TnpRows *rows,
									const TnpStats *stats, const TnpClassProcess *process,
									double *theta, TnpError *error);

/* The targets [channels] of a row of class y. */
void		tnp_class_process_targets(const TnpClassProcess *process, int y, double *targets);

#endif							/* TNP_CLASS_PROCESS_FIT_H */
