/*
 * sums_notes.c: the trigger that notes rows for a context that keeps sums.
 *
 * It fires for each row, so that apply workers, partitions and cascades are covered, and is given
 * the identity under which the context's rows are noted. What a row of this identity is never
 * changes: a context that is altered gets another one. So a session reads the definition once, and
 * again when the table changes.
 *
 * A row of which a target is NULL, or that does not pass the filter, is no row of the context. One
 * whose values no model takes, such as an infinity, or for which the filter fails, is noted without
 * its cells: the write succeeds, and readers read all rows until it is gone and the sums have been
 * made anew; the filter's error is theirs.
 *
 * Rows that the transaction itself has written may not be noted yet: a trigger that fires earlier
 * may ask, or a function that the writing statement calls. So what was noted is compared with what
 * the server counts.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/sums_notes.h"

#include "pg/base/attempt.h"
#include "pg/base/guard.h"
#include "pg/named/fold_turns.h"
#include "pg/named/kept_fold.h"
#include "pg/named/kept_store.h"
#include "pg/rows/feature_cells.h"
#include "pg/types/row_filter.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tupconvert.h"
#include "access/xact.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

#include <math.h>

/* ---- what this transaction has noted --------------------------------------------------------- */

/* Events noted under an identity by a subtransaction. */
typedef struct Noted
{
	struct Noted *next;
	pg_uuid_t	kept;
	int			level;			/* of nested transactions */
	int64		inserted,
				updated,
				deleted;
	CommandId	last;			/* that noted some */
} Noted;

static Noted *all_noted = NULL;	/* in TopTransactionContext */

static Noted *
noted_find(const pg_uuid_t *kept)
{
	int			level = GetCurrentTransactionNestLevel();
	Noted	   *noted = all_noted;

	while (noted != NULL && (noted->level != level
							 || memcmp(&noted->kept, kept, sizeof(pg_uuid_t)) != 0))
		noted = noted->next;
	if (noted != NULL)
		return noted;
	noted = MemoryContextAllocZero(TopTransactionContext, sizeof(Noted));
	noted->kept = *kept;
	noted->level = level;
	noted->next = all_noted;
	return all_noted = noted;
}

static void
at_transaction_end(XactEvent event, void *arg)
{
	for (const Noted *n = all_noted; event == XACT_EVENT_COMMIT && n != NULL; n = n->next)
		if (n->inserted + 2 * n->updated + n->deleted >= POSTERIOR_MANY_NOTES)
			posterior_fold_turn_mark(&n->kept);
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		all_noted = NULL;
}

/* What a subtransaction has noted is its parent's, or gone. */
static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();

	for (Noted **n = &all_noted; *n != NULL;)
	{
		if (event == SUBXACT_EVENT_COMMIT_SUB)
			(*n)->level = Min((*n)->level, level - 1);
		if (event == SUBXACT_EVENT_ABORT_SUB && (*n)->level >= level)
			*n = (*n)->next;
		else
			n = &(*n)->next;
	}
}

/* Add this transaction's writes of a relation as the server counts them; false if it does not. */
static bool
add_counted(Oid oid, int64 *inserted, int64 *updated, int64 *deleted)
{
	Relation	relation = table_open(oid, NoLock);
	bool		counted = posterior_is_counted(relation);

	if (counted && relation->pgstat_info != NULL)
		for (const PgStat_TableXactStatus *s = relation->pgstat_info->trans; s != NULL;
			 s = s->upper)
		{
			*inserted += s->tuples_inserted;
			*updated += s->tuples_updated;
			*deleted += s->tuples_deleted;
		}
	table_close(relation, NoLock);
	return counted;
}

bool
posterior_own_rows_noted(const PosteriorNamed *named, Snapshot snapshot)
{
	int64		inserted = 0,
				updated = 0,
				deleted = 0;
	List	   *relations;
	ListCell   *cell;

	if (!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return true;
	if (IsInParallelMode())
		return false;
	for (const Noted *n = all_noted; n != NULL; n = n->next)
	{
		if (memcmp(&n->kept, &named->kept, sizeof(pg_uuid_t)) != 0)
			continue;
		/* a snapshot that is older than the note may show the row */
		if (GUARD(KEPT_COMMAND, n->last >= snapshot->curcid))
			return false;
		inserted += n->inserted;
		updated += n->updated;
		deleted += n->deleted;
	}
	relations = find_all_inheritors(named->relation, AccessShareLock, NULL);
	foreach(cell, relations)
	{
		int64		counts[3] = {0};

		if (!add_counted(lfirst_oid(cell), &counts[0], &counts[1], &counts[2]))
			return false;
		inserted -= counts[0];
		updated -= counts[1];
		deleted -= counts[2];
	}
	return !GUARD(KEPT_COUNTED, inserted != 0 || updated != 0 || deleted != 0);
}

/* ---- what is noted of a relation ------------------------------------------------------------- */

typedef struct SourceKey
{
	pg_uuid_t	kept;
	Oid			relation;		/* that the trigger is on: the context's, or a partition of it */
} SourceKey;

/* How rows of a relation become rows of a context. */
typedef struct Source
{
	SourceKey	key;
	bool		valid;			/* as far as is known */
	Oid			root;			/* the context's relation; 0: there is no such context, or ... */
	bool		broken;			/* its columns are not there any more */
	MemoryContext memory;
	TupleConversionMap *map;	/* to the root's columns, or NULL */
	TupleTableSlot *slot;		/* for a row with these */
	int			n_targets;
	AttrNumber *targets;		/* [n_targets] */
	Oid		   *target_bases;	/* [n_targets] types without domains: of numbers, or of an array */
	int			n_features;
	AttrNumber *features;		/* [n_features] */
	PosteriorFeature *cells;	/* [n_features] */
	ExprState  *filter;			/* or NULL */
	ExprContext *econtext;
} Source;

static HTAB *sources = NULL;

static void
at_relation_change(Datum argument, Oid relation)
{
	HASH_SEQ_STATUS status;
	Source	   *s;

	hash_seq_init(&status, sources);
	while ((s = hash_seq_search(&status)) != NULL)
		if (!OidIsValid(relation) || s->key.relation == relation || s->root == relation)
			s->valid = false;
}

static void
sources_make(void)
{
	HASHCTL		control = {.keysize = sizeof(SourceKey),.entrysize = sizeof(Source)};

	sources = hash_create("posterior sources of sums", 16, &control, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(at_relation_change, (Datum) 0);
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_end, NULL);
}

/* An identity, and the definition with it; NULL if none has. */
typedef struct DefinitionSearch
{
	const pg_uuid_t *kept;
	PosteriorNamed *named;
} DefinitionSearch;

static bool
definition_find(void *argument)
{
	DefinitionSearch *search = argument;

	search->named = posterior_named_of_kept(search->kept, CurrentMemoryContext);
	return true;
}

/*
 * The definition with this identity; NULL if none has. *broken: there is one, and it means nothing
 * as the table is now.
 */
static PosteriorNamed *
definition_try(const pg_uuid_t *kept, bool *broken)
{
	DefinitionSearch search = {.kept = kept};
	ErrorData  *error = posterior_attempt(definition_find, &search);

	*broken = error != NULL;
	if (error == NULL)
		return search.named;
	if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION)
		ReThrowError(error);
	return NULL;
}

/* Fill in a source, in its memory. */
static void
source_resolve(Source *s, Relation relation)
{
	Oid			root = posterior_relation_of_kept(&s->key.kept);
	PosteriorNamed *named;
	TupleDesc	desc;

	/*
	 * any table can be given a trigger with this identity by its owner; find_all_inheritors gives a
	 * relation that is gone, too
	 */
	if (!OidIsValid(root)
		|| !list_member_oid(find_all_inheritors(root, AccessShareLock, NULL), s->key.relation))
		return;
	named = definition_try(&s->key.kept, &s->broken);
	if (named == NULL)
		return;
	s->root = named->relation;
	if (s->root != s->key.relation)
	{
		Relation	root = table_open(s->root, AccessShareLock);

		desc = CreateTupleDescCopyConstr(RelationGetDescr(root));
		table_close(root, NoLock);
		s->map = convert_tuples_by_name(CreateTupleDescCopyConstr(RelationGetDescr(relation)),
										desc);
		if (s->map != NULL)
			s->slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	}
	s->n_targets = named->n_targets;
	s->targets = named->targets;
	s->target_bases = palloc(s->n_targets * sizeof(Oid));
	for (int t = 0; t < s->n_targets; t++)
		s->target_bases[t] = getBaseType(named->target_types[t]);
	s->n_features = named->n_features;
	s->features = named->features;
	s->cells = palloc(s->n_features * sizeof(PosteriorFeature));
	for (int f = 0; f < s->n_features; f++)
		posterior_feature_init(&s->cells[f], named->types[f], f + 1, s->memory);
	if (named->filtered)
	{
		s->econtext = CreateStandaloneExprContext();
		s->filter = ExecInitQual(make_ands_implicit(expression_planner(
			(Expr *) posterior_row_filter_expression(named->filter, named->name))), NULL);
	}
}

static void
source_forget(Source *s)
{
	MemoryContext memory = s->memory;

	hash_search(sources, &s->key, HASH_REMOVE, NULL);
	MemoryContextDelete(memory);
}

/* Forget sources that are not valid: those of contexts that are gone are not asked for again. */
static void
sources_sweep(void)
{
	HASH_SEQ_STATUS status;
	Source	   *s;

	hash_seq_init(&status, sources);
	while ((s = hash_seq_search(&status)) != NULL)
		if (!s->valid)
			source_forget(s);
}

static Source *
source_find(const pg_uuid_t *kept, Relation relation)
{
	SourceKey	key;
	Source	   *s;
	bool		found;
	MemoryContext before,
				memory;

	if (sources == NULL)
		sources_make();
	memset(&key, 0, sizeof(key));
	key.kept = *kept;
	key.relation = RelationGetRelid(relation);
	s = hash_search(sources, &key, HASH_FIND, NULL);
	if (s != NULL && s->valid)
		return s;
	sources_sweep();
	memory = AllocSetContextCreate(CurrentMemoryContext, "posterior source of sums",
								   ALLOCSET_SMALL_SIZES);
	before = MemoryContextSwitchTo(memory);
	s = palloc0(sizeof(Source));
	s->key = key;
	s->memory = memory;
	source_resolve(s, relation);
	MemoryContextSwitchTo(before);
	/* nothing raises from here on, so it is complete or not there */
	MemoryContextSetParent(memory, TopMemoryContext);
	s->valid = true;
	*(Source *) hash_search(sources, &key, HASH_ENTER, &found) = *s;
	return hash_search(sources, &key, HASH_FIND, NULL);
}

/* ---- the trigger ----------------------------------------------------------------------------- */

/* A row as it is noted, or is not. */
typedef struct Row
{
	bool		is_one,			/* of the context's */
				strange;		/* its numbers are not all such as a model could take */
	int			targets;		/* of an array as many as it has, which may fit no model */
	double	   *numbers;		/* [targets + n_features] */
} Row;

static int
row_numbers(const Source *s, const Row *row)
{
	return row->targets + s->n_features;
}

/* The numbers of an array of targets, and how many; 0 where it is nothing that a row can have. */
static int
numbers_of_array(Datum value, double *numbers)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	int			n = ARR_NDIM(array) == 1 ? ARR_DIMS(array)[0] : 0;

	if (n > TNP_MAX_TARGETS || array_contains_nulls(array))
		return 0;
	for (int t = 0; t < n; t++)
		numbers[t] = ((const float8 *) (void *) ARR_DATA_PTR(array))[t] + 0.0;
	return n;
}

/* The targets of a row; false if one is NULL. */
static bool
targets_of_slot(Source *s, TupleTableSlot *slot, Row *row)
{
	row->targets = s->n_targets;
	for (int t = 0; t < s->n_targets; t++)
	{
		bool		isnull;
		Datum		value = slot_getattr(slot, s->targets[t], &isnull);

		if (isnull)
			return false;
		if (s->target_bases[t] == FLOAT8ARRAYOID)
			row->targets = numbers_of_array(value, row->numbers);
		else
			row->numbers[t] = posterior_number_of_value(s->target_bases[t], value) + 0.0;
	}
	row->strange = row->targets == 0;
	for (int t = 0; t < row->targets; t++)
		row->strange = row->strange || !isfinite(row->numbers[t]);
	return true;
}

/* The numbers of a row; false if it is none of the context's. */
static bool
row_of_slot(Source *s, TupleTableSlot *slot, Row *row)
{
	double	   *cells;

	if (s->map != NULL)
		slot = execute_attr_map_slot(s->map->attrMap, slot, s->slot);
	if (!targets_of_slot(s, slot, row))
		return false;
	if (s->filter != NULL)
	{
		bool		passes;

		s->econtext->ecxt_scantuple = slot;
		passes = ExecQual(s->filter, s->econtext);
		ResetExprContext(s->econtext);
		if (!passes)
			return false;
	}
	cells = row->numbers + row->targets;
	for (int f = 0; f < s->n_features; f++)
	{
		bool		isnull;
		Datum		value = slot_getattr(slot, s->features[f], &isnull);

		cells[f] = posterior_feature_value(&s->cells[f], value, isnull);
		row->strange = row->strange || (!isnull && !isfinite(cells[f]));
	}
	return true;
}

/* A row that is to be looked at, and what it is. */
typedef struct RowSearch
{
	Source	   *source;
	TupleTableSlot *slot;
	Row		   *row;
} RowSearch;

static bool
row_find(void *argument)
{
	RowSearch  *search = argument;

	search->row->is_one = row_of_slot(search->source, search->slot, search->row);
	return true;
}

/* row_of_slot where the filter may raise an error: a strange row then. */
static void
row_of_slot_filtered(Source *s, TupleTableSlot *slot, Row *row)
{
	RowSearch	search = {.source = s,.slot = slot,.row = row};
	ErrorData  *error = posterior_attempt(row_find, &search);

	if (error == NULL)
		return;
	if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_DATA_EXCEPTION
		&& ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_PROGRAM_LIMIT_EXCEEDED)
		ReThrowError(error);
	row->is_one = row->strange = true;
}

static Row
row_make(Source *s, TupleTableSlot *slot)
{
	Row			row = {.strange = s->broken,
		.numbers = palloc((TNP_MAX_TARGETS + s->n_features) * sizeof(double))};

	if (s->broken)
		row.is_one = true;
	else if (s->filter != NULL)
		row_of_slot_filtered(s, slot, &row);
	else
		row.is_one = row_of_slot(s, slot, &row);
	return row;
}

static void
row_note(const Source *s, const Row *row, int sign)
{
	if (row->is_one)
		posterior_note_write(&s->key.kept, sign, row_numbers(s, row),
							 row->strange ? NULL : row->numbers);
}

/* Note what an event did. */
static void
event_note(Source *s, const TriggerData *data)
{
	bool		update = TRIGGER_FIRED_BY_UPDATE(data->tg_event);
	Row			old = {false},
				new = {false};

	if (!TRIGGER_FIRED_BY_INSERT(data->tg_event))
		old = row_make(s, data->tg_trigslot);
	if (!TRIGGER_FIRED_BY_DELETE(data->tg_event))
		new = row_make(s, update ? data->tg_newslot : data->tg_trigslot);
	if (old.is_one && new.is_one && !old.strange && !new.strange
		&& old.targets == new.targets
		&& memcmp(old.numbers, new.numbers, row_numbers(s, &new) * sizeof(double)) == 0)
		return;
	row_note(s, &old, -1);
	row_note(s, &new, 1);
}

/* AFTER INSERT OR UPDATE OR DELETE, for each row; AFTER TRUNCATE: note_sums('identity') */
PG_FUNCTION_INFO_V1(posterior_note_sums);
Datum
posterior_note_sums(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	pg_uuid_t	kept;
	Source	   *s;
	Noted	   *noted;
	MemoryContext memory,
				before;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_AFTER(data->tg_event)
		|| data->tg_trigger->tgnargs != 1
		|| TRIGGER_FIRED_BY_TRUNCATE(data->tg_event) == TRIGGER_FIRED_FOR_ROW(data->tg_event))
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
						errmsg("not called by a trigger that notes rows"),
						errhint("posterior.create_context makes the triggers of a table.")));
	kept = *DatumGetUUIDP(DirectFunctionCall1(uuid_in,
											  CStringGetDatum(data->tg_trigger->tgargs[0])));
	s = source_find(&kept, data->tg_relation);
	if (!OidIsValid(s->root) && !s->broken)
		return PointerGetDatum(NULL);
	if (TRIGGER_FIRED_BY_TRUNCATE(data->tg_event))
	{
		posterior_kept_forget(&kept);
		return PointerGetDatum(NULL);
	}
	memory = AllocSetContextCreate(CurrentMemoryContext, "posterior note", ALLOCSET_SMALL_SIZES);
	before = MemoryContextSwitchTo(memory);
	noted = noted_find(&kept);
	event_note(s, data);
	noted->inserted += TRIGGER_FIRED_BY_INSERT(data->tg_event) ? 1 : 0;
	noted->updated += TRIGGER_FIRED_BY_UPDATE(data->tg_event) ? 1 : 0;
	noted->deleted += TRIGGER_FIRED_BY_DELETE(data->tg_event) ? 1 : 0;
	noted->last = GetCurrentCommandId(true);
	MemoryContextSwitchTo(before);
	MemoryContextDelete(memory);
	posterior_kept_fold_sometimes(&kept);
	return PointerGetDatum(NULL);
}
