/*
 * cache_stat.c: what the views of the cache show.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/entries.h"
#include "pg/cache/reuse_state.h"

#include "funcapi.h"
#include "utils/builtins.h"

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
	counters = &posterior_directory->counters;
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

/* stat_reset(): all counters of the cache and of this database's contexts to zero */
PG_FUNCTION_INFO_V1(posterior_stat_reset);
Datum
posterior_stat_reset(PG_FUNCTION_ARGS)
{
	posterior_shared_attach();
	pg_atomic_write_u64(&posterior_directory->counters.hits, 0);
	pg_atomic_write_u64(&posterior_directory->counters.misses, 0);
	pg_atomic_write_u64(&posterior_directory->counters.appends, 0);
	pg_atomic_write_u64(&posterior_directory->counters.evictions, 0);
	pg_atomic_write_u64(&posterior_directory->counters.privates, 0);
	posterior_reuse_state_reset();
	PG_RETURN_VOID();
}
