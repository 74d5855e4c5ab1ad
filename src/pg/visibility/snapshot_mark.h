/*
 * snapshot_mark.h: what a snapshot showed of a writer log, and what follows for a later snapshot.
 *
 * docs/snapshots.md proves it; writer_log.c describes the protocol of the writers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_SNAPSHOT_MARK_H
#define POSTERIOR_SNAPSHOT_MARK_H

#include "pg/visibility/writer_log.h"

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

#endif							/* POSTERIOR_SNAPSHOT_MARK_H */
