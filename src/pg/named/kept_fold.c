/*
 * kept_fold.c: writes the sums of named contexts.
 *
 * Folding moves notes that a snapshot shows into the sums that it shows. Sums and notes together
 * stay what they are, for every snapshot, so it needs no lock against writers and no knowledge of
 * the table. Making sums anew reads all rows under a snapshot and deletes the notes that it shows:
 * notes of later writers stay, and are right. It must not meet rows of its own transaction that are
 * still to be noted (posterior_kept_in_use).
 *
 * Both take a snapshot of their own, later than the lock that makes them the only ones, and later
 * than the signature. A transaction that has one snapshot for all its statements would later see
 * its own sums with rows that its snapshot does not show: it leaves the sums alone.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/kept_fold.h"

#include "pg/base/attempt.h"
#include "pg/base/bridge.h"
#include "pg/base/guard.h"
#include "pg/cache/sums_handle.h"
#include "pg/named/definition_write.h"
#include "pg/named/kept_scan.h"
#include "pg/named/kept_signature.h"
#include "pg/named/kept_store.h"
#include "pg/shmem/progress.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

#define SAMPLE_ROWS 16384		/* of which a basis is made */
#define SOMETIMES 256			/* notes per folding of a writer's, as a rule, ... */
#define FEW 64					/* ... which leaves so few as they are */

/* Whether this transaction may write sums. */
static bool
may_write(void)
{
	return !RecoveryInProgress() && !IsInParallelMode() && !XactReadOnly
		&& !GUARD(KEPT_ONE_SNAPSHOT, IsolationUsesXactSnapshot());
}

/* Notes without those that no model takes: these stay. */
static void
notes_drop_strange(const PosteriorModel *model, TnpSums *sums, PosteriorNotes *notes)
{
	int64		n = 0;

	for (int64 i = 0; i < notes->n; i++)
	{
		if (!posterior_note_taken(model, notes, i, sums))
		{
			notes->from = Min(notes->from, notes->writers[i]);
			continue;
		}
		memmove(notes->rows + n * notes->width, notes->rows + i * notes->width,
				notes->width * sizeof(double));
		notes->writers[n] = notes->writers[i];
		notes->places[n++] = notes->places[i];
	}
	notes->n = n;
}

/* Fold what the active snapshot shows, at least and at most so many notes; whether it has. */
static bool
fold(const PosteriorModel *model, const PosteriorNamed *named, int64 least, int64 most)
{
	PosteriorKeptSums kept;
	PosteriorNotes notes;
	PosteriorContext *value;
	TnpSums    *sums;

	if (!posterior_kept_find(&named->kept, GetActiveSnapshot(), &kept)
		|| !posterior_notes_read(named, &kept, GetActiveSnapshot(), most, &notes)
		|| notes.n < least)
		return false;
	value = (PosteriorContext *) PG_DETOAST_DATUM(kept.sums);
	sums = posterior_sums_open(model, value, true, CurrentMemoryContext);
	notes_drop_strange(model, sums, &notes);
	if (notes.n < least || !posterior_notes_add(model, &notes, 0, sums))
		return false;
	posterior_kept_write(&named->kept, &kept, kept.signature,
						 posterior_sums_value(model, value, sums), &notes);
	return true;
}

bool
posterior_kept_fold_step(const PosteriorModel *model, const PosteriorNamed *named)
{
	PosteriorKeptSums kept;
	PosteriorNotes notes = {0};

	if (named->basis == NULL || !may_write() || !posterior_kept_lock(&named->kept, false))
		return false;
	PushActiveSnapshot(GetLatestSnapshot());
	if (posterior_kept_find(&named->kept, GetActiveSnapshot(), &kept))
	{
		PosteriorContext *value = (PosteriorContext *) PG_DETOAST_DATUM(kept.sums);
		TnpSums    *sums = posterior_sums_open(model, value, true, CurrentMemoryContext);

		posterior_notes_read_next(model, named, &kept, GetActiveSnapshot(), POSTERIOR_KEPT_NOTES,
								  sums, &notes);
		if (notes.n > 0 && posterior_notes_add(model, &notes, 0, sums))
			posterior_kept_write(&named->kept, &kept, kept.signature,
								 posterior_sums_value(model, value, sums), &notes);
	}
	PopActiveSnapshot();
	return notes.n > 0;
}

/* The sums of all rows that the active snapshot shows. */
static PosteriorContext *
sums_read(const PosteriorModel *model, const PosteriorNamed *named)
{
	TnpSums    *sums = posterior_kept_scan(model, named);
	PosteriorContext *value = posterior_sums_value(model, named->basis, sums);

	pfree(sums);
	return value;
}

/* Store sums of the rows that the active snapshot shows, under the lock; returns them. */
static PosteriorContext *
make_anew(const PosteriorModel *model, const PosteriorNamed *named, bytea *signature)
{
	PosteriorContext *sums = sums_read(model, named);
	PosteriorKeptSums kept;
	PosteriorNotes notes;
	bool		found = posterior_kept_find(&named->kept, GetActiveSnapshot(), &kept);

	(void) posterior_notes_read(named, found ? &kept : NULL, GetActiveSnapshot(), PG_INT64_MAX,
								&notes);
	posterior_kept_write(&named->kept, found ? &kept : NULL, signature, sums, &notes);
	return sums;
}

/*
 * Whether sums are stored, under this signature and the basis of the definition, and no note keeps
 * readers from them.
 */
static bool
sums_are_good(const PosteriorModel *model, const PosteriorNamed *named, const bytea *signature)
{
	PosteriorKeptSums kept;
	PosteriorNotes notes;
	PosteriorContext *value;
	TnpSums    *sums;
	int64		n;

	if (!posterior_kept_find(&named->kept, GetActiveSnapshot(), &kept)
		|| VARSIZE(kept.signature) != VARSIZE(signature)
		|| memcmp(kept.signature, signature, VARSIZE(signature)) != 0)
		return false;
	value = (PosteriorContext *) PG_DETOAST_DATUM(kept.sums);
	if (!posterior_same_basis(value, named->basis))
		return false;
	(void) posterior_notes_read(named, &kept, GetActiveSnapshot(), PG_INT64_MAX, &notes);
	sums = posterior_sums_open(model, value, false, CurrentMemoryContext);
	n = notes.n;
	notes_drop_strange(model, sums, &notes);
	return notes.n == n;
}

void
posterior_kept_settle(const PosteriorModel *model, const PosteriorNamed *named)
{
	const char *why;
	bytea	   *signature;
	bool		locked;

	if (named->basis == NULL || !may_write() || posterior_named_policies(named)
		|| !posterior_named_columns_readable(named))
		return;
	locked = posterior_kept_lock(&named->kept, false);
	signature = posterior_kept_signature(named, &why);
	PushActiveSnapshot(GetLatestSnapshot());
	if (signature == NULL)
		ereport(NOTICE,
				(errmsg("the sums of context \"%s\" are not brought up to date", named->name),
				 errdetail("Not all rows that it has can be noted as they change: %s.", why),
				 errhint("posterior.alter_context(..., maintain => 'sums') puts triggers back.")));
	else if (sums_are_good(model, named, signature))
	{
		/* who has the lock is folding */
		if (locked)
			(void) fold(model, named, 1, PG_INT64_MAX);
	}
	else if (!GUARD(KEPT_IN_USE, posterior_kept_in_use(named)))
	{
		if (!locked)
			posterior_kept_lock(&named->kept, true);
		PopActiveSnapshot();
		PushActiveSnapshot(GetLatestSnapshot());
		(void) make_anew(model, named, signature);
	}
	PopActiveSnapshot();
	CommandCounterIncrement();
}

/* ---- in writers ------------------------------------------------------------------------------ */

/* Whether it is time: at random, so that short sessions have their share. */
static bool
is_time(void)
{
	static uint64 state = 0;
	static FullTransactionId transaction;
	static CommandId command;

	state = state * UINT64CONST(6364136223846793005) + UINT64CONST(1442695040888963407)
		+ (uint64) MyProcPid;
	if ((state >> 33) % SOMETIMES != 0 || !may_write())
		return false;
	/* the notes of one command are not yet shown to itself */
	if (FullTransactionIdEquals(transaction, GetTopFullTransactionId())
		&& command == GetCurrentCommandId(false))
		return false;
	transaction = GetTopFullTransactionId();
	command = GetCurrentCommandId(false);
	return true;
}

/*
 * Fold, unless another does; whether it has. The lock goes with the subtransaction, unless there is
 * something to lock.
 */
static bool
fold_some(void *argument)
{
	const pg_uuid_t *kept = argument;
	PosteriorNamed *named;
	bool		folded;

	if (!posterior_kept_lock(kept, false))
		return false;
	named = posterior_named_of_kept(kept, CurrentMemoryContext);
	if (named == NULL || named->basis == NULL)
		return false;
	PushActiveSnapshot(GetLatestSnapshot());
	folded = fold(posterior_model_pin(named->model, CurrentMemoryContext), named, FEW,
				  POSTERIOR_KEPT_NOTES);
	PopActiveSnapshot();
	return folded;
}

void
posterior_kept_fold_sometimes(const pg_uuid_t *kept)
{
	MemoryContext before = CurrentMemoryContext,
				memory;
	pg_uuid_t	identity = *kept;
	ErrorData  *error;

	if (!is_time())
		return;
	memory = AllocSetContextCreate(before, "posterior folding", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(memory);
	error = posterior_attempt(fold_some, &identity);
	if (error != NULL && ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION)
		ReThrowError(error);
	if (error != NULL)
		ereport(DEBUG1, (errmsg_internal("sums were not brought up to date: %s",
										 error->message)));
	MemoryContextSwitchTo(before);
	MemoryContextDelete(memory);
}

/* ---- contexts that begin --------------------------------------------------------------------- */

/* A basis of a sample of the rows; NULL if there are too few. */
static PosteriorContext *
basis_make(const PosteriorModel *model, const PosteriorNamed *named)
{
	PosteriorRows *rows = posterior_named_sample(named, model, SAMPLE_ROWS, CurrentMemoryContext);
	Size		words = tnp_basis_words(model->model, rows->n_features);
	int64	   *basis = palloc(words * sizeof(int64));
	TnpRows		view = posterior_rows_view(rows, true);
	TnpError	error;

	if (rows->n < Max(POSTERIOR_KEPT_ROWS, tnp_model_info(model->model)->min_rows))
		return NULL;
	if (tnp_basis_make(model->model, &view, basis, &error) != TNP_OK)
		posterior_raise(&error, model->name);
	return posterior_make_sums(rows->n_targets, rows->n_features, rows->kinds, words, basis, 0, 0);
}

/* What the model finds in sums, as it is stored. */
static bytea *
fit_make(PosteriorModel *model, const PosteriorContext *sums)
{
	PosteriorContextHandle *e = posterior_handle_of_sums(model, sums, NULL);
	Size		size = tnp_fit_words(model->model, posterior_basis(sums)) * sizeof(int64);
	int64	   *words = palloc(size);
	bytea	   *fit = palloc(VARHDRSZ + size);

	SET_VARSIZE(fit, VARHDRSZ + size);
	tnp_fit_write(e->cached->encoding, words);
	memcpy(VARDATA(fit), words, size);
	posterior_handle_release(e);
	return fit;
}

pg_noreturn static void
cannot_keep(const PosteriorNamed *named, const char *why)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("context \"%s\" cannot keep sums", named->name),
			 errdetail("Not all rows that it has can be noted as they change: %s.", why),
			 errhint("posterior.alter_context(..., maintain => 'sums') puts triggers back; with "
					 "maintain => 'read' the rows are read for each statement.")));
}

/* Put basis and fit into the definition. */
static void
definition_complete(const PosteriorNamed *named, const PosteriorContext *basis, const bytea *fit)
{
	Oid			types[] = {UUIDOID, posterior_own_type("context"), BYTEAOID};
	Datum		values[] = {UUIDPGetDatum(&named->kept), PointerGetDatum(basis),
		PointerGetDatum(fit)};
	char		nulls[] = {' ', basis == NULL ? 'n' : ' ', fit == NULL ? 'n' : ' '};

	if (posterior_definitions_write("UPDATE " POSTERIOR_DEFINITIONS " SET basis = $2, fit = $3"
									" WHERE kept OPERATOR(pg_catalog.=) $1", 3, types, values,
									nulls) == 0)
		posterior_definition_vanished(named->name);
}

void
posterior_kept_begin(const char *name)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "posterior sums",
												 ALLOCSET_DEFAULT_SIZES),
				before = MemoryContextSwitchTo(memory);
	PosteriorNamed *named;
	PosteriorModel *model;
	PosteriorContext *sums;
	bytea	   *signature;
	const char *why;
	bool		shown;

	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	named = posterior_named_find(name, memory);
	PopActiveSnapshot();
	posterior_kept_lock(&named->kept, true);
	model = posterior_model_pin(named->model, memory);
	if (!tnp_keeps_sums(model->model))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("context \"%s\" cannot keep sums", named->name),
						errdetail("Model \"%s\" has none.", named->model),
						errhint("The model tabular_sums has, as in model => 'tabular_sums', and "
								"others that are mergeable, which posterior.models says; with "
								"maintain => 'trigger' the rows themselves are the context.")));
	if (check_enable_rls(named->relation, InvalidOid, true) == RLS_ENABLED)
		cannot_keep(named, "row-level security applies to you");
	signature = posterior_kept_signature(named, &why);
	if (signature == NULL)
		cannot_keep(named, why);
	/* a statement that has begun to write would go on without the triggers */
	if (posterior_kept_in_use(named))
		cannot_keep(named, "a statement of this session is using the table");
	/*
	 * with one snapshot for all statements neither the rows that others have written meanwhile
	 * would be seen, nor those that are not to be
	 */
	PushActiveSnapshot(IsolationUsesXactSnapshot() ? GetTransactionSnapshot()
					   : GetLatestSnapshot());
	shown = posterior_progress_begin(&named->id);
	named->basis = basis_make(model, named);
	if (named->basis != NULL)
	{
		sums = may_write() ? make_anew(model, named, signature) : sums_read(model, named);
		definition_complete(named, named->basis, fit_make(model, sums));
	}
	else
		definition_complete(named, NULL, NULL);
	if (shown)
		posterior_progress_end();
	PopActiveSnapshot();
	CommandCounterIncrement();
	MemoryContextSwitchTo(before);
	MemoryContextDelete(memory);
}
