/*
 * process_missed.c: a shift is one more regressor of the process, l, 1 of rows that lack the cell
 * and 0 of others. Its generalised least squares estimate is b / a with a = l'C^-1 l and
 * b = l'C^-1 y, C the covariance of the prefix by the process (Rasmussen & Williams 2006, eq. 2.42
 * of one basis function without a prior). The features of the process make both from sums over the
 * rows of l alone.
 *
 * The process explains a shift that it does not know by weights and noise that hold rows without
 * the cell far apart, so that C makes them less sure than they are. How far they really are from
 * what is said of them without their own targets, once that is shifted, corrects its scale there.
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
				n = p->n_features;

	*missed = (TnpMissed) {slots, n, NULL, NULL, NULL, {false}};
	for (int s = 0; s < slots; s++)
		missed->wanted[s] = tnp_column_is_lent(stats, stats->slot[s])
			&& tnp_slot_column(stats, s)->count[TNP_MISSING_BIN] > 0;
	missed->features = tnp_alloc_zero(env, (size_t) slots * (n + 6) + 1, sizeof(double));
	if (missed->features == NULL)
		return false;
	missed->sums = missed->features + (size_t) slots * n;
	missed->apart = missed->sums + 2 * slots;
	return true;
}

/* Whether a row x is one of those that count for slot s. */
static bool
lacks_slot(const TnpMissed *missed, const TnpStats *stats, int s, const double *x)
{
	return missed->wanted[s]
		&& isnan(tnp_column_value(tnp_slot_column(stats, s), tnp_slot_cell(stats, s, x)));
}

void
tnp_missed_add(TnpMissed *missed, const TnpStats *stats, const double *x, const double *features,
			   double weight, double y)
{
	for (int s = 0; s < missed->n_slots; s++)
	{
		double	   *own = missed->features + (size_t) s * missed->n;

		if (!lacks_slot(missed, stats, s, x))
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
tnp_missed_differ(TnpMissed *missed, const TnpStats *stats, const double *x, double difference,
				  double weight)
{
	for (int s = 0; s < missed->n_slots; s++)
	{
		double	   *apart = missed->apart + 4 * s,
					from;

		if (!lacks_slot(missed, stats, s, x))
			continue;
		from = difference - apart[2];
		/* from the mean so far, as a sum of squares has no digits left where weights are large */
		apart[0]++;
		apart[1] += weight;
		apart[2] += weight / apart[1] * from;
		apart[3] += weight * from * (difference - apart[2]);
	}
}

void
tnp_missed_correct(const TnpMissed *missed, TnpProcess *p)
{
	for (int s = 0; s < missed->n_slots; s++)
	{
		const double *apart = missed->apart + 4 * s;

		if (!missed->wanted[s])
			continue;
		/* one square of the size that is expected beforehand, so that few rows say little */
		p->missed[2 * s] *= apart[0] / (1 + apart[3]);
		p->missed[2 * s + 1] *= apart[0] / (1 + apart[3]);
	}
}

void
tnp_missed_free(const TnpEnv *env, TnpMissed *missed)
{
	tnp_free(env, missed->features);
	missed->features = missed->sums = missed->apart = NULL;
}
