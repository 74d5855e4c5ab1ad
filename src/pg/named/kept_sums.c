/*
 * kept_sums.c: finds the sums of a named context that keeps them.
 *
 * The stored sums and the notes, both as the snapshot shows them, are the sums of the rows that it
 * shows if the table's signature is that of the sums (kept_signature.c) and all rows of the
 * transaction's own are noted (sums_notes.c). Where that is not certain the rows are read and added
 * up, under the same basis: the same integers, and with the definition's fit the same answers.
 *
 * What was solved is in the arena for all sessions, found by the stored sums' version and the notes
 * that are in it (solved_sums.c). A session keeps the last sums that it has opened, with their
 * notes. What it finds under the next snapshot is compared note by note: equal ones need no work,
 * more of them are added. So there is nothing to invalidate.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/kept_sums.h"

#include "pg/base/bridge.h"
#include "pg/base/guard.h"
#include "pg/cache/lookup.h"
#include "pg/cache/sums_handle.h"
#include "pg/named/fold_turns.h"
#include "pg/named/kept_scan.h"
#include "pg/named/kept_signature.h"
#include "pg/named/kept_store.h"
#include "pg/named/sums_notes.h"
#include "pg/shmem/shared.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#define SOLUTIONS 4				/* that a session keeps */

/* Sums that were solved. */
typedef struct Solution
{
	MemoryContext memory;		/* NULL: none */
	/* all that they depend on: */
	pg_uuid_t	kept,
				definition,
				model,
				version;		/* of the stored sums */
	int			kernels;
	PosteriorNotes notes;		/* that are in them */
	TnpSums    *sums;
	PosteriorContextHandle *handle; /* NULL: not solved yet */
	uint64		used;
} Solution;

static Solution solutions[SOLUTIONS];

static void
solution_forget(Solution *s)
{
	PosteriorContextHandle *handle = s->handle;
	MemoryContext memory = s->memory;

	s->handle = NULL;
	s->memory = NULL;
	if (handle != NULL)
		posterior_handle_release(handle);
	if (memory != NULL)
		MemoryContextDelete(memory);
}

/* Whether a solution is of these sums and of no other notes than these, as far as it has any. */
static bool
solution_begins(const Solution *s, const PosteriorModel *model, const PosteriorNamed *named,
				const PosteriorKeptSums *kept, const PosteriorNotes *notes)
{
	return s->memory != NULL && memcmp(&s->kept, &named->kept, sizeof(pg_uuid_t)) == 0
		&& memcmp(&s->definition, &named->version, sizeof(pg_uuid_t)) == 0
		&& memcmp(&s->model, &model->version, sizeof(pg_uuid_t)) == 0
		&& s->kernels == model->kernels
		&& memcmp(&s->version, &kept->version, sizeof(pg_uuid_t)) == 0
		&& s->notes.n <= notes->n
		&& memcmp(s->notes.rows, notes->rows,
				  s->notes.n * s->notes.width * sizeof(double)) == 0;
}

/* The place for a solution of this context: its last one's, or the one used least recently. */
static Solution *
solution_place(const PosteriorNamed *named)
{
	Solution   *oldest = &solutions[0];

	for (int i = 0; i < SOLUTIONS; i++)
		if (solutions[i].memory != NULL
			&& memcmp(&solutions[i].kept, &named->kept, sizeof(pg_uuid_t)) == 0)
			return &solutions[i];
		else if (solutions[i].memory == NULL
				 || (oldest->memory != NULL && solutions[i].used < oldest->used))
			oldest = &solutions[i];
	return oldest;
}

/* Begin anew with stored sums, without notes; false unless they are of this basis. */
static bool
solution_begin(Solution *s, const PosteriorModel *model, const PosteriorNamed *named,
			   const PosteriorKeptSums *kept, int width)
{
	PosteriorContext *value = (PosteriorContext *) PG_DETOAST_DATUM(kept->sums);
	MemoryContext memory;

	if (!posterior_same_basis(value, named->basis))
		return false;
	solution_forget(s);
	memory = AllocSetContextCreate(CurrentMemoryContext, "posterior solution of sums",
								   ALLOCSET_SMALL_SIZES);
	s->sums = posterior_sums_open(model, value, true, memory);
	s->notes = (PosteriorNotes) {.width = width,.rows = MemoryContextAlloc(memory, 8)};
	s->kept = named->kept;
	s->definition = named->version;
	s->model = model->version;
	s->kernels = model->kernels;
	s->version = kept->version;
	MemoryContextSetParent(memory, TopMemoryContext);
	s->memory = memory;
	pfree(value);
	return true;
}

/* Take in the notes that a solution has not; false, and it is gone, if the model takes one not. */
static bool
solution_add(Solution *s, const PosteriorModel *model, const PosteriorNotes *notes)
{
	TnpSums    *sums = s->sums;
	MemoryContext before;
	double	   *rows;
	Size		size = notes->n * notes->width * sizeof(double);

	if (s->notes.n == notes->n)
		return true;
	if (s->handle != NULL)
		posterior_handle_release(s->handle);
	s->handle = NULL;
	/* whatever fails, the sums are then of unknown rows */
	s->sums = NULL;
	before = MemoryContextSwitchTo(s->memory);
	rows = MemoryContextAllocHuge(s->memory, Max(size, 8));
	memcpy(rows, notes->rows, size);
	pfree(s->notes.rows);
	s->notes.rows = rows;
	MemoryContextSwitchTo(before);
	if (!posterior_notes_add(model, notes, s->notes.n, sums))
	{
		solution_forget(s);
		return false;
	}
	s->notes.n = notes->n;
	s->sums = sums;
	return true;
}

/* What is stored of a context, as the active snapshot shows it. */
typedef struct Stored
{
	PosteriorKeptSums kept;
	PosteriorNotes notes;
} Stored;

/* Find that; false, and why, where it is not certain to be of the table's rows. */
static bool
stored_find(const PosteriorNamed *named, Stored *stored, const char **why)
{
	PosteriorKeptSums *kept = &stored->kept;
	bytea	   *signature;

	if (!posterior_kept_find(&named->kept, GetActiveSnapshot(), kept))
	{
		*why = "there are no sums yet";
		return false;
	}
	signature = posterior_kept_signature(named, why);
	if (signature == NULL)
		return false;
	if (GUARD(KEPT_SIGNATURE, VARSIZE(signature) != VARSIZE(kept->signature)
			  || memcmp(signature, kept->signature, VARSIZE(signature)) != 0))
	{
		*why = "the table, its partitions or its triggers have changed since the sums were made";
		return false;
	}
	(void) posterior_notes_read(named, kept, GetActiveSnapshot(), PG_INT64_MAX, &stored->notes);
	if (stored->notes.n >= POSTERIOR_MANY_NOTES)
		posterior_fold_turn_mark(&named->kept);
	return true;
}

/*
 * The session's sums of what is stored, perhaps still to be solved; *outcome says what was new.
 * NULL, and why.
 */
static Solution *
solution_find(const PosteriorModel *model, const PosteriorNamed *named, const Stored *stored,
			  PosteriorLookupOutcome *outcome, const char **why)
{
	static uint64 clock = 0;
	const PosteriorNotes *notes = &stored->notes;
	Solution   *s = solution_place(named);

	s->used = ++clock;
	if (s->sums == NULL)
		solution_forget(s);
	*outcome = CACHE_LOOKUP_SKIP;
	if (!solution_begins(s, model, named, &stored->kept, notes))
	{
		*outcome = CACHE_LOOKUP_READ;
		if (!solution_begin(s, model, named, &stored->kept, notes->width))
		{
			*why = "the sums are of another basis";
			return NULL;
		}
	}
	else if (s->notes.n < notes->n)
		*outcome = CACHE_LOOKUP_DELTA;
	if (!solution_add(s, model, notes))
	{
		*why = "a row that changed has a value that the model does not take";
		return NULL;
	}
	return s;
}

/* Why stored sums and notes cannot be relied on in this statement, or NULL. */
static const char *
unreliable_reason(const PosteriorNamed *named)
{
	Snapshot	snapshot = GetActiveSnapshot();

	if (!IsMVCCSnapshot(snapshot))
		return "the snapshot is of another kind";
	if (IsolationIsSerializable())
		return "serializable transactions must be seen reading";
	if (!posterior_named_columns_readable(named))
		return "the right to read the columns is missing";
	/* the transaction may have had its lock on the table before */
	AcceptInvalidationMessages();
	if (!posterior_own_rows_noted(named, snapshot))
		return "not all rows that this transaction has written are noted";
	return NULL;
}

static void
tell_why(const PosteriorNamed *named, const char *why)
{
	ereport(DEBUG1, (errmsg_internal("context \"%s\": rows are read because %s", named->name,
									 why)));
}

/* Find what is stored; false where rows must be read. */
static bool
find(const PosteriorNamed *named, Stored *stored)
{
	const char *why = posterior_cache_mode == POSTERIOR_CACHE_OFF ? "posterior.cache is off"
		: unreliable_reason(named);

	if (why == NULL && stored_find(named, stored, &why))
		return true;
	tell_why(named, why);
	return false;
}

/* What was solved of these sums and notes goes by this. */
static PosteriorSolvedKey
key_of(const PosteriorModel *model, const PosteriorNamed *named, const Stored *stored,
	   PosteriorSolvedContent *content, bool *kept)
{
	PosteriorSolvedKey key;

	memset(&key, 0, sizeof(key));
	key.incarnation = posterior_incarnation();
	key.kernels = model->kernels;
	key.model = model->version;
	key.kept = named->kept;
	key.definition = named->version;
	key.sums = stored->kept.version;
	*content = (PosteriorSolvedContent) {stored->notes.rows,
		stored->notes.n * stored->notes.width * sizeof(double)};
	*kept = posterior_solved_key_hash(&key, *content);
	return key;
}

/* The encoding of what is stored; NULL if it cannot be of it. */
static PosteriorContextHandle *
acquire_stored(PosteriorModel *model, const PosteriorNamed *named, const Stored *stored,
			   PosteriorLookupOutcome *outcome)
{
	PosteriorSolvedContent content;
	bool		kept;
	PosteriorSolvedKey key = key_of(model, named, stored, &content, &kept);
	PosteriorContextHandle *e = NULL;
	const char *why;
	Solution   *s;

	*outcome = CACHE_LOOKUP_SKIP;
	if (kept)
		e = posterior_handle_find_solved(model, named->basis, &key, content);
	if (e != NULL)
		return e;
	s = solution_find(model, named, stored, outcome, &why);
	if (s == NULL)
	{
		tell_why(named, why);
		return NULL;
	}
	if (kept && s->handle == NULL)
		e = posterior_handle_make_solved(model, named->basis, s->sums, named->fit, &key, content);
	if (e != NULL)
		return e;
	if (s->handle == NULL)
		s->handle = posterior_handle_of_open_sums(model, named->basis, s->sums, named->fit);
	return posterior_handle_share(s->handle);
}

PosteriorContextHandle *
posterior_kept_acquire(PosteriorModel *model, const PosteriorNamed *named, bool fresh,
					   PosteriorLookupOutcome *outcome)
{
	PosteriorContextHandle *e = NULL;
	Stored		stored;
	TnpSums    *sums;

	if (!fresh && find(named, &stored))
		e = acquire_stored(model, named, &stored, outcome);
	if (e != NULL)
		return e;
	*outcome = CACHE_LOOKUP_PRIVATE;
	sums = posterior_kept_scan(model, named);
	e = posterior_handle_of_open_sums(model, named->basis, sums, named->fit);
	pfree(sums);
	return e;
}

PosteriorContext *
posterior_kept_value(PosteriorModel *model, const PosteriorNamed *named)
{
	PosteriorLookupOutcome outcome;
	Stored		stored;
	const char *why;
	Solution   *s = NULL;

	if (named->basis == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("context \"%s\" has no sums", named->name),
				 named->keeps
				 ? errhint("It had too few rows when it was made; posterior.refresh_context makes "
						   "sums.")
				 : errhint("posterior.create_context(..., maintain => 'sums') makes a context that "
						   "keeps sums.")));
	if (posterior_named_policies(named))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("row-level security of \"%s\" applies to you",
						get_rel_name(named->relation)),
				 errdetail("The basis of the sums of context \"%s\" is made of all rows.",
						   named->name),
				 errhint("posterior.basis makes one of the rows that a query of yours reads.")));
	if (find(named, &stored))
	{
		s = solution_find(model, named, &stored, &outcome, &why);
		if (s == NULL)
			tell_why(named, why);
	}
	return posterior_sums_value(model, named->basis,
								s != NULL ? s->sums : posterior_kept_scan(model, named));
}
