/*
 * kept_plans.h: plans of queries that a session keeps.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_KEPT_PLANS_H
#define POSTERIOR_KEPT_PLANS_H

#include "pg/base/compat.h"

#include "executor/spi.h"

/*
 * As SPI_execute_plan and SPI_cursor_open for reading, with a plan of this text from a few that the
 * session keeps; options are those of SPI_prepare_cursor. SPI must be connected.
 */
int			posterior_plan_execute(const char *query, int n, Oid *types, int options,
								   Datum *values, long limit);
Portal		posterior_plan_open(const char *query, int n, Oid *types, Datum *values);

#endif							/* POSTERIOR_KEPT_PLANS_H */
