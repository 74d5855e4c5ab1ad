/*
 * team.c: the threads that work on one call.
 *
 * The number of the round, that of its items and the next item to be taken are one atomic word. A
 * thread that was late and has read an old round cannot take anything from the new one, and the
 * caller has only to wait for items that were taken, not for threads to wake up.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/team.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* multiplications: some tenths of a millisecond, against some hundredths for starting a thread */
#define COST_PER_THREAD 8e6
/* below it a call takes some milliseconds, as long as a thread may have to wait for a processor */
#define COST_OF_SHORT 2.5e8
#define BEYOND_CACHE 8e6		/* bytes */
/* multiplications in the time that one byte takes to come from memory */
#define COST_OF_READ 2
#define TILE_STEP 2
#define LEAST_TILE 4
#define COST_OF_TILE 6			/* rows that are carried in the time that a tile takes by itself */
/* looks at what is awaited before sleeping: some ten microseconds */
#define SPINS 2000
#define WAIT_NS 2000000			/* how long the caller sleeps between looks for interrupts */
/* sleep after which a short or fine-grained call counts as stalled: about what threads save it */
#define STALL_NS 1000000
#define STACK_BYTES ((size_t) 1 << 20)
#define MOST_UNTRIED 255			/* such calls that go on alone after a stalled one */
#define ITEM_BITS 24			/* of the next item, and of their number */
#define ITEM_MASK (((uint64_t) 1 << ITEM_BITS) - 1)
#define ROUND_SHIFT (2 * ITEM_BITS)

struct TnpTeam
{
	const TnpModel *model;
	const TnpScratchSource *source;
	int			size,			/* workers */
				started;		/* threads that run */
	bool		fine_grained;	/* the call has many rounds of microseconds */
	int64_t		slept;			/* nanoseconds, in them */
	bool		brisk;			/* the call is short */
	/* of a short call: when, by the clock less the time that the caller had a processor */
	int64_t		began;
	int64_t		watched;		/* rows whose encoding, or answers, are told of, or 0 */
	bool		answers;		/* they are answered, */
	int64_t		told;			/* and of so many of them it has been told */
	_Atomic int64_t answered;	/* rows that are answered by themselves, not told of yet */
	int			step,			/* steps of it that are done, */
				steps;			/* of so many */
	TnpWorker  *workers;		/* [size] */
	pthread_t	threads[TNP_MAX_THREADS];
	pthread_mutex_t lock;
	pthread_cond_t work,		/* a new round, or the end */
				done;			/* the last item of a round */
	int			sleeping;		/* threads that wait for work; under lock */
	bool		ending;			/* under lock */
	atomic_bool stop,			/* the caller was interrupted */
				over;			/* ending, to be looked at without the lock */

	_Atomic uint64_t next;		/* round, number of items, next item */
	_Atomic int64_t finished;	/* items of this round */
	_Atomic TnpItem item;
	_Atomic (void *) state;

	pthread_mutex_t error_lock;
	_Atomic int64_t failed;		/* first item that failed, or INT64_MAX */
	TnpError	error;			/* its error */
};

/*
 * Processors that others have now they will have soon after: calls that go on alone, and how many
 * there were the last time. Of the process.
 */
static atomic_int untried,
			last_untried;

static inline void
pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

int
tnp_team_size(const TnpTeam *team)
{
	return team->size;
}

TnpWorker *
tnp_team_self(TnpTeam *team)
{
	return &team->workers[0];
}

TnpStatus
tnp_worker_check(TnpWorker *worker, TnpError *error)
{
	TnpTeam    *team = worker->team;

	if (worker->number == 0 && tnp_interrupted(&team->model->env))
		atomic_store(&team->stop, true);
	return atomic_load(&team->stop) ? tnp_fail(error, TNP_INTERRUPTED, "interrupted") : TNP_OK;
}

void
tnp_team_watch(TnpTeam *team, int64_t rows, int steps)
{
	team->watched = team->model->env.progress != NULL ? rows : 0;
	team->answers = false;
	team->step = 0;
	team->steps = steps;
}

void
tnp_team_watch_answers(TnpTeam *team, int64_t rows, int steps)
{
	team->watched = team->model->env.answered != NULL ? rows : 0;
	team->answers = true;
	team->told = 0;
	team->step = 0;
	team->steps = steps;
}

/* `done` of the rows that are answered at once are. */
static void
tell_share(TnpTeam *team, int64_t done)
{
	const TnpEnv *env = &team->model->env;

	/* a walk may have more steps than it was said to have, and tiles end out of order */
	done = done < team->watched ? done : team->watched;
	if (done <= team->told)
		return;
	env->answered(env->arg, done - team->told);
	team->told = done;
}

void
tnp_team_end_answers(TnpTeam *team)
{
	tell_share(team, team->watched);
	team->watched = 0;
}

static void
tell_answered(TnpTeam *team)
{
	const TnpEnv *env = &team->model->env;
	int64_t		rows = atomic_exchange(&team->answered, 0);

	if (rows > 0)
		env->answered(env->arg, rows);
}

void
tnp_worker_answered(TnpWorker *worker, int64_t rows)
{
	if (worker->team->model->env.answered == NULL)
		return;
	atomic_fetch_add(&worker->team->answered, rows);
	if (worker->number == 0)
		tell_answered(worker->team);
}

void
tnp_team_next_step(TnpTeam *team)
{
	team->step++;
}

void
tnp_worker_progress(TnpWorker *worker, int64_t done, int64_t total)
{
	TnpTeam    *team = worker->team;
	const TnpEnv *env;
	int64_t		rows;

	if (worker->number > 0 || team == NULL || team->watched == 0)
		return;
	env = &team->model->env;
	rows = (int64_t) ((double) team->watched * (team->step + (double) done / (double) total)
					  / team->steps);
	if (team->answers)
		tell_share(team, rows);
	else
		env->progress(env->arg, rows, team->watched);
}

int64_t
tnp_team_most(int64_t n)
{
	return (n + LEAST_TILE - 1) / LEAST_TILE;
}

int
tnp_team_tile(const TnpTeam *team, int64_t n)
{
	int			best = TNP_TILE;
	double		least = INFINITY;

	if (n <= LEAST_TILE)
		return LEAST_TILE;
	/* what the slowest worker does should be little, and an item costs something by itself */
	for (int tile = TNP_TILE; tile >= LEAST_TILE; tile -= TILE_STEP)
	{
		int64_t		items = (n + tile - 1) / tile;
		double		rounds = (double) ((items + team->size - 1) / team->size),
					cost = rounds * (tile + COST_OF_TILE);

		if (cost < least)
		{
			least = cost;
			best = tile;
		}
	}
	return best;
}

/* ---- items ----------------------------------------------------------------------------------- */

static void
note_failure(TnpTeam *team, int64_t item, const TnpError *error)
{
	pthread_mutex_lock(&team->error_lock);
	if (item < atomic_load(&team->failed))
	{
		team->error = *error;
		atomic_store(&team->failed, item);
	}
	pthread_mutex_unlock(&team->error_lock);
}

/* Do items of the round until there is none left; returns the round that was seen to have none. */
static uint64_t
take_items(TnpTeam *team, TnpWorker *worker)
{
	for (;;)
	{
		uint64_t	next = atomic_load(&team->next);
		int64_t		item = (int64_t) (next & ITEM_MASK),
					n = (int64_t) (next >> ITEM_BITS & ITEM_MASK);
		TnpItem		work = atomic_load(&team->item);
		void	   *state = atomic_load(&team->state);

		if (item >= n)
			return next >> ROUND_SHIFT;
		/*
		 * fails if the round has changed since; while it has items to be taken, what was read above
		 * belongs to it
		 */
		if (!atomic_compare_exchange_strong(&team->next, &next, next + 1))
			continue;
		if (item < atomic_load(&team->failed))
		{
			TnpError	error;

			if (work(state, worker, item, &error) != TNP_OK)
				note_failure(team, item, &error);
		}
		if (atomic_fetch_add(&team->finished, 1) + 1 == n && worker->number > 0)
		{
			pthread_mutex_lock(&team->lock);
			pthread_cond_signal(&team->done);
			pthread_mutex_unlock(&team->lock);
		}
	}
}

static void *
thread_main(void *arg)
{
	TnpWorker  *worker = arg;
	TnpTeam    *team = worker->team;

	for (;;)
	{
		uint64_t	round = take_items(team, worker);

		for (int i = 0; i < SPINS && atomic_load(&team->next) >> ROUND_SHIFT == round
			 && !atomic_load(&team->over); i++)
			pause_briefly();
		pthread_mutex_lock(&team->lock);
		while (atomic_load(&team->next) >> ROUND_SHIFT == round && !team->ending)
		{
			team->sleeping++;
			pthread_cond_wait(&team->work, &team->lock);
			team->sleeping--;
		}
		if (team->ending)
		{
			pthread_mutex_unlock(&team->lock);
			return NULL;
		}
		pthread_mutex_unlock(&team->lock);
	}
}

static int64_t
nanoseconds(clockid_t clock, struct timespec *at)
{
	clock_gettime(clock, at);
	return (int64_t) at->tv_sec * 1000000000 + at->tv_nsec;
}

/*
 * How long the calling thread has not been running, whether it slept or others had its processor;
 * from a beginning that means nothing.
 */
static int64_t
idle_time(void)
{
	struct timespec at;
	int64_t		now = nanoseconds(CLOCK_MONOTONIC, &at);

	return now - nanoseconds(CLOCK_THREAD_CPUTIME_ID, &at);
}

/*
 * Wait until all items of the round are done, looking for interrupts meanwhile; returns the
 * nanoseconds slept.
 */
static int64_t
await_items(TnpTeam *team, int64_t n)
{
	struct timespec at;
	int64_t		began;

	for (int i = 0; i < SPINS && atomic_load(&team->finished) < n; i++)
		pause_briefly();
	if (atomic_load(&team->finished) >= n)
		return 0;
	began = nanoseconds(CLOCK_MONOTONIC, &at);
	pthread_mutex_lock(&team->lock);
	while (atomic_load(&team->finished) < n)
	{
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WAIT_NS;
		if (until.tv_nsec >= 1000000000)
		{
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&team->done, &team->lock, &until);
		tnp_worker_check(&team->workers[0], NULL);
		tell_answered(team);
	}
	pthread_mutex_unlock(&team->lock);
	return nanoseconds(CLOCK_MONOTONIC, &at) - began;
}

/* tnp_team_run; *slept is how long the calling thread slept, waiting for others. */
static TnpStatus
run_round(TnpTeam *team, int64_t n, TnpItem item, void *state, int64_t *slept, TnpError *error)
{
	TnpStatus	status = TNP_OK;

	*slept = 0;

	/* so many items would be more rows than memory holds; they need no help */
	if (team->started == 0 || n <= 1 || n > (int64_t) ITEM_MASK)
	{
		for (int64_t i = 0; status == TNP_OK && i < n; i++)
			status = item(state, &team->workers[0], i, error);
		return status;
	}
	atomic_store(&team->item, item);
	atomic_store(&team->state, state);
	atomic_store(&team->finished, 0);
	atomic_store(&team->failed, INT64_MAX);
	atomic_store(&team->next, ((atomic_load(&team->next) >> ROUND_SHIFT)
							   + 1) << ROUND_SHIFT | (uint64_t) n << ITEM_BITS);
	pthread_mutex_lock(&team->lock);
	if (team->sleeping > 0)
		pthread_cond_broadcast(&team->work);
	pthread_mutex_unlock(&team->lock);
	take_items(team, &team->workers[0]);
	*slept = await_items(team, n);
	tell_answered(team);
	/* an interrupt that was seen ends the call, even if all items were under way by then */
	if (atomic_load(&team->failed) == INT64_MAX)
		return atomic_load(&team->stop) ? tnp_fail(error, TNP_INTERRUPTED, "interrupted") : TNP_OK;
	if (error != NULL)
		*error = team->error;
	return team->error.status;
}

TnpStatus
tnp_team_run(TnpTeam *team, int64_t n, TnpItem item, void *state, TnpError *error)
{
	int64_t		slept;

	return run_round(team, n, item, state, &slept, error);
}

TnpStatus
tnp_team_run_fine_grained(TnpTeam *team, int64_t n, TnpItem item, void *state, TnpError *error)
{
	int64_t		slept;
	TnpStatus	status = run_round(team, n, item, state, &slept, error);

	team->slept += slept;
	return status;
}

void
tnp_team_begin_fine_grained(TnpTeam *team)
{
	team->fine_grained = true;
}

bool
tnp_team_is_fine_grained(const TnpTeam *team)
{
	return team->fine_grained;
}

bool
tnp_team_try_fine_grained(const TnpModel *model)
{
	const TnpEnv *env = &model->env;

	if (env->threads != NULL && env->threads(env->arg) < 0)
		return true;
	if (atomic_load(&untried) <= 0)
		return true;
	atomic_fetch_sub(&untried, 1);
	return false;
}

/* What the next calls learn from this one. */
static void
note_stall(bool stalled)
{
	int			n = stalled ? 2 * atomic_load(&last_untried) + 1 : 0;

	n = n < MOST_UNTRIED ? n : MOST_UNTRIED;
	atomic_store(&last_untried, n);
	atomic_store(&untried, n);
}

bool
tnp_team_stalled(const TnpTeam *team)
{
	return team->slept > STALL_NS;
}

/* ---- making and ending ----------------------------------------------------------------------- */

/*
 * Start threads for workers 1 … size - 1; fewer if the system has no more. No signal is delivered
 * to them.
 */
static void
start_threads(TnpTeam *team)
{
	sigset_t	all,
				before;
	pthread_attr_t attributes;

	if (pthread_attr_init(&attributes) != 0)
		return;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (team->started < team->size - 1 &&
		   pthread_create(&team->threads[team->started], &attributes, thread_main,
						  &team->workers[team->started + 1]) == 0)
		team->started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

TnpStatus
tnp_team_make(const TnpModel *model, const struct TnpStats *stats, int rows, int64_t most,
			  double cost, const TnpScratchSource *source, TnpTeam **out, TnpError *error)
{
	const TnpEnv *env = &model->env;
	int			threads = env->threads != NULL ? env->threads(env->arg) : 1;
	bool		must = threads < 0;
	TnpTeam    *team = tnp_alloc_zero(env, 1, sizeof(TnpTeam));
	TnpStatus	status = TNP_OK;

	*out = NULL;
	if (team == NULL)
		return tnp_no_memory(error);
	if (must)
		threads = -threads;
	else if (cost < threads * COST_PER_THREAD)
		threads = (int) (cost / COST_PER_THREAD);
	if (threads > TNP_MAX_THREADS)
		threads = TNP_MAX_THREADS;
	if (threads > most)
		threads = (int) most;
	/*
	 * threads that get no processor hold a short call up for several times what they would save it
	 */
	team->brisk = !must && threads > 1 && cost < COST_OF_SHORT;
	if (team->brisk && !tnp_team_try_fine_grained(model))
	{
		team->brisk = false;
		threads = 1;
	}
	if (team->brisk)
		team->began = idle_time();
	team->model = model;
	team->source = source;
	team->size = threads < 1 ? 1 : threads;
	team->workers = tnp_alloc_zero(env, team->size, sizeof(TnpWorker));
	if (team->workers == NULL)
	{
		tnp_free(env, team);
		return tnp_no_memory(error);
	}
	if (rows > TNP_TILE)
		rows = TNP_TILE;
	for (int i = 0; status == TNP_OK && i < team->size; i++)
	{
		team->workers[i].team = team;
		team->workers[i].number = i;
		if (source != NULL)
			status = source->make(model, stats, rows, &team->workers[i].work, error);
	}
	pthread_mutex_init(&team->lock, NULL);
	pthread_mutex_init(&team->error_lock, NULL);
	pthread_cond_init(&team->work, NULL);
	pthread_cond_init(&team->done, NULL);
	if (status != TNP_OK)
	{
		tnp_team_free(team);
		return status;
	}
	if (team->size > 1)
		start_threads(team);
	*out = team;
	return TNP_OK;
}

void
tnp_team_free(TnpTeam *team)
{
	const TnpEnv *env;

	if (team == NULL)
		return;
	env = &team->model->env;
	if (team->started > 0)
	{
		atomic_store(&team->over, true);
		pthread_mutex_lock(&team->lock);
		team->ending = true;
		pthread_cond_broadcast(&team->work);
		pthread_mutex_unlock(&team->lock);
		for (int i = 0; i < team->started; i++)
			pthread_join(team->threads[i], NULL);
	}
	if (team->brisk)
		note_stall(idle_time() - team->began > STALL_NS);
	else if (team->fine_grained)
		note_stall(tnp_team_stalled(team));
	pthread_cond_destroy(&team->done);
	pthread_cond_destroy(&team->work);
	pthread_mutex_destroy(&team->error_lock);
	pthread_mutex_destroy(&team->lock);
	for (int i = 0; i < team->size; i++)
		if (team->workers[i].work != NULL)
			team->source->free(team->model, team->workers[i].work);
	tnp_free(env, team->workers);
	tnp_free(env, team);
}
