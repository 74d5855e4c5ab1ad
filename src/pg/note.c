/*
 * note.c: writers of tables with named contexts tell the tables' rings: triggers, transaction callbacks and a hook for changes of the tables themselves.
 *
 * Nothing here decides what is visible. A transaction says that it writes before its commit can be seen; before it commits it may add that it only
 * inserted a few rows, and where they lie. Whatever is not sure is "other", which makes readers read.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "note.h"

#include "shared.h"
#include "worker.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* What this transaction remembers of a table that it writes. */
typedef struct Note
{
	struct Note *next;
	Oid			relation;
	uint64		generation;		/* of the ring that it has entered, or 0 */
	bool		other;
	Oid			file;
	int			n;
	ItemPointerData places[POSTERIOR_TUPLES];
	TransactionId xmins[POSTERIOR_TUPLES];
} Note;

static Note *notes = NULL;		/* in TopTransactionContext */
static object_access_hook_type next_hook = NULL;

static Note *
find_note(Oid relation)
{
	Note	   *note;

	for (note = notes; note != NULL; note = note->next)
		if (note->relation == relation)
			return note;
	note = MemoryContextAllocZero(TopTransactionContext, sizeof(Note));
	note->relation = relation;
	note->next = notes;
	notes = note;
	return note;
}

/* Enter the ring of a table, once. What was written before there was a ring is not noted. */
static Note *
enter(Oid relation)
{
	Note	   *note;

	posterior_shared_attach();
	note = find_note(relation);
	if (note->generation == 0)
	{
		note->generation = posterior_ring_enter(relation, false);
		if (note->generation == 0)
			note->other = true;
	}
	return note;
}

static void
check_trigger(FunctionCallInfo fcinfo)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("not called by a trigger"),
				 errhint("posterior.create_context makes the triggers of a table.")));
}

/* AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE, for each statement */
PG_FUNCTION_INFO_V1(posterior_note_statement);
Datum
posterior_note_statement(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	check_trigger(fcinfo);
	/* without an xid nothing has been written */
	if (posterior_is_shared && TransactionIdIsValid(GetTopTransactionIdIfAny()))
	{
#ifndef POSTERIOR_MUTANT_1
		Note	   *note = enter(RelationGetRelid(data->tg_relation));

#ifndef POSTERIOR_MUTANT_11
		if (!TRIGGER_FIRED_BY_INSERT(data->tg_event))
			note->other = true;
#endif
#else
		posterior_shared_attach();
		find_note(RelationGetRelid(data->tg_relation))->other = true;
#endif
	}
	return PointerGetDatum(NULL);
}

/* AFTER UPDATE OR DELETE, for each row, when an apply worker writes */
PG_FUNCTION_INFO_V1(posterior_note_change);
Datum
posterior_note_change(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	check_trigger(fcinfo);
	if (posterior_is_shared)
		enter(RelationGetRelid(data->tg_relation))->other = true;
	return PointerGetDatum(NULL);
}

/* AFTER INSERT, for each row */
PG_FUNCTION_INFO_V1(posterior_note_insert);
Datum
posterior_note_insert(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	Note	   *note;
	Oid			file;

	check_trigger(fcinfo);
	if (!posterior_is_shared)
		return PointerGetDatum(NULL);
	note = enter(RelationGetRelid(data->tg_relation));
	if (note->other)
		return PointerGetDatum(NULL);
	file = posterior_file_number(data->tg_relation);
	if (note->n == POSTERIOR_TUPLES || (note->n > 0 && note->file != file) || !TRIGGER_FIRED_BY_INSERT(data->tg_event))
	{
		note->other = true;
		return PointerGetDatum(NULL);
	}
	note->file = file;
	note->places[note->n] = data->tg_trigtuple->t_self;
	note->xmins[note->n++] = HeapTupleHeaderGetRawXmin(data->tg_trigtuple->t_data);
	return PointerGetDatum(NULL);
}

/* ---- the end of a transaction -------------------------------------------------------------------------------------- */

static void
at_transaction_end(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			for (Note *note = notes; note != NULL; note = note->next)
				if (!note->other && note->generation != 0)
					posterior_ring_inserted(note->relation, note->generation, note->file, note->n, note->places, note->xmins);
			break;
		case XACT_EVENT_COMMIT:
#ifdef POSTERIOR_MUTANT_1
			for (Note *note = notes; note != NULL; note = note->next)
				posterior_ring_enter(note->relation, false);
#endif
			for (Note *note = notes; note != NULL; note = note->next)
				if (posterior_ring_mark_dirty(note->relation))
					posterior_worker_wake();
			/* FALLTHROUGH */
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			notes = NULL;
			break;
		default:
			break;
	}
}

/* Rows of a subtransaction that was rolled back are noted and not there: rather read. */
static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		for (Note *note = notes; note != NULL; note = note->next)
			if (note->n > 0)
				note->other = true;
}

/* ---- changes of tables and triggers -------------------------------------------------------------------------------- */

static void
at_object_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (next_hook)
		next_hook(access, class, object, sub, arg);
#ifdef POSTERIOR_MUTANT_4
	return;
#endif
	if ((access != OAT_POST_CREATE && access != OAT_POST_ALTER && access != OAT_DROP && access != OAT_TRUNCATE)
		|| (class != RelationRelationId && class != TriggerRelationId && class != InheritsRelationId)
		|| !OidIsValid(MyDatabaseId) || !IsTransactionState() || RecoveryInProgress() || IsInParallelMode())
		return;
	posterior_shared_attach();
	/* whose trigger it is cannot always be seen yet: tell all tables */
	if (class == TriggerRelationId)
		posterior_ring_enter_all();
	else
		posterior_ring_enter(object, true);
}

void
posterior_note_register(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_end, NULL);
	next_hook = object_access_hook;
	object_access_hook = at_object_access;
}
