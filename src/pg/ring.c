/*
 * ring.c: rings of writers: entering, forgetting, and what a reader can conclude.
 *
 * The order of things is everything here; docs/snapshots.md proves each, and each guard has a mutant (POSTERIOR_MUTANT_n) without it that the
 * history checker or an isolation test must find.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "ring.h"

#include "shared.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

#define TOO_OLD UINT64CONST(100000000)	/* transactions after which the commit log may be gone */

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

/* The number of a table's ring, or -1. */
static int
find_ring(Oid relation)
{
	int			found = -1;

	posterior_lock(LW_SHARED);
	for (int i = 0; i < POSTERIOR_RINGS; i++)
		if (posterior_shared->rings[i].relation == relation && posterior_shared->rings[i].database == MyDatabaseId)
		{
			found = i;
			break;
		}
	posterior_unlock();
	return found;
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
	static int	last = 0;		/* a session mostly writes one table: look there first, without the directory */
	PosteriorRing *ring = lock_number(relation, mode, last);

	*number = last;
	if (ring != NULL)
		return ring;
	*number = find_ring(relation);
	if (*number < 0)
		return NULL;
	last = *number;
	/* it may have become another table's meanwhile */
	return lock_number(relation, mode, *number);
}

static void
unlock_ring(int number)
{
	LWLockRelease(posterior_ring_lock(number));
}

/* ---- entering ------------------------------------------------------------------------------------------------------ */

static PosteriorWriter *
find_writer(PosteriorRing *ring, uint64 xid)
{
	for (int i = 0; i < ring->n; i++)
		if (ring->writers[i].xid == xid)
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

/* Make room for an entry: forget those that have ended for the snapshot z, or if there are none, the oldest. */
static void
forget(PosteriorRing *ring, Snapshot z)
{
	uint64		xmin = full_xid(z->xmin),
				xmax = full_xid(z->xmax);
	int			kept = 0;

	for (int i = 0; i < ring->n; i++)
		if (!ended_for(ring->writers[i].xid, xmin, xmax, z))
			ring->writers[kept++] = ring->writers[i];
	if (kept < ring->n)
	{
		ring->n = kept;
#ifndef POSTERIOR_MUTANT_21
		ring->floor = Max(ring->floor, xmax);
#endif
		return;
	}
#ifndef POSTERIOR_MUTANT_3
	ring->low = Max(ring->low, ring->writers[0].xid + 1);
#endif
	memmove(&ring->writers[0], &ring->writers[1], (ring->n - 1) * sizeof(PosteriorWriter));
	ring->n--;
}

/* Add an entry that knows nothing but the transaction. There is room. */
static void
add_writer(PosteriorRing *ring, uint64 xid, bool ddl)
{
	PosteriorWriter *w = &ring->writers[ring->n++];

	memset(w, 0, sizeof(*w));
	w->xid = xid;
	w->sequence = ring->next++;
	w->other = true;
	w->ddl = ddl;
}

/* Enter a transaction in the ring of this number if it still is what it was. */
static uint64
enter(Oid relation, uint64 xid, bool ddl)
{
	for (;;)
	{
		int			number;
		PosteriorRing *ring = lock_ring(relation, LW_EXCLUSIVE, &number);
		PosteriorWriter *w;
		uint64		generation;
		Snapshot	z;

		if (ring == NULL)
			return 0;
		generation = ring->generation;
		w = find_writer(ring, xid);
		if (w != NULL)
		{
			w->other = true;
			w->ddl = w->ddl || ddl;
			unlock_ring(number);
			return generation;
		}
		if (ring->n < POSTERIOR_WRITERS)
		{
			add_writer(ring, xid, ddl);
			unlock_ring(number);
			return generation;
		}
		unlock_ring(number);
		/* the snapshot is taken without the lock; only its being recent matters */
		z = GetLatestSnapshot();
		ring = lock_ring(relation, LW_EXCLUSIVE, &number);
		if (ring == NULL)
			return 0;
		if (ring->n == POSTERIOR_WRITERS)
			forget(ring, z);
		unlock_ring(number);
	}
}

uint64
posterior_ring_enter(Oid relation, bool ddl)
{
	/* the xid comes first, the ring second: whoever makes the ring later enters all who have an xid */
	uint64		xid = own_xid();

	return enter(relation, xid, ddl);
}

bool
posterior_ring_mark_dirty(Oid relation)
{
	bool		news = false;

	/* without a lock: at worst another table's contexts are looked at */
	for (int i = 0; i < POSTERIOR_RINGS; i++)
		if (posterior_shared->rings[i].relation == relation && posterior_shared->rings[i].database == MyDatabaseId)
		{
			news = news || !posterior_shared->rings[i].dirty;
			posterior_shared->rings[i].dirty = true;
		}
	return news;
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
		enter(relations[i], xid, true);
}

void
posterior_ring_inserted(Oid relation, uint64 generation, Oid file, int n, const ItemPointerData *places, const TransactionId *xmins)
{
	int			number;
	PosteriorRing *ring = lock_ring(relation, LW_EXCLUSIVE, &number);
	PosteriorWriter *w;

	if (ring == NULL)
		return;
	w = ring->generation == generation ? find_writer(ring, own_xid()) : NULL;
#ifdef POSTERIOR_MUTANT_10
	if (w != NULL)
		w->ddl = false;
#endif
	if (w != NULL && !w->ddl)
	{
		w->other = false;
		w->file = file;
		w->n = (uint8) n;
		memcpy(w->places, places, n * sizeof(*places));
		memcpy(w->xmins, xmins, n * sizeof(*xmins));
	}
	unlock_ring(number);
}

/* ---- making a ring ------------------------------------------------------------------------------------------------- */

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
				generation;
	int			number = 0;

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
	unlock_ring(number);
	posterior_unlock();

	z = GetLatestSnapshot();
	xmax = full_xid(z->xmax);
	next = U64FromFullTransactionId(ReadNextFullTransactionId());
	LWLockAcquire(posterior_ring_lock(number), LW_EXCLUSIVE);
	if (ring->generation == generation)
	{
		bool		fits = z->xcnt + (next - xmax) + ring->n <= POSTERIOR_WRITERS;

#ifndef POSTERIOR_MUTANT_23
		for (uint32 i = 0; fits && i < z->xcnt; i++)
			if (find_writer(ring, full_xid(z->xip[i])) == NULL)
				add_writer(ring, full_xid(z->xip[i]), false);
#endif
#ifndef POSTERIOR_MUTANT_24
		for (uint64 xid = xmax; fits && xid < next; xid++)
			if (TransactionIdIsNormal((TransactionId) xid) && find_writer(ring, xid) == NULL)
				add_writer(ring, xid, false);
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

static bool
was_seen(const PosteriorSight *sight, const PosteriorWriter *w)
{
#ifndef POSTERIOR_MUTANT_7
	if (w->sequence >= sight->next)
		return false;
#endif
	for (int i = 0; i < sight->n_unseen; i++)
		if (sight->unseen[i] == w->xid)
			return false;
	return true;
}

/* Add a writer's rows to those that are new; false when they are not known or too many. */
static bool
add_new(const PosteriorWriter *w, Oid file, PosteriorNew *more)
{
	if (w->other || w->ddl || more->n + w->n > (int) lengthof(more->places))
		return false;
#ifndef POSTERIOR_MUTANT_12
	if (w->n > 0 && w->file != file)
		return false;
#endif
	memcpy(more->places + more->n, w->places, w->n * sizeof(*w->places));
	memcpy(more->xmins + more->n, w->xmins, w->n * sizeof(*w->xmins));
	more->n += w->n;
	return true;
}

PosteriorVerdict
posterior_ring_look(Oid relation, Oid file, Snapshot s, const PosteriorSight *earlier, PosteriorSight *sight, PosteriorNew *more)
{
	PosteriorRing *ring = palloc(sizeof(PosteriorRing));
	PosteriorVerdict verdict = POSTERIOR_SAME;
	uint64		now = U64FromFullTransactionId(ReadNextFullTransactionId()),
				own = TransactionIdIsValid(GetTopTransactionIdIfAny()) ? own_xid() : 0;

	more->n = 0;
	if (!copy_ring(relation, ring))
	{
		if (IsInParallelMode())
			return POSTERIOR_UNKNOWN;
		make_ring(relation);
		if (!copy_ring(relation, ring))
			return POSTERIOR_UNKNOWN;
	}
	sight->generation = ring->generation;
	sight->next = ring->next;
	sight->xmin = full_xid(s->xmin);
	sight->xmax = full_xid(s->xmax);
	sight->quiet = s->xcnt == 0;
	sight->n_unseen = 0;
	if (!late_enough(ring, sight->xmin, sight->xmax, sight->quiet))
	{
		pfree(ring);
		return POSTERIOR_UNKNOWN;
	}
	if (earlier == NULL || earlier->generation != ring->generation || !late_enough(ring, earlier->xmin, earlier->xmax, earlier->quiet))
	{
		earlier = NULL;
		verdict = POSTERIOR_OTHER;
	}
	for (int i = 0; i < ring->n; i++)
	{
		const PosteriorWriter *w = &ring->writers[i];
		bool		ended,
					committed,
					seen;

#ifndef POSTERIOR_MUTANT_5
		if (w->xid == own)
			verdict = POSTERIOR_UNKNOWN;
#endif
		if (now - w->xid > TOO_OLD)
			verdict = POSTERIOR_UNKNOWN;
		if (verdict == POSTERIOR_UNKNOWN)
			break;
		/* the snapshot before the commit log: a transaction is in the log before it has ended for snapshots */
		ended = ended_for(w->xid, sight->xmin, sight->xmax, s);
#ifdef POSTERIOR_MUTANT_2
		ended = true;
#endif
		committed = ended && TransactionIdDidCommit((TransactionId) w->xid);
		seen = ended && committed;
		if (!seen)
			sight->unseen[sight->n_unseen++] = w->xid;
#ifndef POSTERIOR_MUTANT_26
		/* while a change of the table or its triggers is not seen and may be committed, there may be writers who told nobody */
		if (w->ddl && !seen && !(ended && !committed))
			verdict = POSTERIOR_UNKNOWN;
#endif
		if (earlier != NULL && seen != was_seen(earlier, w) && verdict != POSTERIOR_UNKNOWN && verdict != POSTERIOR_OTHER)
			verdict = seen && add_new(w, file, more) ? POSTERIOR_MORE : POSTERIOR_OTHER;
	}
	pfree(ring);
	return verdict;
}
