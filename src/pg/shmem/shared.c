/*
 * shared.c: what a process does before it uses shared memory.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/shmem/shared.h"

#include "access/xact.h"
#include "miscadmin.h"

void
posterior_shared_attach(void)
{
	posterior_segment_attach();
	/* launcher and supervisor have no database; a worker attaches before its first transaction */
	if (OidIsValid(MyDatabaseId) && IsTransactionState())
		posterior_incarnation_join();
}
