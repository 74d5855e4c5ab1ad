/*
 * reuse_state.h: what all sessions know of a named context: counters, and the proof that was
 * published last.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_REUSE_STATE_H
#define POSTERIOR_REUSE_STATE_H

#include "pg/cache/entry_key.h"
#include "pg/cache/lookup_outcome.h"
#include "pg/shmem/segment.h"
#include "pg/visibility/snapshot_mark.h"

#include "port/atomics.h"

/* bytes of labels that a proof can hold: with more there is none */
#define POSTERIOR_PROOF_LABELS 512
/* named contexts that are known at once; the least recently used one gives way */
#define POSTERIOR_STATES 128

/* "A snapshot with this mark of the table's writer log showed the first n rows of this entry." */
typedef struct PosteriorReuseProof
{
	pg_uuid_t	version;		/* of the definition */
	pg_uuid_t	model;
	int			kernels;
	Oid			file;			/* of the table */
	PosteriorEntryKey key;
	uint64		serial;			/* of the entry */
	int64		n,				/* rows in the context's window */
				total;			/* rows in all */
	ItemPointerData last;		/* where the last row lies; invalid if there is none */
	PosteriorSnapshotMark mark;
	int32		n_labels,		/* of the classes, where targets are labels */
				label_bytes;
	char		labels[POSTERIOR_PROOF_LABELS];
} PosteriorReuseProof;

typedef struct PosteriorReuseState
{
	bool		taken;
	uint32		incarnation;			/* of the database */
	pg_uuid_t	context;
	uint64		used;			/* when last, by the clock */
	bool		proven;
	PosteriorReuseProof proof;
	pg_atomic_uint64 lookups[CACHE_LOOKUP_OUTCOMES];
	pg_uuid_t	version;		/* of the definition at the last use; the lock is exclusive */
	pg_atomic_uint64 rows,		/* at the last use, by any session */
				prefix,
				waiting,
				bytes,
				drift;			/* bits of a double; NaN: not looked at */
	TimestampTz rests;			/* it is not encoded ahead before then */
} PosteriorReuseState;

extern PosteriorSharedPart posterior_reuse_state_part;

/* The proof of a context, if there is one. */
bool		posterior_reuse_state_proof(const pg_uuid_t *context, PosteriorReuseProof *proof);
void		posterior_reuse_state_prove(const pg_uuid_t *context, const PosteriorReuseProof *proof);

/* What a statement has used of a context. */
typedef struct PosteriorReuse
{
	pg_uuid_t	version;		/* of the definition */
	int64		rows,
				prefix,
				waiting,		/* for the next boundary */
				bytes;			/* of the encoding */
} PosteriorReuse;

/* Count a statement. */
void		posterior_reuse_state_count(const pg_uuid_t *context, PosteriorLookupOutcome outcome,
										const PosteriorReuse *reuse);

/*
 * Note how far the rows after the prefix have drifted from it (tnp_drift), unless another version
 * of the definition, or another prefix, has been used since.
 */
void		posterior_reuse_state_note_drift(const pg_uuid_t *context, const PosteriorReuse *reuse,
											 double drift);

/* Until when a context is not encoded ahead, because the last time took long. */
TimestampTz posterior_reuse_state_rests(const pg_uuid_t *context);
void		posterior_reuse_state_rest(const pg_uuid_t *context, TimestampTz until);

/* What the views show of a context. */
typedef struct PosteriorReuseCounters
{
	int64		lookups[CACHE_LOOKUP_OUTCOMES];
	PosteriorReuse last;		/* use, by any session */
	double		drift;			/* under that version; NaN: not looked at */
} PosteriorReuseCounters;

/* A copy of the counters of a context; false, and zeros, if nothing is known of it. */
bool		posterior_reuse_state_read(const pg_uuid_t *context, PosteriorReuseCounters *counters);

/* Set all counters of this database to zero. */
void		posterior_reuse_state_reset(void);

#endif							/* POSTERIOR_REUSE_STATE_H */
