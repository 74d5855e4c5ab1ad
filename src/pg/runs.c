/*
 * runs.c: the directory of runs: finding, pinning, claiming, publishing, evicting.
 *
 * Everything in the directory changes under its lock, which is never held while rows are encoded, and while rows are compared only pins are held. The
 * lock is all there is between processes: the claim of a writer is an atomic word, because encoding must stay cancellable and a held LWLock
 * would defer interrupts.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "runs.h"

#include "bridge.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"

#define RUNS_PER_KEY 4			/* contents of one context that are kept side by side */
#define RECENT 60000			/* ms after which a waiter looks again by itself */

static dlist_head *
bucket(const PosteriorRunKey *key)
{
	uint32		hash = hash_bytes((const unsigned char *) key, sizeof(*key));

	return &posterior_shared->runs[hash % POSTERIOR_BUCKETS];
}

static uint64
hash_more(uint64 hash, const void *bytes, Size length)
{
	while (length > 0)
	{
		int			chunk = (int) Min(length, (Size) 1 << 30);

		hash = hash_bytes_extended(bytes, chunk, hash);
		bytes = (const char *) bytes + chunk;
		length -= chunk;
	}
	return hash;
}

void
posterior_run_key_head(PosteriorRunKey *key, const uint8 *classes, const TnpRows *rows, int64 settled)
{
	uint64		hash = hash_more(0, classes, rows->n_features);

	if (settled > rows->n)
		settled = rows->n;
	hash = hash_more(hash, rows->x, (Size) settled * rows->n_features * sizeof(double));
	key->head = hash_more(hash, rows->y, (Size) settled * sizeof(double));
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

/* Free a run that is in no list and that nobody pins. The lock is held exclusively. */
static void
destroy(PosteriorRun *run)
{
	posterior_body_free(run->body);
	posterior_shared->n_runs--;
	if (run->weights != NULL)
		run->weights->pins--;
	if (run->model != NULL)
		posterior_model_release(run->model);
	if (!posterior_is_shared)
		pg_atomic_fetch_sub_u64(&posterior_shared->used, run->bytes);
	posterior_arena_free(run);
}

/* Take a run out of its bucket; free it if nobody reads it. The lock is held exclusively. */
static void
unlist(PosteriorRun *run)
{
	if (!run->listed)
		return;
	run->listed = false;
	dlist_delete(&run->node);
	if (pg_atomic_read_u32(&run->pins) == 0)
		destroy(run);
	else
		dlist_push_tail(&posterior_shared->doomed, &run->node);
}

void
posterior_run_unlist(PosteriorRun *run)
{
	posterior_lock(LW_EXCLUSIVE);
	unlist(run);
	posterior_unlock();
}

void
posterior_run_unpin(PosteriorRun *run)
{
	bool		last,
				listed;

	/* under the lock the run cannot be freed between the count and the look at `listed` */
	posterior_lock(LW_SHARED);
	last = pg_atomic_sub_fetch_u32(&run->pins, 1) == 0;
	listed = run->listed;
	posterior_unlock();
	if (listed || !last)
		return;
	posterior_lock(LW_EXCLUSIVE);
	{
		dlist_mutable_iter iter;

		dlist_foreach_modify(iter, &posterior_shared->doomed)
		{
			PosteriorRun *doomed = dlist_container(PosteriorRun, node, iter.cur);

			if (doomed == run && pg_atomic_read_u32(&run->pins) == 0)
			{
				dlist_delete(&run->node);
				destroy(run);
				break;
			}
		}
	}
	posterior_unlock();
}

/* Bytes in use that count against the cache's size. */
static uint64
in_use(void)
{
	return pg_atomic_read_u64(&posterior_shared->used);
}

/* Evict the least recently used run or model that nobody needs; *freed grows by its bytes. The lock is held exclusively. */
static bool
evict_one(Size *freed)
{
	PosteriorRun *oldest = NULL;
	PosteriorWeights *idle = NULL;
	dlist_iter	iter;

	for (int b = 0; b < POSTERIOR_BUCKETS; b++)
		dlist_foreach(iter, &posterior_shared->runs[b])
		{
			PosteriorRun *run = dlist_container(PosteriorRun, node, iter.cur);

			if (pg_atomic_read_u32(&run->pins) == 0 && (oldest == NULL || run->used < oldest->used))
				oldest = run;
		}
	dlist_foreach(iter, &posterior_shared->weights)
	{
		PosteriorWeights *w = dlist_container(PosteriorWeights, node, iter.cur);

		if (w->pins == 0 && (idle == NULL || w->used < idle->used))
			idle = w;
	}
	if (idle != NULL && (oldest == NULL || idle->used < oldest->used))
	{
		dlist_delete(&idle->node);
		*freed += tnp_model_info(idle->model)->n_parameters * sizeof(float);
		posterior_weights_destroy(idle);
		return true;
	}
	if (oldest == NULL)
		return false;
	pg_atomic_fetch_add_u64(&posterior_shared->counters.evictions, 1);
	*freed += oldest->bytes;
	unlist(oldest);
	return true;
}

bool
posterior_make_room(Size bytes)
{
	uint64		limit = (uint64) posterior_cache_size * 1024;
	Size		freed = 0;
	bool		room;

	if (bytes > limit)
		return false;
	posterior_lock(LW_EXCLUSIVE);
	while (in_use() + bytes > limit && evict_one(&freed))
		;
	room = in_use() + bytes <= limit;
	posterior_unlock();
	return room;
}

bool
posterior_evict(Size bytes)
{
	Size		freed = 0;
	bool		any = false;

	posterior_lock(LW_EXCLUSIVE);
	while ((!any || freed < bytes) && evict_one(&freed))
		any = true;
	posterior_unlock();
	return any;
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* The number of leading rows that are equal, byte by byte. */
static int64
common_rows(const TnpRows *a, int64 n, const TnpRows *b)
{
	int64		equal = 0,
				step = 1024;
	Size		width = (Size) a->n_features * sizeof(double);

	if (b->n < n)
		n = b->n;
	while (equal < n)
	{
		int64		some = Min(step, n - equal);

		if (memcmp(a->y + equal, b->y + equal, some * sizeof(double)) == 0
			&& memcmp(a->x + equal * a->n_features, b->x + equal * b->n_features, some * width) == 0)
			equal += some;
		else if (some == 1)
			break;
		else
			step = (some + 1) / 2;
	}
	return equal;
}

PosteriorRun *
posterior_run_search(const PosteriorRunKey *key, const TnpRows *rows, int64 *common, PosteriorRun **building)
{
	PosteriorRun *found[RUNS_PER_KEY + 1],
			   *best = NULL;
	int			n = 0;
	dlist_iter	iter;

	*common = 0;
	*building = NULL;
	posterior_lock(LW_SHARED);
	dlist_foreach(iter, bucket(key))
	{
		PosteriorRun *run = dlist_container(PosteriorRun, node, iter.cur);

		if (n <= RUNS_PER_KEY && memcmp(&run->key, key, sizeof(*key)) == 0)
		{
			pg_atomic_fetch_add_u32(&run->pins, 1);
			found[n++] = run;
		}
	}
	posterior_unlock();
	for (int i = 0; i < n; i++)
	{
		PosteriorRun *run = found[i];
		int64		length = posterior_run_length(run),
					equal;
		TnpRows		own;

		if (length < 0)
		{
			if (*building == NULL)
				*building = run;
			else
				posterior_run_unpin(run);
			continue;
		}
		own = posterior_body_view(run->body);
		equal = common_rows(&own, length, rows);
		if (best == NULL || equal > *common)
		{
			if (best != NULL)
				posterior_run_unpin(best);
			best = run;
			*common = equal;
		}
		else
			posterior_run_unpin(run);
	}
	if (best != NULL)
		best->used = posterior_tick();
	if (best != NULL && *building != NULL)
	{
		posterior_run_unpin(*building);
		*building = NULL;
	}
	return best;
}

PosteriorRun *
posterior_run_pin(const PosteriorRunKey *key, uint64 serial)
{
	PosteriorRun *found = NULL;
	dlist_iter	iter;

	posterior_lock(LW_SHARED);
	dlist_foreach(iter, bucket(key))
	{
		PosteriorRun *run = dlist_container(PosteriorRun, node, iter.cur);

		if (run->serial == serial)
		{
			pg_atomic_fetch_add_u32(&run->pins, 1);
			run->used = posterior_tick();
			found = run;
			break;
		}
	}
	posterior_unlock();
	return found;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

bool
posterior_run_claim(PosteriorRun *run)
{
	uint32		nobody = 0;

	return pg_atomic_compare_exchange_u32(&run->writer, &nobody, (uint32) MyProcPid);
}

void
posterior_run_yield(PosteriorRun *run)
{
	pg_atomic_write_u32(&run->writer, 0);
	ConditionVariableBroadcast(&run->settled);
}

void
posterior_run_wait(PosteriorRun *run)
{
	PG_TRY();
	{
		ConditionVariablePrepareToSleep(&run->settled);
		while (pg_atomic_read_u32(&run->writer) != 0)
			if (ConditionVariableTimedSleep(&run->settled, RECENT, PG_WAIT_EXTENSION))
				break;
		ConditionVariableCancelSleep();
	}
	PG_CATCH();
	{
		ConditionVariableCancelSleep();
		posterior_run_unpin(run);
		PG_RE_THROW();
	}
	PG_END_TRY();
	posterior_run_unpin(run);
}

PosteriorRun *
posterior_run_announce(const PosteriorRunKey *key, PosteriorModel *model, bool *full)
{
	PosteriorRun *run = posterior_arena_alloc(sizeof(PosteriorRun)),
			   *oldest = NULL;
	int			same = 0;
	dlist_iter	iter;

	/* what another run had is the right size */
	for (int i = 0; run == NULL && i < POSTERIOR_EVICTIONS && posterior_evict(1); i++)
		run = posterior_arena_alloc(sizeof(PosteriorRun));
	*full = run == NULL;
	if (run == NULL)
		return NULL;
	memset(run, 0, sizeof(*run));
	run->key = *key;
	run->serial = posterior_tick();
	run->used = run->serial;
	run->listed = true;
	pg_atomic_init_u64(&run->small, 0);
	pg_atomic_init_u64(&run->length, 0);
	pg_atomic_init_u32(&run->pins, 1);
	pg_atomic_init_u32(&run->writer, (uint32) MyProcPid);
	ConditionVariableInit(&run->settled);
	posterior_lock(LW_EXCLUSIVE);
	dlist_foreach(iter, bucket(key))
	{
		PosteriorRun *other = dlist_container(PosteriorRun, node, iter.cur);

		if (memcmp(&other->key, key, sizeof(*key)) != 0)
			continue;
		if (posterior_run_length(other) < 0)
		{
			posterior_unlock();
			posterior_arena_free(run);
			return NULL;
		}
		same++;
		if (oldest == NULL || other->used < oldest->used)
			oldest = other;
	}
	if (same >= RUNS_PER_KEY)
		unlist(oldest);
	run->weights = model->weights;
	if (run->weights != NULL)
		run->weights->pins++;
	posterior_shared->n_runs++;
	dlist_push_head(bucket(key), &run->node);
	posterior_unlock();
	if (run->weights == NULL)
	{
		run->model = model;
		posterior_model_hold(model);
	}
	return run;
}

void
posterior_run_publish(PosteriorRun *run, PosteriorBody *body)
{
	run->body = body;
	run->bytes = posterior_body_bytes(body);
	if (!posterior_is_shared)
		pg_atomic_fetch_add_u64(&posterior_shared->used, run->bytes);
	posterior_run_set_length(run, posterior_body_rows(body));
	posterior_run_yield(run);
}

void
posterior_runs_count(int64 *runs, int64 *bytes)
{
	posterior_lock(LW_SHARED);
	*runs = posterior_shared->n_runs;
	posterior_unlock();
	*bytes = (int64) pg_atomic_read_u64(&posterior_shared->used);
}
