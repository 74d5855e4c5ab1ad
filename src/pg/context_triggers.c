/*
 * context_triggers.c: the triggers that tell who writes the table of a named context. All contexts of a table share them.
 *
 * They are ENABLE ALWAYS, so that replication feeds them too; the row trigger for changes fires for replication only, because an apply worker fires no
 * statement triggers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "context_ddl.h"

#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* Run a statement as the caller. */
static void
execute(const char *statement)
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
	can = c->relkind == RELKIND_RELATION && c->relpersistence == RELPERSISTENCE_PERMANENT && !c->relispartition && !c->relhassubclass;
	ReleaseSysCache(tuple);
	return can && !has_superclass(relation);
}

void
posterior_make_triggers(Oid relation)
{
	char	   *name = posterior_relation_name(relation);

	if (OidIsValid(get_trigger_oid(relation, "posterior_note_statement", true)))
		return;
	execute(psprintf("CREATE TRIGGER posterior_note_statement AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s"
					 " FOR EACH STATEMENT EXECUTE FUNCTION posterior.note_statement()", name));
	execute(psprintf("CREATE TRIGGER posterior_note_insert AFTER INSERT ON %s FOR EACH ROW EXECUTE FUNCTION posterior.note_insert()", name));
	execute(psprintf("CREATE TRIGGER posterior_note_change AFTER UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION posterior.note_change()", name));
	execute(psprintf("ALTER TABLE %s ENABLE ALWAYS TRIGGER posterior_note_statement, ENABLE ALWAYS TRIGGER posterior_note_insert,"
					 " ENABLE REPLICA TRIGGER posterior_note_change", name));
}

void
posterior_drop_triggers(Oid relation)
{
	char	   *name = posterior_relation_name(relation);
	Oid			type = OIDOID;
	Datum		value = ObjectIdGetDatum(relation);
	uint64		others;

	if (name == NULL || !OidIsValid(get_trigger_oid(relation, "posterior_note_statement", true)))
		return;
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (SPI_execute_with_args("SELECT FROM " POSTERIOR_DEFINITIONS " WHERE relation::pg_catalog.oid OPERATOR(pg_catalog.=) $1"
							  " AND maintain OPERATOR(pg_catalog.=) 'trigger'", 1, &type, &value, NULL, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read " POSTERIOR_DEFINITIONS);
	others = SPI_processed;
	SPI_finish();
	if (others > 0)
		return;
	execute(psprintf("DROP TRIGGER posterior_note_statement ON %s", name));
	execute(psprintf("DROP TRIGGER IF EXISTS posterior_note_insert ON %s", name));
	execute(psprintf("DROP TRIGGER IF EXISTS posterior_note_change ON %s", name));
}
