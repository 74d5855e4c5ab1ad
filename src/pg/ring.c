/*
 * ring.c: rings of writers: entering, forgetting, and what a reader can conclude.
 *
 * The order of things is everything here; docs/snapshots.md proves each, and says which guards have a mutant (POSTERIOR_MUTANT_n) without it that a test must
 * find.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "ring.h"

#include "shared.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

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

/* ---- finding a ring ------------------------------------------------------------------------------------------------ */

/* A table in the list of those that have rings. */
static uint64
watched(Oid relation)
{
	return (uint64) MyDatabaseId << 32 | relation;
}

/*
 * The number of a table's ring, or -1. Without a lock, so the ring must be looked at again under its own. Who finds none while one is being made has got his
 * xid before the barrier here, and make_ring looks at who is running after the one there: it enters him.
 */
static int
find_ring(Oid relation)
{
	uint64		wanted = watched(relation);

	pg_memory_barrier();
	for (int i = 0; i < POSTERIOR_RINGS; i++)
		if (pg_atomic_read_u64(&posterior_shared->watched[i]) == wanted)
			return i;
	return -1;
}

/* Lock the ring of this number if it is the table's. */
static PosteriorRing *
lock_number(Oid relation, LWLockMode mode, int number)
{
	PosteriorRing *ring = &posterior_shared->rings[number];

	LWLockAcquire(posterior_ring_lock(number), mode);
	if (ring->relation == relation && ring->database == MyDatabaseId)
		return ring;
	LWLockRelease(posterior_ring_lock(number));
	return NULL;
}

/* Lock a table's ring; NULL if there is none. */
static PosteriorRing *
lock_ring(Oid relation, LWLockMode mode, int *number)
{
	static int	last = 0;		/* a session mostly writes one table: look there first */

	if (pg_atomic_read_u64(&posterior_shared->watched[last]) != watched(relation))
	{
		int			found = find_ring(relation);

		if (found < 0)
			return NULL;
		last = found;
	}
	*number = last;
	/* it may have become another table's meanwhile: then the ring that this one may have now has entered us when it was made */
	return lock_number(relation, mode, *number);
}

static void
unlock_ring(int number)
{
	LWLockRelease(posterior_ring_lock(number));
}

/* ---- entering ------------------------------------------------------------------------------------------------------ */

/* The entry of a transaction, or NULL. */
static PosteriorWriter *
find_writer(PosteriorRing *ring, uint64 xid)
{
	for (int i = ring->n - 1; i >= 0; i--)
		if (ring->xids[i] == xid)
			return &ring->writers[i];
	return NULL;
}

/* Whether a snapshot sees that a transaction has ended. */
static bool
ended_for(uint64 xid, uint64 xmin, uint64 xmax, Snapshot s)
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

/* Forget those that have ended for the snapshot z; true if there were any. */
static bool
forget_ended(PosteriorRing *ring, Snapshot z)
{
	uint64		xmin = full_xid(z->xmin),
				xmax = full_xid(z->xmax);
	int			kept = 0;

	for (int i = 0; i < ring->n; i++)
		if (!ended_for(ring->xids[i], xmin, xmax, z))
		{
			ring->xids[kept] = ring->xids[i];
			ring->writers[kept++] = ring->writers[i];
		}
	if (kept == ring->n)
		return false;
	ring->n = kept;
#ifndef POSTERIOR_MUTANT_21
	ring->floor = Max(ring->floor, xmax);
#endif
	return true;
}

/* Make room for an entry: forget those that have ended, or if there are none, the oldest. */
static void
forget(PosteriorRing *ring, Snapshot z)
{
	if (forget_ended(ring, z))
		return;
#ifndef POSTERIOR_MUTANT_3
	ring->low = Max(ring->low, ring->xids[0] + 1);
#endif
	ring->n--;
	memmove(&ring->xids[0], &ring->xids[1], ring->n * sizeof(ring->xids[0]));
	memmove(&ring->writers[0], &ring->writers[1], ring->n * sizeof(ring->writers[0]));
}

static void
set_rows(PosteriorWriter *w, const PosteriorInserted *rows)
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
add_writer(PosteriorRing *ring, uint64 xid, const PosteriorInserted *rows, bool ddl)
{
	PosteriorWriter *w = &ring->writers[ring->n];

	ring->xids[ring->n++] = xid;
	w->sequence = ring->next++;
	w->fate = POSTERIOR_NOT_ASKED;
	w->ddl = ddl;
	set_rows(w, rows);
}

/*
 * What an entry that is there already becomes. It is there because its transaction has changed the table, or was running when the ring was made, and perhaps
 * had written while the triggers were off, with no ring to tell it to: so it stays "other", whatever the triggers have noted.
 */
static void
change_writer(PosteriorWriter *w, const PosteriorInserted *rows, bool ddl)
{
#ifdef POSTERIOR_MUTANT_10
	if (rows != NULL && w->ddl)
	{
		w->ddl = false;
		set_rows(w, rows);
		return;
	}
#endif
#ifdef POSTERIOR_MUTANT_27
	if (rows != NULL && !w->ddl)
	{
		set_rows(w, rows);
		return;
	}
#endif
	w->other = true;
	w->ddl = w->ddl || ddl;
}

/* Enter a transaction in the ring of a table; the ring's number, or -1 if there is none. */
static int
enter(Oid relation, uint64 xid, const PosteriorInserted *rows, bool ddl)
{
	for (;;)
	{
		int			number;
		PosteriorRing *ring = lock_ring(relation, LW_EXCLUSIVE, &number);
		PosteriorWriter *w;
		Snapshot	z;

		if (ring == NULL)
			return -1;
		w = find_writer(ring, xid);
		if (w != NULL || ring->n < POSTERIOR_WRITERS)
		{
			if (w != NULL)
				change_writer(w, rows, ddl);
			else
				add_writer(ring, xid, rows, ddl);
			unlock_ring(number);
			return number;
		}
		unlock_ring(number);
		/* the snapshot is taken without the lock; only its being recent matters */
		z = GetLatestSnapshot();
		ring = lock_ring(relation, LW_EXCLUSIVE, &number);
		if (ring == NULL)
			return -1;
		if (ring->n == POSTERIOR_WRITERS)
			forget(ring, z);
		unlock_ring(number);
	}
}

/* The xid comes first, the ring second: whoever makes the ring later enters all who have an xid. */
int
posterior_ring_enter(Oid relation, const PosteriorInserted *rows)
{
	uint64		xid = own_xid();

	return enter(relation, xid, rows, false);
}

void
posterior_ring_enter_ddl(Oid relation)
{
	uint64		xid = own_xid();

	enter(relation, xid, NULL, true);
}

bool
posterior_ring_mark_dirty(Oid relation, int number)
{
	PosteriorRing *ring = &posterior_shared->rings[number];

	/* without a lock: at worst another table's contexts are looked at. Mostly it is dirty already, and the line is only read. */
	if (ring->dirty || ring->relation != relation)
		return false;
	ring->dirty = true;
	return true;
}

void
posterior_ring_enter_all(void)
{
	uint64		xid = own_xid();
	Oid			relations[POSTERIOR_RINGS];
	int			n = 0;

	posterior_lock(LW_SHARED);
	for (int i = 0; i < POSTERIOR_RINGS; i++)
		if (OidIsValid(posterior_shared->rings[i].relation) && posterior_shared->rings[i].database == MyDatabaseId)
			relations[n++] = posterior_shared->rings[i].relation;
	posterior_unlock();
	for (int i = 0; i < n; i++)
		enter(relations[i], xid, NULL, true);
}

/* ---- making a ring ------------------------------------------------------------------------------------------------- */

/* Enter a transaction that has not ended and has an xid already: what it has done before there was a ring, nobody knows. */
static void
add_running(PosteriorRing *ring, uint64 xid)
{
	PosteriorWriter *w = find_writer(ring, xid);

	if (w == NULL)
		add_writer(ring, xid, NULL, false);
	else
		change_writer(w, NULL, false);
}

/*
 * Make the ring of a table: first visible to writers, then the snapshot: so each writer has either been told of the ring or is seen as running or as ended.
 */
static void
make_ring(Oid relation)
{
	PosteriorRing *ring = NULL;
	Snapshot	z;
	uint64		next,
				xmax,
				generation,
				own = TransactionIdIsValid(GetTopTransactionIdIfAny()) ? own_xid() : 0;
	int			number = 0;

	/* the first one takes memory, and may fail: not while the ring is half made */
	GetLatestSnapshot();
	posterior_lock(LW_EXCLUSIVE);
	for (int i = 0; i < POSTERIOR_RINGS; i++)
	{
		PosteriorRing *r = &posterior_shared->rings[i];

		if (r->relation == relation && r->database == MyDatabaseId)
		{
			posterior_unlock();
			return;
		}
		if (ring == NULL || (OidIsValid(ring->relation) && (!OidIsValid(r->relation) || r->used < ring->used)))
		{
			ring = r;
			number = i;
		}
	}
	LWLockAcquire(posterior_ring_lock(number), LW_EXCLUSIVE);
	generation = ring->generation = posterior_tick();
	ring->database = MyDatabaseId;
	ring->relation = relation;
	ring->ready = ring->dirty = false;
	ring->used = generation;
	ring->next = 1;
	ring->low = ring->floor = 0;
	ring->n = 0;
	pg_atomic_write_u64(&posterior_shared->watched[number], watched(relation));
	unlock_ring(number);
	posterior_unlock();
	/* see find_ring */
	pg_memory_barrier();

	z = GetLatestSnapshot();
	xmax = full_xid(z->xmax);
	next = U64FromFullTransactionId(ReadNextFullTransactionId());
	LWLockAcquire(posterior_ring_lock(number), LW_EXCLUSIVE);
	if (ring->generation == generation)
	{
		bool		fits = z->xcnt + (next - xmax) + ring->n + 1 <= POSTERIOR_WRITERS;

#ifndef POSTERIOR_MUTANT_23
		for (uint32 i = 0; fits && i < z->xcnt; i++)
			add_running(ring, full_xid(z->xip[i]));
#endif
#ifndef POSTERIOR_MUTANT_24
		for (uint64 xid = xmax; fits && xid < next; xid++)
			if (TransactionIdIsNormal((TransactionId) xid))
				add_running(ring, xid);
#endif
#ifndef POSTERIOR_MUTANT_31
		/* a snapshot says nothing of who takes it */
		if (fits && own != 0)
			add_running(ring, own);
#endif
		if (!fits)
			ring->low = next;
		ring->floor = xmax;
		ring->ready = true;
	}
	unlock_ring(number);
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

/* Whether a snapshot is late enough for what the ring has forgotten. */
static bool
late_enough(const PosteriorRing *ring, uint64 xmin, uint64 xmax, bool quiet)
{
#ifdef POSTERIOR_MUTANT_22
	if (xmax < ring->floor)
		return false;
#else
	/* with an equal xmax it must not have had anything running: an earlier snapshot may have the same xmax */
	if (xmax < ring->floor || (xmax == ring->floor && !quiet))
		return false;
#endif
#ifdef POSTERIOR_MUTANT_6
	return true;
#else
	return xmin >= ring->low;
#endif
}

/* Copy the used part of a ring. False if there is none that is ready. */
static bool
copy_ring(Oid relation, PosteriorRing *copy)
{
	int			number;
	PosteriorRing *ring = lock_ring(relation, LW_SHARED, &number);
	bool		ready;

	if (ring == NULL)
		return false;
	ready = ring->ready;
	ring->used = posterior_tick();
	memcpy(copy, ring, offsetof(PosteriorRing, writers) + ring->n * sizeof(PosteriorWriter));
	unlock_ring(number);
	return ready;
}

/*
 * What became of a transaction that has ended for a snapshot. It need not have ended: a snapshot does not tell of the reader's own transaction, and of
 * subtransactions, which a ring's maker may have entered, only by their parents. The lock keeps the log from being cut off while it is asked.
 */
static PosteriorFate
ask_log(uint64 xid)
{
	TransactionId asked = (TransactionId) xid;
	PosteriorFate fate = POSTERIOR_FORGOTTEN;

	LWLockAcquire(XactTruncationLock, LW_SHARED);
#ifndef POSTERIOR_MUTANT_42
	if (xid >= full_xid(TransamVariables->oldestClogXid))
#endif
		fate = TransactionIdDidCommit(asked) ? POSTERIOR_COMMITTED : TransactionIdDidAbort(asked) ? POSTERIOR_ABORTED : POSTERIOR_NOT_ASKED;
	LWLockRelease(XactTruncationLock);
	return fate;
}

/* Have the ring, of which this is a copy, remember what has been found out about its writers. */
static void
remember(const PosteriorRing *copy)
{
	int			number;
	PosteriorRing *ring = lock_ring(copy->relation, LW_SHARED, &number);

	if (ring == NULL)
		return;
	for (int i = 0; i < copy->n; i++)
	{
		PosteriorWriter *w = copy->writers[i].fate != POSTERIOR_NOT_ASKED ? find_writer(ring, copy->xids[i]) : NULL;

		if (w != NULL)
			w->fate = copy->writers[i].fate;
	}
	unlock_ring(number);
}

/* Find out what became of those writers in a copy of a ring that have ended for a snapshot. False if the commit log does not know: then the ring forgets them. */
static bool
learn(PosteriorRing *copy, Snapshot s)
{
	uint64		xmin = full_xid(s->xmin),
				xmax = full_xid(s->xmax);
	bool		learned = false;

	for (int i = 0; i < copy->n; i++)
	{
		PosteriorWriter *w = &copy->writers[i];

		if (w->fate != POSTERIOR_NOT_ASKED || !ended_for(copy->xids[i], xmin, xmax, s))
			continue;
		w->fate = ask_log(copy->xids[i]);
		if (w->fate == POSTERIOR_FORGOTTEN)
		{
			Snapshot	z = GetLatestSnapshot();
			int			number;
			PosteriorRing *ring = lock_ring(copy->relation, LW_EXCLUSIVE, &number);

			if (ring != NULL)
			{
				forget_ended(ring, z);
				unlock_ring(number);
			}
			return false;
		}
		learned = learned || w->fate != POSTERIOR_NOT_ASKED;
	}
	if (learned)
		remember(copy);
	return true;
}

static bool
was_seen(const PosteriorSight *sight, const PosteriorWriter *w, uint64 xid)
{
#ifndef POSTERIOR_MUTANT_7
	if (w->sequence >= sight->next)
		return false;
#endif
	for (int i = 0; i < sight->n_unseen; i++)
		if (sight->unseen[i] == xid)
			return false;
	return true;
}

/* Add a writer's rows to those that are new; false when they are not known or too many. */
static bool
add_new(const PosteriorWriter *w, Oid file, PosteriorNew *more)
{
	const PosteriorInserted *rows = &w->rows;

	if (w->other || w->ddl || more->n + rows->n > (int) lengthof(more->places))
		return false;
#ifndef POSTERIOR_MUTANT_12
	if (rows->n > 0 && rows->file != file)
		return false;
#endif
	memcpy(more->places + more->n, rows->places, rows->n * sizeof(*rows->places));
	memcpy(more->xmins + more->n, rows->xmins, rows->n * sizeof(*rows->xmins));
	more->n += rows->n;
	return true;
}

PosteriorVerdict
posterior_ring_look(Oid relation, Oid file, Snapshot s, const PosteriorSight *earlier, PosteriorSight *sight, PosteriorNew *more)
{
	PosteriorRing *ring = palloc(sizeof(PosteriorRing));
	PosteriorVerdict verdict = POSTERIOR_SAME;
	uint64		own = TransactionIdIsValid(GetTopTransactionIdIfAny()) ? own_xid() : 0;

	/* in a parallel query nobody could take the snapshots that this may need */
	Assert(!IsInParallelMode());
	more->n = 0;
	do
	{
		if (!copy_ring(relation, ring))
		{
			make_ring(relation);
			if (!copy_ring(relation, ring))
				return POSTERIOR_UNKNOWN;
		}
#ifndef POSTERIOR_MUTANT_5
		if (own != 0 && find_writer(ring, own) != NULL)
			return POSTERIOR_UNKNOWN;
#endif
	} while (!learn(ring, s));
	sight->generation = ring->generation;
	sight->next = ring->next;
	sight->xmin = full_xid(s->xmin);
	sight->xmax = full_xid(s->xmax);
	/* a snapshot says nothing of the reader's own transaction, which may write the table yet */
#ifdef POSTERIOR_MUTANT_30
	sight->quiet = s->xcnt == 0;
#else
	sight->quiet = s->xcnt == 0 && own == 0;
#endif
	sight->n_unseen = 0;
	/* it has not been forgotten as one that has ended */
	if (!late_enough(ring, sight->xmin, sight->xmax, s->xcnt == 0))
	{
		pfree(ring);
		return POSTERIOR_UNKNOWN;
	}
	/* numbers of a ring that was made anew begin anew */
#ifndef POSTERIOR_MUTANT_41
	if (earlier != NULL && earlier->generation != ring->generation)
		earlier = NULL;
#endif
	if (earlier == NULL || !late_enough(ring, earlier->xmin, earlier->xmax, earlier->quiet))
	{
		earlier = NULL;
		verdict = POSTERIOR_OTHER;
	}
	for (int i = 0; i < ring->n; i++)
	{
		const PosteriorWriter *w = &ring->writers[i];
		uint64		xid = ring->xids[i];
		bool		ended,
					committed,
					seen;

		if (verdict == POSTERIOR_UNKNOWN)
			break;
		/* the snapshot before the commit log: a transaction is in the log before it has ended for snapshots */
		ended = ended_for(xid, sight->xmin, sight->xmax, s);
		committed = ended && w->fate == POSTERIOR_COMMITTED;
#ifdef POSTERIOR_MUTANT_2
		ended = true;
		committed = TransactionIdDidCommit((TransactionId) xid);
#endif
		seen = ended && committed;
		if (!seen)
			sight->unseen[sight->n_unseen++] = xid;
#ifndef POSTERIOR_MUTANT_26
		/* while a change of the table or its triggers is not seen and may be committed, there may be writers who told nobody */
		if (w->ddl && !seen && !(ended && !committed))
			verdict = POSTERIOR_UNKNOWN;
#endif
		if (earlier != NULL && seen != was_seen(earlier, w, xid) && verdict != POSTERIOR_UNKNOWN && verdict != POSTERIOR_OTHER)
			verdict = seen && add_new(w, file, more) ? POSTERIOR_MORE : POSTERIOR_OTHER;
	}
	pfree(ring);
	return verdict;
}
