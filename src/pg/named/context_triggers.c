/*
 * context_triggers.c: the triggers that note writes to the table of a named context. All contexts
 * of a table share them.
 *
 * They are ENABLE ALWAYS, so that they fire for replicated writes too; the row trigger for changes
 * fires for replication only, because an apply worker fires no statement triggers. An INSERT fires
 * the row trigger only: a second trigger would note nothing more, and would cost a small INSERT as
 * much again.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/context_triggers.h"
#include "pg/named/relations.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/uuid.h"

/* Run a statement as the caller. */
static void
sql_execute(const char *statement)
{
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (SPI_execute(statement, false, 0) < 0)
		elog(ERROR, "could not execute \"%s\"", statement);
	SPI_finish();
}

bool
posterior_can_be_maintained(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Form_pg_class c;
	bool		can;

	if (!HeapTupleIsValid(tuple))
		return false;
	c = (Form_pg_class) GETSTRUCT(tuple);
	can = c->relkind == RELKIND_RELATION && !IsSystemClass(relation, c)
	   && c->relpersistence == RELPERSISTENCE_PERMANENT && !c->relispartition && !c->relhassubclass;
	ReleaseSysCache(tuple);
	return can && !has_superclass(relation);
}

static const struct
{
	const char *name,
			   *events,
			   *function,
			   *enable;
	char		how;
} triggers[] = {
	{"posterior_note_statement", "UPDATE OR DELETE OR TRUNCATE",
	 "STATEMENT EXECUTE FUNCTION posterior.note_statement()", "ALWAYS", TRIGGER_FIRES_ALWAYS},
	{"posterior_note_insert", "INSERT", "ROW EXECUTE FUNCTION posterior.note_insert()", "ALWAYS",
	 TRIGGER_FIRES_ALWAYS},
	{"posterior_note_change", "UPDATE OR DELETE", "ROW EXECUTE FUNCTION posterior.note_change()",
	 "REPLICA", TRIGGER_FIRES_ON_REPLICA},
};

/* How a trigger fires, or 0 when it is not there. */
static char
trigger_fires(Oid relation, const char *name)
{
	Relation	rel = table_open(relation, AccessShareLock);
	char		how = 0;

	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
		if (strcmp(rel->trigdesc->triggers[i].tgname, name) == 0)
			how = rel->trigdesc->triggers[i].tgenabled;
	table_close(rel, NoLock);
	return how;
}

void
posterior_make_triggers(Oid relation)
{
	char	   *name = posterior_relation_name(relation);

	/* they must not be dropped while a context relies on them */
	LockRelationOid(relation, ShareRowExclusiveLock);
	for (int i = 0; i < lengthof(triggers); i++)
	{
		char		how = trigger_fires(relation, triggers[i].name);

		if (how == 0)
			sql_execute(psprintf("CREATE TRIGGER %s AFTER %s ON %s FOR EACH %s", triggers[i].name,
								 triggers[i].events, name, triggers[i].function));
		if (how != triggers[i].how)
			sql_execute(psprintf("ALTER TABLE %s ENABLE %s TRIGGER %s", name, triggers[i].enable,
								 triggers[i].name));
	}
}

/*
 * Whether a context of the relation needs its triggers: one that is there now, whatever the
 * transaction's snapshot shows.
 */
static bool
triggers_are_needed(Oid relation)
{
	Oid			type = OIDOID;
	Datum		value = ObjectIdGetDatum(relation);
	PosteriorCaller caller;
	uint64		contexts;

	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	posterior_definitions_begin(&caller);
	if (SPI_execute_with_args("SELECT FROM " POSTERIOR_DEFINITIONS
							  " WHERE relation::pg_catalog.oid OPERATOR(pg_catalog.=) $1"
							  " AND maintain OPERATOR(pg_catalog.=) 'trigger'",
							  1, &type, &value, NULL, true, 1)
		!= SPI_OK_SELECT)
		elog(ERROR, "could not read " POSTERIOR_DEFINITIONS);
	posterior_definitions_end(&caller);
	contexts = SPI_processed;
	SPI_finish();
	PopActiveSnapshot();
	return contexts > 0;
}

void
posterior_drop_triggers(Oid relation)
{
	char	   *name = posterior_relation_name(relation);
	bool		any = false;

	if (name == NULL)
		return;
	for (int i = 0; i < lengthof(triggers); i++)
		any = any || trigger_fires(relation, triggers[i].name) != 0;
	if (!any)
		return;
	/*
	 * A session that makes a context meanwhile is waited for, and then seen. The lock is the one
	 * that DROP TRIGGER takes, if that is what it comes to: a stronger one taken later would
	 * deadlock with sessions that have read the table and now write it.
	 */
	LockRelationOid(relation,
					triggers_are_needed(relation) ? ShareRowExclusiveLock : AccessExclusiveLock);
	if (triggers_are_needed(relation))
		return;
	for (int i = 0; i < lengthof(triggers); i++)
		if (trigger_fires(relation, triggers[i].name) != 0)
			sql_execute(psprintf("DROP TRIGGER %s ON %s", triggers[i].name, name));
}

void
posterior_watch_follows(Oid relation, const char *name, const char *new_name)
{
	Oid			types[] = {REGCLASSOID, TEXTOID, TEXTOID};
	Datum		values[] = {ObjectIdGetDatum(relation), CStringGetTextDatum(name), (Datum) 0};
	char		nulls[] = {' ', ' ', 'n'};

	if (!posterior_definitions_extended())
		return;
	if (new_name != NULL)
	{
		values[2] = CStringGetTextDatum(new_name);
		nulls[2] = ' ';
	}
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (SPI_execute_with_args("SELECT posterior_internal.watch_follows($1, $2, $3)", 3, types,
							  values, nulls, false, 0)
		!= SPI_OK_SELECT)
		elog(ERROR, "could not call posterior_internal.watch_follows");
	SPI_finish();
}

/* ---- of contexts that keep sums -------------------------------------------------------------- */

/* The names of the triggers of an identity: for rows, and for TRUNCATE. */
static char *
note_name(const pg_uuid_t *kept, bool truncate)
{
	StringInfoData name;

	initStringInfo(&name);
	appendStringInfoString(&name, "posterior_keep_");
	for (int i = 0; i < UUID_LEN; i++)
		appendStringInfo(&name, "%02x", kept->data[i]);
	if (truncate)
		appendStringInfoString(&name, "_t");
	return name.data;
}

void
posterior_make_note_triggers(Oid relation, const pg_uuid_t *kept)
{
	char	   *name = posterior_relation_name(relation),
			   *argument = DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(kept)));

	LockRelationOid(relation, ShareRowExclusiveLock);
	for (int truncate = 0; truncate < 2; truncate++)
	{
		const char *trigger = note_name(kept, truncate);

		if (trigger_fires(relation, trigger) == 0)
			sql_execute(psprintf("CREATE TRIGGER %s AFTER %s ON %s FOR EACH %s EXECUTE FUNCTION "
								 "posterior.note_sums('%s')", trigger,
								 truncate ? "TRUNCATE" : "INSERT OR UPDATE OR DELETE", name,
								 truncate ? "STATEMENT" : "ROW", argument));
		sql_execute(psprintf("ALTER TABLE %s ENABLE ALWAYS TRIGGER %s", name, trigger));
	}
}

void
posterior_drop_note_triggers(Oid relation, const pg_uuid_t *kept)
{
	char	   *name = posterior_relation_name(relation);

	for (int truncate = 0; name != NULL && truncate < 2; truncate++)
		if (trigger_fires(relation, note_name(kept, truncate)) != 0)
			sql_execute(psprintf("DROP TRIGGER %s ON %s", note_name(kept, truncate), name));
}
