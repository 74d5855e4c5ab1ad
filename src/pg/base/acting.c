/*
 * acting.c: switches to another role as VACUUM and REINDEX do.
 *
 * The role's functions may run: in index expressions, policies, casts. They inherit no search path,
 * because names that they leave unqualified may be another role's by it; and leave none, because
 * the next role's functions would inherit it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/acting.h"

#include "miscadmin.h"

void
posterior_act_as(Oid role, PosteriorActing *before)
{
	GetUserIdAndSecContext(&before->user, &before->security);
	SetUserIdAndSecContext(role, before->security | SECURITY_LOCAL_USERID_CHANGE
									 | SECURITY_RESTRICTED_OPERATION);
	before->level = NewGUCNestLevel();
	posterior_restrict_search_path();
}

void
posterior_act_end(const PosteriorActing *before)
{
	AtEOXact_GUC(false, before->level);
	SetUserIdAndSecContext(before->user, before->security);
}
