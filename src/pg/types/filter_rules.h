/*
 * filter_rules.h: what may be in a row filter.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_FILTER_RULES_H
#define POSTERIOR_FILTER_RULES_H

#include "pg/base/compat.h"

#include "nodes/nodes.h"

/* Raise: `condition` is no filter, for the reason in `detail`. */
void		posterior_filter_refuse(const char *condition, const char *detail);

/*
 * Raise if a type that a raw expression names is none of the server's own: the analysis of an
 * expression already reads its constants. A tree walker; false. `shown`, const char *, is the
 * condition for errors.
 */
bool		posterior_filter_check_types(Node *node, void *shown);

/*
 * Raise unless an analysed expression is made of the row and of what is built in. A tree walker;
 * false.
 */
bool		posterior_filter_check_parts(Node *node, void *shown);

/*
 * The type of the value that a node makes, if it is none of the server's own; else 0. Those of a
 * column have been made already, of whatever type.
 */
Oid			posterior_type_is_foreign(Node *node);

#endif							/* POSTERIOR_FILTER_RULES_H */
