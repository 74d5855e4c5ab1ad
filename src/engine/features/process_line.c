/*
 * process_line.c: a linear regression of cells and targets as they are, in the form of a process
 * whose features are the entries of its design. The clips of the network bend a line where cells or
 * targets have long tails, and neither network nor process can say it then; a total of its parts is
 * one.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/process_line.h"

#include <math.h>

#include "engine/features/column.h"
#include "engine/features/design.h"
#include "engine/features/penalty.h"
#include "engine/features/ridge_fit.h"

#define SMALLEST_PENALTY -10	/* its logarithm to the base 4 */

/* U'U, its lower triangle, U'y and y'y over the prefix. */
static TnpStatus
sum_design(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
		   const TnpDesign *design, double *gram, double *moment, double *square, TnpError *error)
{
	double		u[TNP_LARGEST_DESIGN];

	*square = 0;
	for (int64_t r = 0; r < stats->n0; r++)
	{
		double		y = tnp_scaled_target(stats, rows->y[r]);

		if (r % TNP_RIDGE_POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		tnp_design_row(model, stats, design, rows->x + r * rows->n_features, u);
		tnp_equations_add(design->n, u, y, gram, moment);
		*square += y * y;
	}
	return TNP_OK;
}

TnpStatus
tnp_line_choose(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
				TnpProcess *line, TnpError *error)
{
	double	   *gram,
			   *moment,
			   *weights,
				noise,
				square;
	TnpNormalEquations sums;
	TnpStatus	status;
	size_t		n;

	tnp_design_choose(stats, false, &line->design);
	line->design.is_whole = line->is_line = true;
	n = line->n_features = line->design.n;
	/* the sums, what is tried, and what is best so far */
	gram = tnp_alloc_zero(&model->env, 3 * n * n + 3 * n, sizeof(double));
	if (gram == NULL)
		return tnp_no_memory(error);
	moment = gram + 3 * n * n;
	weights = moment + n;
	status = sum_design(model, rows, stats, &line->design, gram, moment, &square, error);
	if (status == TNP_OK)
	{
		sums = (TnpNormalEquations) {.rows = stats->n0,
									 .n = (int) n,
									 .n_targets = 1,
									 .smallest = SMALLEST_PENALTY,
									 .gram = gram,
									 .moment = moment,
									 .square = square,
									 .try_factor = gram + n * n,
									 .try_weights = weights + n};
		line->unit = 1 / sqrt(tnp_choose_penalty(&sums, weights, gram + 2 * n * n, &noise));
	}
	tnp_free(&model->env, gram);
	return status;
}

void
tnp_line_features(const TnpModel *model, const TnpStats *stats, const TnpProcess *line,
				  const double *x, double *features)
{
	tnp_design_row(model, stats, &line->design, x, features);
	for (int i = 0; i < line->n_features; i++)
		features[i] *= line->unit;
}
