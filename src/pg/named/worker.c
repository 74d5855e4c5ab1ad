/*
 * worker.c: the maintenance worker, which encodes the contexts of one database ahead of readers.
 *
 * It asks for the encodings like any reader, after the commit and under a snapshot of its own, and
 * exits at once, so that it blocks nothing. While it encodes it holds neither a lock on the table
 * nor a snapshot. The launcher (launcher.c) starts it.
 *
 * Reading a table can mean running functions of its owner: those of a policy, or of an index while
 * the query is planned. No user has asked for what is read here, so it is read with the rights of
 * the table's owner, as VACUUM would, and not with those of the context's owner, which may be a
 * superuser. Nothing that such functions do to the session outlives the reading (read_locks.h,
 * acting.h), and a process serves the tables of one owner only.
 *
 * Contexts that keep sums are not encoded: their notes are folded into the sums, in steps that are
 * transactions of their own, so that what is done stays done. No function of an owner's runs for
 * that, so one process folds the notes of all owners.
 *
 * What takes long must not keep the rest waiting: a context rests nine times as long as encoding it
 * took, an hour at most.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/worker.h"

#include "pg/base/acting.h"
#include "pg/named/context_refresh.h"
#include "pg/named/fold_turns.h"
#include "pg/named/kept_fold.h"
#include "pg/named/kept_signature.h"
#include "pg/named/context_triggers.h"
#include "pg/named/acquire.h"
#include "pg/named/relations.h"
#include "pg/cache/reuse_state.h"
#include "pg/shmem/shared.h"
#include "pg/visibility/maintenance_turns.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

int			posterior_maintenance_delay = 1000;

/* ms after which a worker begins with no other context, so that other owners have their turn */
#define SLICE 10000

/*
 * Workers that have got into their databases, by the launcher's places for them; in shared memory.
 * Each word is written by the worker of its place alone.
 */
static uint32 *arrived = NULL;

static Size
arrived_size(void)
{
	return POSTERIOR_WORKERS * sizeof(uint32);
}

static void
arrived_initialize(void *part)
{
	/* zeros */
}

PosteriorSharedPart posterior_worker_part = {
	.place = (void **) &arrived,.size = arrived_size,.initialize = arrived_initialize
};

uint32
posterior_workers_arrived(int place)
{
	return arrived[place];
}

/* A context that may have its turn. */
typedef struct Candidate
{
	char		name[NAMEDATALEN];
	pg_uuid_t	id;
	Oid			relation;
	pg_uuid_t	kept;			/* of one that keeps sums */
	pg_uuid_t	drifted;		/* version of the definition under which rows have drifted */
} Candidate;

/*
 * Whether an encoding, when it was last made, was larger than the cache: then no reader would find
 * it there.
 */
static bool
encoding_is_too_large(const pg_uuid_t *context)
{
	PosteriorReuseCounters counters;

	return posterior_reuse_state_read(context, &counters)
		&& counters.last.bytes > (int64) posterior_cache_size * 1024;
}

/*
 * Note how far the rows after the prefix have drifted from it; whether that is so far that the
 * context shall be encoded anew. Not before they are an eighth as many: then columns that always
 * grow, as times do, cost but a few times what encoding them once does.
 */
static bool
context_has_drifted(const TnpModel *model, const PosteriorNamed *named,
					const PosteriorCachedContext *cached)
{
	TnpRows		rows = posterior_cached_view(cached);
	PosteriorReuse reuse = {.version = named->version,.rows = rows.n,
							.prefix = posterior_cached_prefix(cached)};
	int64		later = rows.n - reuse.prefix;
	double		drift = get_float8_nan();

	if (reuse.prefix > 0 && later >= Max(TNP_DRIFT_ROWS, reuse.prefix / 8))
		drift = tnp_drift(model, &rows, reuse.prefix);
	posterior_reuse_state_note_drift(&named->id, &reuse, drift);
	return posterior_drift_limit > 0 && drift > posterior_drift_limit;
}

/*
 * Whether the context is one that is encoded ahead: over a table that triggers can maintain, none
 * that has become a view meanwhile, or has got children of other owners; and its owner still may
 * read it.
 */
static bool
context_can_be_ahead(const PosteriorNamed *named)
{
	return posterior_can_be_maintained(named->relation)
		&& pg_class_aclcheck(named->relation, named->owner, ACL_SELECT) == ACLCHECK_OK;
}

/*
 * Encode a context ahead, its rows read as the owner of its table; whether they have drifted so far
 * that it shall be encoded anew.
 */
static bool
context_encode_ahead(Candidate *c)
{
	PosteriorReading reading;
	PosteriorActing before;
	PosteriorNamed *named;
	PosteriorModel *model;
	PosteriorContextHandle *e;
	bool		drifted = false;

	posterior_reading_begin(&reading);
	PushActiveSnapshot(GetTransactionSnapshot());
	/* locks the table: its owner and what it is stay as they are while it is read */
	named = posterior_named_find(c->name, CurrentMemoryContext);
	if (context_can_be_ahead(named) && !encoding_is_too_large(&named->id))
	{
		bool		policies;

		posterior_act_as(posterior_relation_owner(named->relation), &before);
		policies = posterior_named_policies(named);
		model = posterior_named_model(named, CurrentMemoryContext);
		e = posterior_named_encode_ahead(model, named, &reading);
		/*
		 * what policies show to the table's owner is no reason to have others' rows encoded anew,
		 * and no refresh would end it
		 */
		drifted = !policies && context_has_drifted(model->model, named, e->cached);
		c->drifted = named->version;
		posterior_handle_release(e);
	}
	posterior_reading_end(&reading);
	return drifted;
}

static bool
context_refresh(Candidate *c)
{
	PosteriorActing before;
	PosteriorNamed *named;

	PushActiveSnapshot(GetTransactionSnapshot());
	named = posterior_named_find(c->name, CurrentMemoryContext);
	if (context_can_be_ahead(named))
	{
		posterior_act_as(posterior_relation_owner(named->relation), &before);
		/*
		 * a session that changes the definition, or has changed it, makes this one moot, and may
		 * stay for long; with the lock on the table that is held here, waiting may be a deadlock
		 */
		posterior_refresh(named->name, &named->id, &c->drifted);
		posterior_act_end(&before);
	}
	PopActiveSnapshot();
	return false;
}

/*
 * Lock the table of models before a step locks definitions and reads a model: DROP EXTENSION locks
 * what is dropped in the order in which it was made, and would meet the step in a deadlock.
 */
static void
lock_models(void)
{
	Oid			space = get_namespace_oid("posterior", true),
				table = OidIsValid(space) ? get_relname_relid("model_file", space) : InvalidOid;

	if (OidIsValid(table))
		LockRelationOid(table, AccessShareLock);
}

/*
 * Do a step to one context in a transaction of its own; false also if that fails. What goes wrong
 * will be the next reader's error, not the log's.
 */
static bool
step_run(bool (*step) (Candidate *c), Candidate *c)
{
	MemoryContext before = CurrentMemoryContext,
				memory = AllocSetContextCreate(before, "posterior step", ALLOCSET_DEFAULT_SIZES);
	bool		volatile result = false;

	StartTransactionCommand();
	MemoryContextSwitchTo(memory);
	PG_TRY();
	{
		lock_models();
		result = step(c);
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(memory);
		error = CopyErrorData();
		FlushErrorState();
		/* with the user and the settings, whatever the step had changed of them */
		AbortOutOfAnyTransaction();
		result = false;
		ereport(DEBUG1, (errmsg_internal("context \"%s\" was not encoded ahead: %s",
										 c->name, error->message)));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(before);
	MemoryContextDelete(memory);
	return result;
}

/* Fold some notes of a context that keeps sums; whether there were any. */
static bool
context_fold(Candidate *c)
{
	PosteriorActing before;
	PosteriorNamed *named;
	bool		folded = false;

	PushActiveSnapshot(GetTransactionSnapshot());
	named = posterior_named_find(c->name, CurrentMemoryContext);
	if (named->keeps && posterior_can_keep(named->relation))
	{
		posterior_act_as(posterior_relation_owner(named->relation), &before);
		folded = posterior_kept_fold_step(posterior_model_pin(named->model, CurrentMemoryContext),
										  named);
		posterior_act_end(&before);
	}
	PopActiveSnapshot();
	return folded;
}

/* Do to a context what there is to do, and let it rest nine times as long as that took. */
static void
context_serve(Candidate *c)
{
	TimestampTz began = GetCurrentTimestamp(),
				end;

	/*
	 * the old encoding serves all readers until the new definition is committed, and those that see
	 * the old definition after that
	 */
	if (step_run(context_encode_ahead, c))
	{
		step_run(context_refresh, c);
		step_run(context_encode_ahead, c);
	}
	end = GetCurrentTimestamp();
	posterior_reuse_state_rest(&c->id, end + posterior_rest_after(end - began, 9));
}

#define IDLE_FOLDING 60000		/* ms until it is tried again where nothing could be folded */

/* ms after which a worker folds no more, so that DROP DATABASE, which waits for 5 s, succeeds */
#define FOLDING_SLICE 2000

/*
 * Fold the notes of a context until none is left, or other owners shall have their turn; `until`
 * says when. It rests nine times as long as that took.
 */
static void
context_fold_all(Candidate *c, TimestampTz until)
{
	TimestampTz began = GetCurrentTimestamp(),
				now = began;
	int64		steps = 0;

	while (now <= until && step_run(context_fold, c))
	{
		steps++;
		now = GetCurrentTimestamp();
	}
	if (now > until)
		posterior_fold_turn_rest(&c->kept, now, true);
	else
		posterior_fold_turn_rest(&c->kept, steps == 0 ? posterior_time_after(now, IDLE_FOLDING)
								 : now + posterior_rest_after(now - began, 9), false);
}

/*
 * Of the tables that have their turn those of one owner, whose contexts have waited longest; the
 * others have theirs next, in another process. So nothing that an owner's functions leave in this
 * one, be it a lock or the state of a library, meets those of another owner.
 */
static int
turns_take(PosteriorMaintenanceTurn *turns, TimestampTz now)
{
	int			n = posterior_writer_log_take(MyDatabaseId, now, turns),
				kept = 0;
	Oid			owner = InvalidOid;
	TimestampTz first = DT_NOEND;

	for (int i = 0; i < n; i++)
	{
		TimestampTz since = turns[i].later != 0 && turns[i].later <= now ? turns[i].later : now;

		if (OidIsValid(posterior_relation_owner(turns[i].relation)) && since < first)
		{
			first = since;
			owner = posterior_relation_owner(turns[i].relation);
		}
	}
	for (int i = 0; i < n; i++)
		if (posterior_relation_owner(turns[i].relation) == owner)
			turns[kept++] = turns[i];
		else
			posterior_writer_log_postpone(turns[i].relation,
										  turns[i].later != 0 ? Min(turns[i].later, now) : now);
	return OidIsValid(owner) ? kept : 0;
}

/*
 * The contexts for which a condition of SQL holds, about the argument $1, in the current memory
 * context.
 */
static Candidate *
candidates_find(const char *condition, Oid type, ArrayType *array, uint64 *n)
{
	Datum		argument = PointerGetDatum(array);
	MemoryContext memory = CurrentMemoryContext;
	Candidate  *found = NULL;
	bool		isnull;

	*n = 0;
	if (ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) == 0
		|| !OidIsValid(get_relname_relid("context_definition",
										 get_namespace_oid("posterior", true))))
		return NULL;
	SPI_connect();
	if (SPI_execute_with_args(
			psprintf("SELECT name, id, relation::pg_catalog.oid, kept FROM " POSTERIOR_DEFINITIONS
					 " WHERE %s", condition),
			1, &type, &argument, NULL, true, 0)
		== SPI_OK_SELECT)
	{
		*n = SPI_processed;
		found = MemoryContextAllocZero(memory, (*n + 1) * sizeof(Candidate));
		for (uint64 i = 0; i < *n; i++)
		{
#define VALUE(column) SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, column, &isnull)
			strlcpy(found[i].name, TextDatumGetCString(VALUE(1)), NAMEDATALEN);
			found[i].id = *DatumGetUUIDP(VALUE(2));
			found[i].relation = DatumGetObjectId(VALUE(3));
			if (SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 4, &isnull), !isnull)
				found[i].kept = *DatumGetUUIDP(VALUE(4));
#undef VALUE
		}
	}
	SPI_finish();
	return found;
}

/* The maintained contexts of the tables that have their turn. */
static Candidate *
encodings_find(uint64 *n)
{
	PosteriorMaintenanceTurn turns[POSTERIOR_WRITER_LOGS];
	Datum		relations[POSTERIOR_WRITER_LOGS];
	int			n_turns = turns_take(turns, GetCurrentTimestamp());

	for (int i = 0; i < n_turns; i++)
		relations[i] = ObjectIdGetDatum(turns[i].relation);
	return candidates_find("maintain OPERATOR(pg_catalog.=) 'trigger'"
						   " AND relation::pg_catalog.oid OPERATOR(pg_catalog.=) ANY ($1)",
						   OIDARRAYOID,
						   construct_array(relations, n_turns, OIDOID, sizeof(Oid), true,
										   TYPALIGN_INT), n);
}

/* The contexts whose notes are to be folded. */
static Candidate *
folds_find(uint64 *n)
{
	pg_uuid_t	kept[POSTERIOR_FOLD_TURNS];
	Datum		identities[POSTERIOR_FOLD_TURNS];
	int			n_turns = posterior_fold_turns_take(MyDatabaseId, GetCurrentTimestamp(), kept);

	for (int i = 0; i < n_turns; i++)
		identities[i] = UUIDPGetDatum(&kept[i]);
	return candidates_find("maintain OPERATOR(pg_catalog.=) 'sums'"
						   " AND kept OPERATOR(pg_catalog.=) ANY ($1)", UUIDARRAYOID,
						   construct_array(identities, n_turns, UUIDOID, UUID_LEN, false,
										   TYPALIGN_CHAR), n);
}

/* The contexts that have their turn, in this memory context. */
static Candidate *
candidates_look_up(MemoryContext memory, Candidate *(*find) (uint64 *n), uint64 *n)
{
	Candidate  *found;

	StartTransactionCommand();
	/*
	 * only in a transaction can the worker join the database's incarnation, by which everything is
	 * keyed
	 */
	posterior_shared_attach();
	MemoryContextSwitchTo(memory);
	PushActiveSnapshot(GetTransactionSnapshot());
	found = find(n);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(memory);
	return found;
}

/*
 * What a database, or the role that the cluster was made with, has set must not decide what is read
 * here, as for autovacuum.
 */
static void
settings_fix(void)
{
	SetConfigOption("search_path", "pg_catalog, pg_temp", PGC_SUSET, PGC_S_OVERRIDE);
	/* a snapshot of a transaction would stay while what was read under it is encoded */
	SetConfigOption("default_transaction_isolation", "read committed", PGC_SUSET, PGC_S_OVERRIDE);
	/* what is folded can be folded again; a standby that is away must not keep the locks held */
	SetConfigOption("synchronous_commit", "local", PGC_SUSET, PGC_S_OVERRIDE);
}

void
posterior_worker_main(Datum argument)
{
	MemoryContext memory;
	TimestampTz began = GetCurrentTimestamp();
	Candidate  *candidates;
	uint64		n;
	int			place;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(argument), InvalidOid, 0);
	settings_fix();
	posterior_shared_attach();
	memcpy(&place, MyBgworkerEntry->bgw_extra, sizeof(place));
	arrived[place]++;
	memory = AllocSetContextCreate(TopMemoryContext, "posterior worker", ALLOCSET_DEFAULT_SIZES);
	pgstat_report_activity(STATE_RUNNING, "encoding named contexts");
	/* before anything of an owner's can run in this process */
	candidates = candidates_look_up(memory, folds_find, &n);
	for (uint64 i = 0; i < n; i++)
		context_fold_all(&candidates[i], posterior_time_after(began, FOLDING_SLICE));
	candidates = candidates_look_up(memory, encodings_find, &n);
	for (uint64 i = 0; i < n; i++)
	{
		Candidate  *c = &candidates[i];
		TimestampTz now = GetCurrentTimestamp(),
					rests = posterior_reuse_state_rests(&c->id);

		if (rests > now || now > posterior_time_after(began, SLICE))
			posterior_writer_log_postpone(c->relation, Max(rests, now));
		else
			context_serve(c);
	}
	proc_exit(0);
}
