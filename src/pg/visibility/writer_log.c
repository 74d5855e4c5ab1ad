/*
 * writer_log.c: which transactions wrote a table, and what a reader concludes from it.
 *
 * Purpose. A reader whose snapshot treats every writer of a table as an earlier reader's snapshot
 * did sees the same rows and need not read them. A log has the last POSTERIOR_WRITERS writers of a
 * table, with the places of the rows where a transaction only inserted a few. docs/snapshots.md has
 * the proof; each GUARD here is a step of it, without which a test fails.
 *
 * Life of an entry.
 *   1. A trigger notes in the writing session's memory what it does (write_tracker.c).
 *   2. Before the commit record exists, the transaction enters the log, once: log_enter(). From the
 *      commit on, snapshots may see the transaction, and each of them is later than the entry.
 *   3. A reader finds out whether the transaction committed or aborted, and keeps the answer in the
 *      log: the commit log may be truncated earlier than the log forgets the entry.
 *   4. A full log forgets the entries of transactions that have ended for a fresh snapshot (`floor`
 *      rises), or else its oldest entry (`low` rises).
 *
 * Making a log. The first reader of a table that has none takes a place, by LRU (log_make). Writers
 * do not wait for it. The order of steps on both sides makes that safe:
 *
 *     writer                              maker
 *     gets its xid                        writes watched[]
 *     memory barrier                      memory barrier
 *     looks into watched[]                takes a snapshot, reads the next xid
 *     enters the log, if there is one     enters all running xids and itself
 *
 * A writer that sees no log already had its xid before its barrier; the maker reads the running
 * xids after its own barrier, so it enters the writer, or the writer had ended for the maker's
 * snapshot. What an entered transaction did before is unknown: it is `other` for good. `ready` is
 * set last; until then readers take the log for missing.
 *
 * Locks. In this order: the lock of the directory (posterior_lock), the lock of one log. The
 * directory is locked when a log gets a table or loses it; reading and entering lock the log alone.
 * No lock is held while a snapshot is taken, and no log is locked while another one is. Two words
 * are used without a lock: watched[], an atomic that is only a hint, so the log is looked at again
 * under its lock; and `dirty`, which may at worst wake the launcher in vain. `status` is written
 * under the shared lock: all that write it write equal values. ask_commit_log() takes
 * XactTruncationLock while it holds no other lock.
 *
 * Callers. Entering: from triggers' transactions at PRE_COMMIT and PRE_PREPARE, from
 * the object access hook, and from triggers that fire later. It may raise, which aborts the
 * transaction, and needs an xid. Comparing: from readers in a transaction, not in a parallel query,
 * which may take no snapshot. posterior_writer_log_mark_dirty() and posterior_wake_launcher():
 * after the commit, so they must not fail. Taking turns: from launcher and worker.
 *
 * Lifetimes. A log belongs to a table of a life of a database (incarnation.c) until another table
 * takes it, or the life ends; `generation` tells proofs of the old one from the new one. Logs begin
 * empty when the server starts, and so do proofs.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/visibility/writer_log.h"

#include "pg/base/guard.h"
#include "pg/shmem/shared.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/snapmgr.h"

/*
 * In shared memory: each log under a lock of its own; a table gets one under that of the directory.
 */
typedef struct WriterLogs
{
	struct Latch *launcher;		/* or NULL */

	/* life of the database and relation of each log, or 0: to find a log without a lock */
	pg_atomic_uint64 watched[POSTERIOR_WRITER_LOGS];
	PosteriorWriterLog logs[POSTERIOR_WRITER_LOGS];
} WriterLogs;

static WriterLogs *shared = NULL;

static Size
logs_size(void)
{
	return sizeof(WriterLogs);
}

static void
logs_initialize(void *part)
{
	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
		pg_atomic_init_u64(&((WriterLogs *) part)->watched[i], 0);
}

/* The full form of an xid that is less than 2^31 transactions away from now. */
static uint64
full_xid(TransactionId xid)
{
	FullTransactionId next = ReadNextFullTransactionId();
	uint32		epoch = EpochFromFullTransactionId(next);

	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return U64FromFullTransactionId(FullTransactionIdFromEpochAndXid(epoch, xid));
}

static uint64
own_xid(void)
{
	return U64FromFullTransactionId(GetTopFullTransactionId());
}

/* ---- finding a writer log -------------------------------------------------------------------- */

/* A table in the list of those that have writer logs. */
static uint64
watched_key(Oid relation)
{
	return (uint64) posterior_incarnation() << 32 | relation;
}

/*
 * The number of a table's writer log, or -1. Without a lock: the log must be looked at again under
 * its own. A writer that finds none has had its xid since before this barrier; log_make() reads the
 * running xids after its own barrier, and so enters the writer.
 */
static int
log_find(Oid relation)
{
	uint64		lookup = watched_key(relation);

	pg_memory_barrier();
	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
		if (pg_atomic_read_u64(&shared->watched[i]) == lookup)
			return i;
	return -1;
}

/* Lock the writer log of this number if it is the table's. */
static PosteriorWriterLog *
log_lock_number(Oid relation, LWLockMode mode, int number)
{
	PosteriorWriterLog *log = &shared->logs[number];

	LWLockAcquire(posterior_part_lock(&posterior_writer_log_part, number), mode);
	if (log->relation == relation && log->incarnation == posterior_incarnation())
		return log;
	LWLockRelease(posterior_part_lock(&posterior_writer_log_part, number));
	return NULL;
}

/* Lock a table's writer log; NULL if there is none. */
static PosteriorWriterLog *
log_lock(Oid relation, LWLockMode mode, int *number)
{
	static int	last = 0;		/* a session mostly writes one table: look there first */

	if (pg_atomic_read_u64(&shared->watched[last]) != watched_key(relation))
	{
		int			found = log_find(relation);

		if (found < 0)
			return NULL;
		last = found;
	}
	*number = last;
	/*
	 * it may have become another table's: then the log that this table may have now was made after
	 * this transaction had its xid, and has an entry for it
	 */
	return log_lock_number(relation, mode, *number);
}

static void
log_unlock(int number)
{
	LWLockRelease(posterior_part_lock(&posterior_writer_log_part, number));
}

/* ---- entering -------------------------------------------------------------------------------- */

/* The entry of a transaction, or NULL. */
static PosteriorWriter *
log_find_writer(PosteriorWriterLog *log, uint64 xid)
{
	for (int i = log->n - 1; i >= 0; i--)
		if (log->xids[i] == xid)
			return &log->writers[i];
	return NULL;
}

/* Whether a snapshot sees that a transaction has ended. */
static bool
xid_ended_for(uint64 xid, uint64 xmin, uint64 xmax, Snapshot s)
{
	if (xid >= xmax)
		return false;
	if (xid < xmin)
		return true;
	for (uint32 i = 0; i < s->xcnt; i++)
		if (s->xip[i] == (TransactionId) xid)
			return false;
	return true;
}

/* Forget the writers that have ended for the snapshot z; true if there were any. */
static bool
log_forget_ended(PosteriorWriterLog *log, Snapshot z)
{
	uint64		xmin = full_xid(z->xmin),
				xmax = full_xid(z->xmax);
	int			kept = 0;

	for (int i = 0; i < log->n; i++)
		if (!xid_ended_for(log->xids[i], xmin, xmax, z))
		{
			log->xids[kept] = log->xids[i];
			log->writers[kept++] = log->writers[i];
		}
	if (kept == log->n)
		return false;
	log->n = kept;
	if (GUARD(FLOOR_RISES, log->floor < xmax))
		log->floor = xmax;
	return true;
}

/* Make room for an entry: forget the writers that have ended, or if there are none, the oldest. */
static void
log_forget_some(PosteriorWriterLog *log, Snapshot z)
{
	if (log_forget_ended(log, z))
		return;
	if (GUARD(LOW_RISES, log->low <= log->xids[0]))
		log->low = log->xids[0] + 1;
	log->n--;
	memmove(&log->xids[0], &log->xids[1], log->n * sizeof(log->xids[0]));
	memmove(&log->writers[0], &log->writers[1], log->n * sizeof(log->writers[0]));
}

static void
writer_set_rows(PosteriorWriter *w, const PosteriorInserted *rows)
{
	w->other = rows == NULL;
	if (rows != NULL)
	{
		w->rows.file = rows->file;
		w->rows.n = rows->n;
		memcpy(w->rows.places, rows->places, rows->n * sizeof(rows->places[0]));
		memcpy(w->rows.xmins, rows->xmins, rows->n * sizeof(rows->xmins[0]));
	}
}

/* Add an entry. There is room. */
static void
log_add_writer(PosteriorWriterLog *log, uint64 xid, const PosteriorInserted *rows, bool ddl)
{
	PosteriorWriter *w = &log->writers[log->n];

	log->xids[log->n++] = xid;
	w->sequence = log->next++;
	w->status = POSTERIOR_STATUS_UNKNOWN;
	w->ddl = ddl;
	writer_set_rows(w, rows);
}

/*
 * Change an entry that is there already. Its transaction has changed the table, or was running when
 * the log was made and perhaps had written while triggers were off and there was no log: so it
 * stays `other`, whatever the triggers have noted.
 */
static void
writer_change(PosteriorWriter *w, const PosteriorInserted *rows, bool ddl)
{
	if (rows != NULL && !(w->ddl ? GUARD(DDL_STAYS, true) : GUARD(OTHER_STAYS, true)))
	{
		w->ddl = false;
		writer_set_rows(w, rows);
		return;
	}
	w->other = true;
	w->ddl = w->ddl || ddl;
}

/*
 * Enter a transaction in the writer log of a table; the writer log's number, or -1 if there is
 * none.
 */
static int
log_enter(Oid relation, uint64 xid, const PosteriorInserted *rows, bool ddl)
{
	for (;;)
	{
		int			number;
		PosteriorWriterLog *log = log_lock(relation, LW_EXCLUSIVE, &number);
		PosteriorWriter *w;
		Snapshot	z;

		if (log == NULL)
			return -1;
		w = log_find_writer(log, xid);
		if (w != NULL || log->n < POSTERIOR_WRITERS)
		{
			if (w != NULL)
				writer_change(w, rows, ddl);
			else
				log_add_writer(log, xid, rows, ddl);
			log_unlock(number);
			return number;
		}
		log_unlock(number);
		/* the snapshot is taken without the lock; only its being recent matters */
		z = GetLatestSnapshot();
		log = log_lock(relation, LW_EXCLUSIVE, &number);
		if (log == NULL)
			return -1;
		if (log->n == POSTERIOR_WRITERS)
			log_forget_some(log, z);
		log_unlock(number);
	}
}

/*
 * The xid comes first, the log second: a maker of the log enters all transactions that have an xid.
 * A transaction that only writes needs shared memory here for the first time.
 */
int
posterior_writer_log_record(Oid relation, const PosteriorInserted *rows)
{
	uint64		xid = own_xid();

	posterior_shared_attach();
	return log_enter(relation, xid, rows, false);
}

void
posterior_writer_log_record_ddl(Oid relation)
{
	uint64		xid = own_xid();

	posterior_shared_attach();
	log_enter(relation, xid, NULL, true);
}

bool
posterior_writer_log_mark_dirty(Oid relation, int number)
{
	PosteriorWriterLog *log = &shared->logs[number];

	/*
	 * without a lock: at worst another table's contexts are looked at. Usually the log is dirty
	 * already, and the cache line is only read.
	 */
	if (log->dirty || log->relation != relation)
		return false;
	log->dirty = true;
	return true;
}

static void
due_add(PosteriorDue *due, int *n, const PosteriorWriterLog *log)
{
	int			i = 0;

	while (i < *n && due[i].database != log->database)
		i++;
	if (i == *n)
		due[(*n)++] = (PosteriorDue) {log->database, false, DT_NOEND};
	due[i].dirty = due[i].dirty || log->dirty;
	if (log->later != 0)
		due[i].later = Min(due[i].later, log->later);
}

int
posterior_writer_log_due(PosteriorDue *due)
{
	int			n = 0;

	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
	{
		PosteriorWriterLog *log = &shared->logs[i];

		LWLockAcquire(posterior_part_lock(&posterior_writer_log_part, i), LW_SHARED);
		if (OidIsValid(log->relation) && (log->dirty || log->later != 0))
			due_add(due, &n, log);
		LWLockRelease(posterior_part_lock(&posterior_writer_log_part, i));
	}
	return n;
}

int
posterior_writer_log_take(Oid database, TimestampTz now, PosteriorMaintenanceTurn *turns)
{
	int			n = 0;

	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
	{
		PosteriorWriterLog *log = &shared->logs[i];

		LWLockAcquire(posterior_part_lock(&posterior_writer_log_part, i), LW_EXCLUSIVE);
		if (log->database == database && OidIsValid(log->relation)
			&& (log->dirty || (log->later != 0 && log->later <= now)))
		{
			turns[n++] = (PosteriorMaintenanceTurn) {log->relation, log->later};
			log->dirty = false;
			log->later = 0;
		}
		LWLockRelease(posterior_part_lock(&posterior_writer_log_part, i));
	}
	return n;
}

void
posterior_writer_log_postpone(Oid relation, TimestampTz until)
{
	int			number;
	PosteriorWriterLog *log = log_lock(relation, LW_EXCLUSIVE, &number);

	if (log == NULL)
		return;
	log->later = log->later == 0 ? until : Min(log->later, until);
	log_unlock(number);
}

void
posterior_writer_log_record_all(void)
{
	uint64		xid = own_xid();
	Oid			relations[POSTERIOR_WRITER_LOGS];
	int			n = 0;

	posterior_shared_attach();
	posterior_lock(LW_SHARED);
	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
		if (OidIsValid(shared->logs[i].relation)
			&& shared->logs[i].incarnation == posterior_incarnation())
			relations[n++] = shared->logs[i].relation;
	posterior_unlock();
	for (int i = 0; i < n; i++)
		log_enter(relations[i], xid, NULL, true);
}

/* ---- making a writer log --------------------------------------------------------------------- */

/*
 * Enter a transaction that has not ended and has an xid already: what it did before there was a log
 * is unknown.
 */
static void
log_add_running(PosteriorWriterLog *log, uint64 xid)
{
	PosteriorWriter *w = log_find_writer(log, xid);

	if (w == NULL)
		log_add_writer(log, xid, NULL, false);
	else
		writer_change(w, NULL, false);
}

/* The place for a table's log: free, or used least recently; -1 if the table has a log. */
static int
logs_find_place(Oid relation)
{
	int			number = 0;

	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
	{
		const PosteriorWriterLog *log = &shared->logs[i],
				   *best = &shared->logs[number];

		if (log->relation == relation && log->incarnation == posterior_incarnation())
			return -1;
		if (i > 0 && OidIsValid(best->relation)
			&& (!OidIsValid(log->relation) || log->used < best->used))
			number = i;
	}
	return number;
}

/*
 * Give a table an empty log that writers see and readers do not use yet; its number, or -1 if the
 * table has one. *generation tells whether it still is this log.
 */
static int
log_begin(Oid relation, uint64 *generation)
{
	PosteriorWriterLog *log;
	int			number;

	posterior_lock(LW_EXCLUSIVE);
	number = logs_find_place(relation);
	if (number < 0)
	{
		posterior_unlock();
		return -1;
	}
	log = &shared->logs[number];
	LWLockAcquire(posterior_part_lock(&posterior_writer_log_part, number), LW_EXCLUSIVE);
	*generation = log->generation = posterior_tick();
	log->database = MyDatabaseId;
	log->incarnation = posterior_incarnation();
	log->relation = relation;
	log->ready = log->dirty = false;
	log->later = 0;
	log->used = *generation;
	log->next = 1;
	log->low = log->floor = 0;
	log->n = 0;
	pg_atomic_write_u64(&shared->watched[number], watched_key(relation));
	log_unlock(number);
	posterior_unlock();
	return number;
}

/*
 * Enter all that may write before they look for the log: the transactions that run in z, those of
 * later xids below `next`, and the maker's own, which has the xid `own` or none. The log is locked.
 */
static void
log_enter_running(PosteriorWriterLog *log, Snapshot z, uint64 next, uint64 own)
{
	uint64		xmax = full_xid(z->xmax);
	bool		fits = z->xcnt + (next - xmax) + log->n + 1 <= POSTERIOR_WRITERS;

	for (uint32 i = 0; GUARD(RUNNING_ENTERED, fits && i < z->xcnt); i++)
		log_add_running(log, full_xid(z->xip[i]));
	for (uint64 xid = xmax; GUARD(LATER_ENTERED, fits && xid < next); xid++)
		if (TransactionIdIsNormal((TransactionId) xid))
			log_add_running(log, xid);
	/* a snapshot does not contain the transaction that takes it */
	if (GUARD(MAKER_ENTERED, fits && own != 0))
		log_add_running(log, own);
	if (!fits)
		log->low = next;
	log->floor = xmax;
	log->ready = true;
}

/*
 * Make the log of a table: visible to writers first, then the snapshot. So each writer has either
 * seen the log, or is running or has ended for the snapshot.
 */
static void
log_make(Oid relation)
{
	uint64		generation,
				next,
				own = TransactionIdIsValid(GetTopTransactionIdIfAny()) ? own_xid() : 0;
	Snapshot	z;
	int			number;

	/* the first snapshot of a session takes memory, and may fail: not while the log is half made */
	GetLatestSnapshot();
	number = log_begin(relation, &generation);
	if (number < 0)
		return;
	/* see log_find */
	pg_memory_barrier();
	z = GetLatestSnapshot();
	next = U64FromFullTransactionId(ReadNextFullTransactionId());
	LWLockAcquire(posterior_part_lock(&posterior_writer_log_part, number), LW_EXCLUSIVE);
	if (shared->logs[number].generation == generation)
		log_enter_running(&shared->logs[number], z, next, own);
	log_unlock(number);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Whether a snapshot is late enough for what the writer log has forgotten. */
static bool
log_is_late_enough(const PosteriorWriterLog *log, uint64 xmin, uint64 xmax, bool quiet)
{
	/* an earlier snapshot may have an equal xmax, unless nothing was running in this one */
	if (xmax < log->floor || GUARD(QUIET_AT_FLOOR, xmax == log->floor && !quiet))
		return false;
	return !GUARD(XMIN_ABOVE_LOW, xmin < log->low);
}

/* Copy the used part of a writer log. False if there is none that is ready. */
static bool
log_copy(Oid relation, PosteriorWriterLog *copy)
{
	int			number;
	PosteriorWriterLog *log = log_lock(relation, LW_SHARED, &number);
	bool		ready;

	if (log == NULL)
		return false;
	ready = log->ready;
	log->used = posterior_tick();
	memcpy(copy, log, offsetof(PosteriorWriterLog, writers) + log->n * sizeof(PosteriorWriter));
	log_unlock(number);
	return ready;
}

/*
 * What became of a transaction that has ended for a snapshot. It need not have ended: a snapshot
 * does not tell of the reader's own transaction, and of subtransactions, which a writer log's maker
 * may have entered, only by their parents. The lock keeps the log from being cut off while it is
 * asked.
 */
static PosteriorWriterStatus
ask_commit_log(uint64 xid)
{
	TransactionId asked = (TransactionId) xid;
	PosteriorWriterStatus status = POSTERIOR_FORGOTTEN;

	LWLockAcquire(XactTruncationLock, LW_SHARED);
	if (!GUARD(COMMIT_LOG_HORIZON, xid < full_xid(TransamVariables->oldestClogXid)))
		status = TransactionIdDidCommit(asked) ? POSTERIOR_COMMITTED
			   : TransactionIdDidAbort(asked)  ? POSTERIOR_ABORTED
											   : POSTERIOR_STATUS_UNKNOWN;
	LWLockRelease(XactTruncationLock);
	return status;
}

/*
 * Have the writer log, of which this is a copy, remember what has been found out about its writers.
 */
static void
log_remember(const PosteriorWriterLog *copy)
{
	int			number;
	PosteriorWriterLog *log = log_lock(copy->relation, LW_SHARED, &number);

	if (log == NULL)
		return;
	for (int i = 0; i < copy->n; i++)
	{
		PosteriorWriter *w = copy->writers[i].status != POSTERIOR_STATUS_UNKNOWN
							   ? log_find_writer(log, copy->xids[i])
							   : NULL;

		if (w != NULL)
			w->status = copy->writers[i].status;
	}
	log_unlock(number);
}

/*
 * Find out what became of those writers in a copy of a writer log that have ended for a snapshot.
 * False if the commit log does not know: then the writer log forgets them.
 */
static bool
log_learn(PosteriorWriterLog *copy, Snapshot s)
{
	uint64		xmin = full_xid(s->xmin),
				xmax = full_xid(s->xmax);
	bool		learned = false;

	for (int i = 0; i < copy->n; i++)
	{
		PosteriorWriter *w = &copy->writers[i];

		if (w->status != POSTERIOR_STATUS_UNKNOWN || !xid_ended_for(copy->xids[i], xmin, xmax, s))
			continue;
		w->status = ask_commit_log(copy->xids[i]);
		if (w->status == POSTERIOR_FORGOTTEN)
		{
			Snapshot	z = GetLatestSnapshot();
			int			number;
			PosteriorWriterLog *log = log_lock(copy->relation, LW_EXCLUSIVE, &number);

			if (log != NULL)
			{
				log_forget_ended(log, z);
				log_unlock(number);
			}
			return false;
		}
		learned = learned || w->status != POSTERIOR_STATUS_UNKNOWN;
	}
	if (learned)
		log_remember(copy);
	return true;
}

static bool
mark_saw(const PosteriorSnapshotMark *mark, const PosteriorWriter *w, uint64 xid)
{
	if (GUARD(MARK_SEQUENCE, w->sequence >= mark->next))
		return false;
	for (int i = 0; i < mark->n_unseen; i++)
		if (mark->unseen[i] == xid)
			return false;
	return true;
}

/* Add a writer's rows to those that are new; false when they are not known or too many. */
static bool
writer_add_new(const PosteriorWriter *w, Oid file, PosteriorNewRows *more)
{
	const PosteriorInserted *rows = &w->rows;

	if (w->other || w->ddl || more->n + rows->n > (int) lengthof(more->places))
		return false;
	if (GUARD(FILE_MATCHES, rows->n > 0 && rows->file != file))
		return false;
	memcpy(more->places + more->n, rows->places, rows->n * sizeof(*rows->places));
	memcpy(more->xmins + more->n, rows->xmins, rows->n * sizeof(*rows->xmins));
	more->n += rows->n;
	return true;
}

/*
 * A copy of a table's log in which all writers that have ended for a snapshot have their outcome;
 * the log is made if there is none. False if there is none, or if it has this transaction, of which
 * `own` is the xid or 0.
 */
static bool
log_copy_for(Oid relation, Snapshot s, uint64 own, PosteriorWriterLog *copy)
{
	do
	{
		if (!log_copy(relation, copy))
		{
			log_make(relation);
			if (!log_copy(relation, copy))
				return false;
		}
		if (GUARD(OWN_WRITES, own != 0 && log_find_writer(copy, own) != NULL))
			return false;
	} while (!log_learn(copy, s));
	return true;
}

/*
 * Take one writer into the mark, and into the verdict: how its transaction differs between this
 * snapshot and the earlier mark, which may be NULL.
 */
static PosteriorVerdict
writer_compare(const PosteriorWriter *w, uint64 xid, Oid file, Snapshot s, PosteriorVerdict verdict,
			   const PosteriorSnapshotMark *earlier, PosteriorSnapshotMark *mark,
			   PosteriorNewRows *more)
{
	/* the snapshot before the commit log, which has a transaction before it ends for snapshots */
	bool		ended = xid_ended_for(xid, mark->xmin, mark->xmax, s),
				committed = ended && w->status == POSTERIOR_COMMITTED,
				seen;

	if (!GUARD(SNAPSHOT_FIRST, true))
	{
		ended = true;
		committed = TransactionIdDidCommit((TransactionId) xid);
	}
	seen = ended && committed;
	if (!seen)
		mark->unseen[mark->n_unseen++] = xid;
	/* a change of triggers that is not seen may be committed: writes may be unrecorded */
	if (GUARD(DDL_SEEN, w->ddl && !seen && !(ended && !committed)))
		return POSTERIOR_UNKNOWN;
	if (earlier == NULL || verdict == POSTERIOR_OTHER || seen == mark_saw(earlier, w, xid))
		return verdict;
	return seen && writer_add_new(w, file, more) ? POSTERIOR_MORE : POSTERIOR_OTHER;
}

PosteriorVerdict
posterior_writer_log_compare(Oid relation, Oid file, Snapshot s,
							 const PosteriorSnapshotMark *earlier, PosteriorSnapshotMark *mark,
							 PosteriorNewRows *more)
{
	PosteriorWriterLog *log = palloc(sizeof(PosteriorWriterLog));
	PosteriorVerdict verdict = POSTERIOR_SAME;
	uint64		own = TransactionIdIsValid(GetTopTransactionIdIfAny()) ? own_xid() : 0;

	/* a parallel query may not take the snapshots that this may need */
	Assert(!IsInParallelMode());
	more->n = 0;
	if (!log_copy_for(relation, s, own, log))
	{
		pfree(log);
		return POSTERIOR_UNKNOWN;
	}
	mark->generation = log->generation;
	mark->next = log->next;
	mark->xmin = full_xid(s->xmin);
	mark->xmax = full_xid(s->xmax);
	/* a snapshot does not contain the reader's own transaction, which may write the table yet */
	mark->quiet = s->xcnt == 0 && !GUARD(READER_NOT_QUIET, own != 0);
	mark->n_unseen = 0;
	/* the own transaction, which runs, has not been forgotten as one that has ended */
	if (!log_is_late_enough(log, mark->xmin, mark->xmax, s->xcnt == 0))
	{
		pfree(log);
		return POSTERIOR_UNKNOWN;
	}
	/* sequence numbers of a log that was made anew begin anew */
	if (GUARD(GENERATION_MATCHES, earlier != NULL && earlier->generation != log->generation))
		earlier = NULL;
	if (earlier == NULL || !log_is_late_enough(log, earlier->xmin, earlier->xmax, earlier->quiet))
	{
		earlier = NULL;
		verdict = POSTERIOR_OTHER;
	}
	for (int i = 0; i < log->n && verdict != POSTERIOR_UNKNOWN; i++)
		verdict = writer_compare(&log->writers[i], log->xids[i], file, s, verdict, earlier, mark,
								 more);
	pfree(log);
	return verdict;
}

/* ---- the part of shared memory --------------------------------------------------------------- */

/* No session is in this life any more; a log that is missed nevertheless is made anew. */
static void
logs_forget(uint32 incarnation)
{
	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
	{
		PosteriorWriterLog *log = &shared->logs[i];

		if (!OidIsValid(log->relation) || log->incarnation != incarnation)
			continue;
		LWLockAcquire(posterior_part_lock(&posterior_writer_log_part, i), LW_EXCLUSIVE);
		pg_atomic_write_u64(&shared->watched[i], 0);
		log->relation = InvalidOid;
		log->dirty = false;
		LWLockRelease(posterior_part_lock(&posterior_writer_log_part, i));
	}
}

PosteriorSharedPart posterior_writer_log_part = {
	.place = (void **) &shared,.size = logs_size,.initialize = logs_initialize,
	.n_locks = POSTERIOR_WRITER_LOGS,.forget = logs_forget
};

void
posterior_writer_logs_set_launcher(struct Latch *launcher)
{
	shared->launcher = launcher;
}

void
posterior_wake_launcher(void)
{
	struct Latch *launcher = shared->launcher;

	if (launcher != NULL)
		SetLatch(launcher);
}
