/*
 * note.c: writers of tables with named contexts tell the tables' rings: triggers, transaction callbacks and a hook for changes of the tables themselves.
 *
 * Nothing here decides what is visible. Triggers note in the session's own memory what the transaction does to a table; before the transaction commits or is
 * prepared, so before anybody can see what it did, it tells the ring, once: that it only inserted a few rows, and where they lie, or that it did something
 * else. Whatever is not sure is "other", which makes readers read. That a transaction has written itself is told by its lock; what it has inserted, by its notes.
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
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* What this transaction remembers of a table that it writes. */
typedef struct Note
{
	struct Note *next;
	Oid			relation;
	bool		other;			/* it did more than insert these rows */
	bool		uncounted;		/* the server has not counted them all */
	int			ring;			/* that was told, or -1 */
	Oid			file;			/* that the rows lie in */
	PosteriorNew rows;			/* more than a ring remembers, for the transaction itself */
} Note;

static Note *notes = NULL;		/* the first is `first`, others are in TopTransactionContext */
static Note first;
static bool told = false;		/* the transaction is about to commit, and has told what it did */
static object_access_hook_type next_hook = NULL;

/* The note of a table that this transaction has just written. */
static Note *
find_note(Oid relation)
{
	Note	   *note;
	int			ring = -1;

#ifndef POSTERIOR_MUTANT_28
	/* another extension writes while the transaction commits, after this one has told: tell at once */
	if (told)
		ring = posterior_ring_enter(relation, NULL);
#endif
	for (note = notes; note != NULL && note->relation != relation; note = note->next)
		;
	if (note == NULL)
	{
		note = notes == NULL ? &first : MemoryContextAlloc(TopTransactionContext, sizeof(Note));
		note->relation = relation;
		note->other = told;
		note->uncounted = false;
		note->ring = -1;
		note->rows.n = 0;
		note->next = notes;
		notes = note;
	}
	if (ring >= 0)
		note->ring = ring;
	return note;
}

/* Rows that this transaction has put into a table, as the server counts them; -1 if it does not, or if rows were updated or deleted as well. */
static int64
count_inserted(Relation relation)
{
	int64		n = 0;

	if (!posterior_is_counted(relation))
		return -1;
	for (const PgStat_TableXactStatus *s = relation->pgstat_info->trans; s != NULL; s = s->upper)
	{
		if (s->tuples_updated > 0 || s->tuples_deleted > 0)
			return -1;
		n += s->tuples_inserted;
	}
	return n;
}

static void
check_trigger(FunctionCallInfo fcinfo, bool for_rows)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("not called by a trigger"),
				 errhint("posterior.create_context makes the triggers of a table.")));
	/* what they return would keep a row from being written, and there is no row to note yet */
	if (!TRIGGER_FIRED_AFTER(((TriggerData *) fcinfo->context)->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" must fire AFTER the event", ((TriggerData *) fcinfo->context)->tg_trigger->tgname),
				 errhint("posterior.create_context makes the triggers of a table.")));
	if (for_rows && !TRIGGER_FIRED_FOR_ROW(((TriggerData *) fcinfo->context)->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" must fire FOR EACH ROW", ((TriggerData *) fcinfo->context)->tg_trigger->tgname),
				 errhint("posterior.create_context makes the triggers of a table.")));
}

/* AFTER UPDATE OR DELETE OR TRUNCATE, for each statement */
PG_FUNCTION_INFO_V1(posterior_note_statement);
Datum
posterior_note_statement(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	check_trigger(fcinfo, false);
	/* without an xid nothing has been written; of rows that were inserted the row trigger tells */
	if (posterior_is_shared && TransactionIdIsValid(GetTopTransactionIdIfAny()) && !TRIGGER_FIRED_BY_INSERT(data->tg_event))
	{
		Note	   *note = find_note(RelationGetRelid(data->tg_relation));

#ifndef POSTERIOR_MUTANT_11
		note->other = true;
#else
		(void) note;
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

	check_trigger(fcinfo, true);
	if (posterior_is_shared)
		find_note(RelationGetRelid(data->tg_relation))->other = true;
	return PointerGetDatum(NULL);
}

/* AFTER INSERT, for each row */
PG_FUNCTION_INFO_V1(posterior_note_insert);
Datum
posterior_note_insert(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	Note	   *note;
	PosteriorNew *rows;
	Oid			file;

	check_trigger(fcinfo, true);
	if (!posterior_is_shared)
		return PointerGetDatum(NULL);
	note = find_note(RelationGetRelid(data->tg_relation));
	if (note->other)
		return PointerGetDatum(NULL);
	rows = &note->rows;
	file = posterior_file_number(data->tg_relation);
	if (rows->n == lengthof(rows->places) || (rows->n > 0 && note->file != file) || !TRIGGER_FIRED_BY_INSERT(data->tg_event))
	{
		note->other = true;
		return PointerGetDatum(NULL);
	}
	note->file = file;
	rows->places[rows->n] = data->tg_trigtuple->t_self;
	rows->xmins[rows->n++] = HeapTupleHeaderGetRawXmin(data->tg_trigtuple->t_data);
	if (count_inserted(data->tg_relation) < rows->n)
		note->uncounted = true;
	return PointerGetDatum(NULL);
}

/*
 * A trigger can ask before this one has noted the row, or the other rows of its statement; and a function, while the statement that calls it goes on. So the notes are
 * believed if they are as many as the server has counted, which it does when it writes.
 */
bool
posterior_note_inserted(Relation relation, PosteriorNew *rows)
{
	Note	   *note = notes;

	while (note != NULL && note->relation != RelationGetRelid(relation))
		note = note->next;
	rows->n = 0;
	if (note != NULL)
	{
		if (note->other || note->uncounted)
			return false;
		*rows = note->rows;
	}
#ifndef POSTERIOR_MUTANT_29
	if (count_inserted(relation) != rows->n)
		return false;
#endif
	return rows->n == 0 || note->file == posterior_file_number(relation);
}

/* ---- the end of a transaction -------------------------------------------------------------------------------------- */

/* Tell the rings of all tables that were written what was done to them. */
static void
tell(void)
{
	if (notes != NULL)
		posterior_shared_attach();
	for (Note *note = notes; note != NULL; note = note->next)
	{
		PosteriorInserted rows = {.file = note->file,.n = note->rows.n};
		bool		few = !note->other && rows.n <= POSTERIOR_TUPLES;

		if (few)
		{
			memcpy(rows.places, note->rows.places, rows.n * sizeof(rows.places[0]));
			memcpy(rows.xmins, note->rows.xmins, rows.n * sizeof(rows.xmins[0]));
		}
		note->ring = posterior_ring_enter(note->relation, few ? &rows : NULL);
	}
	told = true;
}

static void
at_transaction_end(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
#ifndef POSTERIOR_MUTANT_1
			tell();
#endif
			break;
		case XACT_EVENT_COMMIT:
#ifdef POSTERIOR_MUTANT_1
			/* as if others ran now */
			pg_usleep(notes != NULL ? 2000 : 0);
			tell();
#endif
			for (Note *note = notes; note != NULL; note = note->next)
				if (note->ring >= 0 && posterior_ring_mark_dirty(note->relation, note->ring))
					posterior_worker_wake();
			/* FALLTHROUGH */
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			notes = NULL;
			told = false;
			break;
		default:
			break;
	}
}

/* Rows of a subtransaction that was rolled back are noted and not there: rather read. */
static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
#ifndef POSTERIOR_MUTANT_39
	if (event == SUBXACT_EVENT_ABORT_SUB)
		for (Note *note = notes; note != NULL; note = note->next)
			if (note->rows.n > 0)
				note->other = true;
#endif
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
		posterior_ring_enter_ddl(object);
}

void
posterior_note_register(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_end, NULL);
	next_hook = object_access_hook;
	object_access_hook = at_object_access;
}
