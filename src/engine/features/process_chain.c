/*
 * process_chain.c: the process of the prefix, conditioned on the rows of a chain. Between two rows
 * of a chain the covariance is the process's own: of what the carriers reach, what they do not know
 * after the prefix, and all of what they do not reach, so that rows behind the last of the context
 * tell of each other (docs/model-format.md section 9, "head.process_chain").
 *
 * Where nearest rows tell (section 5, "Nearest rows") those of the chain are rows like the others:
 * what the latter say is `mean`, and a row of `factor` has the weights of the chain's.
 *
 * A chain remembers its last TNP_CHAIN_KEEPS to TNP_CHAIN_ROWS - 1 rows: it forgets many at a time,
 * because what is left is then factorised anew.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/process_chain.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/features/column.h"
#include "engine/features/process.h"
#include "engine/features/process_near.h"
#include "engine/features/process_points.h"

bool
tnp_process_chain_wanted(const TnpModel *model)
{
	return model->config.process_chain;
}

int64_t
tnp_process_chain_first(int64_t step)
{
	int64_t		groups = step / TNP_CHAIN_KEEPS;

	return groups < 2 ? 0 : (groups - 1) * TNP_CHAIN_KEEPS;
}

TnpStatus
tnp_process_chain_make(const TnpModel *model, const TnpStats *stats, TnpProcessChain *chain,
					   TnpError *error)
{
	size_t		carriers = stats->process.n_features,
				rows = TNP_CHAIN_ROWS;

	*chain = (TnpProcessChain) {.model = model,.stats = stats};
	if (!tnp_points_make(model, stats, TNP_CHAIN_ROWS, &chain->points))
		return tnp_no_memory(error);
	chain->reached = tnp_alloc(&model->env, rows * (2 * carriers + 2 + rows), sizeof(double));
	if (chain->reached == NULL)
		return tnp_no_memory(error);
	chain->unknown = chain->reached + rows * carriers;
	chain->mean = chain->unknown + rows * carriers;
	chain->variance = chain->mean + rows;
	chain->factor = chain->variance + rows;
	return TNP_OK;
}

void
tnp_process_chain_free(TnpProcessChain *chain)
{
	if (chain->model == NULL)
		return;
	tnp_points_free(&chain->model->env, &chain->points);
	tnp_free(&chain->model->env, chain->reached);
	memset(chain, 0, sizeof(*chain));
}

void
tnp_process_chain_reset(TnpProcessChain *chain)
{
	chain->n = 0;
}

static bool
by_nearest(const TnpProcessChain *chain)
{
	return chain->stats->process.nearest.points.n > 0;
}

/* Row i of the factor is the weights of the rows before it; and its mean and variance. */
static void
ask_nearest(TnpProcessChain *chain, int i)
{
	const TnpNearRows *nearest = &chain->stats->process.nearest;
	double	   *own = chain->factor + (size_t) i * TNP_CHAIN_ROWS;
	TnpNeighbours found;

	tnp_near_find(chain->stats, nearest, &chain->points, i, &chain->points, i, &found);
	memset(own, 0, TNP_CHAIN_ROWS * sizeof(double));
	for (int r = 0; r < found.n; r++)
		if (found.row[r] >= nearest->points.n)
			own[found.row[r] - nearest->points.n] = found.weight[r];
	chain->mean[i] = tnp_near_mean(nearest, &found);
	chain->variance[i] = found.rest;
}

/*
 * Row i of the factor, from the rows before it. What is left of its variance has the noise in it,
 * whatever rounding says.
 */
static void
factorise_row(TnpProcessChain *chain, int i)
{
	const TnpProcess *p = &chain->stats->process;
	int			carriers = p->n_features;
	double		alike[TNP_CHAIN_ROWS],
				rest = chain->variance[i],
			   *own = chain->factor + (size_t) i * TNP_CHAIN_ROWS;

	if (!p->is_line)
		tnp_process_correlate(chain->stats, &chain->points, i, &chain->points, 0, alike);
	for (int j = 0; j < i; j++)
	{
		const double *row = chain->factor + (size_t) j * TNP_CHAIN_ROWS;
		/* the features of a line reach all that two rows share */
		double		beyond = p->is_line ? 0 : alike[j]
			- tnp_dot(carriers, chain->reached + (size_t) i * carriers,
					  chain->reached + (size_t) j * carriers),
					both = beyond + tnp_dot(carriers, chain->unknown + (size_t) i * carriers,
					  chain->unknown + (size_t) j * carriers);

		own[j] = (both - tnp_dot(j, row, own)) / row[j];
		rest -= own[j] * own[j];
	}
	own[i] = sqrt(fmax(rest, p->noise));
}

void
tnp_process_chain_ask(TnpProcessChain *chain, const double *x)
{
	int			i = chain->n,
				carriers = chain->stats->process.n_features;

	tnp_points_set(chain->model, chain->stats, x, &chain->points, i);
	if (by_nearest(chain))
	{
		ask_nearest(chain, i);
		return;
	}
	chain->variance[i] = tnp_process_reach(chain->model, chain->stats, x,
										   chain->reached + (size_t) i * carriers,
										   chain->unknown + (size_t) i * carriers,
										   &chain->mean[i]);
	factorise_row(chain, i);
}

void
tnp_process_chain_say(const TnpProcessChain *chain, const TnpProcessTold *told, float *said)
{
	const double *own = chain->factor + (size_t) chain->n * TNP_CHAIN_ROWS;
	double		mean = chain->mean[chain->n] + tnp_dot(chain->n, own, told->news),
				rest = chain->n == 0 || by_nearest(chain) ? chain->variance[chain->n]
		: own[chain->n] * own[chain->n];
	const TnpProcess *p = &chain->stats->process;

	said[0] = (float) tnp_process_mean(chain->model, p, mean);
	said[1] = (float) (0.5 * log((by_nearest(chain) ? p->nearest.variance : p->variance) * rest));
}

void
tnp_process_chain_take(TnpProcessChain *chain)
{
	chain->n++;
}

/* The news of row i from that of the rows before it. */
static void
hear(const TnpProcessChain *chain, int i, TnpProcessTold *told)
{
	const double *own = chain->factor + (size_t) i * TNP_CHAIN_ROWS;

	told->news[i] = by_nearest(chain) ? told->away[i]
		: (told->away[i] - tnp_dot(i, own, told->news)) / own[i];
}

void
tnp_process_chain_tell(const TnpProcessChain *chain, double y, TnpProcessTold *told)
{
	int			i = chain->n - 1;

	told->away[i] = tnp_process_target(chain->model, chain->stats, &chain->stats->process, y)
		- (by_nearest(chain) ? 0 : chain->mean[i]);
	hear(chain, i, told);
}

bool
tnp_process_chain_forget(TnpProcessChain *chain)
{
	size_t		kept = TNP_CHAIN_KEEPS,
				carriers = chain->stats->process.n_features,
				gone = TNP_CHAIN_ROWS - kept;

	if (chain->n < TNP_CHAIN_ROWS)
		return false;
	/* the labels lie behind the values */
	for (int a = 0; a < 2 * chain->points.n_axes; a++)
	{
		double	   *axis = chain->points.value + (size_t) a * TNP_CHAIN_ROWS;

		memmove(axis, axis + gone, kept * sizeof(double));
	}
	memmove(chain->reached, chain->reached + gone * carriers, kept * carriers * sizeof(double));
	memmove(chain->unknown, chain->unknown + gone * carriers, kept * carriers * sizeof(double));
	memmove(chain->mean, chain->mean + gone, kept * sizeof(double));
	memmove(chain->variance, chain->variance + gone, kept * sizeof(double));
	chain->n = TNP_CHAIN_KEEPS;
	for (int i = 0; i < chain->n && !by_nearest(chain); i++)
		factorise_row(chain, i);
	return true;
}

void
tnp_process_told_forget(const TnpProcessChain *chain, TnpProcessTold *told)
{
	memmove(told->away, told->away + TNP_CHAIN_ROWS - TNP_CHAIN_KEEPS,
			TNP_CHAIN_KEEPS * sizeof(double));
	for (int i = 0; i < chain->n; i++)
		hear(chain, i, told);
}
