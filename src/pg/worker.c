/*
 * worker.c: the maintenance worker. A launcher without a database waits until somebody has committed a write to a table whose contexts are in use; a
 * little later, so that many writes are encoded at once, it starts a worker in that database, which asks for the encodings like any reader, after the commit and
 * under a snapshot of its own. The worker ends at once, so that it stands in nobody's way.
 *
 * To read a table can mean to run functions of its owner: a policy's, or an index's while the query is planned. Nobody has asked for what is read here, so it is
 * read with the rights of the table's owner, as VACUUM would, and not with those of the context's, who may be a superuser.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "worker.h"

#include "bridge.h"
#include "context_ddl.h"
#include "named_hold.h"
#include "shared.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/procsignal.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#define CROWDED_DELAY 1000		/* ms until a worker is tried again when the server has no place for one */

void
posterior_worker_register(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 10;
	strlcpy(worker.bgw_library_name, "pg_posterior", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "posterior_launcher_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "posterior launcher", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "posterior launcher", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}

void
posterior_worker_wake(void)
{
	Latch	   *launcher = posterior_shared->launcher;

	if (launcher != NULL)
		SetLatch(launcher);
}

/* ---- the launcher -------------------------------------------------------------------------------------------------- */

/* Databases with tables that have been written since their contexts were last encoded ahead. */
static int
dirty_databases(Oid *databases)
{
	int			n = 0;

	posterior_lock(LW_SHARED);
	for (int i = 0; i < POSTERIOR_RINGS; i++)
	{
		PosteriorRing *ring = &posterior_shared->rings[i];
		bool		known = false;

		if (!OidIsValid(ring->relation) || !ring->dirty)
			continue;
		for (int j = 0; j < n; j++)
			known = known || databases[j] == ring->database;
		if (!known)
			databases[n++] = ring->database;
	}
	posterior_unlock();
	return n;
}

/* Tables of a database that have been written, at most POSTERIOR_RINGS; from now on they count as not written. */
static int
take_dirty_tables(Oid database, Datum *tables)
{
	int			n = 0;

	for (int i = 0; i < POSTERIOR_RINGS; i++)
	{
		PosteriorRing *ring = &posterior_shared->rings[i];

		LWLockAcquire(posterior_ring_lock(i), LW_EXCLUSIVE);
		if (ring->database == database && ring->dirty)
		{
			ring->dirty = false;
			tables[n++] = ObjectIdGetDatum(ring->relation);
		}
		LWLockRelease(posterior_ring_lock(i));
	}
	return n;
}

/* Run a worker in a database and wait until it has ended; false if there is no place for one. */
static bool
maintain(Oid database)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;
	uint32		before = posterior_shared->workers;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = ObjectIdGetDatum(database);
	worker.bgw_notify_pid = MyProcPid;
	strlcpy(worker.bgw_library_name, "pg_posterior", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "posterior_worker_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "posterior worker", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "posterior worker", sizeof(worker.bgw_type));
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
		return false;
	if (WaitForBackgroundWorkerShutdown(handle) == BGWH_POSTMASTER_DIED)
		proc_exit(1);
	pfree(handle);
	/* it was dropped, or lets nobody in: the next read encodes, and trying again and again would fill the log */
	if (posterior_shared->workers == before)
	{
		Datum		tables[POSTERIOR_RINGS];

		take_dirty_tables(database, tables);
	}
	return true;
}

static void
forget_launcher(int code, Datum argument)
{
	posterior_shared->launcher = NULL;
}

/* Wait until there is something to do, or for `timeout` ms. */
static void
wait_for(long timeout)
{
	int			events = WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (timeout >= 0 ? WL_TIMEOUT : 0), timeout, PG_WAIT_EXTENSION);

	if (events & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	if (ShutdownRequestPending)
		proc_exit(0);
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

void
posterior_launcher_main(Datum argument)
{
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGUSR1, procsignal_sigusr1_handler);
	BackgroundWorkerUnblockSignals();
	posterior_shared_attach();
	on_shmem_exit(forget_launcher, (Datum) 0);
	posterior_shared->launcher = &MyProc->procLatch;
	for (long spent = 0;;)
	{
		Oid			databases[POSTERIOR_RINGS];
		TimestampTz began = GetCurrentTimestamp();
		bool		crowded = false;
		int			n;

		/* let writes come together, and leave nine tenths of a core to others; the latch may be set again and again meanwhile */
		while (posterior_maintenance_delay >= 0
			   && !TimestampDifferenceExceeds(began, GetCurrentTimestamp(), (int) Min(Max(posterior_maintenance_delay, 9 * spent), 3600000)))
			wait_for(Max(100, Max(posterior_maintenance_delay, 9 * spent)));
		began = GetCurrentTimestamp();
		n = posterior_maintenance_delay >= 0 ? dirty_databases(databases) : 0;
		for (int i = 0; i < n; i++)
			crowded = !maintain(databases[i]) || crowded;
		spent = (long) ((GetCurrentTimestamp() - began) / 1000);
		/* without a place for a worker nothing has been waited for, whatever the settings say; the next read may encode meanwhile */
		if (crowded)
			wait_for(CROWDED_DELAY);
		if (n == 0)
			wait_for(-1);
	}
}

/* ---- the worker ---------------------------------------------------------------------------------------------------- */

/* Whether an encoding, when somebody last made it, was larger than the cache: then nobody would find it there. */
static bool
is_too_large(const pg_uuid_t *context)
{
	int64		rungs[POSTERIOR_RUNGS],
				rows,
				prefix,
				bytes;
	double		drift;

	return posterior_state_read(context, rungs, &rows, &prefix, &bytes, &drift) && bytes > (int64) posterior_cache_size * 1024;
}

/*
 * Note how far the rows after the prefix have drifted from it; whether that is so far that the context shall be encoded anew. Not before they are an eighth as many, so that
 * columns that always grow, as times do, cost but a few times what encoding them once does.
 */
static bool
has_drifted(const PosteriorNamed *named, const PosteriorBody *body)
{
	TnpRows		rows = posterior_body_view(body);
	int64		prefix = posterior_body_prefix(body),
				later = rows.n - prefix;
	double		drift = get_float8_nan();

	if (prefix > 0 && later >= Max(TNP_DRIFT_ROWS, prefix / 8))
		drift = tnp_drift(&rows, prefix);
	posterior_state_note_drift(&named->id, drift);
	return posterior_drift_limit > 0 && drift > posterior_drift_limit;
}

/*
 * Whether the context is one that is encoded ahead: over a table that triggers can maintain, none that has become a view meanwhile, or has got children of other owners;
 * and its owner still may read it.
 */
static bool
can_be_ahead(const PosteriorNamed *named)
{
	return posterior_can_be_maintained(named->relation) && pg_class_aclcheck(named->relation, named->owner, ACL_SELECT) == ACLCHECK_OK;
}

static bool
encode_ahead(const PosteriorNamed *named)
{
	PosteriorEncoding *e;
	bool		drifted;

	if (is_too_large(&named->id))
		return false;
	e = posterior_named_hold(posterior_model_pin(named->model, CurrentMemoryContext), named, NULL);
	/* what policies show to the table's owner is no reason to have others' rows encoded anew, and no refresh would end it */
	drifted = !posterior_named_policies(named) && has_drifted(named, e->body);
	posterior_encoding_release(e);
	return drifted;
}

static bool
refresh(const PosteriorNamed *named)
{
	/* who changes the definition says other things about it anyway, and may stay for long; with the lock on the table that we have here, waiting may be a deadlock */
	posterior_refresh(named->name, &named->id, false);
	return false;
}

/*
 * Do a step to one context in a transaction of its own, as the owner of its table; false also if that fails. What goes wrong will be the next reader's error, not the log's.
 */
static bool
do_as_owner(bool (*step) (const PosteriorNamed *named), const char *name)
{
	MemoryContext before = CurrentMemoryContext;
	Oid			user;
	int			security;
	bool		volatile result = false;

	StartTransactionCommand();
	GetUserIdAndSecContext(&user, &security);
	PG_TRY();
	{
		PosteriorNamed *named;

		PushActiveSnapshot(GetTransactionSnapshot());
		/* locks the table: its owner and what it is stay as they are */
		named = posterior_named_find(name, CurrentMemoryContext);
		if (can_be_ahead(named))
		{
			SetUserIdAndSecContext(posterior_relation_owner(named->relation), security | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
			result = step(named);
			SetUserIdAndSecContext(user, security);
		}
		PopActiveSnapshot();
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(before);
		error = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		result = false;
		ereport(DEBUG1,
				(errmsg_internal("context \"%s\" was not encoded ahead: %s", name, error->message)));
		FreeErrorData(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(before);
	return result;
}

void
posterior_worker_main(Datum argument)
{
	Oid			type = OIDARRAYOID;
	Datum		dirty[POSTERIOR_RINGS],
				tables;
	MemoryContext memory;
	uint64		n = 0;
	char	  **names = NULL;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(argument), InvalidOid, 0);
	posterior_shared_attach();
	posterior_shared->workers++;
	memory = AllocSetContextCreate(TopMemoryContext, "posterior worker", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(memory);
	pgstat_report_activity(STATE_RUNNING, "encoding named contexts");
	tables = PointerGetDatum(construct_array(dirty, take_dirty_tables(MyDatabaseId, dirty), OIDOID, sizeof(Oid), true, TYPALIGN_INT));

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (OidIsValid(get_relname_relid("context_definition", get_namespace_oid("posterior", true))))
	{
		SPI_connect();
		if (SPI_execute_with_args("SELECT name FROM " POSTERIOR_DEFINITIONS " WHERE maintain OPERATOR(pg_catalog.=) 'trigger'"
								  " AND relation::pg_catalog.oid OPERATOR(pg_catalog.=) ANY ($1)", 1, &type, &tables, NULL, true, 0) == SPI_OK_SELECT)
		{
			n = SPI_processed;
			names = MemoryContextAlloc(memory, (n + 1) * sizeof(char *));
			for (uint64 i = 0; i < n; i++)
			{
				bool		isnull;

				names[i] = MemoryContextStrdup(memory, TextDatumGetCString(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull)));
			}
		}
		SPI_finish();
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(memory);
	for (uint64 i = 0; i < n; i++)
		/* the old encoding serves everybody until the new definition is committed, and those who see the old one after that */
		if (do_as_owner(encode_ahead, names[i]))
		{
			do_as_owner(refresh, names[i]);
			do_as_owner(encode_ahead, names[i]);
		}
	proc_exit(0);
}
