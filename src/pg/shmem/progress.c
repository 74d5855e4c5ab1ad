/*
 * progress.c: slots of shared memory in which backends say how far they are.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/shmem/progress.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"

PosteriorProgress *posterior_progresses = NULL;

static PosteriorProgress *mine = NULL;
static int	nesting;			/* subtransactions around the work that is shown */
static int64 before;			/* rows that were done when the present step began */

/* The question that is answered. */
static PosteriorPhase asked_phase;	/* 0: none is */
static int64 asked_done,		/* rows */
			asked_total;

static Size
progress_size(void)
{
	return POSTERIOR_PROGRESSES * sizeof(PosteriorProgress);
}

static void
progress_initialize(void *part)
{
	for (int i = 0; i < POSTERIOR_PROGRESSES; i++)
	{
		PosteriorProgress *p = (PosteriorProgress *) part + i;

		pg_atomic_init_u32(&p->pid, 0);
		pg_atomic_init_u32(&p->phase, 0);
		pg_atomic_init_u64(&p->done, 0);
		pg_atomic_init_u64(&p->total, 0);
		pg_atomic_init_u32(&p->gathers, 0);
		pg_atomic_init_u64(&p->helped, 0);
	}
}

PosteriorSharedPart posterior_progress_part = {
	.place = (void **) &posterior_progresses,.size = progress_size,
	.initialize = progress_initialize
};

void
posterior_progress_end(void)
{
	if (mine != NULL)
	{
		pg_atomic_write_u32(&mine->gathers, 0);
		pg_atomic_write_u32(&mine->phase, 0);
		pg_write_barrier();
		pg_atomic_write_u32(&mine->pid, 0);
	}
	mine = NULL;
	asked_phase = 0;
}

static void
at_transaction_end(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
		posterior_progress_end();
}

/* An error that is caught, as by an EXCEPTION clause of PL/pgSQL. */
static void
at_subtransaction_end(SubXactEvent event, SubTransactionId id, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB && mine != NULL
		&& GetCurrentTransactionNestLevel() <= nesting)
		posterior_progress_end();
}

static void
at_exit(int code, Datum argument)
{
	posterior_progress_end();
}

bool
posterior_progress_begin(const pg_uuid_t *context)
{
	static bool registered = false;

	if (!posterior_is_shared || mine != NULL)
		return false;
	if (!registered)
	{
		RegisterXactCallback(at_transaction_end, NULL);
		RegisterSubXactCallback(at_subtransaction_end, NULL);
		on_shmem_exit(at_exit, (Datum) 0);
		registered = true;
	}
	for (int i = 0; mine == NULL && i < POSTERIOR_PROGRESSES; i++)
	{
		PosteriorProgress *p = &posterior_progresses[i];
		uint32		unused = 0;

		if (pg_atomic_compare_exchange_u32(&p->pid, &unused, (uint32) MyProcPid))
			mine = p;
	}
	if (mine == NULL)
		return false;
	nesting = GetCurrentTransactionNestLevel();
	mine->database = MyDatabaseId;
	mine->role = GetUserId();
	if (context != NULL)
		mine->context = *context;
	else
		memset(&mine->context, 0, sizeof(mine->context));
	/* a slot without a phase is not shown */
	pg_write_barrier();
	posterior_progress(POSTERIOR_READING, 0, 0);
	return true;
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
	/* rows that the engine encodes to answer a question are not those that it is about */
	if (mine != NULL && pg_atomic_read_u32(&mine->phase) < POSTERIOR_ANSWERING)
		pg_atomic_write_u64(&mine->done, (uint64) (before + done));
}

/* ---- questions ------------------------------------------------------------------------------- */

bool
posterior_progress_ask(const pg_uuid_t *context, PosteriorPhase phase, int64 total)
{
	if (total <= 1 || !posterior_progress_begin(context))
		return false;
	asked_phase = phase;
	asked_total = total;
	posterior_progress_asked(0);
	return true;
}

void
posterior_progress_asked(int64 done)
{
	if (asked_phase == 0)
		return;
	/* posterior.cache = verify asks everything twice */
	asked_done = Min(done, asked_total);
	posterior_progress(asked_phase, asked_done, asked_total);
}

void
posterior_progress_answered(int64 rows)
{
	posterior_progress_asked(asked_done + rows);
}

/* ---- rows that aggregates take --------------------------------------------------------------- */

int64
posterior_progress_gather(bool gather)
{
	if (mine == NULL)
		return 0;
	if (gather)
		pg_atomic_write_u64(&mine->helped, 0);
	pg_atomic_write_u32(&mine->gathers, gather);
	return (int64) pg_atomic_read_u64(&mine->helped);
}

/* What the leader of this parallel worker shows, or NULL. */
static PosteriorProgress *
progress_of_leader(void)
{
	uint32		leader = (uint32) MyProc->lockGroupLeader->pid;

	for (int i = 0; i < POSTERIOR_PROGRESSES; i++)
		if (pg_atomic_read_u32(&posterior_progresses[i].pid) == leader)
			return &posterior_progresses[i];
	return NULL;
}

void
posterior_progress_taken(int64 rows)
{
	PosteriorProgress *p = mine;

	if (p == NULL && posterior_is_shared && IsParallelWorker() && MyProc->lockGroupLeader != NULL)
	{
		p = progress_of_leader();
		if (p != NULL && pg_atomic_read_u32(&p->gathers) != 0)
			pg_atomic_fetch_add_u64(&p->helped, rows);
	}
	if (p != NULL && pg_atomic_read_u32(&p->gathers) != 0)
		pg_atomic_fetch_add_u64(&p->done, rows);
}
