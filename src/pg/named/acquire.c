/*
 * acquire.c: the encoding of a named context, of the rows that the active snapshot shows, by the
 * shortest way that is surely right.
 *
 * The ways, in the order in which they are tried; the words are those of lookup_outcome.h.
 *
 *   by proof     request_acquire() asks for a reuse proof. It holds if the writer log says that
 *                this snapshot shows the rows that the proof's snapshot showed (skips), or those
 *                and a few new ones, whose places are known (deltas). Rows that this transaction
 *                inserted come after them, for this session alone (private).
 *   by content   The rows are read and compared with cache entries (lookup.c: reads, extensions,
 *                revisions, rebuilds, private). If the log knows the snapshot, what was read is
 *                published as the next proof.
 *
 * Why a proof may not be used, or may not hold, is a sentence that DEBUG1 shows (request_explain).
 *
 * Locks. The table's AccessShareLock is taken before the writer log is compared and kept to the end
 * of the transaction, so that no later function of the statement finds the table truncated or
 * changed. Mark and file are taken under this lock. The worker and warm_context, which return no
 * answer, give the lock up when the rows have been read (read_locks.c); the proof that they publish
 * later still states what their snapshot showed.
 *
 * Order of steps in acquire_by_rows(). Reading rows runs a query and may raise; so all rows are
 * read before an entry is pinned. From pin to handle nothing may raise but posterior_entry_wait(),
 * which gives up the pin, and posterior_handle_of_entry(), which takes it over. If the entry is
 * claimed, the claim's holder probably appends the rows that are wanted: waiting is cheaper than
 * reading all rows.
 *
 * Memory. What is read lies in a context that request_run() deletes; the handle does not
 * (handle.c).
 *
 * Called from call sites and the worker, in a transaction with an active snapshot; a parallel query
 * comes here too, and then uses no proof.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/acquire.h"

#include "pg/base/bridge.h"
#include "pg/base/guard.h"
#include "pg/cache/near_rows.h"
#include "pg/cache/reuse_state.h"
#include "pg/named/kept_sums.h"
#include "pg/shmem/progress.h"
#include "pg/visibility/write_tracker.h"
#include "pg/models/row_limit.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#define TRIES 3					/* waits for a claim to end */

/* One acquisition. */
typedef struct Acquisition
{
	PosteriorModel *model;
	const PosteriorNamed *named;
	MemoryContext memory;		/* ends with the acquisition */
	bool		share;			/* other sessions may use what is encoded */
	/* the writer log knows about the snapshot: what is read may be published with `mark` */
	bool		prove;
	bool		plain;			/* rows have places */
	PosteriorNewRows own;			/* rows of this transaction */
	Oid			file;
	PosteriorSnapshotMark mark;
	PosteriorPendingRequest *pending;	/* what the encoding is wanted for, or NULL */
	PosteriorReading *reading;	/* ends when all rows have been read, or NULL */
} Acquisition;

/* Tell why rows are read, for log_min_messages = debug1. */
static void
request_explain(const PosteriorNamed *named, const char *why)
{
	ereport(DEBUG1,
			(errmsg_internal("context \"%s\": rows are read because %s", named->name, why),
			 posterior_is_shared
				 ? 0
				 : errhint("With pg_posterior in shared_preload_libraries all sessions share "
						   "encodings, and rows are read only when they have changed.")));
}

/*
 * All rows have been read, and will not be read again: the table may change from here on. A proof
 * that is published later says what the snapshot showed, by the writer log as it was before the
 * rows were read, so whatever comes meanwhile is new to it.
 */
static void
request_end_reading(const Acquisition *q)
{
	if (q->reading != NULL)
		posterior_reading_end(q->reading);
}

/* Tell of a statement, in the log. */
static void
request_tell(const Acquisition *q, PosteriorLookupOutcome outcome)
{
	ereport(DEBUG2,
			(errmsg_internal("context \"%s\", %s: %s", q->named->name,
							 posterior_lookup_outcomes[outcome].context_column,
							 posterior_lookup_outcomes[outcome].meaning)));
}

/* Count a statement; there were `total` rows with those before the window. */
static void
request_count(const Acquisition *q, PosteriorLookupOutcome outcome, const PosteriorContextHandle *e,
			  int64 total)
{
	request_tell(q, outcome);
	if (posterior_is_shared)
		posterior_reuse_state_count(
			&q->named->id, outcome,
			&(PosteriorReuse) {.version = q->named->version,
							   .rows = posterior_cached_rows(e->cached),
							   .prefix = posterior_cached_prefix(e->cached),
							   .waiting = total - posterior_named_start(q->named, total)
							   - posterior_named_rows(q->named, q->model->model, total),
							   .bytes = (int64) posterior_cached_bytes(e->cached)});
}

/* Publish what the snapshot showed, for later readers. */
static void
request_publish(const Acquisition *q, const PosteriorContextHandle *e, int64 total,
				ItemPointerData last)
{
	PosteriorReuseProof proof;

	if (!q->prove || e->entry == NULL || e->labels.bytes > POSTERIOR_PROOF_LABELS)
		return;
	memset(&proof, 0, sizeof(proof));
	proof.version = q->named->version;
	proof.model = q->model->version;
	proof.kernels = posterior_model_arithmetic(q->model, q->named->estimators);
	proof.file = q->file;
	proof.key = e->entry->key;
	proof.serial = e->entry->serial;
	proof.n = posterior_cached_rows(e->cached);
	proof.total = total;
	proof.last = last;
	proof.mark = q->mark;
	proof.n_labels = e->labels.n;
	proof.label_bytes = e->labels.bytes;
	if (e->labels.bytes > 0)
		memcpy(proof.labels, e->labels.text, e->labels.bytes);
	posterior_reuse_state_prove(&q->named->id, &proof);
}

/* ---- reading all rows ------------------------------------------------------------------------ */

/*
 * Whether what was read begins with what others have written, `content->others` rows, and these are
 * a context of which all depends on them alone: so that they can be encoded for all, and the rows
 * of this transaction come after them.
 */
static bool
own_rows_come_last(const Acquisition *q, const PosteriorContent *content)
{
	int64		n = content->rows->n,
				own = n - content->others;

	return q->prove && q->own.n > 0 && !posterior_named_waits(q->named, q->model->model)
		&& content->others >= Max(tnp_model_info(q->model->model)->min_rows, 1)
		&& posterior_named_start(q->named, content->total - own)
			   == posterior_named_start(q->named, content->total)
		&& posterior_named_prefix(q->named, q->model->model, content->total - own)
			   == posterior_named_prefix(q->named, q->model->model, content->total);
}

/*
 * Whether all rows that were read are others', though this transaction has some: its own ones wait.
 * Others may use the encoding then; but as the own ones are counted, there is no proof of it.
 */
static bool
own_rows_wait(const Acquisition *q, const PosteriorContent *content)
{
	return q->prove && q->own.n > 0 && posterior_named_waits(q->named, q->model->model)
		&& content->others == content->rows->n;
}

static PosteriorContextHandle *
acquire_by_content(const Acquisition *q, bool fresh)
{
	PosteriorContent content;
	PosteriorLookup lookup = {.model = q->model,
							  .context = q->named->version,
							  .kinds = q->named->kinds,
							  .views = q->named->estimators,
							  .publish = q->share,
							  .grows = !posterior_named_waits(q->named, q->model->model),
							  .plain = q->named->neighbours > 0};
	PosteriorLookupOutcome outcome;
	PosteriorContextHandle *e;
	TnpRows		all;
	bool		shown,
				wait;
	int64		total;

	shown = posterior_progress_begin(&q->named->id);
	posterior_named_read(q->named, q->model, q->plain, &q->own, q->memory, &content);
	lookup.labels = content.rows->list;
	if (content.rows->labels != NULL)
		posterior_check_model_room(q->model->model, q->model->name, lookup.labels.n);
	lookup.rows = all = posterior_rows_view(content.rows, true);
	lookup.prefix = posterior_named_prefix(q->named, q->model->model, content.total);
	total = content.total;
	request_end_reading(q);
	/* a subtransaction that held the reading's locks has ended what was shown within it */
	shown = posterior_progress_begin(&q->named->id) || shown;
	if (fresh)
	{
		e = posterior_handle_build_uncached(&lookup);
		if (shown)
			posterior_progress_end();
		return e;
	}
	wait = own_rows_wait(q, &content);
	if (own_rows_come_last(q, &content))
	{
		lookup.rows.n = content.others;
		lookup.publish = true;
		content.total -= all.n - content.others;
		content.last = content.last_of_others;
	}
	lookup.publish = lookup.publish || wait;
	e = posterior_handle_lookup(&lookup, &outcome);
	/* rows of this transaction may be among others that are not shared */
	if (lookup.publish && !wait)
		request_publish(q, e, content.total, content.last);
	if (lookup.rows.n < all.n)
	{
		TnpRows		own = tnp_rows_part(&all, lookup.rows.n, all.n - lookup.rows.n);

		outcome = CACHE_LOOKUP_PRIVATE;
		e = posterior_handle_with_own_rows(e, &own, NULL);
	}
	if (shown)
		posterior_progress_end();
	request_count(q, outcome, e, total);
	return e;
}

/* The labels that a proof holds. */
static PosteriorLabelList
proof_labels(const PosteriorReuseProof *proof)
{
	return (PosteriorLabelList) {proof->n_labels, proof->label_bytes, proof->labels};
}

/* ---- proofs ---------------------------------------------------------------------------------- */

/*
 * Whether the trigger of this name is there, calls this extension's function, and fires for all
 * that it is for: always, or at least when an apply worker writes.
 */
static bool
trigger_fires(Relation relation, const char *name, const char *function, int16 type, bool always)
{
	TriggerDesc *triggers = relation->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *t = &triggers->triggers[i];
		char	   *called;

		if (strcmp(t->tgname, name) != 0)
			continue;
		called = get_func_name(t->tgfoid);
		if (GUARD(TRIGGERS_ALWAYS, t->tgenabled != TRIGGER_FIRES_ALWAYS
				  && (always || t->tgenabled != TRIGGER_FIRES_ON_REPLICA)))
			return false;
		return (t->tgtype & type) == type && TRIGGER_FOR_AFTER(t->tgtype)
			&& TRIGGER_FOR_ROW(t->tgtype) == TRIGGER_FOR_ROW(type) && t->tgqual == NULL
			&& t->tgnattr == 0 && called != NULL && strcmp(called, function) == 0
			&& get_func_namespace(t->tgfoid) == get_namespace_oid("posterior", true);
	}
	return false;
}

/* Why the writer log cannot tell everything about this table, or NULL. */
static const char *
unwatchable_reason(Relation relation)
{
	if (relation->rd_rel->relam != HEAP_TABLE_AM_OID)
		return "its relation is no heap";
	if (relation->rd_rel->relkind != RELKIND_RELATION
		|| relation->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		return "its relation is no permanent table";
	if (GUARD(NO_INHERITANCE, relation->rd_rel->relhassubclass || relation->rd_rel->relispartition
			  || has_superclass(RelationGetRelid(relation))))
		return "its table has parents or children, or is a partition";
	/*
	 * an apply worker fires no statement triggers for UPDATE and DELETE: without the third trigger
	 * these would go unnoted
	 */
	if (!trigger_fires(relation, "posterior_note_statement", "note_statement",
					   TRIGGER_TYPE_DELETE | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_TRUNCATE, true)
		|| !trigger_fires(relation, "posterior_note_insert", "note_insert",
						  TRIGGER_TYPE_ROW | TRIGGER_TYPE_INSERT, true)
		|| !trigger_fires(relation, "posterior_note_change", "note_change",
						  TRIGGER_TYPE_ROW | TRIGGER_TYPE_DELETE | TRIGGER_TYPE_UPDATE, false))
		return "its table's triggers are missing or not enabled always";
	return NULL;
}

/* Whether a proof speaks of what is asked for now. */
static bool
proof_applies(const PosteriorReuseProof *proof, const Acquisition *q)
{
	return memcmp(&proof->version, &q->named->version, sizeof(pg_uuid_t)) == 0
		&& memcmp(&proof->model, &q->model->version, sizeof(pg_uuid_t)) == 0
		&& proof->kernels == posterior_model_arithmetic(q->model, q->named->estimators)
		&& proof->file == q->file;
}

/* Rows that come after those of a proof. */
typedef struct More
{
	TnpRows		rows;
	int64		total;			/* rows then, with those before the window */
	ItemPointerData last;		/* where the last lies */
} More;

/*
 * Of the rows at these places those that the snapshot shows, if they come after the first `n` rows
 * (`before->total` with those before the window) and leave window and prefix where they are. False
 * otherwise. Where rows wait, none come: they are counted, and must leave the boundary where it is.
 */
static bool
new_rows_read(const Acquisition *q, const PosteriorReuseProof *proof, int64 n, const More *before,
			  int n_places, const ItemPointerData *places, const TransactionId *xmins, More *more)
{
	PosteriorContent content;
	PosteriorLabelList labels = proof_labels(proof);
	const TnpModel *model = q->model->model;

	if (!ItemPointerIsValid(&before->last)
		|| !posterior_named_read_new(q->named, model, labels.n > 0 ? &labels : NULL, before->last,
									 n_places, places, xmins,
									 posterior_named_waits(q->named, model), q->memory, &content))
		return false;
	more->rows = posterior_rows_view(content.rows, true);
	more->total = before->total + content.total;
	more->last = content.last;
	return !GUARD(WINDOW_MATCHES,
				  posterior_named_start(q->named, more->total)
				  != posterior_named_start(q->named, before->total)
				  || posterior_named_rows(q->named, model, more->total) != n + more->rows.n
				  || posterior_named_prefix(q->named, model, more->total) != proof->key.prefix);
}

/* The rows of both, one after the other. */
static TnpRows
rows_append(const Acquisition *q, const TnpRows *first, const TnpRows *second)
{
	TnpRows		all = *first;
	int			d = q->named->n_features,
				targets = tnp_rows_targets(second);
	double	   *x,
			   *y;

	if (second->n == 0)
		return all;
	all = *second;
	all.n = first->n + second->n;
	x = MemoryContextAlloc(q->memory, Max(all.n * d, 1) * sizeof(double));
	y = MemoryContextAlloc(q->memory, all.n * targets * sizeof(double));
	if (first->n > 0)
	{
		memcpy(x, first->x, first->n * d * sizeof(double));
		memcpy(y, first->y, first->n * targets * sizeof(double));
	}
	memcpy(x + first->n * d, second->x, second->n * d * sizeof(double));
	memcpy(y + first->n * targets, second->y, second->n * targets * sizeof(double));
	all.x = x;
	all.y = y;
	return all;
}

/*
 * The entry of a proof, pinned, or NULL if it is gone. If rows are to be put into it, a claim of
 * another backend is waited for: it appends, perhaps these rows, or answers with rows of its own,
 * which takes less time than reading all rows or copying the entry.
 */
static PosteriorCacheEntry *
proof_pin(const PosteriorReuseProof *proof, bool to_write)
{
	for (int tries = 0;; tries++)
	{
		PosteriorCacheEntry *entry = posterior_entry_pin(&proof->key, proof->serial);

		if (entry == NULL || tries == TRIES || !to_write || !posterior_entry_is_claimed(entry))
			return entry;
		posterior_entry_wait(entry);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * The encoding of the rows of a proof, of the new ones of other transactions, and of those of this
 * one, in this order; NULL, and *why, if there is none.
 */
static PosteriorContextHandle *
acquire_by_rows(const Acquisition *q, const PosteriorReuseProof *proof, PosteriorVerdict verdict,
				const PosteriorNewRows *found, const char **why)
{
	PosteriorLabelList labels = proof_labels(proof);
	More		proven = {.total = proof->total,.last = proof->last},
				theirs = proven,
				own = {{0}};
	PosteriorCacheEntry *entry;
	PosteriorContextHandle *e;
	TnpRows		all;

	*why = "new rows do not simply come last";
	if (verdict == POSTERIOR_MORE
		&& !new_rows_read(q, proof, proof->n, &proven, found->n, found->places, found->xmins,
						  &theirs))
		return NULL;
	if (q->own.n > 0
		&& !new_rows_read(q, proof, proof->n + theirs.rows.n, &theirs, q->own.n, q->own.places,
						  q->own.xmins, &own))
		return NULL;
	all = rows_append(q, &theirs.rows, &own.rows);
	/* reading raises the error, in words that do not depend on the cache */
	*why = "they are more than posterior.row_limit";
	if (proof->n + all.n > posterior_row_limit_of(q->model))
		return NULL;
	*why = "its encoding was evicted or belongs to others now";
	entry = proof_pin(proof, all.n > 0);
	if (entry == NULL)
		return NULL;
	if (verdict == POSTERIOR_MORE)
	{
		e = posterior_handle_extend(q->model, q->named->kinds, &labels, entry, proof->n, &all,
									own.rows.n, q->pending);
		if (e == NULL)
		{
			posterior_entry_unpin(entry);
			return NULL;
		}
		request_publish(q, e, theirs.total, theirs.last);
	}
	else
		e = posterior_handle_of_entry(q->model, q->named->n_features, q->named->kinds, &labels,
									  entry, proof->n);
	if (own.rows.n > 0 && !e->transient)
		e = posterior_handle_with_own_rows(e, &own.rows, q->pending);
	request_count(q,
				  own.rows.n > 0              ? CACHE_LOOKUP_PRIVATE
				  : verdict == POSTERIOR_MORE ? CACHE_LOOKUP_DELTA
											  : CACHE_LOOKUP_SKIP,
				  e, Max(theirs.total, own.total));
	return e;
}

/*
 * The encoding without reading the table, or NULL; q->prove says whether what is then read may be
 * published.
 */
static PosteriorContextHandle *
acquire_by_proof(Acquisition *q)
{
	Snapshot	snapshot = GetActiveSnapshot();
	PosteriorReuseProof proof;
	PosteriorNewRows found;
	PosteriorContextHandle *e;
	bool proven = posterior_reuse_state_proof(&q->named->id, &proof) && proof_applies(&proof, q);
	PosteriorVerdict verdict = posterior_writer_log_compare(
		q->named->relation, q->file, snapshot, proven ? &proof.mark : NULL, &q->mark, &found);
	const char *why;

	q->prove = verdict != POSTERIOR_UNKNOWN;
	/* places are system columns, which column privileges do not cover */
	q->plain = q->prove && posterior_named_readable(q->named);
	if (!proven || verdict == POSTERIOR_UNKNOWN || verdict == POSTERIOR_OTHER)
	{
		request_explain(q->named, verdict == POSTERIOR_UNKNOWN
									  ? "the table's writers are not all known"
								  : proven ? "rows have changed"
										   : "there is no proof yet");
		return NULL;
	}
	/* the query that reads the rows checks column privileges and the like */
	if (!posterior_named_readable(q->named))
	{
		request_explain(q->named, "the right to read the whole table is missing");
		return NULL;
	}
	e = acquire_by_rows(q, &proof, verdict, &found, &why);
	if (e == NULL)
		request_explain(q->named, why);
	return e;
}

/* ---- the ways -------------------------------------------------------------------------------- */

/* Why no proof is possible for this statement, or NULL. */
static const char *
unprovable_reason(const Acquisition *q)
{
	Snapshot	snapshot = GetActiveSnapshot();

	if (!posterior_is_shared)
		return "the library is not preloaded";
	if (!q->named->maintained)
		return "it is not maintained by triggers";
	if (!q->named->stable)
		return "labels of an enum may be renamed, and attributes of a composite type dropped";
	if (GUARD(NOT_STANDBY, !IsMVCCSnapshot(snapshot) || snapshot->takenDuringRecovery))
		return "the snapshot is not one of a primary's";
	if (GUARD(NOT_SERIALIZABLE, IsolationIsSerializable()))
		return "serializable transactions must be seen reading";
	if (GUARD(NOT_PARALLEL, IsInParallelMode()))
		return "the query is parallel";
	if (q->model->weights == NULL)
		return "the model is not shared";
	return NULL;
}

static PosteriorContextHandle *
request_acquire(Acquisition *q)
{
	const char *why = unprovable_reason(q);
	Relation	relation;
	PosteriorContextHandle *e = NULL;
	bool		policies = posterior_named_policies(q->named);

	q->share = !policies;
	if (posterior_cache_mode == POSTERIOR_CACHE_OFF)
	{
		request_explain(q->named, "posterior.cache is off");
		return acquire_by_content(q, true);
	}
	/*
	 * the lock stays to the end of the transaction: what is answered from the cache must not be
	 * truncated under later functions of the statement
	 */
	relation = table_open(q->named->relation, AccessShareLock);
	/* the transaction may have had the lock before: then taking it processed no invalidations */
	if (GUARD(INVALIDATIONS, true))
		AcceptInvalidationMessages();
	q->file = posterior_file_number(relation);
	/*
	 * It is open whether rows of this transaction will be committed: share nothing of them. The
	 * lock shows that there may be some before any trigger has run. If all of them are known, the
	 * rows of other transactions can be shared and proven, and the own ones come after these.
	 */
	if (GUARD(OWN_WRITES, CheckRelationLockedByMe(relation, RowExclusiveLock, true)))
	{
		bool		known = posterior_write_tracker_inserted(relation, &q->own);

		/* a lock stronger than that of writing rows is, as a rule, that of a change of the table */
		if (GUARD(STRONGER_LOCK,
				  CheckRelationLockedByMe(relation, ShareUpdateExclusiveLock, true)))
			known = false;
		/* a transaction that has only locked the table has written nothing yet */
		q->share = !policies && known && q->own.n == 0;
		if (!known)
			why = "this transaction has written the table";
	}
	if (why == NULL)
		why = unwatchable_reason(relation);
	if (why == NULL && policies)
		why = "policies decide which of them the reader sees";
	table_close(relation, GUARD(LOCK_KEPT, true) ? NoLock : AccessShareLock);
	if (why == NULL)
		e = acquire_by_proof(q);
	else
		request_explain(q->named, why);
	return e != NULL ? e : acquire_by_content(q, false);
}

bool
posterior_named_may_change(const PosteriorNamed *named)
{
	Relation	relation;
	bool		may;

	if (posterior_named_policies(named))
		return true;
	relation = table_open(named->relation, AccessShareLock);
	may = relation->rd_rel->relkind != RELKIND_RELATION || relation->rd_rel->relhassubclass
	   || CheckRelationLockedByMe(relation, RowExclusiveLock, true);
	table_close(relation, NoLock);
	return may;
}

/*
 * Count a statement about a context that keeps sums: the rows that its fit is of are what a prefix
 * is to others, and all rows are compared with them.
 */
static void
sums_count(const Acquisition *q, PosteriorLookupOutcome outcome, const PosteriorContextHandle *e)
{
	int64		rows = posterior_cached_rows(e->cached);
	PosteriorReuse reuse = {.version = q->named->version,.rows = rows,
							.prefix = Min(tnp_sums_fit_rows(e->cached->encoding), rows),
							.bytes = (int64) posterior_cached_bytes(e->cached)};

	request_tell(q, outcome);
	if (!posterior_is_shared)
		return;
	posterior_reuse_state_count(&q->named->id, outcome, &reuse);
	posterior_reuse_state_note_drift(&q->named->id, &reuse,
									 tnp_sums_drift(e->cached->encoding));
}

/* Of a context that keeps sums: found by other rules (kept_sums.c). */
static PosteriorContextHandle *
acquire_sums(const Acquisition *q, bool fresh)
{
	MemoryContext before = MemoryContextSwitchTo(q->memory);
	PosteriorLookupOutcome outcome = CACHE_LOOKUP_PRIVATE;
	PosteriorContextHandle *e = posterior_kept_acquire(q->model, q->named, fresh, &outcome);

	MemoryContextSwitchTo(before);
	if (!fresh)
		sums_count(q, outcome, e);
	return e;
}

/* Where questions take the rows near to them: have them do so. */
static PosteriorContextHandle *
with_near_rows(const Acquisition *q, PosteriorContextHandle *e, bool fresh)
{
	PosteriorNearOptions options = {.context = q->named->version,
									.id = q->named->id,
									.k = q->named->neighbours,
									.views = q->named->estimators,
									.fresh = fresh};

	if (q->named->neighbours > 0)
		posterior_near_begin(e, &options);
	return e;
}

static PosteriorContextHandle *
request_run(Acquisition q)
{
	PosteriorContextHandle *e;

	posterior_named_check_target(q.named, q.model->model);
	posterior_shared_attach();
	/* plain rows answer nothing while they are appended to */
	if (q.named->neighbours > 0)
		q.pending = NULL;
	q.memory = AllocSetContextCreate(CurrentMemoryContext, "posterior acquisition",
									 ALLOCSET_DEFAULT_SIZES);
	e = posterior_named_by_sums(q.named) ? acquire_sums(&q, false) : request_acquire(&q);
	MemoryContextDelete(q.memory);
	return with_near_rows(&q, e, posterior_cache_mode == POSTERIOR_CACHE_OFF);
}

PosteriorContextHandle *
posterior_named_acquire(PosteriorModel *model, const PosteriorNamed *named,
						PosteriorPendingRequest *pending)
{
	return request_run((Acquisition) {.model = model,.named = named,.pending = pending});
}

PosteriorContextHandle *
posterior_named_encode_ahead(PosteriorModel *model, const PosteriorNamed *named,
							 PosteriorReading *reading)
{
	PosteriorContextHandle *e =
		request_run((Acquisition){.model = model, .named = named, .reading = reading});

	if (reading != NULL)
		posterior_reading_end(reading);
	return e;
}

PosteriorContextHandle *
posterior_named_build_uncached(PosteriorModel *model, const PosteriorNamed *named)
{
	Acquisition	q = {.model = model,.named = named};
	PosteriorContextHandle *e;

	q.memory = AllocSetContextCreate(CurrentMemoryContext, "posterior acquisition",
									 ALLOCSET_DEFAULT_SIZES);
	e = posterior_named_by_sums(named) ? acquire_sums(&q, true) : acquire_by_content(&q, true);
	MemoryContextDelete(q.memory);
	return with_near_rows(&q, e, true);
}
