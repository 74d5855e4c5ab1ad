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
#include "utils/float.h"
#include "utils/tuplestore.h"

#include <math.h>

/* context_state(id uuid, OUT skips, deltas, reads, extensions, rebuilds, private, rows, prefix_rows, suffix_rows, bytes bigint, drift float8): no row for those who may not count */
PG_FUNCTION_INFO_V1(posterior_context_state);
Datum
posterior_context_state(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = posterior_materialize(fcinfo);
	Datum		values[POSTERIOR_RUNGS + 5];
	bool		nulls[POSTERIOR_RUNGS + 5] = {false};
	int64		rungs[POSTERIOR_RUNGS] = {0},
				rows = 0,
				prefix = 0,
				bytes = 0;
	double		drift = get_float8_nan();

	if (!posterior_may_count(PG_GETARG_UUID_P(0)))
		return (Datum) 0;
	posterior_shared_attach();
	if (!posterior_reuse_state_read(PG_GETARG_UUID_P(0), rungs, &rows, &prefix, &bytes, &drift))
		nulls[POSTERIOR_RUNGS] = nulls[POSTERIOR_RUNGS + 1] = nulls[POSTERIOR_RUNGS + 2] = nulls[POSTERIOR_RUNGS + 3] = true;
	for (int i = 0; i < POSTERIOR_RUNGS; i++)
		values[i] = Int64GetDatum(rungs[i]);
	values[POSTERIOR_RUNGS] = Int64GetDatum(rows);
	values[POSTERIOR_RUNGS + 1] = Int64GetDatum(prefix);
	values[POSTERIOR_RUNGS + 2] = Int64GetDatum(rows - prefix);
	values[POSTERIOR_RUNGS + 3] = Int64GetDatum(bytes);
	values[POSTERIOR_RUNGS + 4] = Float8GetDatum(drift);
	nulls[POSTERIOR_RUNGS + 4] = isnan(drift);
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
		Datum		values[5] = {Int32GetDatum((int32) pid), UUIDPGetDatum(&context), CStringGetTextDatum(names[phase <= POSTERIOR_SUFFIX ? phase : 0]),
		Int64GetDatum((int64) pg_atomic_read_u64(&p->done)), Int64GetDatum(total)};
		bool		nulls[5] = {false, false, false, false, total == 0};

		if (pid != 0 && p->database == MyDatabaseId && posterior_may_count(&context))
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
