/*
 * ridge_absent.c: the spread of what every slot's cells say in a regression of the prefix, which is
 * not known of a row where the cell is missing (docs/model-format.md section 5, "Absent cells").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/ridge_absent.h"

#include <math.h>
#include <string.h>

#include "engine/features/column.h"
#include "engine/features/design.h"
#include "engine/features/ridge_fit.h"

/* Running moments of one slot's answers (Welford 1962), over the rows that have the cell. */
typedef struct Answers
{
	double		said,			/* by the row at hand */
				count,
				mean,
				square;			/* sum of squared distances from the mean */
} Answers;

static bool
is_absent(const TnpStats *stats, int slot, const double *x)
{
	return isnan(tnp_column_value(tnp_slot_column(stats, slot), tnp_slot_cell(stats, slot, x)));
}

static void
add_row(const TnpModel *model, const TnpStats *stats, const TnpRidge *ridge, const double *x,
		Answers *answers)
{
	double		u[TNP_LARGEST_DESIGN];

	tnp_design_row(model, stats, &ridge->design, x, u);
	for (int s = 0; s < stats->n_slots; s++)
		answers[s].said = 0;
	for (int i = 0; i < ridge->design.n - 1; i++)
		answers[ridge->design.slot[i]].said += ridge->weights[i] * u[i];
	for (int s = 0; s < stats->n_slots; s++)
	{
		Answers    *a = &answers[s];
		double		from = a->said - a->mean;

		if (is_absent(stats, s, x))
			continue;
		a->count++;
		a->mean += from / a->count;
		a->square += from * (a->said - a->mean);
	}
}

TnpStatus
tnp_ridge_measure_absent(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
						 TnpRidge *ridge, TnpError *error)
{
	Answers    *answers = tnp_alloc_zero(&model->env, stats->n_slots, sizeof(Answers));
	TnpStatus	status = TNP_OK;

	ridge->n_slots = stats->n_slots;
	ridge->absent = tnp_alloc_zero(&model->env, stats->n_slots, sizeof(double));
	if (answers == NULL || ridge->absent == NULL)
		status = tnp_no_memory(error);
	for (int64_t r = 0; status == TNP_OK && r < stats->n0; r++)
	{
		if (r % TNP_RIDGE_POLL_ROWS == 0 && tnp_interrupted(&model->env))
			status = tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		else
			add_row(model, stats, ridge, rows->x + r * rows->n_features, answers);
	}
	for (int s = 0; status == TNP_OK && s < stats->n_slots; s++)
		ridge->absent[s] = answers[s].square / fmax(answers[s].count, 1)
			/ exp(2 * ridge->log_noise);
	tnp_free(&model->env, answers);
	return status;
}

double
tnp_ridge_absent(const TnpStats *stats, const TnpRidge *ridge, const double *x)
{
	double		sum = 0;

	if (ridge->absent == NULL)
		return 0;
	for (int s = 0; s < ridge->n_slots; s++)
		if (is_absent(stats, s, x))
			sum += ridge->absent[s];
	return sum;
}
