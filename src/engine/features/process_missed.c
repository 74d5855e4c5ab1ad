/*
 * process_missed.c: a shift is one more regressor of the process, l, 1 of rows that lack the cell
 * and 0 of others. Its generalised least squares estimate is b / a with a = l'C^-1 l and
 * b = l'C^-1 y, C the covariance of the prefix by the process (Rasmussen & Williams 2006, eq. 2.42
 * of one basis function without a prior). The features of the process make both from sums over the
 * rows of l alone.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/process_missed.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/upper.h"
#include "engine/features/column.h"
#include "engine/features/donors.h"

bool
tnp_missed_begin(const TnpEnv *env, const TnpStats *stats, const TnpProcess *p, TnpMissed *missed)
{
	int			slots = stats->n_slots,
				n = p->points.n;

	*missed = (TnpMissed) {slots, n, NULL, NULL, {false}};
	for (int s = 0; s < slots; s++)
		missed->wanted[s] = tnp_column_is_lent(stats, stats->slot[s])
			&& tnp_slot_column(stats, s)->count[TNP_MISSING_BIN] > 0;
	missed->features = tnp_alloc_zero(env, (size_t) slots * (n + 2) + 1, sizeof(double));
	if (missed->features == NULL)
		return false;
	missed->sums = missed->features + (size_t) slots * n;
	return true;
}

void
tnp_missed_add(TnpMissed *missed, const TnpStats *stats, const double *x, const double *features,
			   double weight, double y)
{
	for (int s = 0; s < missed->n_slots; s++)
	{
		double	   *own = missed->features + (size_t) s * missed->n;

		if (!missed->wanted[s] || !isnan(tnp_column_value(tnp_slot_column(stats, s),
														  tnp_slot_cell(stats, s, x))))
			continue;
		for (int j = 0; j < missed->n; j++)
			own[j] += weight * features[j];
		missed->sums[2 * s] += weight;
		missed->sums[2 * s + 1] += weight * y;
	}
}

void
tnp_missed_end(TnpMissed *missed, TnpProcess *p)
{
	for (int s = 0; s < missed->n_slots; s++)
	{
		double	   *own = missed->features + (size_t) s * missed->n,
					rest;

		if (!missed->wanted[s])
			continue;
		rest = missed->sums[2 * s + 1] - tnp_dot(missed->n, own, p->coefficients);
		tnp_upper_solve(p->outer, missed->n, 1, own);
		p->missed[2 * s] = fmax(missed->sums[2 * s] - tnp_dot(missed->n, own, own), 0)
			/ p->variance;
		p->missed[2 * s + 1] = rest / p->variance;
	}
}

void
tnp_missed_free(const TnpEnv *env, TnpMissed *missed)
{
	tnp_free(env, missed->features);
	missed->features = missed->sums = NULL;
}
