/*
 * writer_log.h: which transactions wrote a table: one log per table with a maintained context, in
 * shared memory.
 *
 * A transaction enters the log before its commit can become visible, and no earlier than just
 * before it. So a reader whose snapshot treats every transaction of the log exactly as an earlier
 * reader's snapshot did, and nothing older than the log remembers, sees the same rows
 * (snapshot_mark.h). writer_log.c describes the protocol, docs/snapshots.md proves it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_WRITER_LOG_H
#define POSTERIOR_WRITER_LOG_H

#include "pg/base/compat.h"

#include "pg/shmem/segment.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/itemptr.h"
#include "storage/lwlock.h"
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

/* Whether a table has been written since its contexts were last encoded ahead. */
typedef enum PosteriorWritten
{
	POSTERIOR_CLEAN,
	POSTERIOR_OFFERED,			/* before the start of a worker that may not get to it */
	POSTERIOR_DIRTY
} PosteriorWritten;

typedef struct PosteriorWriterLog
{
	Oid			database,
				relation;		/* InvalidOid: free */
	uint32		incarnation;			/* of the database */
	pg_atomic_uint32 written;	/* PosteriorWritten */
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
 * Enter this transaction, which has an xid, in the writer log of a table, if there is one. `rows`
 * is all that it did to the table, or NULL where it did more; an entry once made for more stays.
 * Returns the writer log's number for posterior_writer_log_mark_dirty, or -1.
 */
int			posterior_writer_log_record(Oid relation, const PosteriorInserted *rows);

/* Enter this transaction as one that changes the table, or its triggers. */
void		posterior_writer_log_record_ddl(Oid relation);

/* Enter it as such in all logs of the database. */
void		posterior_writer_log_record_all(void);

/* ---- for snapshot_mark.c and maintenance_turns.c --------------------------------------------- */

/* The full form of an xid that is less than 2^31 transactions away from now. */
uint64		posterior_full_xid(TransactionId xid);

/* The full xid of this transaction, which gets one if it has none. */
uint64		posterior_own_xid(void);

/* Whether a snapshot sees that a transaction has ended; xmin and xmax are its own, in full form. */
bool		posterior_xid_ended_for(uint64 xid, uint64 xmin, uint64 xmax, Snapshot s);

/* The log of a number below POSTERIOR_WRITER_LOGS; its lock is that number of the part. */
PosteriorWriterLog *posterior_writer_log_number(int number);

/* Lock a table's writer log and return it with its number; NULL, and no lock, if there is none. */
PosteriorWriterLog *posterior_writer_log_lock(Oid relation, LWLockMode mode, int *number);
void		posterior_writer_log_unlock(int number);

/* The entry of a transaction in a log that is locked, or in a copy; NULL if it has none. */
PosteriorWriter *posterior_writer_find(PosteriorWriterLog *log, uint64 xid);

/*
 * Forget the writers that have ended for the snapshot z; true if there were any. The log is locked
 * exclusively.
 */
bool		posterior_writer_log_forget_ended(PosteriorWriterLog *log, Snapshot z);

/* Make the log of a table, if it has none. Takes snapshots; no log may be locked. */
void		posterior_writer_log_make(Oid relation);

struct Latch;

/* Where the latch of the launcher is kept, or NULL while there is none. */
struct Latch **posterior_writer_logs_launcher(void);

extern PosteriorSharedPart posterior_writer_log_part;

#endif							/* POSTERIOR_WRITER_LOG_H */
