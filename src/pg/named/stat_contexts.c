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

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
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
		return Int64GetDatum(counters->rows);
	if (strcmp(column, "prefix_rows") == 0)
		return Int64GetDatum(counters->prefix);
	if (strcmp(column, "suffix_rows") == 0)
		return Int64GetDatum(counters->rows - counters->prefix);
	if (strcmp(column, "bytes") == 0)
		return Int64GetDatum(counters->bytes);
	if (strcmp(column, "drift") != 0)
		elog(ERROR, "context_state() has no column \"%s\"", column);
	*isnull = isnan(counters->drift);
	return Float8GetDatum(counters->drift);
}

/*
 * context_state(id uuid, OUT skips, deltas, reads, extensions, rebuilds, private, rows,
 * prefix_rows, suffix_rows, bytes bigint, drift float8): no row for users who could not count the
 * rows
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
	bool		known;

	if (!posterior_may_count(PG_GETARG_UUID_P(0)))
		return (Datum) 0;
	known = posterior_reuse_state_read(PG_GETARG_UUID_P(0), &counters);
	for (int i = 0; i < n; i++)
		values[i] = state_value(NameStr(TupleDescAttr(result->setDesc, i)->attname), &counters,
								known, &nulls[i]);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	return (Datum) 0;
}

/* progress(OUT pid int, OUT context_id uuid, OUT phase text, OUT done bigint, OUT total bigint) */
PG_FUNCTION_INFO_V1(posterior_progress_rows);
Datum
posterior_progress_rows(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"", "reading rows", "encoding prefix", "encoding suffix"};
	ReturnSetInfo *result = posterior_materialize(fcinfo);

	posterior_shared_attach();
	for (int i = 0; i < POSTERIOR_PROGRESSES; i++)
	{
		PosteriorProgress *p = &posterior_progresses[i];
		uint32		pid = pg_atomic_read_u32(&p->pid),
					phase = pg_atomic_read_u32(&p->phase);
		pg_uuid_t	context = p->context;
		int64		total = (int64) pg_atomic_read_u64(&p->total);
		Datum values[5] = {Int32GetDatum((int32) pid), UUIDPGetDatum(&context),
						   CStringGetTextDatum(names[phase <= POSTERIOR_SUFFIX ? phase : 0]),
						   Int64GetDatum((int64) pg_atomic_read_u64(&p->done)),
						   Int64GetDatum(total)};
		bool		nulls[5] = {false, false, false, false, total == 0};

		if (pid != 0 && p->database == MyDatabaseId && posterior_may_count(&context))
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
