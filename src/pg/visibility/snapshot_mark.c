/*
 * snapshot_mark.c: what a snapshot shows of a writer log, compared with what an earlier one showed.
 *
 * The reader copies the log, finds out what became of its writers, and decides for each of them
 * whether both snapshots see it alike. Nothing is decided under the log's lock, and what has been
 * found out goes back into the log: the commit log may forget it first.
 *
 * Locks, callers and lifetimes are described at the head of writer_log.c; each GUARD is a step of
 * the proof in docs/snapshots.md.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/visibility/snapshot_mark.h"

#include "pg/base/guard.h"
#include "pg/shmem/shared.h"

#include "access/transam.h"
#include "access/xact.h"
#include "utils/snapmgr.h"

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
	PosteriorWriterLog *log = posterior_writer_log_lock(relation, LW_SHARED, &number);
	bool		ready;

	if (log == NULL)
		return false;
	ready = log->ready;
	log->used = posterior_tick();
	memcpy(copy, log, offsetof(PosteriorWriterLog, writers) + log->n * sizeof(PosteriorWriter));
	posterior_writer_log_unlock(number);
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
	if (!GUARD(COMMIT_LOG_HORIZON, xid < posterior_full_xid(TransamVariables->oldestClogXid)))
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
	PosteriorWriterLog *log = posterior_writer_log_lock(copy->relation, LW_SHARED, &number);

	if (log == NULL)
		return;
	for (int i = 0; i < copy->n; i++)
	{
		PosteriorWriter *w = copy->writers[i].status != POSTERIOR_STATUS_UNKNOWN
							   ? posterior_writer_find(log, copy->xids[i])
							   : NULL;

		if (w != NULL)
			w->status = copy->writers[i].status;
	}
	posterior_writer_log_unlock(number);
}

/*
 * Find out what became of those writers in a copy of a writer log that have ended for a snapshot.
 * False if the commit log does not know: then the writer log forgets them.
 */
static bool
log_learn(PosteriorWriterLog *copy, Snapshot s)
{
	uint64		xmin = posterior_full_xid(s->xmin),
				xmax = posterior_full_xid(s->xmax);
	bool		learned = false;

	for (int i = 0; i < copy->n; i++)
	{
		PosteriorWriter *w = &copy->writers[i];

		if (w->status != POSTERIOR_STATUS_UNKNOWN
			|| !posterior_xid_ended_for(copy->xids[i], xmin, xmax, s))
			continue;
		w->status = ask_commit_log(copy->xids[i]);
		if (w->status == POSTERIOR_FORGOTTEN)
		{
			Snapshot	z = GetLatestSnapshot();
			int			number;
			PosteriorWriterLog *log = posterior_writer_log_lock(copy->relation, LW_EXCLUSIVE,
																&number);

			if (log != NULL)
			{
				posterior_writer_log_forget_ended(log, z);
				posterior_writer_log_unlock(number);
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
			posterior_writer_log_make(relation);
			if (!log_copy(relation, copy))
				return false;
		}
		if (GUARD(OWN_WRITES, own != 0 && posterior_writer_find(copy, own) != NULL))
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
	bool		ended = posterior_xid_ended_for(xid, mark->xmin, mark->xmax, s),
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
	uint64		own = TransactionIdIsValid(GetTopTransactionIdIfAny()) ? posterior_own_xid() : 0;

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
	mark->xmin = posterior_full_xid(s->xmin);
	mark->xmax = posterior_full_xid(s->xmax);
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
