/*
 * attempt.c: a step that may fail without failing the statement.
 *
 * An error in the middle of the server's functions leaves locks, pins and open relations behind.
 * Only the end of a subtransaction frees them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/attempt.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

ErrorData *
posterior_attempt(bool (*step) (void *argument), void *argument)
{
	MemoryContext memory = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(memory);
	PG_TRY();
	{
		if (step(argument))
			ReleaseCurrentSubTransaction();
		else
			RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(memory);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(memory);
	CurrentResourceOwner = owner;
	return error;
}
