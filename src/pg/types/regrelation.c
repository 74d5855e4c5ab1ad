/*
 * regrelation.c: type posterior.regrelation: input and output. It is a regclass that can be
 * restored whatever has become of the relation: a name that means none is read as none, "-", where
 * regclass would fail the restore of all definitions.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/compat.h"

#include "catalog/namespace.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

PG_FUNCTION_INFO_V1(posterior_regrelation_in);
Datum
posterior_regrelation_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	Oid			relation;

	if (strcmp(text, "-") == 0)
		PG_RETURN_OID(InvalidOid);
	relation = RangeVarGetRelid(
		makeRangeVarFromNameList(textToQualifiedNameList(cstring_to_text(text))), NoLock, true);
	if (!OidIsValid(relation))
		ereport(WARNING,
				(errmsg("relation \"%s\" does not exist", text),
				 errdetail("A named context that reads it cannot be used."),
				 errhint("Drop the context by posterior.drop_context.")));
	PG_RETURN_OID(relation);
}

PG_FUNCTION_INFO_V1(posterior_regrelation_out);
Datum
posterior_regrelation_out(PG_FUNCTION_ARGS)
{
	Oid			relation = PG_GETARG_OID(0);
	char	   *name = get_rel_name(relation);

	if (name == NULL)
		PG_RETURN_CSTRING(pstrdup("-"));
	PG_RETURN_CSTRING(
		quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), name));
}
