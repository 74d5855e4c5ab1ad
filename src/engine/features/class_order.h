/*
 * class_order.h: the order in which a network sees classes (docs/model-format.md section 3, "Order
 * of classes").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CLASS_ORDER_H
#define TNP_CLASS_ORDER_H

#include "engine/features/statistics.h"

/* Put the classes of the n0 rows in order; y [n0] receives their places. */
TnpStatus	tnp_class_order_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats,
								  double *y, TnpError *error);

/* params [n]: probabilities [K] of places become those of the caller's classes. */
void		tnp_class_order_answer(const TnpStats *stats, double *params);

#endif							/* TNP_CLASS_ORDER_H */
