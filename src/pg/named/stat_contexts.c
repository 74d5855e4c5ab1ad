/*
 * stat_contexts.c: what the views posterior.stat_contexts and posterior.stat_progress show of named
 * contexts, to users who could count the rows themselves (definition_rights.h).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/materialize.h"
#include "pg/cache/reuse_state.h"
#include "pg/named/definition_rights.h"
#include "pg/shmem/progress.h"
#include "pg/shmem/shared.h"

#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/tuplestore.h"

#include <math.h>

/*
 * The value of a column of context_state(), which has the name of a lookup outcome or another one.
 */
static Datum
state_value(const char *column, const PosteriorReuseCounters *counters, bool known, bool *isnull)
{
	int			outcome = posterior_outcome_of_context_column(column);

	*isnull = outcome < 0 && !known;
	if (outcome >= 0)
		return Int64GetDatum(counters->lookups[outcome]);
	if (strcmp(column, "rows") == 0)
		return Int64GetDatum(counters->last.rows);
	if (strcmp(column, "prefix_rows") == 0)
		return Int64GetDatum(counters->last.prefix);
	if (strcmp(column, "suffix_rows") == 0)
		return Int64GetDatum(counters->last.rows - counters->last.prefix);
	if (strcmp(column, "waiting_rows") == 0)
		return Int64GetDatum(counters->last.waiting);
	if (strcmp(column, "bytes") == 0)
		return Int64GetDatum(counters->last.bytes);
	if (strcmp(column, "drift") != 0)
		elog(ERROR, "context_state() has no column \"%s\"", column);
	*isnull = isnan(counters->drift);
	return Float8GetDatum(counters->drift);
}

/*
 * context_state(id uuid, OUT skips, deltas, reads, extensions, rebuilds, private, rows,
 * prefix_rows, suffix_rows, bytes bigint, drift float8, waiting_rows, revisions bigint): no row
 * without the right to count the rows
 */
PG_FUNCTION_INFO_V1(posterior_context_state);
Datum
posterior_context_state(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = posterior_materialize(fcinfo);
	int			n = result->setDesc->natts;
	Datum	   *values = palloc(n * sizeof(Datum));
	bool	   *nulls = palloc(n * sizeof(bool));
	PosteriorReuseCounters counters;
	pg_uuid_t	version;
	bool		known,
				shown;

	if (!posterior_may_count(PG_GETARG_UUID_P(0), &shown, &version))
		return (Datum) 0;
	known = posterior_reuse_state_read(PG_GETARG_UUID_P(0), &counters);
	/* the last use may have been under a definition that has been replaced */
	if (memcmp(&counters.last.version, &version, sizeof(version)) != 0)
		counters.drift = get_float8_nan();
	for (int i = 0; i < n; i++)
		values[i] = state_value(NameStr(TupleDescAttr(result->setDesc, i)->attname), &counters,
								known, &nulls[i]);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	return (Datum) 0;
}

/* Whether a backend works for rows of no named context. */
static bool
names_no_context(const PosteriorProgress *p)
{
	static const pg_uuid_t none = {{0}};

	return memcmp(&p->context, &none, sizeof(none)) == 0;
}

/*
 * Whether the current user may see what a backend does: for a named context, if it could count
 * the rows; else, as while the context is created, if pg_stat_activity would show it the queries of
 * the backend's role.
 */
static bool
may_see(const PosteriorProgress *p)
{
	pg_uuid_t	version;
	bool		shown = false,
				may = !names_no_context(p) && posterior_may_count(&p->context, &shown, &version);

	if (shown)
		return may;
	return has_privs_of_role(GetUserId(), p->role)
		|| has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

/* progress(OUT pid int, OUT context_id uuid, OUT phase text, OUT done bigint, OUT total bigint) */
PG_FUNCTION_INFO_V1(posterior_progress_rows);
Datum
posterior_progress_rows(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"", "reading rows", "encoding prefix", "encoding suffix",
		"answering questions", "drawing", "scoring"};
	ReturnSetInfo *result = posterior_materialize(fcinfo);

	posterior_shared_attach();
	for (int i = 0; i < POSTERIOR_PROGRESSES; i++)
	{
		PosteriorProgress *p = &posterior_progresses[i];
		uint32		phase = pg_atomic_read_u32(&p->phase);
		PosteriorProgress seen;
		int64		total;
		Datum		values[5];
		bool		nulls[5] = {false};

		if (phase == 0 || phase > POSTERIOR_SCORING)
			continue;
		pg_read_barrier();
		seen = *p;
		total = (int64) pg_atomic_read_u64(&seen.total);
		pg_read_barrier();
		/* the slot may have changed hands meanwhile */
		if (pg_atomic_read_u32(&seen.pid) == 0 || pg_atomic_read_u32(&p->phase) == 0
			|| pg_atomic_read_u32(&p->pid) != pg_atomic_read_u32(&seen.pid)
			|| seen.database != MyDatabaseId || !may_see(&seen))
			continue;
		values[0] = Int32GetDatum((int32) pg_atomic_read_u32(&seen.pid));
		values[1] = UUIDPGetDatum(&seen.context);
		values[2] = CStringGetTextDatum(names[phase]);
		values[3] = Int64GetDatum((int64) pg_atomic_read_u64(&seen.done));
		values[4] = Int64GetDatum(total);
		nulls[1] = names_no_context(&seen);
		nulls[4] = total == 0;
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
