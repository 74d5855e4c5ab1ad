/*
 * maintenance_turns.c: which tables have contexts to be encoded ahead, and when.
 *
 * Kept in the writer logs: `written` after a commit, `later` for a context that waits. Writers set
 * them and wake the launcher, which asks what is due; a worker takes the turns of its database, and
 * the launcher drops those that it had offered to a worker that never got there.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/visibility/maintenance_turns.h"

#include "storage/latch.h"

bool
posterior_writer_log_mark_dirty(Oid relation, int number)
{
	PosteriorWriterLog *log = posterior_writer_log_number(number);

	/*
	 * without a lock: at worst another table's contexts are looked at. Usually the log is dirty
	 * already, and the cache line is only read.
	 */
	if (pg_atomic_read_u32(&log->written) == POSTERIOR_DIRTY || log->relation != relation)
		return false;
	pg_atomic_write_u32(&log->written, POSTERIOR_DIRTY);
	return true;
}

static bool
log_is_written(PosteriorWriterLog *log)
{
	return pg_atomic_read_u32(&log->written) != POSTERIOR_CLEAN;
}

static void
due_add(PosteriorDue *due, int *n, PosteriorWriterLog *log)
{
	int			i = 0;

	while (i < *n && due[i].database != log->database)
		i++;
	if (i == *n)
		due[(*n)++] = (PosteriorDue) {log->database, false, DT_NOEND};
	due[i].dirty = due[i].dirty || log_is_written(log);
	if (log->later != 0)
		due[i].later = Min(due[i].later, log->later);
}

int
posterior_writer_log_due(PosteriorDue *due)
{
	int			n = 0;

	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
	{
		PosteriorWriterLog *log = posterior_writer_log_number(i);

		LWLockAcquire(posterior_part_lock(&posterior_writer_log_part, i), LW_SHARED);
		if (OidIsValid(log->relation) && (log_is_written(log) || log->later != 0))
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
		PosteriorWriterLog *log = posterior_writer_log_number(i);

		LWLockAcquire(posterior_part_lock(&posterior_writer_log_part, i), LW_EXCLUSIVE);
		if (log->database == database && OidIsValid(log->relation)
			&& (log_is_written(log) || (log->later != 0 && log->later <= now)))
		{
			turns[n++] = (PosteriorMaintenanceTurn) {log->relation, log->later};
			/* the caller reads the rows after this: those of a writer that comes just now, too */
			pg_atomic_write_u32(&log->written, POSTERIOR_CLEAN);
			log->later = 0;
		}
		LWLockRelease(posterior_part_lock(&posterior_writer_log_part, i));
	}
	return n;
}

/*
 * Where a log of the database has been written as `from` says, let it be `to`. A writer that comes
 * meanwhile, and takes no lock, has the last word. `forget`: no context waits any more.
 */
static void
logs_exchange(Oid database, PosteriorWritten from, PosteriorWritten to, bool forget)
{
	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
	{
		PosteriorWriterLog *log = posterior_writer_log_number(i);
		uint32		expected = from;

		LWLockAcquire(posterior_part_lock(&posterior_writer_log_part, i), LW_EXCLUSIVE);
		if (log->database == database && OidIsValid(log->relation))
		{
			pg_atomic_compare_exchange_u32(&log->written, &expected, to);
			if (forget)
				log->later = 0;
		}
		LWLockRelease(posterior_part_lock(&posterior_writer_log_part, i));
	}
}

void
posterior_writer_log_offer(Oid database)
{
	logs_exchange(database, POSTERIOR_DIRTY, POSTERIOR_OFFERED, false);
}

void
posterior_writer_log_drop(Oid database)
{
	/* only a worker that got there could have made a context wait since */
	logs_exchange(database, POSTERIOR_OFFERED, POSTERIOR_CLEAN, true);
}

void
posterior_writer_log_postpone(Oid relation, TimestampTz until)
{
	int			number;
	PosteriorWriterLog *log = posterior_writer_log_lock(relation, LW_EXCLUSIVE, &number);

	if (log == NULL)
		return;
	log->later = log->later == 0 ? until : Min(log->later, until);
	posterior_writer_log_unlock(number);
}

void
posterior_writer_logs_set_launcher(struct Latch *launcher)
{
	*posterior_writer_logs_launcher() = launcher;
}

void
posterior_wake_launcher(void)
{
	struct Latch *launcher = *posterior_writer_logs_launcher();

	if (launcher != NULL)
		SetLatch(launcher);
}
