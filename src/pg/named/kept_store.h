/*
 * kept_store.h: the tables with the sums of named contexts, and the rows noted since: read under a
 * snapshot, and written.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_KEPT_STORE_H
#define POSTERIOR_KEPT_STORE_H

#include "pg/named/definition.h"
#include "pg/types/context_value.h"

#include "storage/itemptr.h"
#include "utils/snapshot.h"

/* Sums that are stored. */
typedef struct PosteriorKeptSums
{
	ItemPointerData place;
	pg_uuid_t	version;		/* another one whenever they are written */
	bytea	   *signature;
	uint64		noted_from;		/* notes of earlier transactions are all in them */
	Datum		sums;			/* a posterior.context, as it is stored */
} PosteriorKeptSums;

/* Rows that were noted: their signs, targets and cells. */
typedef struct PosteriorNotes
{
	int64		n,
				room;
	int			targets;		/* D */
	int			width;			/* numbers of a note: sign, targets, cells */
	double	   *rows;			/* [n, width]; the targets of a row that has no numbers are NaN */
	ItemPointerData *places;	/* [n] */
	uint64	   *writers;		/* [n]: the transactions that noted them */
	uint64		from;			/* of earlier transactions there are no others, nor will there be */
} PosteriorNotes;

/* The sums stored under `kept` as the snapshot shows them, in the current memory context. */
bool		posterior_kept_find(const pg_uuid_t *kept, Snapshot snapshot, PosteriorKeptSums *found);

/*
 * The notes of a context that has a basis which the snapshot shows, in the current memory context,
 * but for those in the sums that it shows; these may be NULL. At most `most`: false if there are
 * more.
 */
bool		posterior_notes_read(const PosteriorNamed *named, const PosteriorKeptSums *sums,
								 Snapshot snapshot, int64 most, PosteriorNotes *notes);

/*
 * Of the notes those that are put into sums next where not all can be at once: of rows that came,
 * or, if none is left, of rows that went. So sums are never without a row that is yet to come. At
 * most `most`, and none that the model does not take.
 */
void		posterior_notes_read_next(const PosteriorModel *model, const PosteriorNamed *named,
									  const PosteriorKeptSums *stored, Snapshot snapshot,
									  int64 most, TnpSums *sums, PosteriorNotes *notes);

/* Whether the model takes the row of note number i. */
bool		posterior_note_taken(const PosteriorModel *model, const PosteriorNotes *notes, int64 i,
								 TnpSums *sums);

/* Note a row: its targets and cells [n], or NULL where they are no finite numbers. */
void		posterior_note_write(const pg_uuid_t *kept, int sign, int n, const double *numbers);

/*
 * Add what notes from `first` on say to sums. False where the model cannot take one of them: then
 * the sums are of no use.
 */
bool		posterior_notes_add(const PosteriorModel *model, const PosteriorNotes *notes,
								int64 first, TnpSums *sums);

/*
 * Have this transaction alone write the sums under `kept`, to its end. False, where it shall not
 * wait, if another one does.
 */
bool		posterior_kept_lock(const pg_uuid_t *kept, bool wait);

/*
 * Write sums in the place of those that were found, or NULL, and delete the notes that are in them;
 * all by one command, so that no snapshot shows one without the other.
 */
void		posterior_kept_write(const pg_uuid_t *kept, const PosteriorKeptSums *old,
								 bytea *signature, PosteriorContext *sums,
								 const PosteriorNotes *notes);

/* Forget the sums that are stored now, whatever the transaction's snapshot shows. */
void		posterior_kept_forget(const pg_uuid_t *kept);

/* Delete the sums and all notes under `kept`, whose definition has gone. */
void		posterior_kept_end(const pg_uuid_t *kept);

#endif							/* POSTERIOR_KEPT_STORE_H */
