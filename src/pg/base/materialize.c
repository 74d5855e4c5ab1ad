/*
 * materialize.c: results of set-returning functions in a tuplestore, which spills to disk beyond
 * work_mem.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/materialize.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/regproc.h"
#include "utils/tuplestore.h"

ReturnSetInfo *
posterior_materialize(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext old;
	TupleDesc	desc;

	/* in an earlier version of the extension some of these functions returned one row */
	if (!fcinfo->flinfo->fn_retset)
		ereport(
			ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the functions of extension \"pg_posterior\" are older than its library"),
			 errdetail(
				 "Function %s of this database returns one row, that of the library a set of rows.",
				 format_procedure(fcinfo->flinfo->fn_oid)),
			 errhint("Run ALTER EXTENSION pg_posterior UPDATE.")));
	if (result == NULL || !IsA(result, ReturnSetInfo) || !(result->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	old = MemoryContextSwitchTo(result->econtext->ecxt_per_query_memory);
	result->setDesc = CreateTupleDescCopy(desc);
	result->setResult = tuplestore_begin_heap((result->allowedModes & SFRM_Materialize_Random) != 0,
											  false, work_mem);
	result->returnMode = SFRM_Materialize;
	MemoryContextSwitchTo(old);
	return result;
}
