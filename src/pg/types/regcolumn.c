/*
 * regcolumn.c: type posterior.regcolumn: input and output. The text form is schema.relation.column
 * with the names of the moment, so renames are followed and dumps restore to whatever numbers the
 * columns then have. A name that means none is read as the invalid column.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/regcolumn.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

AttrNumber *
posterior_regcolumn_numbers(Datum array, int *n)
{
	Datum	   *elements;
	AttrNumber *numbers;

	deconstruct_array(DatumGetArrayTypeP(array), ARR_ELEMTYPE(DatumGetArrayTypeP(array)), 8,
					  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &elements, NULL, n);
	numbers = palloc(Max(*n, 1) * sizeof(AttrNumber));
	for (int i = 0; i < *n; i++)
		numbers[i] = posterior_regcolumn_number(elements[i]);
	return numbers;
}

char *
posterior_column_name(Oid relation, AttrNumber column)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relation), Int16GetDatum(column));
	Form_pg_attribute attribute;
	char	   *name = NULL;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	attribute = (Form_pg_attribute) GETSTRUCT(tuple);
	if (!attribute->attisdropped)
		name = pstrdup(NameStr(attribute->attname));
	ReleaseSysCache(tuple);
	return name;
}

PG_FUNCTION_INFO_V1(posterior_regcolumn_in);
Datum
posterior_regcolumn_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0),
			   *column;
	List	   *names;
	Oid			relation;
	AttrNumber	number;

	if (strcmp(text, "-") == 0)
		PG_RETURN_DATUM(posterior_regcolumn_datum(InvalidOid, 0));
	names = textToQualifiedNameList(cstring_to_text(text));
	if (list_length(names) < 2)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("invalid name of a column: \"%s\"", text),
				 errhint("Write schema.table.column.")));
	column = strVal(llast(names));
	names = list_truncate(names, list_length(names) - 1);
	/*
	 * an error here would fail the restore of all definitions; that the relation is missing is said
	 * by posterior.regrelation
	 */
	relation = RangeVarGetRelid(makeRangeVarFromNameList(names), NoLock, true);
	if (!OidIsValid(relation))
		PG_RETURN_DATUM(posterior_regcolumn_datum(InvalidOid, 0));
	number = get_attnum(relation, column);
	if (number <= 0)
	{
		ereport(WARNING, (errmsg("column \"%s\" of relation \"%s\" does not exist", column,
								 get_rel_name(relation)),
						  errdetail("A named context that uses it cannot be used."),
						  errhint("Give the context other columns by posterior.alter_context, or "
								  "drop it by posterior.drop_context.")));
		PG_RETURN_DATUM(posterior_regcolumn_datum(InvalidOid, 0));
	}
	PG_RETURN_DATUM(posterior_regcolumn_datum(relation, number));
}

PG_FUNCTION_INFO_V1(posterior_regcolumn_out);
Datum
posterior_regcolumn_out(PG_FUNCTION_ARGS)
{
	Oid			relation = posterior_regcolumn_relation(PG_GETARG_DATUM(0));
	AttrNumber	number = posterior_regcolumn_number(PG_GETARG_DATUM(0));
	char	   *name = get_rel_name(relation),
			   *column = name != NULL ? posterior_column_name(relation, number) : NULL;

	if (column == NULL)
		PG_RETURN_CSTRING(pstrdup("-"));
	PG_RETURN_CSTRING(psprintf(
		"%s.%s", quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), name),
		quote_identifier(column)));
}

/* The column's name alone, for views. */
PG_FUNCTION_INFO_V1(posterior_regcolumn_name);
Datum
posterior_regcolumn_name(PG_FUNCTION_ARGS)
{
	char *column = posterior_column_name(posterior_regcolumn_relation(PG_GETARG_DATUM(0)),
										 posterior_regcolumn_number(PG_GETARG_DATUM(0)));

	if (column == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(column));
}
