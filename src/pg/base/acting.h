/*
 * acting.h: acting with another role's rights, and the settings that go with it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ACTING_H
#define POSTERIOR_ACTING_H

#include "pg/base/compat.h"

/* What is restored when it ends. */
typedef struct PosteriorActing
{
	Oid			user;
	int			security;
	int			level;			/* of settings */
} PosteriorActing;

/*
 * Act as a role until posterior_act_end: no operation that lasts, a search path of pg_catalog
 * alone, and settings that end with it. An error ends it with the (sub)transaction.
 */
void		posterior_act_as(Oid role, PosteriorActing *before);
void		posterior_act_end(const PosteriorActing *before);

#endif							/* POSTERIOR_ACTING_H */
