/*
 * incarnation.c: lives of databases.
 *
 * A session that needs shared memory joins the life of its database. While any session has joined,
 * the database cannot be dropped: DROP DATABASE, on a standby its replay, waits until no session is
 * connected, and a session leaves the life before it leaves the array of processes that DROP
 * DATABASE looks at. So a session that finds another one there is in the same database as that one,
 * and all sessions that are connected at one time agree on the number.
 *
 * Where no session is connected the next one compares traces: the row in pg_database and the file
 * PG_VERSION. If either differs, the database may be another one: it gets a new number. ALTER
 * DATABASE and a change of the tablespace change the traces, too; then the cache begins anew, which
 * costs one read. docs/snapshots.md says why equal traces mean one life.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/shmem/incarnation.h"

#include "pg/base/guard.h"

#include <sys/stat.h>

#include "access/htup_details.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/syscache.h"

static uint32 number = 0;		/* of this session's incarnation; 0: none yet */
static PosteriorIncarnation *joined = NULL;
static Oid	dropping = InvalidOid;

/* In shared memory, under the lock of the directory. */
typedef struct IncarnationDirectory
{
	uint32		last;			/* number of the incarnation that began last */
	/* one per session is enough, for only incarnations without a session give way */
	PosteriorIncarnation places[FLEXIBLE_ARRAY_MEMBER];
} IncarnationDirectory;

static IncarnationDirectory *directory = NULL;

static Size
directory_size(void)
{
	return add_size(offsetof(IncarnationDirectory, places),
					mul_size(posterior_most_sessions(), sizeof(PosteriorIncarnation)));
}

static void
directory_initialize(void *part)
{
	/* zeros are places that are free */
}

PosteriorSharedPart posterior_incarnation_part = {
	.place = (void **) &directory,.size = directory_size,.initialize = directory_initialize
};

/* The traces of this session's database. */
static void
traces_read(PosteriorIncarnationTraces *t)
{
	HeapTuple	row = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	char	   *file = psprintf("%s/PG_VERSION", DatabasePath);
	struct stat status;

	memset(t, 0, sizeof(*t));
	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	/* raw: a row that is frozen meanwhile keeps it */
	t->xmin = HeapTupleHeaderGetRawXmin(row->t_data);
	t->place = row->t_self;
	ReleaseSysCache(row);
	if (stat(file, &status) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not stat file \"%s\": %m", file)));
	t->device = (uint64) status.st_dev;
	t->inode = (uint64) status.st_ino;
	t->changed = (int64) status.st_ctime;
	pfree(file);
}

/* Forget all that is keyed by a life. The lock of the directory is held exclusively. */
static void
incarnation_forget(uint32 incarnation)
{
	int			n;
	PosteriorSharedPart *const *parts = posterior_segment_parts(&n);

	for (int i = 0; i < n; i++)
		if (parts[i]->forget != NULL)
			parts[i]->forget(incarnation);
}

/* Whether a place is better taken than another one. */
static bool
incarnation_gives_way(const PosteriorIncarnation *incarnation, const PosteriorIncarnation *other)
{
	return OidIsValid(other->database)
		&& (!OidIsValid(incarnation->database) || incarnation->used < other->used);
}

/*
 * The incarnation of a database if there is one, else a place for it. The lock is held exclusively.
 */
static PosteriorIncarnation *
incarnation_find(Oid database)
{
	PosteriorIncarnation *best = NULL;

	for (int i = 0; i < posterior_most_sessions(); i++)
	{
		PosteriorIncarnation *incarnation = &directory->places[i];

		if (incarnation->database == database)
			return incarnation;
		if (incarnation->sessions == 0
			&& (best == NULL || incarnation_gives_way(incarnation, best)))
			best = incarnation;
	}
	return best;
}

/* Whether a life that no session is in is that of the database with these traces. */
static bool
incarnation_matches(const PosteriorIncarnation *incarnation,
					const PosteriorIncarnationTraces *traces)
{
	return incarnation->database == MyDatabaseId
		&& !GUARD(INCARNATION_MATCHES,
				  memcmp(&incarnation->traces, traces, sizeof(*traces)) != 0);
}

static void
incarnation_leave(int code, Datum argument)
{
	if (joined == NULL)
		return;
	posterior_lock(LW_EXCLUSIVE);
	joined->sessions--;
	posterior_unlock();
	joined = NULL;
}

void
posterior_incarnation_join(void)
{
	PosteriorIncarnationTraces traces;
	PosteriorIncarnation *incarnation;

	if (number != 0)
		return;
	if (!posterior_is_shared)
	{
		number = 1;
		return;
	}
	traces_read(&traces);
	on_shmem_exit(incarnation_leave, (Datum) 0);
	posterior_lock(LW_EXCLUSIVE);
	incarnation = incarnation_find(MyDatabaseId);
	if (incarnation->sessions == 0 && !incarnation_matches(incarnation, &traces))
	{
		if (OidIsValid(incarnation->database))
			incarnation_forget(incarnation->number);
		incarnation->database = MyDatabaseId;
		incarnation->number = ++directory->last;
	}
	/* the row that the last session to join has seen: ALTER DATABASE does not wait for sessions */
	incarnation->traces = traces;
	incarnation->used = posterior_tick();
	incarnation->sessions++;
	posterior_unlock();
	joined = incarnation;
	number = incarnation->number;
}

uint32
posterior_incarnation(void)
{
	if (number == 0)
		elog(ERROR, "the life of database %u has not been joined", MyDatabaseId);
	return number;
}

/* ---- DROP DATABASE --------------------------------------------------------------------------- */

void
posterior_incarnation_dropping(Oid database)
{
	dropping = database;
}

/*
 * That the database is gone is sure when its drop has been committed; no session is connected then.
 * If one is, it is in the next database of this OID, and has found out.
 */
void
posterior_incarnation_at_end(bool committed)
{
	if (!OidIsValid(dropping))
		return;
	if (GUARD(DROP_FORGETS, committed))
	{
		posterior_lock(LW_EXCLUSIVE);
		for (int i = 0; i < posterior_most_sessions(); i++)
		{
			PosteriorIncarnation *incarnation = &directory->places[i];

			if (incarnation->database == dropping && incarnation->sessions == 0)
			{
				incarnation_forget(incarnation->number);
				incarnation->database = InvalidOid;
			}
		}
		posterior_unlock();
	}
	dropping = InvalidOid;
}
