/*
 * kept_signature.c: the signature of a context that keeps sums.
 *
 * It is read from the catalogs as they are now, and compared with the one that was stored with the
 * sums (kept_store.c). Each part of it is a number that is never used twice:
 *
 *   triggers   The OID of a trigger with xmin and place of its row: every change of a trigger, such
 *              as turning it off and on again, writes the row anew. (Its command would do where
 *              there is no replay, which sets it to 0.)
 *   files      TRUNCATE and whatever rewrites a table give it another file. Within the transaction
 *              that has made the file TRUNCATE does not; then the trigger for it forgets the sums,
 *              and partitions, which have no such trigger, keep none.
 *   relations  Partitions come and go with other triggers. Children and foreign tables can be
 *              written without any.
 *   columns    What a column is can change without a rewrite, as varchar to text.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/kept_signature.h"

#include "pg/base/guard.h"
#include "pg/types/row_filter.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "optimizer/optimizer.h"
#include "commands/trigger.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/uuid.h"

static void
put(StringInfo signature, uint32 number)
{
	appendBinaryStringInfo(signature, (char *) &number, sizeof(number));
}

bool
posterior_can_keep(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Form_pg_class c;
	bool		can;

	if (!HeapTupleIsValid(tuple))
		return false;
	c = (Form_pg_class) GETSTRUCT(tuple);
	can = !IsSystemClass(relation, c) && c->relpersistence == RELPERSISTENCE_PERMANENT
		&& (c->relkind == RELKIND_PARTITIONED_TABLE
			|| (c->relkind == RELKIND_RELATION && !c->relhassubclass));
	ReleaseSysCache(tuple);
	return can;
}

/* The function that notes rows. */
static Oid
note_function(void)
{
	oidvector  *none = buildoidvector(NULL, 0);

	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum("note_sums"),
						   PointerGetDatum(none),
						   ObjectIdGetDatum(get_namespace_oid("posterior", false)));
}

/* Whether a trigger notes for this context: its one argument is `kept`. */
static bool
notes_for(HeapTuple tuple, TupleDesc desc, Oid function, const char *kept)
{
	Form_pg_trigger t = (Form_pg_trigger) GETSTRUCT(tuple);
	bool		isnull;
	Datum		arguments;
	bytea	   *text;

	if (t->tgfoid != function || t->tgnargs != 1)
		return false;
	arguments = heap_getattr(tuple, Anum_pg_trigger_tgargs, desc, &isnull);
	if (isnull)
		return false;
	text = DatumGetByteaPP(arguments);
	return VARSIZE_ANY_EXHDR(text) == strlen(kept) + 1
		&& memcmp(VARDATA_ANY(text), kept, strlen(kept) + 1) == 0;
}

/* Whether it fires for all that it is for, in any session. */
static bool
always_fires(HeapTuple tuple, TupleDesc desc, int16 type)
{
	Form_pg_trigger t = (Form_pg_trigger) GETSTRUCT(tuple);
	bool		none;

	if (GUARD(KEPT_ALWAYS, t->tgenabled != TRIGGER_FIRES_ALWAYS))
		return false;
	(void) heap_getattr(tuple, Anum_pg_trigger_tgqual, desc, &none);
	return none && t->tgtype == type && t->tgattr.dim1 == 0;
}

/*
 * Put the triggers of a relation into the signature; false unless there are those that are needed,
 * and no others, which would note rows twice: for rows, and of a table of its own for TRUNCATE.
 */
static bool
put_triggers(StringInfo signature, Oid relation, Oid function, const char *kept, bool whole)
{
	const int16 rows = TRIGGER_TYPE_ROW | TRIGGER_TYPE_INSERT | TRIGGER_TYPE_DELETE
		| TRIGGER_TYPE_UPDATE;
	Relation	triggers = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	int			for_rows = 0,
				for_truncate = 0,
				all = 0;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relation));
	/* no cache has this catalog, so the scan's snapshot is a new one */
	scan = systable_beginscan(triggers, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		TupleDesc	desc = RelationGetDescr(triggers);

		if (!notes_for(tuple, desc, function, kept))
			continue;
		all++;
		for_rows += always_fires(tuple, desc, rows);
		for_truncate += always_fires(tuple, desc, TRIGGER_TYPE_TRUNCATE);
		put(signature, ((Form_pg_trigger) GETSTRUCT(tuple))->oid);
		if (GUARD(KEPT_TRIGGERS, true))
		{
			put(signature, HeapTupleHeaderGetRawXmin(tuple->t_data));
			put(signature, ItemPointerGetBlockNumber(&tuple->t_self));
			put(signature, ItemPointerGetOffsetNumber(&tuple->t_self));
		}
	}
	systable_endscan(scan);
	table_close(triggers, AccessShareLock);
	return for_rows == 1 && for_truncate >= whole && all == for_rows + for_truncate;
}

/* Put one relation of a context into the signature; why its rows cannot all be noted, or NULL. */
static const char *
put_relation(StringInfo signature, const PosteriorNamed *named, Oid oid, Oid function,
			 const char *kept)
{
	Relation	relation = table_open(oid, NoLock);
	bool		whole = relation->rd_rel->relkind == RELKIND_RELATION && oid == named->relation;
	const char *why = NULL;

	if (!posterior_can_keep(oid))
		why = "one of its relations is no table that can keep sums";
	else if (!put_triggers(signature, oid, function, kept, whole))
		why = "triggers are missing, not enabled always, or there twice";
	else if (!whole && relation->rd_rel->relkind == RELKIND_RELATION
			 && (relation->rd_createSubid != InvalidSubTransactionId
				 || posterior_file_subtransaction(relation) != InvalidSubTransactionId))
		why = "a partition's file is this transaction's";
	put(signature, oid);
	if (GUARD(KEPT_FILE, true))
		put(signature, posterior_file_number(relation));
	table_close(relation, NoLock);
	return why;
}

/* The same of a column. */
static const char *
put_column(StringInfo signature, Oid relation, AttrNumber column)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relation),
										Int16GetDatum(column));
	Form_pg_attribute a;
	const char *why = NULL;

	if (!HeapTupleIsValid(tuple))
		return "a column is gone";
	a = (Form_pg_attribute) GETSTRUCT(tuple);
	if (column <= 0)
		why = "its filter uses the whole row or a system column";
	if (a->attgenerated == POSTERIOR_GENERATED_VIRTUAL)
		why = "a column is generated when it is read";
	put(signature, (uint32) column);
	put(signature, a->atttypid);
	put(signature, a->attcollation);
	ReleaseSysCache(tuple);
	return why;
}

static const char *
put_columns(StringInfo signature, const PosteriorNamed *named)
{
	const char *why = NULL;
	Bitmapset  *used = NULL;
	int			column = -1;

	for (int t = 0; why == NULL && t < named->n_targets; t++)
		why = put_column(signature, named->relation, named->targets[t]);
	for (int f = 0; why == NULL && f < named->n_features; f++)
		why = put_column(signature, named->relation, named->features[f]);
	if (why != NULL || !named->filtered)
		return why;
	pull_varattnos(posterior_row_filter_expression(named->filter, named->name), 1, &used);
	while (why == NULL && (column = bms_next_member(used, column)) >= 0)
		why = put_column(signature, named->relation,
						 (AttrNumber) (column + FirstLowInvalidHeapAttributeNumber));
	return why;
}

bytea *
posterior_kept_signature(const PosteriorNamed *named, const char **why)
{
	char	   *kept = DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&named->kept)));
	Oid			function = note_function();
	List	   *relations = find_all_inheritors(named->relation, AccessShareLock, NULL);
	StringInfoData signature;
	ListCell   *cell;

	initStringInfo(&signature);
	appendStringInfoSpaces(&signature, VARHDRSZ);
	*why = named->stable ? NULL
		: "labels of an enum may be renamed, and attributes of a composite type dropped";
	foreach(cell, relations)
	{
		if (*why == NULL)
			*why = put_relation(&signature, named, lfirst_oid(cell), function, kept);
	}
	if (*why == NULL)
		*why = put_columns(&signature, named);
	if (*why != NULL)
		return NULL;
	SET_VARSIZE(signature.data, signature.len);
	return (bytea *) signature.data;
}

bool
posterior_kept_in_use(const PosteriorNamed *named)
{
	List	   *relations = find_all_inheritors(named->relation, AccessShareLock, NULL);
	ListCell   *cell;
	bool		used = false;

	foreach(cell, relations)
	{
		Relation	relation = table_open(lfirst_oid(cell), NoLock);

		used = used || relation->rd_refcnt > 1 || AfterTriggerPendingOnRel(lfirst_oid(cell));
		table_close(relation, NoLock);
	}
	return used;
}
