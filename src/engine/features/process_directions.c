/*
 * process_directions.c: directions of the process of the prefix (docs/model-format.md section 5,
 * "Process"). Along weighted sums of columns a process that has one weight for each column knows
 * next to nothing; with these sums as further columns it has one column to learn.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/process_directions.h"

#include "engine/features/column.h"
#include "engine/features/directions.h"
#include "engine/features/process_points.h"
#include "engine/features/spread.h"

#define ROWS 1024				/* that directions are found on, at most */

/* What the search reads and finds. */
typedef struct Found
{
	int			n,				/* rows */
				n_numeric,		/* slots of numbers, and which */
				numeric[TNP_MOST_SLOTS];
	double	   *z,				/* [n, n_numeric] */
			   *y;				/* [n] */
	int64_t    *weight;			/* [directions, n_numeric] */
} Found;

/* False when memory ran out. */
static bool
found_read(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, Found *f)
{
	int64_t		chosen[ROWS];
	TnpPoints	points = {0};

	for (int s = 0; s < stats->n_slots; s++)
		if (tnp_slot_column(stats, s)->kind != TNP_CATEGORICAL)
			f->numeric[f->n_numeric++] = s;
	f->n = tnp_spread_rows(model, rows, stats, ROWS, chosen);
	if (f->n < 0 || !tnp_points_make(model, stats, f->n, &points))
		return false;
	f->z = tnp_alloc(&model->env, (size_t) f->n * (f->n_numeric + 1), sizeof(double));
	f->weight = tnp_alloc(&model->env, (size_t) model->config.encode_x.directions
						  * (f->n_numeric + 1), sizeof(int64_t));
	if (f->z != NULL)
		f->y = f->z + (size_t) f->n * f->n_numeric;
	for (int i = 0; f->z != NULL && i < f->n; i++)
	{
		tnp_points_set(model, stats, rows->x + chosen[i] * rows->n_features, &points, i);
		for (int k = 0; k < f->n_numeric; k++)
			f->z[(size_t) i * f->n_numeric + k]
				= points.value[(size_t) f->numeric[k] * f->n + i];
		f->y[i] = tnp_clipped_target(model, stats, rows->y[chosen[i]]);
	}
	tnp_points_free(&model->env, &points);
	return f->z != NULL && f->weight != NULL;
}

TnpStatus
tnp_process_direct(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	const TnpEnv *env = &model->env;
	TnpProcess *p = &stats->process;
	const int	most = model->config.encode_x.directions;
	int			found = 0;
	Found		f = {0};
	TnpStatus	status = TNP_OK;

	if (most == 0)
		return TNP_OK;
	if (!found_read(model, rows, stats, &f))
		status = tnp_no_memory(error);
	else
		status = tnp_directions_find(env, f.n, f.n_numeric, f.z, f.y, most, most, f.weight, &found,
									 error);
	if (status == TNP_OK && found > 0)
	{
		p->direction = tnp_alloc_zero(env, (size_t) found * stats->n_slots, sizeof(double));
		if (p->direction == NULL)
			status = tnp_no_memory(error);
		else
			p->n_directions = found;
	}
	for (int d = 0; d < p->n_directions; d++)
		for (int k = 0; k < f.n_numeric; k++)
			p->direction[(size_t) d * stats->n_slots + f.numeric[k]]
				= (double) f.weight[(size_t) d * f.n_numeric + k] / TNP_DIRECTION_UNIT;
	tnp_free(env, f.z);
	tnp_free(env, f.weight);
	return status;
}
