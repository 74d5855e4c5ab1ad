/*
 * features.c: from rows to what the embedder reads of them, by the engine's functions, on the host.
 * It takes a row from some ten nanoseconds to some ten microseconds, the latter where a Gaussian
 * process says something of it, against a hundredth of a microsecond on the device: what is asked
 * about many rows is shared out to threads.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "host.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "engine/features/class_prior.h"
#include "engine/network/gate.h"

#define MOST_THREADS 8			/* the sessions of this machine want processors, too */

/*
 * Multiplications, as the engine's team counts them, for which the making of one number of a row,
 * and of an element of a triangle of the process, takes as long (bench/cuda_fill.c).
 */
#define COST_OF_NUMBER 200
#define COST_OF_ELEMENT 2
#define LEAST_COST 2e7			/* for which a team is made: it has two threads then */

int			cuda_threads = 0;

int
cuda_host_threads(void *arg)
{
	static long processors = 0;

	(void) arg;
	if (cuda_threads != 0)
		return cuda_threads;
	if (processors <= 0)
		processors = sysconf(_SC_NPROCESSORS_ONLN);
	return processors < 1 ? 1 : processors < MOST_THREADS ? (int) processors : MOST_THREADS;
}

int
cuda_x_width(const TnpDeviceModel *m, const TnpStats *stats)
{
	return m->halves_on_host ? m->model->config.width + tnp_prior_logits_width(m->model)
		: tnp_features_width(m->model, stats);
}

int
cuda_prior_width(const TnpDeviceModel *m, const TnpStats *stats)
{
	return !m->halves_on_host && tnp_prior_is_apart(m->model, stats)
		? tnp_prior_logits_width(m->model) : 0;
}

void
cuda_lean(const TnpDeviceModel *m, const TnpStats *stats, const float *x, const float *prior,
		  CudaWalk *walk)
{
	int			apart = cuda_prior_width(m, stats);

	walk->prior_logits = apart > 0 ? prior
		: x + (m->halves_on_host ? m->model->config.width : tnp_ridge_width(m->model));
	walk->said_step = apart > 0 ? apart : cuda_x_width(m, stats);
	walk->share = tnp_prior_share(m->model, stats, true);
	walk->share_alone = tnp_prior_share(m->model, stats, false);
	walk->pull = stats->wanted_mean.share;
	walk->rare.n = stats->rare.n;
	for (int k = 0; k < stats->rare.n; k++)
	{
		walk->rare.weight[k] = stats->rare.weight[k];
		walk->rare.mean[k] = stats->y_center + stats->y_scale * stats->rare.mean[k];
		walk->rare.sd[k] = fabs(stats->y_scale) * stats->rare.sd[k];
	}
	walk->target_levels.n = stats->target_levels.n;
	walk->target_levels.narrow = m->model->config.levels;
	for (int k = 0; k < walk->target_levels.n; k++)
	{
		int			from = stats->y_scale < 0 ? walk->target_levels.n - 1 - k : k;

		walk->target_levels.value[k] = stats->y_center + stats->y_scale
			* stats->target_levels.value[from];
	}
	walk->gate_rows = tnp_gate_rows(stats);
	walk->certain = (float) tnp_gate_certain(stats);
	memcpy(walk->record, stats->record, sizeof(walk->record));
}

/* Rows of which the features are made. */
typedef struct Fill
{
	const TnpDeviceModel *m;
	const TnpStats *stats;
	const TnpRows *rows;
	int64_t		first,
				n;
	bool		in_context;
	int			width,
				prior_width;
	float	   *x;				/* [n, width] */
	float	   *prior;			/* [n, prior_width] or NULL */
} Fill;

/* Rows [at, at + n) of them, where the engine computes the embedder's part. */
static TnpStatus
fill_halves(const Fill *f, int64_t at, int n, TnpScratch *work, TnpError *error)
{
	const TnpModel *model = f->m->model;
	size_t		d = model->config.width,
				said = f->width - d;
	TnpStatus	status = tnp_feature_embedding_tile(model, f->stats, f->rows, f->first + at, n,
													f->in_context, work, work->half,
													work->prior_logits, error);

	for (int r = 0; status == TNP_OK && r < n; r++)
	{
		float	   *to = f->x + (at + r) * f->width;

		memcpy(to, work->half + r * d, d * sizeof(float));
		memcpy(to + d, work->prior_logits + r * said, said * sizeof(float));
	}
	return status;
}

static TnpStatus
fill_plain(const Fill *f, int64_t at, int n, TnpError *error)
{
	tnp_scale_features(f->m->model, f->stats, f->rows, f->first + at, n, f->in_context,
					   f->x + at * f->width);
	for (int r = 0; r < n; r++)
	{
		int64_t		row = f->first + at + r;
		float	   *to = f->x + (at + r) * f->width;

		if (!tnp_all_finite(f->width, to))
			return tnp_feature_too_large(f->m->model, f->stats, f->rows, row, to, error);
		if (f->prior != NULL)
			tnp_note_prior_logits(f->m->model, f->stats,
								  f->rows->x + row * f->rows->n_features,
								  to + tnp_ridge_width(f->m->model),
								  f->prior + (at + r) * f->prior_width);
	}
	return TNP_OK;
}

/* One tile of them; work is NULL where nothing is embedded. */
static TnpStatus
fill_tile(const Fill *f, int64_t tile, TnpScratch *work, TnpError *error)
{
	int64_t		at = tile * TNP_TILE;
	int			n = f->n - at < TNP_TILE ? (int) (f->n - at) : TNP_TILE;

	return f->m->halves_on_host ? fill_halves(f, at, n, work, error)
		: fill_plain(f, at, n, error);
}

static TnpStatus
fill_item(void *state, TnpWorker *worker, int64_t tile, TnpError *error)
{
	TnpStatus	status = tnp_worker_check(worker, error);

	return status == TNP_OK ? fill_tile(state, tile, worker->work, error) : status;
}

/* All tiles by the calling thread. */
static TnpStatus
fill_alone(const Fill *f, int64_t tiles, TnpError *error)
{
	const TnpModel *model = f->m->model;
	TnpScratch	work = {0};
	TnpStatus	status = TNP_OK;

	if (f->m->halves_on_host)
		status = tnp_work_make(model, f->stats, TNP_TILE, &work, error);
	for (int64_t tile = 0; status == TNP_OK && tile < tiles; tile++)
	{
		if (tile > 0 && tnp_interrupted(&model->env))
			status = tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		else
			status = fill_tile(f, tile, &work, error);
	}
	if (f->m->halves_on_host)
		tnp_work_free(model, &work);
	return status;
}

TnpStatus
cuda_fill_x(const TnpDeviceModel *m, const TnpStats *stats, const TnpRows *rows, int64_t first,
			int64_t n, bool in_context, TnpTeam *team, float *x, float *prior, TnpError *error)
{
	int			apart = prior != NULL ? cuda_prior_width(m, stats) : 0;
	Fill		f = {m, stats, rows, first, n, in_context, cuda_x_width(m, stats), apart, x,
					 apart > 0 ? prior : NULL};
	int64_t		tiles = (n + TNP_TILE - 1) / TNP_TILE;

	return team == NULL ? fill_alone(&f, tiles, error)
		: tnp_team_run(team, tiles, fill_item, &f, error);
}

/* ---- threads --------------------------------------------------------------------------------- */

TnpTeam *
cuda_fill_team(const TnpDeviceModel *m, const TnpStats *stats, int64_t first, int64_t n,
			   bool in_context)
{
	/* what the process says of its own rows is kept with it */
	int64_t		own = !in_context || stats->n0 < first ? 0
		: stats->n0 - first < n ? stats->n0 - first : n;
	double		carriers = stats->process.n_features,
				cost = m->halves_on_host ? tnp_cost(m->model, (double) n, 0)
		: (double) n * COST_OF_NUMBER * tnp_features_width(m->model, stats) +
		(double) (n - own) * COST_OF_ELEMENT * carriers * carriers;
	int64_t		most = (n + TNP_TILE - 1) / TNP_TILE;
	TnpTeam    *team;
	TnpError	error;
	TnpStatus	status;

	if (most < 2 || (cuda_threads == 0 && cost < LEAST_COST))
		return NULL;
	status = m->halves_on_host
		? tnp_team_with_scratch(m->model, stats, TNP_TILE, most, cost, &team, &error)
		: tnp_team_make(m->model, stats, TNP_TILE, most, cost, NULL, &team, &error);
	/* without one the calling thread does everything */
	return status == TNP_OK ? team : NULL;
}
