/*
 * series.h: a series of values, as smoothing and random walks read it, and which of them are far
 * from all others.
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

/* What else is known of the steps: column c of step t is x[t * pitch + c], NaN where it is not. */
typedef struct TnpStepColumns
{
	const double *x;
	int			n,				/* columns, of `pitch` that lie beside each other */
				pitch;
} TnpStepColumns;

/*
 * The values y [n] that forecasts are made from, into near [n]: NaN in place of those that are far
 * from all others, by themselves or from the values around them, as a model with the option
 * target.far says it. Several that end the series on one side are where it is now, and stay; so do
 * those that a column foretells.
 */
TnpStatus	tnp_series_near(const TnpModel *model, const double *y, int n,
							const TnpStepColumns *columns, double *near, TnpError *error);

#endif							/* TNP_SERIES_H */
