/*
 * write_tracker.c: what a session remembers of its writes, and when it enters them in writer logs.
 *
 * Nothing here decides what is visible. Triggers note in the session's own memory what the
 * transaction does to each table with a maintained context; before the transaction commits or is
 * prepared, so before any other session can see what it did, it enters each table's writer log
 * (writer_log.c), once: as one that only inserted these few rows, or as `other`. Whatever is
 * uncertain is `other`, which makes readers read; so an omission costs time, an entry that claims
 * too little would cost truth.
 *
 * Two questions that a session asks about itself are answered without the log: that it has written
 * a table shows in its RowExclusiveLock, and which rows it inserted in its notes
 * (posterior_write_tracker_inserted), which count only if they are as many as the server's
 * statistics of the transaction say.
 *
 * Callbacks, and what they may do.
 *   AFTER triggers     May raise. They take no lock and touch no shared memory, but for late
 *                      writes.
 *   PRE_COMMIT,        Before the commit record: may raise, which aborts. They enter the logs, with
 *   PRE_PREPARE        one lock per table.
 *   COMMIT             After the commit record: may not fail. Marks logs as dirty, wakes the
 *                      launcher, and forgets a dropped database.
 *   ABORT, PREPARE     Forget the notes. An aborted transaction stays in a log that it has entered;
 *                      readers find out that it aborted.
 *   ABORT_SUB          Noted rows may be gone: their tables become `other`.
 *   object access      Changes of tables and triggers enter at once, as `ddl`: triggers may be off
 *                      from then on.
 *
 * Late writes. Another extension may write in a PRE_COMMIT callback that runs after this one. Then
 * logs_entered is set, and the trigger enters the log at once, as `other`.
 *
 * Lifetimes. Notes live until the end of the transaction: the first in static memory, since most
 * transactions write one table, others in TopTransactionContext. A prepared transaction takes no
 * notes with it: it entered the logs before it was prepared.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/visibility/write_tracker.h"

#include "pg/base/guard.h"
#include "pg/shmem/shared.h"
#include "pg/visibility/maintenance_turns.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* What this transaction remembers of a table that it writes. */
typedef struct TableWrites
{
	struct TableWrites *next;
	Oid			relation;
	bool		other;			/* it did more than insert `rows` */
	bool		uncounted;		/* the server has not counted them all */
	int			log;			/* number of the log that it entered, or -1 */
	Oid			file;			/* of the rows */
	/* more than a writer log remembers, for the transaction itself */
	PosteriorNewRows rows;
} TableWrites;

/* the first is `first`, others are in TopTransactionContext */
static TableWrites *all_writes = NULL;
static TableWrites first;
/* the transaction is about to commit, and has entered the logs */
static bool logs_entered = false;
static object_access_hook_type next_hook = NULL;

/* The note of a table that this transaction is writing. */
static TableWrites *
writes_find(Oid relation)
{
	TableWrites	   *writes;
	int			log = -1;

	/* another extension writes while the transaction commits, after it has entered the logs */
	if (GUARD(LATE_WRITES, logs_entered))
		log = posterior_writer_log_record(relation, NULL);
	for (writes = all_writes; writes != NULL && writes->relation != relation; writes = writes->next)
		;
	if (writes == NULL)
	{
		writes = all_writes == NULL
				   ? &first
				   : MemoryContextAlloc(TopTransactionContext, sizeof(TableWrites));
		writes->relation = relation;
		writes->other = logs_entered;
		writes->uncounted = false;
		writes->log = -1;
		writes->rows.n = 0;
		writes->next = all_writes;
		all_writes = writes;
	}
	if (log >= 0)
		writes->log = log;
	return writes;
}

/*
 * Rows that this transaction has put into a table, as the server counts them; -1 if it does not, or
 * if rows were updated or deleted as well.
 */
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
trigger_check(FunctionCallInfo fcinfo, bool for_rows)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("not called by a trigger"),
				 errhint("posterior.create_context makes the triggers of a table.")));
	/* before the event the result would decide about the row, and there is no row to note yet */
	if (!TRIGGER_FIRED_AFTER(((TriggerData *) fcinfo->context)->tg_event))
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
						errmsg("trigger \"%s\" must fire AFTER the event",
							   ((TriggerData *) fcinfo->context)->tg_trigger->tgname),
						errhint("posterior.create_context makes the triggers of a table.")));
	if (for_rows && !TRIGGER_FIRED_FOR_ROW(((TriggerData *) fcinfo->context)->tg_event))
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
						errmsg("trigger \"%s\" must fire FOR EACH ROW",
							   ((TriggerData *) fcinfo->context)->tg_trigger->tgname),
						errhint("posterior.create_context makes the triggers of a table.")));
}

/* AFTER UPDATE OR DELETE OR TRUNCATE, for each statement */
PG_FUNCTION_INFO_V1(posterior_note_statement);
Datum
posterior_note_statement(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	trigger_check(fcinfo, false);
	/* without an xid nothing has been written; inserted rows are noted by the row trigger */
	if (posterior_is_shared && TransactionIdIsValid(GetTopTransactionIdIfAny())
		&& !TRIGGER_FIRED_BY_INSERT(data->tg_event))
	{
		TableWrites	   *writes = writes_find(RelationGetRelid(data->tg_relation));

		if (GUARD(UPDATES_NOTED, true))
			writes->other = true;
	}
	return PointerGetDatum(NULL);
}

/* AFTER UPDATE OR DELETE, for each row, when an apply worker writes */
PG_FUNCTION_INFO_V1(posterior_note_change);
Datum
posterior_note_change(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	trigger_check(fcinfo, true);
	if (posterior_is_shared)
		writes_find(RelationGetRelid(data->tg_relation))->other = true;
	return PointerGetDatum(NULL);
}

/* AFTER INSERT, for each row */
PG_FUNCTION_INFO_V1(posterior_note_insert);
Datum
posterior_note_insert(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	TableWrites	   *writes;
	PosteriorNewRows *rows;
	Oid			file;

	trigger_check(fcinfo, true);
	if (!posterior_is_shared)
		return PointerGetDatum(NULL);
	writes = writes_find(RelationGetRelid(data->tg_relation));
	if (writes->other)
		return PointerGetDatum(NULL);
	rows = &writes->rows;
	file = posterior_file_number(data->tg_relation);
	if (rows->n == lengthof(rows->places) || (rows->n > 0 && writes->file != file)
		|| !TRIGGER_FIRED_BY_INSERT(data->tg_event))
	{
		writes->other = true;
		return PointerGetDatum(NULL);
	}
	writes->file = file;
	rows->places[rows->n] = data->tg_trigtuple->t_self;
	rows->xmins[rows->n++] = HeapTupleHeaderGetRawXmin(data->tg_trigtuple->t_data);
	if (count_inserted(data->tg_relation) < rows->n)
		writes->uncounted = true;
	return PointerGetDatum(NULL);
}

/*
 * A trigger of the user may predict before the recording trigger has fired for the row, or for
 * other rows of the statement; and a function may, while the statement that calls it goes on. So
 * the notes count only if they are as many as the server has counted, which it does when it writes.
 */
bool
posterior_write_tracker_inserted(Relation relation, PosteriorNewRows *rows)
{
	TableWrites	   *writes = all_writes;

	while (writes != NULL && writes->relation != RelationGetRelid(relation))
		writes = writes->next;
	rows->n = 0;
	if (writes != NULL)
	{
		if (writes->other || writes->uncounted)
			return false;
		*rows = writes->rows;
	}
	if (GUARD(ROWS_COUNTED, count_inserted(relation) != rows->n))
		return false;
	return rows->n == 0 || writes->file == posterior_file_number(relation);
}

/* ---- the end of a transaction ---------------------------------------------------------------- */

/* Enter the writer logs of all tables that were written. */
static void
writes_record(void)
{
	for (TableWrites *writes = all_writes; writes != NULL; writes = writes->next)
	{
		PosteriorInserted rows = {.file = writes->file,.n = writes->rows.n};
		bool		few = !writes->other && rows.n <= POSTERIOR_TUPLES;

		if (few)
		{
			memcpy(rows.places, writes->rows.places, rows.n * sizeof(rows.places[0]));
			memcpy(rows.xmins, writes->rows.xmins, rows.n * sizeof(rows.xmins[0]));
		}
		writes->log = posterior_writer_log_record(writes->relation, few ? &rows : NULL);
	}
	logs_entered = true;
}

static void
at_transaction_end(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			if (GUARD(LOGGED_BEFORE_COMMIT, true))
				writes_record();
			else if (all_writes != NULL)
				posterior_shared_attach();	/* only the mutant: what may raise, before the commit */
			break;
		case XACT_EVENT_COMMIT:
			if (!GUARD(LOGGED_BEFORE_COMMIT, true))
			{
				/* let other backends run now */
				pg_usleep(all_writes != NULL ? 2000 : 0);
				writes_record();
			}
			for (TableWrites *writes = all_writes; writes != NULL; writes = writes->next)
				if (writes->log >= 0
					&& posterior_writer_log_mark_dirty(writes->relation, writes->log))
					posterior_wake_launcher();
			posterior_incarnation_at_end(true);
			/* FALLTHROUGH */
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			posterior_incarnation_at_end(false);
			all_writes = NULL;
			logs_entered = false;
			break;
		default:
			break;
	}
}

/* Rows of a subtransaction that was rolled back are noted, and gone. */
static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (GUARD(ROLLBACKS_NOTED, event == SUBXACT_EVENT_ABORT_SUB))
		for (TableWrites *writes = all_writes; writes != NULL; writes = writes->next)
			if (writes->rows.n > 0)
				writes->other = true;
}

/* ---- changes of tables and triggers ---------------------------------------------------------- */

static void
at_object_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (next_hook)
		next_hook(access, class, object, sub, arg);
	if (access == OAT_DROP && class == DatabaseRelationId)
	{
		posterior_shared_attach();
		posterior_incarnation_dropping(object);
	}
	if (!GUARD(DDL_LOGGED, true))
		return;
	if ((access != OAT_POST_CREATE && access != OAT_POST_ALTER && access != OAT_DROP
		 && access != OAT_TRUNCATE)
		|| (class != RelationRelationId && class != TriggerRelationId
			&& class != InheritsRelationId)
		|| !OidIsValid(MyDatabaseId) || !IsTransactionState() || RecoveryInProgress()
		|| IsInParallelMode())
		return;
	/* changes no row, and DROP INDEX CONCURRENTLY must have no xid, which an entry takes */
	if (access == OAT_DROP && class == RelationRelationId
		&& get_rel_relkind(object) == RELKIND_INDEX)
		return;
	/* the table of the trigger cannot always be looked up yet: enter all logs */
	if (class == TriggerRelationId)
		posterior_writer_log_record_all();
	else
		posterior_writer_log_record_ddl(object);
}

void
posterior_write_tracker_register(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_end, NULL);
	next_hook = object_access_hook;
	object_access_hook = at_object_access;
}
