/*
 * write_tracker.c: writers of tables with named contexts tell the tables' writer logs: triggers,
 * transaction callbacks and a hook for changes of the tables themselves.
 *
 * Nothing here decides what is visible. Triggers note in the session's own memory what the
 * transaction does to a table; before the transaction commits or is prepared, so before anybody can
 * see what it did, it tells the writer log, once: that it only inserted a few rows, and where they
 * lie, or that it did something else. Whatever is not sure is "other", which makes readers read.
 * That a transaction has written itself is told by its lock; what it has inserted, by its notes.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/visibility/write_tracker.h"

#include "pg/base/guard.h"
#include "pg/shmem/shared.h"

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
#include "utils/memutils.h"
#include "utils/rel.h"

/* What this transaction remembers of a table that it writes. */
typedef struct TableWrites
{
	struct TableWrites *next;
	Oid			relation;
	bool		other;			/* it did more than insert these rows */
	bool		uncounted;		/* the server has not counted them all */
	int			log;			/* that was told, or -1 */
	Oid			file;			/* that the rows lie in */
	/* more than a writer log remembers, for the transaction itself */
	PosteriorNewRows rows;
} TableWrites;

/* the first is `first`, others are in TopTransactionContext */
static TableWrites *all_writes = NULL;
static TableWrites first;
static bool told = false;		/* the transaction is about to commit, and has told what it did */
static object_access_hook_type next_hook = NULL;

/* The note of a table that this transaction has just written. */
static TableWrites *
writes_find(Oid relation)
{
	TableWrites	   *writes;
	int			log = -1;

	/*
	 * another extension writes while the transaction commits, after this one has told: tell at once
	 */
	if (GUARD(LATE_WRITES, told))
		log = posterior_writer_log_record(relation, NULL);
	for (writes = all_writes; writes != NULL && writes->relation != relation; writes = writes->next)
		;
	if (writes == NULL)
	{
		writes = all_writes == NULL
				   ? &first
				   : MemoryContextAlloc(TopTransactionContext, sizeof(TableWrites));
		writes->relation = relation;
		writes->other = told;
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
	/* what they return would keep a row from being written, and there is no row to note yet */
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
	/* without an xid nothing has been written; of rows that were inserted the row trigger tells */
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
 * A trigger can ask before this one has noted the row, or the other rows of its statement; and a
 * function, while the statement that calls it goes on. So the notes are believed if they are as
 * many as the server has counted, which it does when it writes.
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

/* Tell the writer logs of all tables that were written what was done to them. */
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
	told = true;
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
			break;
		case XACT_EVENT_COMMIT:
			if (!GUARD(LOGGED_BEFORE_COMMIT, true))
			{
				/* other backends run now */
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
	/* whose trigger it is cannot always be seen yet: tell all tables */
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
