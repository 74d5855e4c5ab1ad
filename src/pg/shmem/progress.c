/*
 * progress.c: slots of shared memory in which backends say how far they are.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/shmem/progress.h"

#include "pg/base/materialize.h"
#include "pg/named/definition_rights.h"
#include "pg/shmem/shared.h"

#include "access/xact.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/builtins.h"

static PosteriorProgress *mine = NULL;
static int64 before;			/* rows that were done when the present step began */

void
posterior_progress_end(void)
{
	if (mine != NULL)
		pg_atomic_write_u32(&mine->pid, 0);
	mine = NULL;
}

static void
at_transaction_end(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
		posterior_progress_end();
}

static void
at_exit(int code, Datum argument)
{
	posterior_progress_end();
}

void
posterior_progress_begin(const pg_uuid_t *context)
{
	static bool registered = false;

	if (!posterior_is_shared)
		return;
	if (!registered)
	{
		RegisterXactCallback(at_transaction_end, NULL);
		on_shmem_exit(at_exit, (Datum) 0);
		registered = true;
	}
	for (int i = 0; mine == NULL && i < POSTERIOR_PROGRESSES; i++)
	{
		PosteriorProgress *p = &posterior_shared->progresses[i];
		uint32		nobody = 0;

		if (pg_atomic_compare_exchange_u32(&p->pid, &nobody, (uint32) MyProcPid))
			mine = p;
	}
	if (mine == NULL)
		return;
	mine->database = MyDatabaseId;
	mine->context = *context;
	posterior_progress(POSTERIOR_READING, 0, 0);
}

void
posterior_progress(PosteriorPhase phase, int64 done, int64 total)
{
	if (mine == NULL)
		return;
	before = done;
	pg_atomic_write_u32(&mine->phase, phase);
	pg_atomic_write_u64(&mine->done, (uint64) done);
	pg_atomic_write_u64(&mine->total, (uint64) total);
}

void
posterior_progress_within(int64 done)
{
	if (mine != NULL)
		pg_atomic_write_u64(&mine->done, (uint64) (before + done));
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
		PosteriorProgress *p = &posterior_shared->progresses[i];
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
