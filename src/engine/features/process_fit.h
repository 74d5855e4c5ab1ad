/*
 * process_fit.h: the weights of the axes and the noise of the process of the prefix.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PROCESS_FIT_H
#define TNP_PROCESS_FIT_H

#include "engine/features/statistics.h"

#define TNP_PROCESS_ROWS 256	/* that the process is fitted to and that carry it */

/*
 * theta [n_axes + 1]: the logs of the axes' weights and of the noise, in units of the process's
 * variance; share: of the correlation that is a mean over axes, 0 of a product alone.
 */
TnpStatus	tnp_process_climb(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
							  double *theta, double *share, TnpError *error);

#endif							/* TNP_PROCESS_FIT_H */
