/*
 * read_rows.c: reads the rows of a named context under the active snapshot.
 *
 * The rows come through an ordinary query with the rights of the current user, so privileges,
 * policies, filters and the order are the server's own business; a cursor keeps memory bounded by
 * the cells.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/definition.h"
#include "pg/named/kept_plans.h"
#include "pg/named/relations.h"
#include "pg/base/bridge.h"
#include "pg/base/guard.h"
#include "pg/rows/targets.h"
#include "pg/shmem/progress.h"
#include "pg/models/row_limit.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define BATCH 1000				/* rows fetched at once */

/* By how many rows the window moves at a time. */
static int64
window_step(const PosteriorNamed *named)
{
	return Max(1, named->max_rows / 2);
}

int64
posterior_named_start(const PosteriorNamed *named, int64 total)
{
	int64		step = window_step(named);

	if (named->max_rows == 0 || total <= named->max_rows)
		return 0;
	return (total - named->max_rows + step - 1) / step * step;
}

bool
posterior_named_waits(const PosteriorNamed *named, const TnpModel *model)
{
	return named->bounded && !tnp_model_info(model)->appendable;
}

/* The last boundary that n rows have reached: at most a fifth of them is beyond it. */
static int64
last_boundary(int64 n)
{
	int64		power = 1,
				step;

	while (power <= n / 2)
		power *= 2;
	step = Max(power / 4, 1);
	return n <= 0 ? 0 : power + (n - power) / step * step;
}

int64
posterior_named_rows(const PosteriorNamed *named, const TnpModel *model, int64 total)
{
	int64		start = posterior_named_start(named, total),
				window = total - start,
				rows = Max(last_boundary(window), (int64) tnp_model_info(model)->min_rows),
				refreshed = named->refreshed_rows - start;

	if (!posterior_named_waits(named, model) || rows > window)
		return window;
	return refreshed <= window ? Max(rows, refreshed) : rows;
}

int64
posterior_named_prefix(const PosteriorNamed *named, const TnpModel *model, int64 total)
{
	int64		n = posterior_named_rows(named, model, total),
				canonical = tnp_canonical_prefix(model, n),
				refreshed = named->refreshed_rows - posterior_named_start(named, total);

	/* plain rows (near_rows.h) have none; each question's rows see each other */
	if (named->neighbours > 0)
		return 0;
	return refreshed > 0 && refreshed <= n ? Max(canonical, tnp_whole_prefix(model, refreshed))
										   : canonical;
}

int64
posterior_named_least(const PosteriorNamed *named)
{
	return named->max_rows == 0 ? PG_INT64_MAX : named->max_rows - window_step(named) + 1;
}

static PosteriorRows *
rows_make_for(const PosteriorNamed *named, const TnpModel *model, int most_labels,
			  MemoryContext memory)
{
	PosteriorRows *rows = posterior_rows_make(memory, named->n_features, named->types);

	rows->n_targets = tnp_model_info(model)->n_targets;

	for (int f = 0; f < named->n_features; f++)
		rows->features[f].name = named->names[f];
	if (most_labels > 0)
		rows->labels = posterior_labels_make(memory, getBaseType(named->target_types[0]),
											 most_labels);
	return rows;
}

/* How to read the targets, which are the first columns. */
typedef struct Target
{
	int			n;				/* columns */
	Oid			bases[TNP_MAX_TARGETS]; /* of numbers and arrays of them: types without domains */
	PosteriorLabelType label;	/* of labels */
} Target;

static void
target_init(Target *target, const PosteriorNamed *named, const PosteriorRows *rows)
{
	target->n = named->n_targets;
	for (int t = 0; t < target->n; t++)
		target->bases[t] = getBaseType(named->target_types[t]);
	if (rows->labels != NULL)
		posterior_label_type_init(&target->label, named->target_types[0], rows->context);
}

/*
 * A number as its cast to float8; one that is too large is infinite, where the cast would raise
 * with all its digits.
 */
double
posterior_number_of_value(Oid base, Datum value)
{
	switch (base)
	{
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
			return DatumGetInt32(value);
		case INT8OID:
			return (double) DatumGetInt64(value);
		case FLOAT4OID:
			return DatumGetFloat4(value);
		case NUMERICOID:
			return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
		default:
			return DatumGetFloat8(value);
	}
}

/* The number of the label of a row, or -1 where it is none of them; or add it. */
static int
label_of_row(Target *target, HeapTuple tuple, TupleDesc desc, PosteriorRows *rows, bool add)
{
	bool		isnull;
	char	   *text = posterior_label_text(&target->label, SPI_getbinval(tuple, desc, 1, &isnull));
	int found =
		add ? posterior_labels_add(rows->labels, text) : posterior_labels_find(rows->labels, text);

	pfree(text);
	return found;
}

/* The targets of a row into y [TNP_MAX_TARGETS], and their number. */
static int
targets_of_row(Target *target, HeapTuple tuple, TupleDesc desc, PosteriorRows *rows, double *y)
{
	bool		isnull;
	Datum		value;
	int			n;
	bool		known;

	if (rows->labels != NULL)
	{
		y[0] = label_of_row(target, tuple, desc, rows, true);
		return 1;
	}
	if (target->bases[0] != FLOAT8ARRAYOID)
	{
		for (int t = 0; t < target->n; t++)
		{
			value = SPI_getbinval(tuple, desc, 1 + t, &isnull);
			y[t] = posterior_check_target(posterior_number_of_value(target->bases[t], value));
		}
		return target->n;
	}
	value = SPI_getbinval(tuple, desc, 1, &isnull);
	n = posterior_array_targets(DatumGetArrayTypeP(value), y, &known);
	if (!known)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("all targets of a row are NULL"),
				 errhint("Let the whole array be NULL where nothing is known.")));
	return n;
}

/* Add a row: cells are the columns after the targets. */
static void
rows_add(const PosteriorNamed *named, Target *target, HeapTuple tuple, TupleDesc desc,
		 PosteriorRows *rows)
{
	double		y[TNP_MAX_TARGETS],
			   *x;
	int			targets = targets_of_row(target, tuple, desc, rows, y);
	bool		isnull;

	if (targets != rows->n_targets)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a row of context \"%s\" has %d target%s, and its model takes %d",
						named->name, targets, targets == 1 ? "" : "s", rows->n_targets),
				 errhint("Choose a model of so many targets, or leave such rows out by a "
						 "filter.")));
	x = posterior_rows_next(rows);
	for (int f = 0; f < named->n_features; f++)
	{
		Datum		value = SPI_getbinval(tuple, desc, 1 + target->n + f, &isnull);

		x[f] = posterior_feature_cell(&rows->features[f], value, isnull, f + 1);
	}
	memcpy(rows->y + rows->n * targets, y, targets * sizeof(double));
	rows->n++;
}

/* Values are taken for what the catalogs said before the query locked the relation. */
static void
source_check_types(const PosteriorNamed *named, TupleDesc desc)
{
	bool		same = true;

	for (int t = 0; t < named->n_targets; t++)
		same = same && SPI_gettypeid(desc, 1 + t) == named->target_types[t];
	for (int f = 0; f < named->n_features; f++)
		same = same && SPI_gettypeid(desc, 1 + named->n_targets + f) == named->types[f];
	if (!same)
		elog(ERROR, "columns of context \"%s\" changed while it was looked up", named->name);
}

/* The number of rows without a window. */
static int64
source_count(const PosteriorNamed *named)
{
	bool		isnull;

	if (posterior_plan_execute(psprintf("SELECT pg_catalog.count(*) %s", named->source), 0, NULL, 0,
							   NULL, 1)
			!= SPI_OK_SELECT
		|| SPI_processed != 1)
		elog(ERROR, "could not count the rows of context \"%s\"", named->name);
	return DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
}

int64
posterior_named_count(const PosteriorNamed *named)
{
	int64		n;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	n = source_count(named);
	SPI_finish();
	return n;
}

/*
 * Whether rows are read from pages, so that counting is cheap, and pages are enough for more than
 * `most`.
 */
static bool
source_may_exceed(const PosteriorNamed *named, int64 most)
{
	Relation	relation = table_open(named->relation, AccessShareLock);
	char		kind = relation->rd_rel->relkind;
	bool may =
		kind == RELKIND_PARTITIONED_TABLE || kind == RELKIND_RELATION || kind == RELKIND_MATVIEW;

	/* an unlogged table has no file on a standby, and its query says so */
	if (RecoveryInProgress() && relation->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		may = false;
	if (may && kind != RELKIND_PARTITIONED_TABLE && relation->rd_rel->relam == HEAP_TABLE_AM_OID
		&& !relation->rd_rel->relhassubclass)
		may = (int64) RelationGetNumberOfBlocks(relation) * MaxHeapTuplesPerPage > most;
	table_close(relation, NoLock);
	return may;
}

bool
posterior_named_exceeds(const PosteriorNamed *named, int64 most)
{
	Oid			type = INT8OID;
	Datum		enough;
	bool		exceeds;

	if (most == PG_INT64_MAX || (named->max_rows > 0 && named->max_rows <= most)
		|| !source_may_exceed(named, most))
		return false;
	enough = Int64GetDatum(most);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	/* OFFSET: one row comes out if there are so many */
	if (posterior_plan_execute(psprintf("SELECT %s OFFSET $1 LIMIT 1", named->source), 1, &type, 0,
							   &enough, 1)
		!= SPI_OK_SELECT)
		elog(ERROR, "could not count the rows of context \"%s\"", named->name);
	exceeds = SPI_processed > 0;
	SPI_finish();
	return exceeds;
}

/*
 * The query for rows from `start` on, in the canonical order, of `total`: `rows` of them where some
 * wait, else all. A window's rows are taken from the end of the order: where an index has it, only
 * they are read, and without one a sort keeps no more than them.
 */
static Portal
source_open(const PosteriorNamed *named, bool plain, int64 start, int64 total, bool waits,
			int64 rows)
{
	Oid			types[] = {INT8OID, INT8OID};
	Datum		lookup[] = {Int64GetDatum(rows), Int64GetDatum(total - start)};
	const char *place = plain ? ", ctid" : "",
			   *limit = waits ? " LIMIT $1" : "";

	if (start == 0)
		return posterior_plan_open(psprintf("SELECT %s%s %s %s%s", named->columns, place,
											named->source, named->order, limit),
								   waits ? 1 : 0, types, lookup);
	return posterior_plan_open(
		psprintf("SELECT %s%s FROM (SELECT %s%s %s %s LIMIT $2) AS newest %s%s", named->columns,
				 place, named->used, place, named->source, named->backwards, named->order, limit),
		2, types, lookup);
}

/* Rows that have been read, told apart by whose they are. */
typedef struct Apart
{
	const PosteriorNewRows *own;	/* places of the reader's own rows */
	int64		n;				/* of them */
	bool		mixed;			/* others' rows came after them */
	int			labels;			/* of others' rows and those between them */
	ItemPointerData last;		/* of others' rows */
} Apart;

/*
 * Note whether the row at this place, which was read last, is the reader's own; `labels` were known
 * then.
 */
static void
apart_note(Apart *apart, ItemPointer place, int labels)
{
	for (int i = 0; i < apart->own->n; i++)
		if (ItemPointerEquals(place, (ItemPointer) &apart->own->places[i]))
		{
			apart->n++;
			return;
		}
	apart->mixed = apart->mixed || apart->n > 0;
	apart->labels = labels;
	apart->last = *place;
}

/* Add the rows that were fetched; *last and *apart follow, if `plain`. */
static void
rows_add_batch(const PosteriorNamed *named, Target *target, bool plain, PosteriorRows *rows,
			   ItemPointerData *last, Apart *apart)
{
	TupleDesc	desc = SPI_tuptable->tupdesc;

	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		bool		isnull;

		rows_add(named, target, tuple, desc, rows);
		if (plain && (apart->own->n > 0 || i == SPI_processed - 1))
		{
			*last = *(ItemPointer) DatumGetPointer(
				SPI_getbinval(tuple, desc, 1 + named->n_targets + named->n_features, &isnull));
			apart_note(apart, last, rows->labels != NULL ? rows->labels->n : 0);
		}
	}
}

void
posterior_named_read(const PosteriorNamed *named, const PosteriorModel *model, bool plain,
					 const PosteriorNewRows *own, MemoryContext memory, PosteriorContent *content)
{
	PosteriorRows *rows = rows_make_for(named, model->model,
										tnp_model_info(model->model)->n_classes, memory);
	int64		most = posterior_row_limit_of(model),
				wanted;
	bool		waits = posterior_named_waits(named, model->model),
				counted = waits || named->max_rows > 0;
	const char *whose = psprintf("context \"%s\"", named->name);
	Target		target;
	Apart		apart = {.own = own};
	Portal		cursor;
	MemoryContext batch;

	if (!counted && posterior_named_exceeds(named, most))
		posterior_beyond_row_limit(model, whose, named->n_features);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	content->rows = rows;
	target_init(&target, named, rows);
	ItemPointerSetInvalid(&content->last);
	content->total = counted ? source_count(named) : 0;
	wanted = posterior_named_rows(named, model->model, content->total);
	posterior_check_row_limit(model, whose, wanted, named->n_features);
	cursor = source_open(named, plain, posterior_named_start(named, content->total),
						 content->total, waits, wanted);
	source_check_types(named, cursor->tupDesc);
	batch = AllocSetContextCreate(CurrentMemoryContext, "posterior rows", ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		MemoryContext before;

		CHECK_FOR_INTERRUPTS();
		SPI_cursor_fetch(cursor, true, BATCH);
		if (SPI_processed == 0)
			break;
		before = MemoryContextSwitchTo(batch);
		rows_add_batch(named, &target, plain, rows, &content->last, &apart);
		MemoryContextSwitchTo(before);
		MemoryContextReset(batch);
		SPI_freetuptable(SPI_tuptable);
		if (rows->n > most)
			posterior_beyond_row_limit(model, whose, named->n_features);
		posterior_progress(POSTERIOR_READING, rows->n, 0);
	}
	SPI_cursor_close(cursor);
	if (!counted)
		content->total = rows->n;
	content->others = rows->n - apart.n;
	content->last_of_others = apart.last;
	/* rows before the window, and those that wait, are counted, but have not been looked at */
	if (!plain || apart.mixed || (rows->labels != NULL && rows->labels->n > apart.labels)
		|| (apart.n < own->n
			&& (waits ? apart.n > 0 : posterior_named_start(named, content->total) > 0)))
		content->others = -1;
	posterior_rows_settle(rows);
	SPI_finish();
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* What a cursor's rows go to, some at a time: the rows are then forgotten, or kept (NULL). */
static void
cursor_read(const PosteriorNamed *named, const PosteriorModel *model, const char *query,
			PosteriorRows *rows, TnpSums *sums)
{
	Target		target;
	Portal		cursor;
	MemoryContext batch;
	int64		read = 0;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	target_init(&target, named, rows);
	cursor = posterior_plan_open(query, 0, NULL, NULL);
	source_check_types(named, cursor->tupDesc);
	batch = AllocSetContextCreate(CurrentMemoryContext, "posterior rows", ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		MemoryContext before;
		TnpRows		view;
		TnpError	error;

		CHECK_FOR_INTERRUPTS();
		SPI_cursor_fetch(cursor, true, BATCH);
		if (SPI_processed == 0)
			break;
		before = MemoryContextSwitchTo(batch);
		for (uint64 i = 0; i < SPI_processed; i++)
			rows_add(named, &target, SPI_tuptable->vals[i], SPI_tuptable->tupdesc, rows);
		MemoryContextSwitchTo(before);
		MemoryContextReset(batch);
		read += SPI_processed;
		SPI_freetuptable(SPI_tuptable);
		posterior_progress(POSTERIOR_READING, read, 0);
		if (sums == NULL)
			continue;
		view = posterior_rows_view(rows, true);
		if (tnp_sums_add(model->model, sums, &view, 1, &error) != TNP_OK)
			posterior_raise(&error, model->name);
		rows->n = 0;
	}
	SPI_cursor_close(cursor);
	SPI_finish();
}

void
posterior_named_read_sums(const PosteriorNamed *named, const PosteriorModel *model, TnpSums *sums)
{
	cursor_read(named, model, psprintf("SELECT %s %s", named->columns, named->source),
				rows_make_for(named, model->model, 0, CurrentMemoryContext), sums);
}

/* About how many rows the relation has, without the filter; of partitions ANALYZE knows. */
static double
source_rows(const PosteriorNamed *named)
{
	Relation	relation = table_open(named->relation, AccessShareLock);
	double		rows = relation->rd_rel->reltuples,
				visible;
	BlockNumber pages;

	if (relation->rd_rel->relkind == RELKIND_RELATION)
		table_relation_estimate_size(relation, NULL, &pages, &rows, &visible);
	table_close(relation, NoLock);
	return rows;
}

PosteriorRows *
posterior_named_sample(const PosteriorNamed *named, const PosteriorModel *model, int64 most,
					   MemoryContext memory)
{
	PosteriorRows *rows = rows_make_for(named, model->model, 0, memory);
	double		about = Max(source_rows(named), 1);
	char	   *sample = "";

	if (about > 2.0 * most)
		sample = psprintf(" TABLESAMPLE bernoulli (%.17g) REPEATABLE (1)", 100 * most / about);
	for (;;)
	{
		cursor_read(named, model,
					psprintf("SELECT %s FROM %s%s%s LIMIT " INT64_FORMAT, named->columns,
							 posterior_relation_name(named->relation), sample, named->condition,
							 4 * most), rows, NULL);
		/* a filter may leave little of a sample */
		if (sample[0] == '\0' || rows->n >= most / 16)
			break;
		sample = "";
		rows->n = 0;
	}
	posterior_rows_sort(rows);
	return rows;
}

/* ---- new rows -------------------------------------------------------------------------------- */

/* Turn off a setting of the planner until the nest level ends. */
static void
planner_turn_off(const char *setting)
{
	set_config_option(setting, "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Run the query for the rows at n places and at `last`, with their places and xmins. Planned once,
 * since planning would take longer than all the rest; and by places, although another plan may look
 * as good while the table is small: it may have grown when the plan is used.
 */
static void
source_select_places(const PosteriorNamed *named, int n, const ItemPointerData *places,
					 const ItemPointerData *last)
{
	Oid			type = TIDARRAYOID;
	Datum	   *elements = palloc((n + 1) * sizeof(Datum)),
				argument;
	int			level,
				status;

	for (int i = 0; i < n; i++)
		elements[i] = PointerGetDatum(&places[i]);
	elements[n] = PointerGetDatum(last);
	argument = PointerGetDatum(
		construct_array(elements, n + 1, TIDOID, sizeof(ItemPointerData), false, TYPALIGN_SHORT));
	level = NewGUCNestLevel();
	planner_turn_off("enable_seqscan");
	planner_turn_off("enable_indexscan");
	status = posterior_plan_execute(
		psprintf("SELECT %s, ctid, xmin %s AND ctid OPERATOR(pg_catalog.=) ANY ($1) %s",
				 named->columns, named->source, named->order),
		1, &type, CURSOR_OPT_GENERIC_PLAN, &argument, 0);
	AtEOXact_GUC(true, level);
	if (status != SPI_OK_SELECT)
		elog(ERROR, "could not read the rows of context \"%s\"", named->name);
}

/* Whether a row of this place and xmin is noted: a place can have been used again since. */
static bool
place_is_noted(ItemPointer place, TransactionId xmin, int n, const ItemPointerData *places,
			   const TransactionId *xmins)
{
	for (int i = 0; i < n; i++)
		if (ItemPointerEquals(place, (ItemPointer) &places[i])
			&& !GUARD(XMIN_MATCHES, xmins[i] != xmin))
			return true;
	return false;
}

bool
posterior_named_read_new(const PosteriorNamed *named, const TnpModel *model,
						 const PosteriorLabelList *labels, ItemPointerData last, int n,
						 const ItemPointerData *places, const TransactionId *xmins, bool waiting,
						 MemoryContext memory,
						 PosteriorContent *content)
{
	PosteriorRows *rows = rows_make_for(named, model, labels != NULL ? labels->n : 0, memory);
	Target		target;
	int			columns = named->n_targets + named->n_features;
	bool		good;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	source_select_places(named, n, places, &last);
	source_check_types(named, SPI_tuptable->tupdesc);
	content->rows = rows;
	target_init(&target, named, rows);
	content->last = last;
	content->total = 0;
	if (labels != NULL)
	{
		/* numbers are classes from the start */
		posterior_labels_adopt(rows->labels, labels);
		rows->list = *labels;
	}
	good = SPI_processed > 0;
	for (uint64 i = 0; good && i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		bool		isnull;
		ItemPointer place = (ItemPointer) DatumGetPointer(
			SPI_getbinval(tuple, desc, columns + 1, &isnull));
		TransactionId xmin =
			DatumGetTransactionId(SPI_getbinval(tuple, desc, columns + 2, &isnull));

		if (i == 0)
			good = ItemPointerEquals(place, &last);
		else if (!place_is_noted(place, xmin, n, places, xmins))
			continue;
		else if (waiting)
			content->total++;
		else if (labels != NULL && label_of_row(&target, tuple, desc, rows, false) < 0)
			good = false;
		else
		{
			rows_add(named, &target, tuple, desc, rows);
			content->total++;
			content->last = *place;
		}
	}
	SPI_finish();
	return good;
}
