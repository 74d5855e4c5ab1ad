/*
 * incarnation.h: which life of a database this session is connected to.
 *
 * A database's OID says nothing about its rows: after DROP DATABASE another one can be created with
 * it, from the same template, with the same tables, contexts and models. So whatever lies in shared
 * memory is keyed by the database's life, a number that no other life has had since the server's
 * start.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_INCARNATION_H
#define POSTERIOR_INCARNATION_H

#include "pg/shmem/segment.h"

#include "access/transam.h"
#include "storage/itemptr.h"

/*
 * What tells two databases of one OID apart when neither is in use. Zeroed before it is filled: it
 * is compared as bytes.
 */
typedef struct PosteriorIncarnationTraces
{
	uint64		device,			/* of the file PG_VERSION in the database's directory */
				inode;
	int64		changed;		/* its ctime, in seconds */
	TransactionId xmin;			/* of the row in pg_database, as it is on the page */
	ItemPointerData place;		/* of that row */
} PosteriorIncarnationTraces;

/* A database that sessions are or have been connected to. Changes under posterior_lock. */
typedef struct PosteriorIncarnation
{
	Oid			database;		/* InvalidOid: free */
	uint32		number;			/* no other incarnation since the server's start has it */
	uint32		sessions;		/* that are connected and have asked for it */
	uint64		used;			/* when a session last joined, by the clock */
	PosteriorIncarnationTraces traces;
} PosteriorIncarnation;

extern PosteriorSharedPart posterior_incarnation_part;

/*
 * The number of the incarnation of this session's database, which all that are connected to it
 * agree on. An error in a session that has not joined it: under another key it would miss what the
 * others have written, and they what it writes.
 */
uint32		posterior_incarnation(void);

/*
 * Join the incarnation, unless this session has, in a transaction. posterior_shared_attach does
 * that.
 */
void		posterior_incarnation_join(void);

/*
 * DROP DATABASE has begun in an attached session. If it is committed, what is known of the database
 * is forgotten.
 */
void		posterior_incarnation_dropping(Oid database);

/* The transaction has ended. Cannot fail. */
void		posterior_incarnation_at_end(bool committed);

#endif							/* POSTERIOR_INCARNATION_H */
