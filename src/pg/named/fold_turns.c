/*
 * fold_turns.c: which contexts that keep sums have many notes.
 *
 * Writers mark a context after a transaction that has noted many rows, and readers when they meet
 * many: so what is lost here, in a crash or with a worker that ended early, is found again. A mark
 * for a context that has no notes, or is gone, costs a worker that finds nothing to do.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/fold_turns.h"

#include "miscadmin.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

typedef struct FoldTurn
{
	Oid			database;		/* 0: free */
	pg_uuid_t	kept;
	bool		waits;			/* for a worker */
	bool		offered;		/* to one that was started after the mark */
	TimestampTz later;			/* not before; 0: as soon as can be */
} FoldTurn;

/* In shared memory. */
typedef struct FoldTurns
{
	slock_t		lock;			/* held for a look at each */
	FoldTurn	turns[POSTERIOR_FOLD_TURNS];
} FoldTurns;

static FoldTurns *shared = NULL;

static Size
turns_size(void)
{
	return sizeof(FoldTurns);
}

static void
turns_initialize(void *part)
{
	SpinLockInit(&((FoldTurns *) part)->lock);
}

PosteriorSharedPart posterior_fold_turns_part = {
	.place = (void **) &shared,.size = turns_size,.initialize = turns_initialize
};

/*
 * The turn of a context of this database, which may take the place of one that waits for nothing;
 * NULL if there is none. The lock is held.
 */
static FoldTurn *
turn_find(const pg_uuid_t *kept, TimestampTz now)
{
	FoldTurn   *free = NULL;

	for (int i = 0; i < POSTERIOR_FOLD_TURNS; i++)
	{
		FoldTurn   *t = &shared->turns[i];

		if (t->database == MyDatabaseId && memcmp(&t->kept, kept, sizeof(pg_uuid_t)) == 0)
			return t;
		if (!OidIsValid(t->database) || (!t->waits && t->later <= now))
			free = t;
	}
	if (free != NULL)
		*free = (FoldTurn) {.database = MyDatabaseId,.kept = *kept};
	return free;
}

void
posterior_fold_turn_mark(const pg_uuid_t *kept)
{
	TimestampTz now = GetCurrentTimestamp();
	FoldTurn   *turn;
	bool		marked;

	if (!posterior_is_shared || *posterior_writer_logs_launcher() == NULL)
		return;
	SpinLockAcquire(&shared->lock);
	turn = turn_find(kept, now);
	marked = turn != NULL && (!turn->waits || turn->offered);
	if (marked)
	{
		turn->waits = true;
		turn->offered = false;
		if (turn->later <= now)
			turn->later = 0;
	}
	SpinLockRelease(&shared->lock);
	if (marked)
		posterior_wake_launcher();
}

void
posterior_fold_turn_rest(const pg_uuid_t *kept, TimestampTz until, bool again)
{
	TimestampTz now = GetCurrentTimestamp();
	FoldTurn   *turn;

	SpinLockAcquire(&shared->lock);
	turn = turn_find(kept, now);
	if (turn != NULL)
	{
		turn->later = until;
		if (again)
		{
			turn->waits = true;
			turn->offered = false;
		}
	}
	SpinLockRelease(&shared->lock);
}

int
posterior_fold_turns_due(PosteriorDue *due, int n)
{
	SpinLockAcquire(&shared->lock);
	for (int t = 0; t < POSTERIOR_FOLD_TURNS; t++)
	{
		const FoldTurn *turn = &shared->turns[t];
		int			i = 0;

		if (!OidIsValid(turn->database) || !turn->waits)
			continue;
		while (i < n && due[i].database != turn->database)
			i++;
		if (i == POSTERIOR_WRITER_LOGS)
			continue;
		if (i == n)
			due[n++] = (PosteriorDue) {turn->database, false, DT_NOEND};
		due[i].dirty = due[i].dirty || turn->later == 0;
		if (turn->later != 0)
			due[i].later = Min(due[i].later, turn->later);
	}
	SpinLockRelease(&shared->lock);
	return n;
}

int
posterior_fold_turns_take(Oid database, TimestampTz now, pg_uuid_t *kept)
{
	int			n = 0;

	SpinLockAcquire(&shared->lock);
	for (int t = 0; t < POSTERIOR_FOLD_TURNS; t++)
	{
		FoldTurn   *turn = &shared->turns[t];

		if (turn->database != database || !turn->waits || turn->later > now)
			continue;
		kept[n++] = turn->kept;
		turn->waits = false;
		turn->later = 0;
	}
	SpinLockRelease(&shared->lock);
	return n;
}

void
posterior_fold_turns_offer(Oid database)
{
	SpinLockAcquire(&shared->lock);
	for (int t = 0; t < POSTERIOR_FOLD_TURNS; t++)
		if (shared->turns[t].database == database && shared->turns[t].waits)
			shared->turns[t].offered = true;
	SpinLockRelease(&shared->lock);
}

void
posterior_fold_turns_drop(Oid database)
{
	SpinLockAcquire(&shared->lock);
	for (int t = 0; t < POSTERIOR_FOLD_TURNS; t++)
	{
		FoldTurn   *turn = &shared->turns[t];

		if (turn->database == database && turn->waits && turn->offered)
		{
			turn->waits = false;
			turn->later = 0;
		}
	}
	SpinLockRelease(&shared->lock);
}
