/*
 * context_refresh.c: posterior.refresh_context and warm_context: a new prefix, and an encoding made
 * ahead of its readers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/context_refresh.h"

#include "pg/named/acquire.h"
#include "pg/named/definition_write.h"
#include "pg/named/kept_fold.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

void
posterior_refresh(const char *name, const pg_uuid_t *id, const pg_uuid_t *version)
{
	Oid			types[] = {TEXTOID, UUIDOID, INT8OID},
				of_version[] = {TEXTOID, UUIDOID, UUIDOID};
	Datum		values[] = {CStringGetTextDatum(name), UUIDPGetDatum(id), UUIDPGetDatum(version)};
	char		nulls[] = {' ', ' ', 'n'};
	PosteriorNamed *named;

	/*
	 * rows are counted by the definition that gets the number: it cannot change meanwhile, and what
	 * this statement or another session has changed is seen
	 */
	if (posterior_definitions_write(psprintf("SELECT FROM " POSTERIOR_DEFINITIONS
								   " WHERE name OPERATOR(pg_catalog.=) $1 AND id "
								   "OPERATOR(pg_catalog.=) $2%s",
								   version == NULL ? " FOR NO KEY UPDATE"
								   : " AND version OPERATOR(pg_catalog.=) $3"
								   " FOR NO KEY UPDATE SKIP LOCKED"),
						  version == NULL ? 2 : 3, of_version, values, NULL)
		== 0)
	{
		if (version != NULL)
			return;
		posterior_definition_vanished(name);
	}
	values[2] = (Datum) 0;
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	named = posterior_named_find(name, CurrentMemoryContext);
	/*
	 * the number of rows that a policy shows to one user says nothing about those that others see
	 */
	if (!named->keeps && check_enable_rls(named->relation, InvalidOid, true) != RLS_ENABLED)
	{
		values[2] = Int64GetDatum(posterior_named_count(named));
		nulls[2] = ' ';
	}
	PopActiveSnapshot();
	if (posterior_definitions_write("UPDATE " POSTERIOR_DEFINITIONS
						  " SET version = pg_catalog.gen_random_uuid(), refreshed_rows = $3"
						  " WHERE name OPERATOR(pg_catalog.=) $1 AND id OPERATOR(pg_catalog.=) $2",
						  3, types, values, nulls)
		== 0)
		posterior_definition_vanished(name);
	if (named->keeps)
		posterior_kept_begin(name);
}

/*
 * refresh_context(name): another version, so that nothing of the old encoding is used, and the rows
 * that are there as its prefix; where it keeps sums, another basis and fit
 */
PG_FUNCTION_INFO_V1(posterior_refresh_context);
Datum
posterior_refresh_context(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	PosteriorColumns columns = {0};
	bool		maintained;

	PreventCommandIfReadOnly("posterior.refresh_context()");
	posterior_refresh(name, posterior_own_context(name, &columns, &maintained), NULL);
	PG_RETURN_VOID();
}

/* Say that an encoding is not there for others, which is what it was made for. */
static void
tell_not_kept(const PosteriorNamed *named, Size bytes)
{
	ereport(NOTICE, (bytes > (Size) posterior_cache_size * 1024
					 ? errmsg("the encoding of context \"%s\" is larger than the cache and not "
							  "kept", named->name)
					 : errmsg("the encoding of context \"%s\" finds no room in the cache and is "
							  "not kept", named->name),
					 errdetail("It takes %zu kB, posterior.cache_size is %d kB: every statement "
							   "reads and encodes the rows.",
							   bytes / 1024, posterior_cache_size),
					 errhint("Raise posterior.cache_size, limit the rows by max_rows or filter, or "
							 "use a smaller model.")));
}

double		posterior_drift_limit = 0;

#define OFFERED_DRIFT 0.5		/* from which on a refresh is offered where no limit is set */
#define OFFERED_GROWTH 8

/*
 * Offer to make basis and fit of a context that keeps sums anew, if its rows have moved away from
 * those that these are of, or are many times as many.
 */
static void
offer_refresh(const PosteriorNamed *named, const PosteriorContextHandle *e)
{
	int64		rows = posterior_cached_rows(e->cached),
				fitted = tnp_sums_fit_rows(e->cached->encoding);
	double		drift = tnp_sums_drift(e->cached->encoding);

	if (rows / OFFERED_GROWTH >= fitted
		|| drift > (posterior_drift_limit > 0 ? posterior_drift_limit : OFFERED_DRIFT))
		ereport(NOTICE,
				(errmsg("context \"%s\" was fitted to other rows than it has now", named->name),
				 errdetail("There were %lld rows, and are %lld; the drift is %.2f.",
						   (long long) fitted, (long long) rows, drift),
				 errhint("posterior.refresh_context('%s') makes basis and precisions anew, of all "
						 "rows.", named->name)));
}

/* The rows of a context, encoded now; the reading ends when they have been read. */
static int64
context_warm(const char *name, PosteriorReading *reading)
{
	PosteriorNamed *named = posterior_named_find(name, CurrentMemoryContext);
	PosteriorModel *model = posterior_named_model(named, CurrentMemoryContext);
	PosteriorContextHandle *e;
	bool		sums;
	int64		rows;
	Size		bytes;

	e = posterior_named_encode_ahead(model, named, reading);
	rows = posterior_cached_rows(e->cached);
	bytes = posterior_cached_bytes(e->cached);
	sums = posterior_named_by_sums(named);
	if (!sums && e->entry == NULL && posterior_cache_mode != POSTERIOR_CACHE_OFF
		&& (e->no_room || bytes > (Size) posterior_cache_size * 1024))
		tell_not_kept(named, bytes);
	if (sums)
		offer_refresh(named, e);
	posterior_handle_release(e);
	return rows;
}

/* The rows of a context that keeps sums, which are brought up to date. */
static int64
sums_warm(const char *name)
{
	PosteriorNamed *named = posterior_named_find(name, CurrentMemoryContext);

	posterior_kept_settle(posterior_model_pin(named->model, CurrentMemoryContext), named);
	return context_warm(name, NULL);
}

/*
 * warm_context(name): encode now; the number of rows. A transaction that has written keeps its
 * locks: a rolled back subtransaction would make the notes of its own rows worthless.
 */
PG_FUNCTION_INFO_V1(posterior_warm_context);
Datum
posterior_warm_context(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	PosteriorReading reading;
	int64		volatile rows = 0;
	pg_uuid_t	kept;

	if (posterior_keeps_sums(name, &kept))
		PG_RETURN_INT64(sums_warm(name));
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()) || IsInParallelMode())
		PG_RETURN_INT64(context_warm(name, NULL));
	posterior_reading_begin(&reading);
	PG_TRY();
	{
		rows = context_warm(name, &reading);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(reading.memory);
		error = CopyErrorData();
		FlushErrorState();
		posterior_reading_end(&reading);
		ReThrowError(error);
	}
	PG_END_TRY();
	PG_RETURN_INT64(rows);
}
