/*
 * watch.c: the triggers of watched tables.
 *
 * What they do with a row is PL/pgSQL. All rows of a statement are judged by the rows before it, so
 * one encoding answers for all of them; PL/pgSQL, whose call sites may outlive a statement and
 * whose exception blocks are subtransactions, would look for it anew for each row, which reads the
 * table. The executor keeps a trigger's FmgrInfo as long as the statement: the call site hangs
 * there, and the function below passes it on to what PL/pgSQL calls.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/sql/watch.h"

#include "commands/trigger.h"
#include "nodes/value.h"
#include "parser/parse_func.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

typedef struct Watch
{
	PosteriorCall *call;
	FmgrInfo	told;			/* what is done with a row */
} Watch;

static PosteriorCall *watching;

PosteriorCall *
posterior_watching(void)
{
	return watching;
}

/* The trigger's state for this statement. What it does with a row is called NAME_told. */
static Watch *
watch_of_statement(FmgrInfo *trigger)
{
	Watch	   *watch = trigger->fn_extra;

	if (watch == NULL)
	{
		char	   *name = psprintf("%s_told", get_func_name(trigger->fn_oid));
		List	   *qualified = list_make2(makeString("posterior_internal"), makeString(name));
		Oid			told = LookupFuncName(qualified, 0, NULL, false);

		watch = MemoryContextAllocZero(trigger->fn_mcxt, sizeof(Watch));
		fmgr_info_cxt(told, &watch->told, trigger->fn_mcxt);
		watch->call = posterior_call_make(trigger->fn_mcxt);
		watch->call->within = true;
		trigger->fn_extra = watch;
	}
	return watch;
}

/* What is done with the row of a trigger's call, its statement's call site being at hand. */
static Datum
watch_told(FunctionCallInfo fcinfo, Watch *watch)
{
	LOCAL_FCINFO(row, 0);
	TriggerData data = *(TriggerData *) fcinfo->context;
	Trigger		trigger = *data.tg_trigger;
	PosteriorCall *outer = watching;
	volatile Datum result = (Datum) 0;

	/*
	 * PL/pgSQL compiles a function for each trigger, and keeps it when the trigger is gone; what it
	 * has to know is the table
	 */
	trigger.tgoid = RelationGetRelid(data.tg_relation);
	data.tg_trigger = &trigger;
	InitFunctionCallInfoData(*row, &watch->told, 0, InvalidOid, (Node *) &data, NULL);
	PG_TRY();
	{
		watching = watch->call;
		result = FunctionCallInvoke(row);
	}
	PG_FINALLY();
	{
		watching = outer;
	}
	PG_END_TRY();
	fcinfo->isnull = row->isnull;
	return result;
}

/* trigger watch_insert() and watch_record() */
PG_FUNCTION_INFO_V1(posterior_watch_row);
Datum
posterior_watch_row(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
						errmsg("a watch is a trigger"),
						errhint("posterior.watch makes it.")));
	return watch_told(fcinfo, watch_of_statement(fcinfo->flinfo));
}
