/*
 * launcher.c: the launcher of maintenance workers.
 *
 * The launcher has no database. It waits until a transaction has committed a write to a table whose
 * contexts are in use, or a context that keeps sums has many notes. A little later, so that many
 * writes are encoded or folded at once, it starts a worker (worker.c) in that database, or tries
 * again where the server has no slot for one.
 *
 * What takes long must not keep the rest waiting: a database rests as long as its worker has
 * worked, an hour at most, and each database has a worker of its own.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/launcher.h"

#include "pg/named/fold_turns.h"
#include "pg/named/worker.h"
#include "pg/shmem/shared.h"
#include "pg/visibility/maintenance_turns.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* ms until a worker is tried again when the server has no slot for one */
#define CROWDED_DELAY 1000

void
posterior_launcher_register(void)
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

/* A worker that the launcher has started. */
typedef struct Place
{
	BackgroundWorkerHandle *handle; /* NULL: free */
	Oid			database;
	TimestampTz began;
	uint32		before;			/* workers that had got into their databases from this place */
} Place;

/* When a database has its turn. */
typedef struct Database
{
	Oid			oid;
	TimestampTz due;			/* maintenance_delay after a write was noticed; 0: none was */
	TimestampTz rests;			/* not before */
} Database;

static Place places[POSTERIOR_WORKERS];
static Database databases[POSTERIOR_WRITER_LOGS];

/*
 * Whether the place of a is taken before that of b: free ones first, then those of databases that
 * rest, and only then those of databases that wait for their turn, the longest first.
 */
static bool
database_gives_way(const Database *a, const Database *b)
{
	return a->due != b->due ? a->due < b->due : a->rests < b->rests;
}

/* What is known of a database. */
static Database *
database_find(Oid oid)
{
	Database   *free = &databases[0];

	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
	{
		if (databases[i].oid == oid)
			return &databases[i];
		if (database_gives_way(&databases[i], free))
			free = &databases[i];
	}
	*free = (Database) {.oid = oid};
	return free;
}

static bool
database_is_served(Oid database)
{
	for (int i = 0; i < POSTERIOR_WORKERS; i++)
		if (places[i].handle != NULL && places[i].database == database)
			return true;
	return false;
}

/* A place that is free, or NULL. */
static Place *
place_find_free(void)
{
	for (int i = 0; i < POSTERIOR_WORKERS; i++)
		if (places[i].handle == NULL)
			return &places[i];
	return NULL;
}

/* Start a worker in a database; false if the server has no slot for it. */
static bool
worker_start(Place *place, Oid database, TimestampTz now)
{
	BackgroundWorker worker;
	int			number = place - places;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = ObjectIdGetDatum(database);
	worker.bgw_notify_pid = MyProcPid;
	memcpy(worker.bgw_extra, &number, sizeof(number));
	strlcpy(worker.bgw_library_name, "pg_posterior", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "posterior_worker_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "posterior worker", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "posterior worker", sizeof(worker.bgw_type));
	*place = (Place) {.database = database,.began = now,
					  .before = posterior_workers_arrived(number)};
	posterior_writer_log_offer(database);
	posterior_fold_turns_offer(database);
	return RegisterDynamicBackgroundWorker(&worker, &place->handle);
}

/*
 * Find the workers that have ended, and let their databases rest for as long as these have worked.
 */
static void
workers_reap(TimestampTz now)
{
	for (int i = 0; i < POSTERIOR_WORKERS; i++)
	{
		Place	   *place = &places[i];
		pid_t		pid;

		if (place->handle == NULL || GetBackgroundWorkerPid(place->handle, &pid) != BGWH_STOPPED)
			continue;
		pfree(place->handle);
		place->handle = NULL;
		database_find(place->database)->rests = now + posterior_rest_after(now - place->began, 1);
		/*
		 * the database was dropped, or refuses connections: the next read encodes; to try again and
		 * again would fill the log. What was written since has a turn of its own, for connections
		 * may be accepted again.
		 */
		if (posterior_workers_arrived(i) == place->before)
		{
			posterior_writer_log_drop(place->database);
			posterior_fold_turns_drop(place->database);
		}
	}
}

/* When a database has its turn, as far as is known now. */
static TimestampTz
database_turn(Database *d, const PosteriorDue *due, TimestampTz now)
{
	TimestampTz at = due->later;

	if (!due->dirty)
		d->due = 0;
	else if (d->due == 0)
		/* let writes come together */
		d->due = posterior_time_after(now, posterior_maintenance_delay);
	if (due->dirty)
		at = Min(at, d->due);
	return Max(at, d->rests);
}

/*
 * Start the workers of the databases that have their turn; when the next one has, or DT_NOEND. A
 * worker that ends sets the latch.
 */
static TimestampTz
workers_start_due(TimestampTz now)
{
	PosteriorDue due[POSTERIOR_WRITER_LOGS];
	int			n = posterior_fold_turns_due(due, posterior_writer_log_due(due));
	TimestampTz next = DT_NOEND;

	for (int i = 0; i < n; i++)
	{
		Database   *d = database_find(due[i].database);
		Place	   *place = place_find_free();
		TimestampTz at = database_turn(d, &due[i], now);

		if (database_is_served(d->oid) || (at <= now && place == NULL))
			continue;
		if (at <= now && worker_start(place, d->oid, now))
			d->due = 0;
		else if (at <= now)
			/*
			 * without a slot for a worker nothing has been waited for, whatever the settings say;
			 * the next read may encode meanwhile
			 */
			next = Min(next, d->rests = posterior_time_after(now, CROWDED_DELAY));
		else
			next = Min(next, at);
	}
	return next;
}

static void
launcher_forget(int code, Datum argument)
{
	posterior_writer_logs_set_launcher(NULL);
}

/* Wait until there is something to do, or until then. */
static void
launcher_wait(TimestampTz until)
{
	static uint32 event = 0;
	bool		forever = until == DT_NOEND;
	long timeout =
		forever ? -1
			: Max(1,
				  (long) Min((until - GetCurrentTimestamp()) / 1000 + 1, POSTERIOR_LONGEST_REST));
	int events = WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (forever ? 0 : WL_TIMEOUT),
						   timeout, posterior_wait_event(&event, "PosteriorWorkerMain"));

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
	on_shmem_exit(launcher_forget, (Datum) 0);
	posterior_writer_logs_set_launcher(&MyProc->procLatch);
	for (;;)
	{
		TimestampTz now = GetCurrentTimestamp();

		workers_reap(now);
		launcher_wait(posterior_maintenance_delay >= 0 ? workers_start_due(now) : DT_NOEND);
	}
}
