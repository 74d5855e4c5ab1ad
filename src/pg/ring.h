/*
 * ring.h: who has written a table: one ring of transactions per table with a maintained context, in shared memory.
 *
 * A transaction enters the ring before its commit can become visible, and no earlier than it must: just before it. So a reader whose snapshot sees every transaction of the ring exactly as an earlier
 * reader's snapshot did, and nothing older than the ring remembers, sees the same rows, and need not read them. docs/snapshots.md has the proof.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_RING_H
#define POSTERIOR_RING_H

#include "compat.h"

#include "storage/itemptr.h"
#include "utils/snapshot.h"

#ifndef POSTERIOR_RINGS			/* tests make it small, so that rings are taken from tables */
#define POSTERIOR_RINGS 64		/* tables that are watched at once; the least recently used one gives way */
#endif
#ifndef POSTERIOR_WRITERS		/* tests make it small, so that it overflows */
#define POSTERIOR_WRITERS 64	/* transactions that a ring remembers */
#endif
#define POSTERIOR_TUPLES 16		/* inserted rows of a transaction that it remembers */

/* The rows that a transaction has inserted, and nothing else. */
typedef struct PosteriorInserted
{
	Oid			file;			/* that they lie in */
	int			n;
	ItemPointerData places[POSTERIOR_TUPLES];
	TransactionId xmins[POSTERIOR_TUPLES];	/* as in the tuple: a subtransaction's, perhaps */
} PosteriorInserted;

/* What became of a transaction, as far as readers have found out: the commit log forgets it sooner than a ring. */
typedef enum PosteriorFate
{
	POSTERIOR_NOT_ASKED,		/* or there was no answer yet */
	POSTERIOR_COMMITTED,
	POSTERIOR_ABORTED,
	POSTERIOR_FORGOTTEN			/* by the commit log, before anybody asked; in no ring */
} PosteriorFate;

/* A top-level transaction that wrote the table. */
typedef struct PosteriorWriter
{
	uint64		sequence;		/* of its entry */
	uint8		fate;			/* PosteriorFate: written under the shared lock, by all the same */
	bool		other;			/* it did more than insert these rows, or nobody knows */
	bool		ddl;			/* it changed the table or a trigger */
	PosteriorInserted rows;
} PosteriorWriter;

typedef struct PosteriorRing
{
	Oid			database,
				relation;		/* InvalidOid: free */
	bool		dirty;			/* written since its contexts were last encoded ahead */
	bool		ready;			/* those who were running when it was made are entered */
	uint64		generation;		/* another one each time it is made */
	uint64		used;			/* when last, by the clock */
	uint64		next;			/* sequence number */
	uint64		low;			/* transactions below it may have been forgotten while they ran */
	uint64		floor;			/* transactions forgotten had ended for every snapshot with a higher xmax */
	int			n;
	uint64		xids[POSTERIOR_WRITERS];	/* of the writers, with epochs: side by side, because every commit searches them */
	PosteriorWriter writers[POSTERIOR_WRITERS];
} PosteriorRing;

/*
 * What a reader saw of the ring: with this, a later reader can tell whether he sees the same. Transactions of the ring that are not among
 * the unseen, and had entered it by `next`, were seen.
 */
typedef struct PosteriorSight
{
	uint64		generation;
	uint64		next;
	uint64		xmin,
				xmax;
	bool		quiet;			/* nothing below xmax was running, nor the reader's own transaction */
	int			n_unseen;
	uint64		unseen[POSTERIOR_WRITERS];
} PosteriorSight;

/* Places of rows that a reader may see besides those of a proof: others' or his own. */
typedef struct PosteriorNew
{
	int			n;
	ItemPointerData places[POSTERIOR_TUPLES * 4];
	TransactionId xmins[POSTERIOR_TUPLES * 4];
} PosteriorNew;

typedef enum PosteriorVerdict
{
	POSTERIOR_UNKNOWN,			/* the ring proves nothing, not even for later readers */
	POSTERIOR_OTHER,			/* the rows may be others; what the reader sees can be proven by his sight */
	POSTERIOR_SAME,				/* the same rows */
	POSTERIOR_MORE				/* the same rows and some new ones */
} PosteriorVerdict;

/*
 * Look at the ring of a table with a snapshot, making it if there is none. `earlier` may be NULL. *sight is what a reader may publish with what he reads,
 * unless the answer is unknown. file: the table's file now.
 */
PosteriorVerdict posterior_ring_look(Oid relation, Oid file, Snapshot snapshot, const PosteriorSight *earlier, PosteriorSight *sight, PosteriorNew *more);

/*
 * Enter this transaction, which has an xid, in the ring of a table, if there is one. `rows` is all that it did to the table, or NULL. Once in the ring, a
 * transaction cannot take back that it did more. Returns the ring's number for posterior_ring_mark_dirty, or -1.
 */
int			posterior_ring_enter(Oid relation, const PosteriorInserted *rows);

/* The same for a transaction that changes the table, or its triggers. */
void		posterior_ring_enter_ddl(Oid relation);

/* And in all rings of the database. */
void		posterior_ring_enter_all(void);

/* Have the contexts of a table encoded ahead; true if nobody had asked for that yet. Cannot fail: called when the transaction has committed. */
bool		posterior_ring_mark_dirty(Oid relation, int number);

#endif							/* POSTERIOR_RING_H */
