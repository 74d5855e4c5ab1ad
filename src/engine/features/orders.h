/*
 * orders.h: the views of a table that the estimators of an ensemble have.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_ORDERS_H
#define TNP_ORDERS_H

#include "engine/base/error.h"

#define TNP_MAX_ESTIMATORS TNP_MAX_VIEWS
#define TNP_MAX_ORDERED 2000	/* columns that can be put in order */

/* How the columns of an estimator are made normal. */
typedef enum TnpNormal { TNP_NORMAL_NONE, TNP_NORMAL_POWER, TNP_NORMALS } TnpNormal;

typedef struct TnpOrder
{
	TnpNormal	normal;
	int			shift;			/* class c is shown as (c - shift) mod K */
} TnpOrder;

/*
 * The first `wanted` estimators of a table of n columns and, in a classifier, K classes (else 0):
 * as TabICL's package has them for the seed 42. Orders of columns are rows of a random Latin
 * square, classes are shifted, every such pair is used with each way of normalising. One estimator
 * has the columns as they are. Returns how many there are: with few columns and classes fewer than
 * wanted; orders [wanted], column [wanted, n] say which column stands where. -1: no memory.
 */
int			tnp_orders(const TnpEnv *env, int n, int classes, int wanted, TnpOrder *orders,
					   int *column);

#endif							/* TNP_ORDERS_H */
