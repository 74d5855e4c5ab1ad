/*
 * pull.h: the mean of a mixture moved (docs/model-format.md section 8, "Trees of numbers").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PULL_H
#define TNP_PULL_H

/*
 * Change the weights of params [3, n] of a mixture so that its mean m becomes m + share (wanted -
 * m), or as near as weights may come; not at all where wanted is NaN. Means and deviations of the
 * components stay.
 */
void		tnp_mixture_pull(int n, double share, double wanted, double *params);

#endif							/* TNP_PULL_H */
