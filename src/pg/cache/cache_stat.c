/*
 * cache_stat.c: what the views of the cache show.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/materialize.h"
#include "pg/named/definition_rights.h"
#include "pg/cache/entries.h"

#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/uuid.h"

/* stat_cache(OUT entries, bytes, hits, misses, appends, evictions, private bigint, OUT shared boolean) */
PG_FUNCTION_INFO_V1(posterior_stat_cache);
Datum
posterior_stat_cache(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	PosteriorCounters *counters;
	Datum		values[8];
	bool		nulls[8] = {false};
	int64		entries,
				bytes;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	posterior_shared_attach();
	counters = &posterior_shared->counters;
	posterior_entries_count(&entries, &bytes);
	values[0] = Int64GetDatum(entries);
	values[1] = Int64GetDatum(bytes);
	values[2] = Int64GetDatum((int64) pg_atomic_read_u64(&counters->hits));
	values[3] = Int64GetDatum((int64) pg_atomic_read_u64(&counters->misses));
	values[4] = Int64GetDatum((int64) pg_atomic_read_u64(&counters->appends));
	values[5] = Int64GetDatum((int64) pg_atomic_read_u64(&counters->evictions));
	values[6] = Int64GetDatum((int64) pg_atomic_read_u64(&counters->privates));
	values[7] = BoolGetDatum(posterior_is_shared);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

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

/* stat_reset(): all counters of the cache and of this database's contexts to zero */
PG_FUNCTION_INFO_V1(posterior_stat_reset);
Datum
posterior_stat_reset(PG_FUNCTION_ARGS)
{
	posterior_shared_attach();
	pg_atomic_write_u64(&posterior_shared->counters.hits, 0);
	pg_atomic_write_u64(&posterior_shared->counters.misses, 0);
	pg_atomic_write_u64(&posterior_shared->counters.appends, 0);
	pg_atomic_write_u64(&posterior_shared->counters.evictions, 0);
	pg_atomic_write_u64(&posterior_shared->counters.privates, 0);
	posterior_reuse_state_reset();
	PG_RETURN_VOID();
}
