/*
 * relations.c: what the catalogs say of the relation of a named context.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/relations.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

Oid
posterior_relation_owner(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	return owner;
}

bool
posterior_relation_is_owned(Oid relation)
{
	return has_privs_of_role(GetUserId(), posterior_relation_owner(relation));
}

char *
posterior_relation_name(Oid relation)
{
	char	   *name = get_rel_name(relation);

	if (name == NULL)
		return NULL;
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), name);
}

pg_noreturn void
posterior_no_relation(const char *context)
{
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
					errmsg("the relation of context \"%s\" does not exist any more", context),
					errdetail("It was dropped, or was not there when the context was restored."),
					errhint("Drop the context by posterior.drop_context, and create it anew when "
							"there is a relation for it.")));
}
