/*
 * donors.c: rows of the prefix that lend their cells to queries that lack them. A network has not
 * learnt what an absent cell means where hardly any row of the context lacks it; an average over
 * what the cell may be needs no such knowledge (docs/model-format.md section 5, "Donors").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/donors.h"

#include <math.h>
#include <string.h>

#include "engine/features/column.h"
#include "engine/features/related.h"
#include "engine/features/spread.h"

#define LARGEST_SHARE 0.25		/* of missing cells in a column that is borrowed */
#define KNOWN 0.5				/* what many rows without a cell count by their number alone */
#define HALF_KNOWN 4			/* rows that count half of it */
#define FEW_VALUES 16			/* different targets at most that are levels */
#define FEWEST_DRAWN 5			/* different cells that tell of more */

/*
 * Squared deviation of the targets of the prefix rows that lack cells of column f, in units of its
 * mean under chance for one degree of freedom, and how many degrees it has.
 */
static double
deviation_of(const TnpStats *stats, int f, int *degrees)
{
	const TnpColumn *column = &stats->columns[f];
	double		count = column->count[TNP_MISSING_BIN],
				square = 0;
	int			room = stats->class_room;

	*degrees = 1;
	if (room == 0)
		return column->sum[TNP_MISSING_BIN] * column->sum[TNP_MISSING_BIN] / count;
	*degrees = -1;
	for (int c = 0; c < room; c++)
	{
		double		excess = stats->class_excess[((size_t) f * TNP_BINS + TNP_MISSING_BIN) * room
												 + c];

		if (stats->class_blend_weight[c] == 0)
			continue;
		square += excess * excess / (count * stats->class_blend_weight[c]);
		(*degrees)++;
	}
	return square;
}

/*
 * How much a missing cell of a column counts as one that says something about the target: where
 * rows of the prefix lack it, the network knows it a little, the better the more there are, and
 * surely where their targets stand out. The odds of that are those of a deviation as large as the
 * targets' own against none.
 */
static double
told_by_absence(const TnpStats *stats, int f)
{
	double		count = stats->columns[f].count[TNP_MISSING_BIN],
				known = KNOWN * count / (count + HALF_KNOWN),
				square,
				odds;
	int			degrees;

	if (count == 0)
		return 0;
	square = deviation_of(stats, f, &degrees);
	odds = 0.5 * (square * count / (count + 1) - degrees * log1p(count));
	return known + (1 - known) / (1 + exp(-odds));
}

/* Bytes of n rows, and of two numbers for each of their columns. */
static size_t
block_size(int n, int n_features)
{
	return ((size_t) n + 2) * n_features * sizeof(double);
}

/* x is there; the numbers lie behind it. */
static void
set_place(TnpDonors *d, int n, int n_features)
{
	d->n = n;
	d->n_features = n_features;
	d->told = d->x + (size_t) n * n_features;
	d->alike = d->told + n_features;
}

/* How probably two of the rows that have a label of feature f have the same. */
static double
alike_in(const TnpDonors *d, int f)
{
	double		same = 0,
				rows = 0;

	for (int i = 0; i < d->n; i++)
	{
		double		own = d->x[(size_t) i * d->n_features + f];

		rows += !isnan(own);
		for (int j = 0; j < d->n; j++)
			same += own == d->x[(size_t) j * d->n_features + f];
	}
	return rows > 0 ? same / (rows * rows) : 1;
}

bool
tnp_column_is_lent(const TnpStats *stats, int f)
{
	return stats->columns[f].count[TNP_MISSING_BIN] <= LARGEST_SHARE * stats->n0;
}

/* Whether the prefix has few different targets, most of which come again. */
static bool
has_levels(const TnpRows *rows, int64_t n0)
{
	double		value[FEW_VALUES];
	int			found = 0;

	for (int64_t i = 0; i < n0; i++)
	{
		int			k = 0;

		while (k < found && value[k] != rows->y[i])
			k++;
		if (k < found)
			continue;
		if (found == FEW_VALUES)
			return false;
		value[found++] = rows->y[i];
	}
	return 2 * found <= n0;
}

TnpStatus
tnp_donors_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpDonors  *d = &stats->donors;
	size_t		width = rows->n_features;
	int64_t		chosen[TNP_LENDERS];
	int			n = tnp_spread_rows(model, rows, stats, TNP_LENDERS, chosen);

	if (n < 0 || (d->x = tnp_alloc_zero(&model->env, 1, block_size(n, rows->n_features))) == NULL)
		return tnp_no_memory(error);
	set_place(d, n, rows->n_features);
	d->levels = has_levels(rows, stats->n0);
	if (!model->config.encode_x.shift)
		for (int f = 0; f < d->n_features; f++)
			d->told[f] = told_by_absence(stats, f);
	for (int i = 0; i < n; i++)
		memcpy(d->x + i * width, rows->x + chosen[i] * width, width * sizeof(double));
	for (int f = 0; f < d->n_features; f++)
		d->alike[f] = stats->columns[f].kind == TNP_CATEGORICAL ? alike_in(d, f) : 1;
	return tnp_related_build(model, stats, d->x, n, d->n_features, &d->related, error);
}

bool
tnp_donors_copy(const TnpEnv *env, const TnpDonors *from, TnpDonors *to)
{
	memset(to, 0, sizeof(*to));
	if (from->x == NULL)
		return true;
	to->x = tnp_alloc(env, 1, block_size(from->n, from->n_features));
	if (to->x == NULL)
		return false;
	memcpy(to->x, from->x, block_size(from->n, from->n_features));
	set_place(to, from->n, from->n_features);
	to->levels = from->levels;
	return tnp_related_copy(env, &from->related, &to->related);
}

void
tnp_donors_free(const TnpEnv *env, TnpDonors *donors)
{
	tnp_free(env, donors->x);
	tnp_related_free(env, &donors->related);
	memset(donors, 0, sizeof(*donors));
}

size_t
tnp_donors_bytes(const TnpDonors *donors)
{
	return donors->x == NULL ? 0 : block_size(donors->n, donors->n_features)
		+ tnp_related_bytes(&donors->related);
}

static bool
is_among(int f, const int *features, int n)
{
	for (int i = 0; i < n; i++)
		if (features[i] == f)
			return true;
	return false;
}

/* Whether the cell is missing, and rows that lack it have told what that means (shift.c). */
static bool
is_kept(const TnpStats *stats, const double *x, int f)
{
	return is_among(f, stats->shifts.kept, stats->shifts.n_kept)
		&& tnp_column_lacks(&stats->columns[f], x[f]);
}

/*
 * Features of which a row lacks the cell, into lacks [TNP_MOST_SLOTS]; returns how many. Those that
 * many rows of the prefix lack do not count: the network has learnt from these what it means. The
 * parts of a feature lack it together; a number whose label is unknown is there.
 */
static int
lacks_of(const TnpStats *stats, const double *x, int *lacks)
{
	int			n = 0;

	for (int s = 0; s < stats->n_slots; s++)
	{
		const TnpColumn *column = tnp_slot_column(stats, s);
		const TnpColumn *own = column->of_number ? &stats->columns[column->feature] : column;

		if (tnp_column_is_lent(stats, stats->slot[s])
			&& isnan(tnp_column_value(own, x[column->feature]))
			&& !is_among(column->feature, lacks, n) && !is_kept(stats, x, column->feature))
			lacks[n++] = column->feature;
	}
	return n;
}

static bool
has_all(const TnpStats *stats, const double *x, const int *features, int n)
{
	for (int i = 0; i < n; i++)
		if (tnp_column_lacks(&stats->columns[features[i]], x[features[i]]))
			return false;
	return true;
}

/* The cell of feature f that row i of the loan lends. */
static double
lent_cell(const TnpDonors *d, const TnpLoan *loan, int i, int f)
{
	double		cell = d->x[(size_t) loan->row[i] * d->n_features + f];

	for (int k = 0; k < loan->n_moved; k++)
		if (loan->moved[k].feature == f)
			return fmax(fmin(cell + loan->moved[k].by[i], loan->moved[k].high),
						loan->moved[k].low);
	return cell;
}

static bool
lend_alike(const TnpDonors *d, const TnpLoan *loan, int i, int j, const int *lacks, int n_lacks)
{
	for (int k = 0; k < n_lacks; k++)
		if (lent_cell(d, loan, i, lacks[k]) != lent_cell(d, loan, j, lacks[k]))
			return false;
	return true;
}

/*
 * The different cells of the columns that the rows of the loan lend, each by its first row, where
 * there are `most` at most: which, and the share of each as its weight. Returns how many, 0 for
 * more.
 */
static int
different_cells(const TnpDonors *d, const TnpLoan *loan, const int *lacks, int n_lacks, int most,
				int *which, double *weight)
{
	int			found = 0;

	for (int i = 0; i < loan->n; i++)
	{
		int			at = 0;

		while (at < found && !lend_alike(d, loan, i, which[at], lacks, n_lacks))
			at++;
		if (at == most)
			return 0;
		if (at == found)
		{
			which[found] = i;
			weight[found++] = 0;
		}
		weight[at] += loan->equal ? 1 : loan->weight[i];
	}
	for (int i = 0; i < found && loan->equal; i++)
		weight[i] /= loan->n;
	return found;
}

/* Rows of the loan, evenly spaced as they weigh. */
static void
space_evenly(const TnpLoan *loan, int wanted, int *which)
{
	double		before = loan->weight[0];

	for (int i = 0, k = 0; i < wanted; i++)
	{
		if (loan->equal)
		{
			which[i] = (2 * i + 1) * loan->n / (2 * wanted);
			continue;
		}
		while (k + 1 < loan->n && before <= (i + 0.5) / wanted)
			before += loan->weight[++k];
		which[i] = k;
	}
}

/* Rows that lend, and which of them do: different cells where there are few, else spaced ones. */
static int
lenders_of(const TnpStats *stats, const double *x, const int *lacks, int n_lacks, int wanted,
		   TnpLoan *loan, int *which, double *weight, int *sample)
{
	const TnpDonors *d = &stats->donors;
	int			found;

	loan->n = 0;
	for (int i = 0; i < d->n; i++)
		if (has_all(stats, d->x + (size_t) i * d->n_features, lacks, n_lacks))
			loan->row[loan->n++] = i;
	*sample = 0;
	if (loan->n == 0)
		return 0;
	tnp_related_apply(stats, &d->related, d->x, d->n_features, x, lacks, n_lacks, loan);
	found = different_cells(d, loan, lacks, n_lacks, wanted, which, weight);
	if (found > 0)
	{
		/* where none comes twice there are more than these */
		*sample = found == loan->n && found >= FEWEST_DRAWN && !d->levels ? found : 0;
		return found;
	}
	space_evenly(loan, wanted, which);
	for (int i = 0; i < wanted; i++)
		weight[i] = 1.0 / wanted;
	*sample = d->levels ? 0 : wanted;
	return wanted;
}

bool
tnp_donors_lend(const TnpStats *stats, const double *x)
{
	const TnpDonors *d = &stats->donors;
	int			lacks[TNP_MOST_SLOTS],
				n_lacks = d->n > 0 ? lacks_of(stats, x, lacks) : 0;

	for (int i = 0; i < d->n && n_lacks > 0; i++)
		if (has_all(stats, d->x + (size_t) i * d->n_features, lacks, n_lacks))
			return true;
	return false;
}

int
tnp_donors_of(const TnpModel *model, const TnpStats *stats, const double *x, double *variants,
			  double *weight, int *sample)
{
	const TnpDonors *d = &stats->donors;
	size_t		width = d->n_features;
	TnpLoan		loan;
	int			lacks[TNP_MOST_SLOTS],
				which[TNP_MOST_DONORS],
				n_lacks = d->n > 0 ? lacks_of(stats, x, lacks) : 0,
				n = 0;
	double		told = 0;

	*sample = 0;
	if (n_lacks > 0)
		n = lenders_of(stats, x, lacks, n_lacks, model->config.encode_x.donors, &loan, which,
					   weight, sample);
	for (int k = 0; k < n; k++)
	{
		memcpy(variants + k * width, x, width * sizeof(double));
		for (int i = 0; i < n_lacks; i++)
			variants[k * width + lacks[i]] = lent_cell(d, &loan, which[k], lacks[i]);
	}
	/* an unknown label is not missing */
	for (int i = 0; i < n_lacks; i++)
		if (tnp_column_lacks(&stats->columns[lacks[i]], x[lacks[i]]))
			told = fmax(told, d->told[lacks[i]]);
	if (n == 0 || told == 0 || model->config.encode_x.shift)
		return n;
	for (int i = 0; i < n; i++)
		weight[i] *= 1 - told;
	memcpy(variants + n * width, x, width * sizeof(double));
	weight[n] = told;
	return n + 1;
}

int
tnp_donors_new(const TnpStats *stats, const double *x, TnpNewLabel *found)
{
	const TnpDonors *d = &stats->donors;
	int			lacks[TNP_MOST_SLOTS],
				n = d->levels && stats->n_classes == 0 ? 0 : lacks_of(stats, x, lacks),
				some = 0;

	for (int i = 0; i < n && some < TNP_MOST_NEW; i++)
		if (!tnp_column_lacks(&stats->columns[lacks[i]], x[lacks[i]]) && d->alike[lacks[i]] < 1)
			found[some++] = (TnpNewLabel) {lacks[i], d->alike[lacks[i]]};
	return some;
}
