/*
 * kept_plans.c: plans by the text of their query and the user, the least recently made one giving
 * way.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/kept_plans.h"

#include "miscadmin.h"
#include "parser/parser.h"
#include "utils/array.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#define KEPT_PLANS 32

/* A plan that the session keeps. */
typedef struct Kept
{
	char	   *query;			/* NULL: none */
	Oid			user;			/* rights on schemas are asked for when a query is analysed */
	SPIPlanPtr	plan;
	/* by queries that run now: what they read may itself ask contexts, and so come here */
	int			uses;
} Kept;

/*
 * Until the level ends, which is returned, a setting is on, so that what a filter has is read as it
 * is printed; 0: it is on anyway.
 */
static int
setting_turn_on(const char *setting, bool is_on)
{
	int			level;

	if (is_on)
		return 0;
	level = NewGUCNestLevel();
	set_config_option(setting, "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return level;
}

static void
settings_end(int level)
{
	if (level > 0)
		AtEOXact_GUC(true, level);
}

/*
 * The kept plan of a query, with the options of SPI_prepare_cursor, in use until its uses are
 * counted down. SPI must be connected.
 */
static Kept *
plan_use(const char *query, int n, Oid *types, int options)
{
	static Kept kept[KEPT_PLANS];
	static int	next = 0;
	Kept	   *slot;
	SPIPlanPtr	plan;
	int			tried = 0,
				level;

	for (int i = 0; i < KEPT_PLANS; i++)
		if (kept[i].query != NULL && kept[i].user == GetUserId()
			&& strcmp(kept[i].query, query) == 0)
		{
			kept[i].uses++;
			return &kept[i];
		}
	/* later analyses begin with what is parsed here */
	level = setting_turn_on("standard_conforming_strings", standard_conforming_strings);
	plan = SPI_prepare_cursor(query, n, types, options);
	settings_end(level);
	if (plan == NULL)
		elog(ERROR, "could not prepare \"%s\"", query);
	while (kept[next].uses > 0 && tried++ < KEPT_PLANS)
		next = (next + 1) % KEPT_PLANS;
	slot = &kept[next];
	if (slot->uses > 0)
	{
		/*
		 * contexts within contexts, deeper than there are slots: this plan goes with the connection
		 */
		slot = palloc0(sizeof(Kept));
		slot->plan = plan;
		slot->uses = 1;
		return slot;
	}
	if (SPI_keepplan(plan) != 0)
		elog(ERROR, "could not keep the plan of \"%s\"", query);
	if (slot->query != NULL)
	{
		char	   *old = slot->query;

		slot->query = NULL;
		SPI_freeplan(slot->plan);
		pfree(old);
	}
	slot->plan = plan;
	slot->user = GetUserId();
	slot->query = MemoryContextStrdup(TopMemoryContext, query);
	slot->uses = 1;
	next = (next + 1) % KEPT_PLANS;
	return slot;
}

int
posterior_plan_execute(const char *query, int n, Oid *types, int options, Datum *values, long limit)
{
	volatile int level = setting_turn_on("array_nulls", Array_nulls);
	Kept	   *kept = plan_use(query, n, types, options);
	volatile int result = 0;

	PG_TRY();
	{
		result = SPI_execute_plan(kept->plan, values, NULL, true, limit);
	}
	PG_FINALLY();
	{
		kept->uses--;
	}
	PG_END_TRY();
	settings_end(level);
	return result;
}

Portal
posterior_plan_open(const char *query, int n, Oid *types, Datum *values)
{
	volatile int level = setting_turn_on("array_nulls", Array_nulls);
	Kept	   *kept = plan_use(query, n, types, 0);
	Portal		volatile cursor = NULL;

	PG_TRY();
	{
		/* the cursor holds what it needs of the plan */
		cursor = SPI_cursor_open(NULL, kept->plan, values, NULL, true);
	}
	PG_FINALLY();
	{
		kept->uses--;
	}
	PG_END_TRY();
	settings_end(level);
	return cursor;
}
