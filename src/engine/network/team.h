/*
 * team.h: the threads that work on one call.
 *
 * A team is made for a call and ends with it. Work is handed out item by item, so that a free
 * thread takes the next one, and none waits for one that has not begun: where the machine is busy,
 * the calling thread does all of it. But it waits for one that has an item, or has to end,
 * and is not running; after a short call that was held up so for a millisecond, the next one has no
 * threads, after that one, if it was again, three have none, then seven, up to 255. Threads neither
 * allocate nor call back: what an item needs is in its worker. What is computed does not depend on
 * the thread.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_TEAM_H
#define TNP_TEAM_H

#include "engine/file/model.h"

/* More threads than this are never of use. */
#define TNP_MAX_THREADS 64

typedef struct TnpTeam TnpTeam;
typedef struct TnpScratch TnpScratch;
struct TnpStats;

/* One thread's place: number 0 is the calling thread. */
typedef struct TnpWorker
{
	TnpTeam    *team;
	int			number;
	TnpScratch *work;			/* its own, made before threads start */
} TnpWorker;

/* Functions that make and free the scratch memory of a worker, for tiles of up to `rows` rows. */
typedef struct TnpScratchSource
{
	TnpStatus	(*make) (const TnpModel *model, const struct TnpStats *stats, int rows,
						 TnpScratch **work, TnpError *error);
	void		(*free) (const TnpModel *model, TnpScratch *work);
} TnpScratchSource;

/* One item; it returns a status and describes a failure. */
typedef TnpStatus (*TnpItem) (void *state, TnpWorker *worker, int64_t item, TnpError *error);

/*
 * A team for a call of about `cost` multiplications in at most `most` items at a time, each worker
 * with scratch from `source`, or with none where that is NULL. On failure *team is NULL. Calls use
 * tnp_team_with_scratch (scratch.h).
 */
TnpStatus	tnp_team_make(const TnpModel *model, const struct TnpStats *stats, int rows,
						  int64_t most, double cost, const TnpScratchSource *source,
						  TnpTeam **team, TnpError *error);
void		tnp_team_free(TnpTeam *team);

/* Number of workers, the calling thread included. */
int			tnp_team_size(const TnpTeam *team);

/* The calling thread's worker. */
TnpWorker  *tnp_team_self(TnpTeam *team);

/*
 * Do items 0 … n - 1, in any order, by all workers. Of the items that fail, the first's error is
 * reported; those after it may be left out. TNP_INTERRUPTED, too, if the calling thread saw an
 * interrupt while it waited for the last of them.
 */
TnpStatus	tnp_team_run(TnpTeam *team, int64_t n, TnpItem item, void *state, TnpError *error);

/*
 * The same for items of microseconds, many rounds of them. Where other processes have the
 * processors, a thread can be stopped for milliseconds while it has an item, and the caller waits
 * for it. A call that has slept for a millisecond is stalled: its caller does the rest alone.
 * try_fine_grained() says whether a call should begin such rounds: not soon after a stalled one. A
 * number of threads that the settings fix is always tried. begin_fine_grained() says that the
 * team's call has such rounds.
 */
bool		tnp_team_try_fine_grained(const TnpModel *model);
void		tnp_team_begin_fine_grained(TnpTeam *team);
bool		tnp_team_is_fine_grained(const TnpTeam *team);
TnpStatus	tnp_team_run_fine_grained(TnpTeam *team, int64_t n, TnpItem item, void *state,
									  TnpError *error);
bool		tnp_team_stalled(const TnpTeam *team);

/*
 * Fails with TNP_INTERRUPTED if the caller wants the call to end. For items that take more than
 * some milliseconds.
 */
TnpStatus	tnp_worker_check(TnpWorker *worker, TnpError *error);

/*
 * Progress of the encoding of `rows` rows, for the environment's callback. watch: it takes `steps`
 * steps of about the same cost. next_step: one more is done. progress: the step is done up to
 * `done` of `total`; only the calling thread's worker reports it. Without watch nothing is
 * reported.
 */
void		tnp_team_watch(TnpTeam *team, int64_t rows, int steps);
void		tnp_team_next_step(TnpTeam *team);
void		tnp_worker_progress(TnpWorker *worker, int64_t done, int64_t total);

/*
 * Rows that are answered, for the environment's `answered`. worker_answered: so many more are, by
 * this worker; the calling thread reports those of all, at the latest as a run ends. watch_answers:
 * `rows` rows will be answered at once, by the whole team in so many steps; they are reported by
 * what is done of these, like progress, and those left with the end.
 */
void		tnp_worker_answered(TnpWorker *worker, int64_t rows);
void		tnp_team_watch_answers(TnpTeam *team, int64_t rows, int steps);
void		tnp_team_end_answers(TnpTeam *team);

/* As many workers as n rows can be shared out to. */
int64_t		tnp_team_most(int64_t n);

/* Rows per item, at most TNP_TILE, when n rows are to be shared out. */
int			tnp_team_tile(const TnpTeam *team, int64_t n);

#endif							/* TNP_TEAM_H */
