/*
 * kept_store.c: posterior_internal.kept_sums and noted_row.
 *
 * Both are ordinary tables, so what a snapshot shows of them fits what it shows of the rows: a note
 * is written by the transaction that writes the row. They are written without the executor, whose
 * rights, rules and triggers have no part in it; callers decide who may.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/kept_store.h"

#include "pg/base/bridge.h"
#include "pg/base/guard.h"
#include "pg/visibility/writer_log.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"
#include "utils/xid8.h"

/* Columns of kept_sums, and of noted_row. */
enum { SUMS_KEPT = 1, SUMS_VERSION, SUMS_SIGNATURE, SUMS_FROM, SUMS_SUMS };
enum { NOTE_KEPT = 1, NOTE_WRITER, NOTE_SIGN, NOTE_CELLS };

static Oid
table_of(const char *name)
{
	Oid			oid = get_relname_relid(name, get_namespace_oid("posterior_internal", false));

	if (!OidIsValid(oid))
		elog(ERROR, "could not find posterior_internal.%s", name);
	return oid;
}

static Datum
xid_datum(uint64 xid)
{
	return FullTransactionIdGetDatum(FullTransactionIdFromU64(xid));
}

static uint64
xid_of_datum(Datum datum)
{
	return U64FromFullTransactionId(DatumGetFullTransactionId(datum));
}

bool
posterior_kept_find(const pg_uuid_t *kept, Snapshot snapshot, PosteriorKeptSums *found)
{
	Relation	table = table_open(table_of("kept_sums"), AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		isnull;

	ScanKeyInit(&key, SUMS_KEPT, BTEqualStrategyNumber, F_UUID_EQ, UUIDPGetDatum(kept));
	scan = systable_beginscan(table, table_of("kept_sums_pkey"), true, snapshot, 1, &key);
	tuple = systable_getnext(scan);

	if (HeapTupleIsValid(tuple))
	{
		TupleDesc	desc = RelationGetDescr(table);

		found->place = tuple->t_self;
		found->version = *DatumGetUUIDP(heap_getattr(tuple, SUMS_VERSION, desc, &isnull));
		found->signature = DatumGetByteaPCopy(heap_getattr(tuple, SUMS_SIGNATURE, desc, &isnull));
		found->noted_from = xid_of_datum(heap_getattr(tuple, SUMS_FROM, desc, &isnull));
		found->sums = datumCopy(heap_getattr(tuple, SUMS_SUMS, desc, &isnull), false, -1);
	}
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return HeapTupleIsValid(tuple);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/*
 * Notes under `kept` that are not in sums, which may be NULL: of transactions from a certain one
 * on. Those before it are passed over in the index. They may be there for long, where an old
 * snapshot keeps them, and on a standby.
 */
static SysScanDesc
notes_scan(Relation table, const pg_uuid_t *kept, const PosteriorKeptSums *sums,
		   Snapshot snapshot)
{
	ScanKeyData keys[2];

	ScanKeyInit(&keys[0], NOTE_KEPT, BTEqualStrategyNumber, F_UUID_EQ, UUIDPGetDatum(kept));
	ScanKeyInit(&keys[1], NOTE_WRITER, BTGreaterEqualStrategyNumber, F_XID8GE,
				xid_datum(sums == NULL ? 0 : sums->noted_from));
	return systable_beginscan(table, table_of("noted_row_kept"), true, snapshot, 2, keys);
}

/* Make room for one more note. */
static void
notes_grow(PosteriorNotes *notes)
{
	if (notes->n < notes->room)
		return;
	notes->room *= 2;
	notes->rows = repalloc_huge(notes->rows, notes->room * notes->width * sizeof(double));
	notes->places = repalloc_huge(notes->places, notes->room * sizeof(ItemPointerData));
	notes->writers = repalloc_huge(notes->writers, notes->room * sizeof(uint64));
}

/* Add a note that was read. */
static void
notes_take(PosteriorNotes *notes, HeapTuple tuple, TupleDesc desc)
{
	bool		isnull;
	int			sign = DatumGetInt16(heap_getattr(tuple, NOTE_SIGN, desc, &isnull));
	Datum		cells = heap_getattr(tuple, NOTE_CELLS, desc, &isnull);
	bytea	   *bytes = isnull ? NULL : DatumGetByteaPP(cells);
	Size		size = (notes->width - 1) * sizeof(double);
	double	   *row;

	notes_grow(notes);
	row = notes->rows + notes->n * notes->width;
	row[0] = sign;
	if (isnull || VARSIZE_ANY_EXHDR(bytes) != size)
		for (int i = 1; i < notes->width; i++)
			row[i] = get_float8_nan();
	else
		memcpy(row + 1, VARDATA_ANY(bytes), size);
	notes->writers[notes->n] = xid_of_datum(heap_getattr(tuple, NOTE_WRITER, desc, &isnull));
	notes->places[notes->n++] = tuple->t_self;
}

/*
 * The first transaction that may not have ended for a snapshot, prepared ones among them: it may
 * have noted rows that the snapshot does not show. Those before it note nothing more.
 */
static uint64
ended_before(Snapshot snapshot)
{
	if (GUARD(KEPT_ENDED, true))
		return posterior_full_xid(snapshot->xmin);
	return U64FromFullTransactionId(ReadNextFullTransactionId());
}

static void
notes_begin(PosteriorNotes *notes, const PosteriorNamed *named, Snapshot snapshot)
{
	memset(notes, 0, sizeof(*notes));
	notes->from = ended_before(snapshot);
	notes->targets = posterior_context_targets(named->basis);
	notes->width = 1 + notes->targets + named->n_features;
	notes->room = 64;
	notes->rows = palloc(notes->room * notes->width * sizeof(double));
	notes->places = palloc(notes->room * sizeof(ItemPointerData));
	notes->writers = palloc(notes->room * sizeof(uint64));
}

bool
posterior_notes_read(const PosteriorNamed *named, const PosteriorKeptSums *sums, Snapshot snapshot,
					 int64 most, PosteriorNotes *notes)
{
	Relation	table = table_open(table_of("noted_row"), AccessShareLock);
	SysScanDesc scan = notes_scan(table, &named->kept, sums, snapshot);
	HeapTuple	tuple;

	notes_begin(notes, named, snapshot);
	while (notes->n <= most && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		CHECK_FOR_INTERRUPTS();
		notes_take(notes, tuple, RelationGetDescr(table));
	}
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return notes->n <= most;
}

bool
posterior_note_taken(const PosteriorModel *model, const PosteriorNotes *notes, int64 i,
					 TnpSums *sums)
{
	const double *y = notes->rows + i * notes->width + 1;

	return tnp_sums_takes(model->model, sums, y + notes->targets, y);
}

/* Add notes of one sign that the model takes until there are `most`. */
static void
notes_read_sign(const PosteriorModel *model, const pg_uuid_t *kept,
				const PosteriorKeptSums *stored, Snapshot snapshot, int sign, int64 most,
				TnpSums *sums, PosteriorNotes *notes)
{
	Relation	table = table_open(table_of("noted_row"), AccessShareLock);
	SysScanDesc scan = notes_scan(table, kept, stored, snapshot);
	HeapTuple	tuple;

	while (notes->n < most && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		CHECK_FOR_INTERRUPTS();
		notes_take(notes, tuple, RelationGetDescr(table));
		if ((notes->rows[(notes->n - 1) * notes->width] > 0) != (sign > 0)
			|| !posterior_note_taken(model, notes, notes->n - 1, sums))
		{
			notes->n--;
			notes->from = Min(notes->from, notes->writers[notes->n]);
		}
	}
	if (notes->n >= most)
		notes->from = 0;		/* any may be left */
	systable_endscan(scan);
	table_close(table, AccessShareLock);
}

void
posterior_notes_read_next(const PosteriorModel *model, const PosteriorNamed *named,
						  const PosteriorKeptSums *stored, Snapshot snapshot, int64 most,
						  TnpSums *sums, PosteriorNotes *notes)
{
	for (int sign = 1; sign >= -1 && (sign > 0 || notes->n == 0); sign -= 2)
	{
		notes_begin(notes, named, snapshot);
		notes_read_sign(model, &named->kept, stored, snapshot, sign, most, sums, notes);
	}
}

void
posterior_note_write(const pg_uuid_t *kept, int sign, int n, const double *numbers)
{
	Relation	table = table_open(table_of("noted_row"), RowExclusiveLock);
	Size		size = n * sizeof(double);
	bytea	   *bytes = palloc(VARHDRSZ + size);
	Datum		values[] = {UUIDPGetDatum(kept), xid_datum(posterior_own_xid()),
		Int16GetDatum(sign), PointerGetDatum(bytes)};
	bool		nulls[] = {false, false, false, numbers == NULL};
	HeapTuple	tuple;

	SET_VARSIZE(bytes, VARHDRSZ + size);
	if (numbers != NULL)
		memcpy(VARDATA(bytes), numbers, size);
	tuple = heap_form_tuple(RelationGetDescr(table), values, nulls);
	CatalogTupleInsert(table, tuple);
	heap_freetuple(tuple);
	pfree(bytes);
	table_close(table, NoLock);
}

/* Rows of one sign, from `first` on: copied where the engine reads them. */
static TnpRows
rows_of_sign(const PosteriorNotes *notes, int64 first, int sign)
{
	int			targets = notes->targets,
				d = notes->width - 1 - targets;
	double	   *x = MemoryContextAllocHuge(CurrentMemoryContext,
										   Max((notes->n - first) * d, 1) * sizeof(double)),
			   *y = MemoryContextAllocHuge(CurrentMemoryContext,
										   Max((notes->n - first) * targets, 1)
										   * sizeof(double));
	int64		n = 0;

	for (int64 i = first; i < notes->n; i++)
	{
		const double *row = notes->rows + i * notes->width;

		if ((row[0] > 0) != (sign > 0))
			continue;
		memcpy(y + n * targets, row + 1, targets * sizeof(double));
		memcpy(x + n++ * d, row + 1 + targets, d * sizeof(double));
	}
	return (TnpRows) {.n = n,.n_features = d,.x = x,.y = y,.n_targets = targets};
}

bool
posterior_notes_add(const PosteriorModel *model, const PosteriorNotes *notes, int64 first,
					TnpSums *sums)
{
	for (int64 i = first; i < notes->n; i++)
		if (!posterior_note_taken(model, notes, i, sums))
			return false;
	/* what is taken away may have come in between: its sums are never of fewer rows than none */
	for (int sign = 1; sign >= -1; sign -= 2)
	{
		TnpRows		rows = rows_of_sign(notes, first, sign);
		TnpError	error;

		if (tnp_sums_add(model->model, sums, &rows, sign, &error) != TNP_OK)
			posterior_raise(&error, model->name);
		pfree((void *) rows.x);
		pfree((void *) rows.y);
	}
	return true;
}

/* ---- sums ------------------------------------------------------------------------------------ */

bool
posterior_kept_lock(const pg_uuid_t *kept, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, table_of("kept_sums"),
					   hash_bytes(kept->data, UUID_LEN), 0);
	return LockAcquire(&tag, ExclusiveLock, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

void
posterior_kept_write(const pg_uuid_t *kept, const PosteriorKeptSums *old, bytea *signature,
					 PosteriorContext *sums, const PosteriorNotes *notes)
{
	Relation	table = table_open(table_of("kept_sums"), RowExclusiveLock),
				noted = table_open(table_of("noted_row"), RowExclusiveLock);
	Datum		values[] = {UUIDPGetDatum(kept), DirectFunctionCall1(gen_random_uuid, (Datum) 0),
		PointerGetDatum(signature), xid_datum(Max(old == NULL ? 0 : old->noted_from, notes->from)),
		PointerGetDatum(sums)};
	bool		nulls[] = {false, false, false, false, false};
	HeapTuple	tuple = heap_form_tuple(RelationGetDescr(table), values, nulls);

	if (old == NULL)
		CatalogTupleInsert(table, tuple);
	else
		CatalogTupleUpdate(table, (ItemPointer) &old->place, tuple);
	for (int64 i = 0; i < notes->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		simple_heap_delete(noted, &notes->places[i]);
	}
	heap_freetuple(tuple);
	table_close(noted, NoLock);
	table_close(table, NoLock);
}

void
posterior_kept_forget(const pg_uuid_t *kept)
{
	Snapshot	now = RegisterSnapshot(GetLatestSnapshot());
	PosteriorKeptSums found;

	if (posterior_kept_find(kept, now, &found))
	{
		Relation	table = table_open(table_of("kept_sums"), RowExclusiveLock);

		simple_heap_delete(table, &found.place);
		table_close(table, NoLock);
	}
	UnregisterSnapshot(now);
}

/* Delete a row; false if another transaction has put a new one in its place meanwhile. */
static bool
delete_row(Relation table, ItemPointer place)
{
	TM_FailureData failure;

	return heap_delete(table, place, GetCurrentCommandId(true), InvalidSnapshot, true, &failure,
					   false) != TM_Updated;
}

/*
 * Not by a statement: the executor refuses to delete from a table without a replica identity that
 * is published, as that of the notes is by FOR ALL TABLES.
 */
void
posterior_kept_end(const pg_uuid_t *kept)
{
	Relation	sums = table_open(table_of("kept_sums"), RowExclusiveLock),
				noted = table_open(table_of("noted_row"), RowExclusiveLock);
	bool		gone = false;

	while (!gone)
	{
		Snapshot	now = RegisterSnapshot(GetLatestSnapshot());
		PosteriorKeptSums found;

		gone = !posterior_kept_find(kept, now, &found) || delete_row(sums, &found.place);
		if (gone)
		{
			SysScanDesc scan = notes_scan(noted, kept, NULL, now);
			HeapTuple	tuple;

			while (HeapTupleIsValid(tuple = systable_getnext(scan)))
			{
				CHECK_FOR_INTERRUPTS();
				delete_row(noted, &tuple->t_self);
			}
			systable_endscan(scan);
		}
		UnregisterSnapshot(now);
	}
	table_close(noted, NoLock);
	table_close(sums, NoLock);
}

/* posterior_internal.end_sums(kept): the same, of definitions that go with their tables */
PG_FUNCTION_INFO_V1(posterior_end_sums);
Datum
posterior_end_sums(PG_FUNCTION_ARGS)
{
	posterior_kept_end(PG_GETARG_UUID_P(0));
	PG_RETURN_VOID();
}
