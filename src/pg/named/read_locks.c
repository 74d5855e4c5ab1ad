/*
 * read_locks.c: a reading is a subtransaction that is rolled back. That is what releases locks
 * before the transaction ends, those that the executor and the planner have taken among them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/read_locks.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

void
posterior_reading_begin(PosteriorReading *reading)
{
	reading->memory = CurrentMemoryContext;
	reading->owner = CurrentResourceOwner;
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(reading->memory);
	reading->open = true;
}

void
posterior_reading_end(PosteriorReading *reading)
{
	if (!reading->open)
		return;
	reading->open = false;
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(reading->memory);
	CurrentResourceOwner = reading->owner;
	/* the catalogs' snapshot would hold back VACUUM as any other does */
	InvalidateCatalogSnapshot();
}
