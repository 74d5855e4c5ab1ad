/*
 * regowner.c: type posterior.regowner: input and output.
 *
 * It is a regrole that can be restored where the role is missing, as by pg_restore --no-owner: then
 * the restoring role is the owner, where regrole would fail the restore of all definitions.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/compat.h"

#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

PG_FUNCTION_INFO_V1(posterior_regowner_in);
Datum
posterior_regowner_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0),
			   *rest = pstrdup(text);
	List	   *names = NIL;
	Oid			role = InvalidOid;

	/* what is no name, "-", is the owner of a context whose role had been dropped */
	if (SplitIdentifierString(rest, '.', &names) && list_length(names) == 1)
		role = get_role_oid(linitial(names), true);
	if (OidIsValid(role))
		PG_RETURN_OID(role);
	ereport(WARNING,
			(errmsg("role \"%s\" does not exist", text),
			 errdetail("Its named context belongs to %s.", GetUserNameFromId(GetUserId(), false))));
	PG_RETURN_OID(GetUserId());
}

PG_FUNCTION_INFO_V1(posterior_regowner_out);
Datum
posterior_regowner_out(PG_FUNCTION_ARGS)
{
	char	   *name = GetUserNameFromId(PG_GETARG_OID(0), true);

	PG_RETURN_CSTRING(name != NULL ? (char *) quote_identifier(name) : pstrdup("-"));
}
