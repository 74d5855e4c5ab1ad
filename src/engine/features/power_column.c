/*
 * power_column.c: the scaling "power" of a column (docs/families.md, "The set encoder"; Hassan et
 * al. 2025, appendix D.4).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/power_column.h"

#include <math.h>

#include "engine/features/power.h"

#define CUT 100.0				/* standard deviations beyond which numbers are cut off */
#define LEAST_SD 1e-6			/* added to a standard deviation */
#define NO_VARIANCE 1e-20		/* below it nothing is left that could be made normal */

static double
standardise(const TnpColumn *c, double value)
{
	double		sd = c->sd + LEAST_SD,
				z = (value - c->mean) / sd;

	/* the difference alone may have no room */
	if (!isfinite(z))
		z = value / sd - c->mean / sd;
	return fmin(fmax(z, -CUT), CUT);
}

/* From a standardised number on; ones beyond those of the fit count as the nearest of these. */
static double
make_normal(const TnpPowerScale *p, double z)
{
	z = tnp_power_transform(fmin(fmax(z, p->least), p->largest), p->power);
	return (z - p->mean) / p->sd;
}

void
tnp_power_column_fit(TnpColumn *c, int64_t n, double *x)
{
	TnpPowerScale *p = &c->power;
	TnpSampleMoments m;

	*p = (TnpPowerScale) {.least = INFINITY, .largest = -INFINITY, .power = 1, .sd = 1};
	if (c->constant)
		return;
	for (int64_t i = 0; i < n; i++)
	{
		x[i] = standardise(c, x[i]);
		p->least = fmin(p->least, x[i]);
		p->largest = fmax(p->largest, x[i]);
	}
	m = tnp_sample_of(n, x);
	if (m.variance >= NO_VARIANCE)
		p->power = tnp_power_fit(n, x);
	for (int64_t i = 0; i < n; i++)
		x[i] = tnp_power_transform(x[i], p->power);
	m = tnp_sample_of(n, x);
	p->mean = m.mean;
	p->sd = m.variance < NO_VARIANCE ? 1 : sqrt(m.variance);
	for (int64_t i = 0; i < n; i++)
		x[i] = (x[i] - p->mean) / p->sd;
	p->bounds = tnp_bounds_of(n, x);
}

double
tnp_power_column_scale(const TnpColumn *c, double value)
{
	return tnp_bound(&c->power.bounds, make_normal(&c->power, standardise(c, value)));
}
