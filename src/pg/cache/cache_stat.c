/*
 * cache_stat.c: what posterior.stat_cache() shows, and posterior.stat_reset().
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/entries.h"
#include "pg/cache/reuse_state.h"

#include "access/htup_details.h"
#include "funcapi.h"

/* The value of a column of stat_cache(), which has the name of a lookup outcome or another one. */
static Datum
cache_value(const char *column)
{
	bool		counts = false;
	int64		lookups = 0,
				entries,
				bytes;

	for (int i = 0; i < CACHE_LOOKUP_OUTCOMES; i++)
		if (posterior_cache_column_counts(column, i))
		{
			counts = true;
			lookups += (int64) pg_atomic_read_u64(&posterior_directory->lookups[i]);
		}
	if (counts)
		return Int64GetDatum(lookups);
	if (strcmp(column, "shared") == 0)
		return BoolGetDatum(posterior_is_shared);
	if (strcmp(column, "evictions") == 0)
		return Int64GetDatum((int64) pg_atomic_read_u64(&posterior_directory->evictions));
	posterior_entries_count(&entries, &bytes);
	if (strcmp(column, "entries") == 0)
		return Int64GetDatum(entries);
	if (strcmp(column, "bytes") == 0)
		return Int64GetDatum(bytes);
	elog(ERROR, "stat_cache() has no column \"%s\"", column);
}

/* stat_cache(OUT entries, bytes, hits, misses, appends, evictions, private bigint, shared bool) */
PG_FUNCTION_INFO_V1(posterior_stat_cache);
Datum
posterior_stat_cache(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum	   *values;
	bool	   *nulls;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	posterior_shared_attach();
	values = palloc(desc->natts * sizeof(Datum));
	nulls = palloc0(desc->natts * sizeof(bool));
	for (int i = 0; i < desc->natts; i++)
		values[i] = cache_value(NameStr(TupleDescAttr(desc, i)->attname));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/* stat_reset(): all counters of the cache and of this database's contexts to zero */
PG_FUNCTION_INFO_V1(posterior_stat_reset);
Datum
posterior_stat_reset(PG_FUNCTION_ARGS)
{
	posterior_shared_attach();
	posterior_entries_reset_counters();
	posterior_reuse_state_reset();
	PG_RETURN_VOID();
}
