/*
 * lookup_outcome.c: the names of lookup outcomes.
 *
 * The SQL functions behind posterior.stat_contexts and posterior.stat_cache() fill their columns by
 * these names, debug messages quote them, and test/check_layers compares them with the comments of
 * the columns and with the table in docs/contexts.md. A new outcome is a line here and in the enum.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/lookup_outcome.h"

const PosteriorLookupOutcomeName posterior_lookup_outcomes[CACHE_LOOKUP_OUTCOMES] = {
	[CACHE_LOOKUP_SKIP] = {"skips", NULL, "no row was read"},
	[CACHE_LOOKUP_DELTA] = {"deltas", NULL, "the new rows only were read"},
	[CACHE_LOOKUP_READ] = {"reads", "hits", "all rows were there and encoded"},
	[CACHE_LOOKUP_EXTENSION] = {"extensions", "appends", "the first rows were encoded"},
	[CACHE_LOOKUP_REVISION] = {"revisions", "appends", "most rows were encoded, in other places"},
	[CACHE_LOOKUP_REBUILD] = {"rebuilds", "misses", "no row was encoded"},
	[CACHE_LOOKUP_PRIVATE] = {"private", "private", "the encoding is this session's own"}
};

int
posterior_outcome_of_context_column(const char *column)
{
	for (int i = 0; i < CACHE_LOOKUP_OUTCOMES; i++)
		if (strcmp(posterior_lookup_outcomes[i].context_column, column) == 0)
			return i;
	return -1;
}

bool
posterior_cache_column_counts(const char *column, PosteriorLookupOutcome outcome)
{
	const char *counts = posterior_lookup_outcomes[outcome].cache_column;

	return counts != NULL && strcmp(counts, column) == 0;
}
