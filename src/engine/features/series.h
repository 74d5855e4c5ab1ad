/*
 * series.h: a series of values, as smoothing and random walks read it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SERIES_H
#define TNP_SERIES_H

#include "engine/tnp.h"

/* A series in steps of equal length. */
typedef struct TnpSeries
{
	const double *y;			/* [n], NaN where there is no value */
	int			n;
	int			season;			/* steps of a cycle; 1: none */
	int			until;			/* parameters are chosen by the errors of the first `until` steps */
} TnpSeries;

#endif							/* TNP_SERIES_H */
