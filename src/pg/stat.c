/*
 * stat.c: what the views of the cache show.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "runs.h"

#include "funcapi.h"

/* stat_cache(OUT entries, bytes, hits, misses, appends, evictions, private bigint, OUT shared boolean) */
PG_FUNCTION_INFO_V1(posterior_stat_cache);
Datum
posterior_stat_cache(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	PosteriorCounters *counters;
	Datum		values[8];
	bool		nulls[8] = {false};
	int64		runs,
				bytes;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	posterior_shared_attach();
	counters = &posterior_shared->counters;
	posterior_runs_count(&runs, &bytes);
	values[0] = Int64GetDatum(runs);
	values[1] = Int64GetDatum(bytes);
	values[2] = Int64GetDatum((int64) pg_atomic_read_u64(&counters->hits));
	values[3] = Int64GetDatum((int64) pg_atomic_read_u64(&counters->misses));
	values[4] = Int64GetDatum((int64) pg_atomic_read_u64(&counters->appends));
	values[5] = Int64GetDatum((int64) pg_atomic_read_u64(&counters->evictions));
	values[6] = Int64GetDatum((int64) pg_atomic_read_u64(&counters->privates));
	values[7] = BoolGetDatum(posterior_is_shared);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
