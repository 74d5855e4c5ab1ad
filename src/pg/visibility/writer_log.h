/*
 * writer_log.h: which transactions wrote a table: one log per table with a maintained context, in
 * shared memory.
 *
 * A transaction enters the log before its commit can become visible, and no earlier than just
 * before it. So a reader whose snapshot treats every transaction of the log exactly as an earlier
 * reader's snapshot did, and nothing older than the log remembers, sees the same rows. writer_log.c
 * describes the protocol, docs/snapshots.md proves it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_WRITER_LOG_H
#define POSTERIOR_WRITER_LOG_H

#include "pg/base/compat.h"

#include "pg/shmem/segment.h"

#include "datatype/timestamp.h"
#include "storage/itemptr.h"
#include "utils/snapshot.h"

/* tests make it small, so that writer logs are taken from tables */
#ifndef POSTERIOR_WRITER_LOGS
/* tables that are watched at once; the least recently used one gives way */
#define POSTERIOR_WRITER_LOGS 64
#endif
#ifndef POSTERIOR_WRITERS		/* tests make it small, so that it overflows */
#define POSTERIOR_WRITERS 64	/* transactions that a writer log remembers */
#endif
#define POSTERIOR_TUPLES 16		/* inserted rows of a transaction that it remembers */

/* The rows that a transaction has inserted, and nothing else. */
typedef struct PosteriorInserted
{
	Oid			file;			/* of the rows */
	int			n;
	ItemPointerData places[POSTERIOR_TUPLES];
	TransactionId xmins[POSTERIOR_TUPLES];	/* as in the tuple: a subtransaction's, perhaps */
} PosteriorInserted;

/*
 * The outcome of a transaction, as far as readers have found out: the commit log may forget it
 * sooner than a writer log.
 */
typedef enum PosteriorWriterStatus
{
	POSTERIOR_STATUS_UNKNOWN,	/* not looked up, or there was no answer yet */
	POSTERIOR_COMMITTED,
	POSTERIOR_ABORTED,
	POSTERIOR_FORGOTTEN			/* by the commit log, before it was looked up; in no writer log */
} PosteriorWriterStatus;

/* A top-level transaction that wrote the table. */
typedef struct PosteriorWriter
{
	uint64		sequence;		/* of its entry */
	/* PosteriorWriterStatus: written under the shared lock; all writers write one value */
	uint8		status;
	bool		other;			/* it did more than insert `rows`, or that is unknown */
	bool		ddl;			/* it changed the table or a trigger */
	PosteriorInserted rows;
} PosteriorWriter;

typedef struct PosteriorWriterLog
{
	Oid			database,
				relation;		/* InvalidOid: free */
	uint32		incarnation;			/* of the database */
	bool		dirty;			/* written since its contexts were last encoded ahead */
	TimestampTz later;			/* turn of contexts that wait; 0: none waits */
	bool		ready;			/* transactions that ran when it was made are entered */
	uint64		generation;		/* another one each time it is made */
	uint64		used;			/* when last, by the clock */
	uint64		next;			/* sequence number */
	uint64		low;			/* transactions below it may have been forgotten while they ran */
	/* forgotten transactions had ended for every snapshot with a higher xmax */
	uint64		floor;
	int			n;
	/* of the writers, with epochs: side by side, because every commit searches them */
	uint64		xids[POSTERIOR_WRITERS];
	PosteriorWriter writers[POSTERIOR_WRITERS];
} PosteriorWriterLog;

/*
 * What a snapshot showed of a log, for comparison with a later snapshot. Transactions of the log
 * that are not among the unseen, and had entered it before the sequence number `next`, were seen.
 */
typedef struct PosteriorSnapshotMark
{
	uint64		generation;
	uint64		next;
	uint64		xmin,
				xmax;
	/* nothing below xmax was running, nor the reader's own transaction */
	bool		quiet;
	int			n_unseen;
	uint64		unseen[POSTERIOR_WRITERS];
} PosteriorSnapshotMark;

/* Places of rows that a snapshot may show besides those of a proof. */
typedef struct PosteriorNewRows
{
	int			n;
	ItemPointerData places[POSTERIOR_TUPLES * 4];
	TransactionId xmins[POSTERIOR_TUPLES * 4];
} PosteriorNewRows;

typedef enum PosteriorVerdict
{
	POSTERIOR_UNKNOWN,			/* the writer log proves nothing, not even for later readers */
	POSTERIOR_OTHER,			/* the rows may differ; the new mark can be published with them */
	POSTERIOR_SAME,				/* equal rows */
	POSTERIOR_MORE				/* equal rows and some new ones */
} PosteriorVerdict;

/*
 * Compare a snapshot with an earlier mark, which may be NULL, by the log of a table, which is made
 * if there is none. `file` is the table's file now. Unless the verdict is unknown, *mark is the
 * snapshot's mark, which may be published with the rows that it shows. *more has the places of the
 * new rows. In a transaction, not in a parallel query; may raise.
 */
PosteriorVerdict posterior_writer_log_compare(Oid relation, Oid file, Snapshot snapshot,
											  const PosteriorSnapshotMark *earlier,
											  PosteriorSnapshotMark *mark, PosteriorNewRows *more);

/*
 * Enter this transaction, which has an xid, in the writer log of a table, if there is one. `rows`
 * is all that it did to the table, or NULL where it did more; an entry once made for more stays.
 * Returns the writer log's number for posterior_writer_log_mark_dirty, or -1.
 */
int			posterior_writer_log_record(Oid relation, const PosteriorInserted *rows);

/* Enter this transaction as one that changes the table, or its triggers. */
void		posterior_writer_log_record_ddl(Oid relation);

/* Enter it as such in all logs of the database. */
void		posterior_writer_log_record_all(void);

/*
 * Note that the contexts of a table are to be encoded ahead; true if that was not noted yet. Cannot
 * fail: called when the transaction has committed.
 */
bool		posterior_writer_log_mark_dirty(Oid relation, int number);

/*
 * The tables of a database whose contexts are to be encoded ahead, if any: whether some have been
 * written, and the earliest turn of those that wait, or DT_NOEND.
 */
typedef struct PosteriorDue
{
	Oid			database;
	bool		dirty;
	TimestampTz later;
} PosteriorDue;

/* All such databases, at most POSTERIOR_WRITER_LOGS; the number of them. */
int			posterior_writer_log_due(PosteriorDue *due);

/* A table whose contexts have their turn, since `later` if they had to wait. */
typedef struct PosteriorMaintenanceTurn
{
	Oid			relation;
	TimestampTz later;
} PosteriorMaintenanceTurn;

/*
 * The tables of a database whose contexts have their turn, at most POSTERIOR_WRITER_LOGS; from now
 * on they have not.
 */
int			posterior_writer_log_take(Oid database, TimestampTz now,
									  PosteriorMaintenanceTurn *turns);

/* Let contexts of a table of this database wait until then. */
void		posterior_writer_log_postpone(Oid relation, TimestampTz until);

struct Latch;

/* The launcher of the worker that encodes ahead, which posterior_wake_launcher wakes; or NULL. */
void		posterior_writer_logs_set_launcher(struct Latch *launcher);
void		posterior_wake_launcher(void);

extern PosteriorSharedPart posterior_writer_log_part;

#endif							/* POSTERIOR_WRITER_LOG_H */
