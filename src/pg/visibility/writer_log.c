/*
 * writer_log.c: which transactions wrote a table.
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
 * Making a log. The first reader of a table that has none takes a place, by LRU
 * (posterior_writer_log_make). Writers do not wait for it. The order of steps on both sides makes
 * that safe:
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
 * under its lock; and `written`, which may at worst wake the launcher in vain. `status` is written
 * under the shared lock: all that write it write equal values. ask_commit_log() takes
 * XactTruncationLock while it holds no other lock.
 *
 * Callers. Entering: from triggers' transactions at PRE_COMMIT and PRE_PREPARE, from the object
 * access hook, and from triggers that fire later. It may raise, which aborts the transaction, and
 * needs an xid. Comparing (snapshot_mark.c): from readers in a transaction, not in a parallel
 * query, which may take no snapshot. Turns of the contexts that are encoded ahead are in
 * maintenance_turns.c; what a transaction calls of it after its commit must not fail.
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

PosteriorWriterLog *
posterior_writer_log_number(int number)
{
	return &shared->logs[number];
}

struct Latch **
posterior_writer_logs_launcher(void)
{
	return &shared->launcher;
}

static Size
logs_size(void)
{
	return sizeof(WriterLogs);
}

static void
logs_initialize(void *part)
{
	WriterLogs *new = part;

	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
	{
		pg_atomic_init_u64(&new->watched[i], 0);
		pg_atomic_init_u32(&new->logs[i].written, POSTERIOR_CLEAN);
	}
}

/* The full form of an xid that is less than 2^31 transactions away from now. */
uint64
posterior_full_xid(TransactionId xid)
{
	FullTransactionId next = ReadNextFullTransactionId();
	uint32		epoch = EpochFromFullTransactionId(next);

	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return U64FromFullTransactionId(FullTransactionIdFromEpochAndXid(epoch, xid));
}

uint64
posterior_own_xid(void)
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
 * its own. A writer that finds none has had its xid since before this barrier;
 * posterior_writer_log_make() reads the running xids after its own barrier, and so enters the
 * writer.
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
PosteriorWriterLog *
posterior_writer_log_lock(Oid relation, LWLockMode mode, int *number)
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

void
posterior_writer_log_unlock(int number)
{
	LWLockRelease(posterior_part_lock(&posterior_writer_log_part, number));
}

/* ---- entering -------------------------------------------------------------------------------- */

/* The entry of a transaction, or NULL. */
PosteriorWriter *
posterior_writer_find(PosteriorWriterLog *log, uint64 xid)
{
	for (int i = log->n - 1; i >= 0; i--)
		if (log->xids[i] == xid)
			return &log->writers[i];
	return NULL;
}

/* Whether a snapshot sees that a transaction has ended. */
bool
posterior_xid_ended_for(uint64 xid, uint64 xmin, uint64 xmax, Snapshot s)
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
bool
posterior_writer_log_forget_ended(PosteriorWriterLog *log, Snapshot z)
{
	uint64		xmin = posterior_full_xid(z->xmin),
				xmax = posterior_full_xid(z->xmax);
	int			kept = 0;

	for (int i = 0; i < log->n; i++)
		if (!posterior_xid_ended_for(log->xids[i], xmin, xmax, z))
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
	if (posterior_writer_log_forget_ended(log, z))
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
		PosteriorWriterLog *log = posterior_writer_log_lock(relation, LW_EXCLUSIVE, &number);
		PosteriorWriter *w;
		Snapshot	z;

		if (log == NULL)
			return -1;
		w = posterior_writer_find(log, xid);
		if (w != NULL || log->n < POSTERIOR_WRITERS)
		{
			if (w != NULL)
				writer_change(w, rows, ddl);
			else
				log_add_writer(log, xid, rows, ddl);
			posterior_writer_log_unlock(number);
			return number;
		}
		posterior_writer_log_unlock(number);
		/* the snapshot is taken without the lock; only its being recent matters */
		z = GetLatestSnapshot();
		log = posterior_writer_log_lock(relation, LW_EXCLUSIVE, &number);
		if (log == NULL)
			return -1;
		if (log->n == POSTERIOR_WRITERS)
			log_forget_some(log, z);
		posterior_writer_log_unlock(number);
	}
}

/*
 * The xid comes first, the log second: a maker of the log enters all transactions that have an xid.
 * A transaction that only writes needs shared memory here for the first time.
 */
int
posterior_writer_log_record(Oid relation, const PosteriorInserted *rows)
{
	uint64		xid = posterior_own_xid();

	posterior_shared_attach();
	return log_enter(relation, xid, rows, false);
}

void
posterior_writer_log_record_ddl(Oid relation)
{
	uint64		xid = posterior_own_xid();

	posterior_shared_attach();
	log_enter(relation, xid, NULL, true);
}

void
posterior_writer_log_record_all(void)
{
	uint64		xid = posterior_own_xid();
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
	PosteriorWriter *w = posterior_writer_find(log, xid);

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
	log->ready = false;
	pg_atomic_write_u32(&log->written, POSTERIOR_CLEAN);
	log->later = 0;
	log->used = *generation;
	log->next = 1;
	log->low = log->floor = 0;
	log->n = 0;
	pg_atomic_write_u64(&shared->watched[number], watched_key(relation));
	posterior_writer_log_unlock(number);
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
	uint64		xmax = posterior_full_xid(z->xmax);
	bool		fits = z->xcnt + (next - xmax) + log->n + 1 <= POSTERIOR_WRITERS;

	for (uint32 i = 0; GUARD(RUNNING_ENTERED, fits && i < z->xcnt); i++)
		log_add_running(log, posterior_full_xid(z->xip[i]));
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
void
posterior_writer_log_make(Oid relation)
{
	uint64		generation,
				next,
				own = TransactionIdIsValid(GetTopTransactionIdIfAny()) ? posterior_own_xid() : 0;
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
	posterior_writer_log_unlock(number);
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
		pg_atomic_write_u32(&log->written, POSTERIOR_CLEAN);
		LWLockRelease(posterior_part_lock(&posterior_writer_log_part, i));
	}
}

PosteriorSharedPart posterior_writer_log_part = {
	.place = (void **) &shared,.size = logs_size,.initialize = logs_initialize,
	.n_locks = POSTERIOR_WRITER_LOGS,.forget = logs_forget
};
