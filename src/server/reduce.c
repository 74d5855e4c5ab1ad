/*
 * reduce.c: what is left of a distribution when a mean, a standard deviation, quantiles or a log
 * density are all that is wanted of it. Sessions and the server's cpu device use it alike, so their
 * answers are the same bits; a GPU has kernels of its own for it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server/protocol.h"

#include <math.h>

double *
tnp_reduce_answers(const TnpRequest *r, TnpDistributionKind kind, int components, int64_t first,
				   int64_t n, const double *params, double *to)
{
	int			size = tnp_distribution_size(kind, components);

	for (int64_t i = 0; i < n; i++)
	{
		TnpDistribution d = {kind, components, params + i * size};

		if ((r->reductions & TNP_REDUCE_MEAN) != 0)
			*to++ = tnp_mean(&d);
		if ((r->reductions & TNP_REDUCE_SD) != 0)
			*to++ = sqrt(tnp_variance(&d));
		if ((r->reductions & TNP_REDUCE_QUANTILES) != 0)
			for (int l = 0; l < r->n_levels; l++)
				*to++ = tnp_quantile(&d, r->levels[l]);
		if ((r->reductions & TNP_REDUCE_LOG_DENSITY) != 0)
			*to++ = tnp_log_pdf(&d, r->queries.y[first + i]);
	}
	return to;
}
