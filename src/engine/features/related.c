/*
 * related.c: what the cells that a row has tell of those that it lacks. A number is foretold by a
 * regression on few of the others, and each row that lends it adds how far its own cell is from
 * what is foretold. What a regression does not see, as a label or a curve, shows in bins: rows
 * whose cells differ in what tells of a missing one weigh less. Where nothing tells of it beyond
 * chance, all rows weigh the same, and lend what they have.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/related.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/mean_sd.h"
#include "engine/features/column.h"

#define MOST_ENTRIES 128		/* of the design */
#define MOST_LABELS 8			/* of a feature with entries of their own */
#define FEWEST_ROWS 3			/* of a label that has one */
#define MOST_TERMS 24			/* of a regression */
#define ROWS_OF_TERM 8
#define FEWEST_LENDERS 16		/* that tell of each other */
#define FARTHEST 4.0			/* of a number from its mean, in standard deviations */
#define FEW_VALUES 16			/* different cells of a number at most that are steps */
#define ROWS_OF_VALUE 2			/* so they are if they come so often */
#define NUMBER_BINS 8
#define LABEL_BINS 16
#define LEAST_REST 1e-3			/* of an entry's variance given the terms, or it is one of them */
#define LEAST_LEFT 1e-6			/* of a number's, or it is known */
#define PENALTY 0.01
#define LEAST_OWN 0.05			/* of one less a row's share in its own answer */
#define SURPRISE 3.0			/* beyond the cost of numbers and of the choice among several */
#define SURE 1e-9				/* rounding is less */
#define LARGEST_SHARE 0.99		/* of a variance that is told */
#define STEP_WEIGHT 4.0			/* of a distance in what is foretold of steps */
#define FEWEST_COUNTED 8		/* rows that the weights are worth */
#define WIDER 1.25
#define SMALLEST_WEIGHT 1e-6	/* of the largest */

/* ---- what the rows that lend have ------------------------------------------------------------ */

static size_t
block_size(const TnpRelated *r)
{
	size_t		entries = r->n_entries,
				features = r->n_features;

	return (entries * (r->n + entries + 2) + features * (r->n + 2)) * sizeof(double)
		+ features * sizeof(TnpRelatedFeature) + entries * sizeof(TnpRelatedEntry);
}

/* u is there; the others lie behind it. */
static void
set_place(TnpRelated *r)
{
	r->moment = r->u + (size_t) r->n_entries * r->n;
	r->mean = r->moment + (size_t) r->n_entries * r->n_entries;
	r->sd = r->mean + r->n_entries;
	r->bin = r->sd + r->n_entries;
	r->low = r->bin + (size_t) r->n_features * r->n;
	r->high = r->low + r->n_features;
	r->entry = (TnpRelatedEntry *) (void *) (r->high + r->n_features);
	r->feature = (TnpRelatedFeature *) (void *) (r->entry + r->n_entries);
}

static const TnpColumn *
column_of(const TnpStats *stats, const TnpRelated *r, int g)
{
	return &stats->columns[r->feature[g].column];
}

/* The cell of a row x [F], NaN where it is missing or, of a label, unknown. */
static double
cell_of(const TnpStats *stats, const TnpRelated *r, int g, const double *x)
{
	const TnpColumn *column = column_of(stats, r, g);
	double		cell = x[r->feature[g].column];

	return isnan(tnp_column_value(column, cell)) ? NAN : cell;
}

/* An entry of the design as it is before it is standardised, of a cell that is there. */
static double
raw_entry(const TnpRelated *r, int e, double cell)
{
	return r->feature[r->entry[e].of].is_label ? cell == r->entry[e].label : cell;
}

static double
entry_of(const TnpRelated *r, int e, double cell)
{
	double		z;

	if (isnan(cell))
		return NAN;
	z = (raw_entry(r, e, cell) - r->mean[e]) / r->sd[e];
	if (r->feature[r->entry[e].of].is_label)
		return z;
	/* a difference may have left the range of numbers, and not its sign */
	return fmax(fmin(z, FARTHEST), -FARTHEST);
}

/* The different cells [n] of a feature, most frequent first, and how many rows have each. */
typedef struct Values
{
	int			n;
	double		cell[TNP_LENDERS];
	int			rows[TNP_LENDERS];
} Values;

/* Among equally frequent ones that which comes first. cell [n]. */
static void
count_values(const double *cell, int n, Values *values)
{
	values->n = 0;
	for (int i = 0; i < n; i++)
	{
		int			k = 0;

		if (isnan(cell[i]))
			continue;
		while (k < values->n && values->cell[k] != cell[i])
			k++;
		if (k == values->n)
		{
			values->cell[k] = cell[i];
			values->rows[k] = 0;
			values->n++;
		}
		values->rows[k]++;
	}
	for (int i = 1; i < values->n; i++)
	{
		double		own = values->cell[i];
		int			rows = values->rows[i],
					k = i;

		for (; k > 0 && values->rows[k - 1] < rows; k--)
		{
			values->cell[k] = values->cell[k - 1];
			values->rows[k] = values->rows[k - 1];
		}
		values->cell[k] = own;
		values->rows[k] = rows;
	}
}

/* Features of the slots, in their order, each once, as far as their entries have room. */
static void
choose_entries(const TnpStats *stats, const double *x, int n, int width, TnpRelated *r)
{
	double		cell[TNP_LENDERS];
	Values		values;

	for (int s = 0; s < stats->n_slots && r->n_features < TNP_RELATED_FEATURES; s++)
	{
		int			column = tnp_slot_column(stats, s)->feature,
					g = 0,
					entries = 0;
		bool		is_label = stats->columns[column].kind == TNP_CATEGORICAL;

		while (g < r->n_features && r->feature[g].column != column)
			g++;
		if (g < r->n_features)
			continue;
		r->feature[g].column = column;
		r->feature[g].is_label = is_label;
		for (int i = 0; i < n; i++)
			cell[i] = cell_of(stats, r, g, x + (size_t) i * width);
		count_values(cell, n, &values);
		r->feature[g].has_steps = values.n <= FEW_VALUES || values.n * ROWS_OF_VALUE < n;
		r->feature[g].first = r->n_entries;
		if (!is_label)
			entries = values.n > 1;
		else
			while (entries < MOST_LABELS && entries + 1 < values.n
				   && values.rows[entries + 1] >= FEWEST_ROWS)
				entries++;
		if (r->n_entries + entries > MOST_ENTRIES)
			break;
		r->feature[g].entries = entries;
		for (int e = 0; e < entries; e++)
			r->entry[r->n_entries++] = (TnpRelatedEntry) {g, values.cell[e + is_label]};
		r->n_features++;
	}
}

/* Bins [n] of the cells [n] of a feature, -1 where there is none. */
static void
fill_bins(const double *cell, int n, bool is_label, double *bin)
{
	Values		values;
	int			there = 0;

	if (is_label)
		count_values(cell, n, &values);
	for (int i = 0; i < n; i++)
		there += !isnan(cell[i]);
	for (int i = 0; i < n; i++)
	{
		int			k = 0;

		bin[i] = -1;
		if (isnan(cell[i]))
			continue;
		if (is_label)
			while (k < LABEL_BINS - 1 && values.cell[k] != cell[i])
				k++;
		else
		{
			for (int j = 0; j < n; j++)
				k += cell[j] < cell[i];
			k = k * NUMBER_BINS / there;
		}
		bin[i] = k;
	}
}

/* Mean of the products of two entries over the rows that have both. */
static double
moment_of(const double *a, const double *b, int n)
{
	double		sum = 0;
	int			there = 0;

	for (int i = 0; i < n; i++)
		if (!isnan(a[i]) && !isnan(b[i]))
		{
			sum += a[i] * b[i];
			there++;
		}
	return there > 0 ? sum / there : 0;
}

static void
fill_entry(TnpRelated *r, int e, const double *cell)
{
	double		there[TNP_LENDERS];
	int			n = 0;

	for (int i = 0; i < r->n; i++)
		if (!isnan(cell[i]))
			there[n++] = raw_entry(r, e, cell[i]);
	tnp_mean_and_sd(there, n, 1, &r->mean[e], &r->sd[e]);
	for (int i = 0; i < r->n; i++)
		r->u[(size_t) e * r->n + i] = entry_of(r, e, cell[i]);
}

TnpStatus
tnp_related_build(const TnpModel *model, const TnpStats *stats, const double *x, int n,
				  int n_features, TnpRelated *r, TnpError *error)
{
	double		cell[TNP_LENDERS];
	TnpRelatedFeature chosen[TNP_RELATED_FEATURES] = {{0}};
	TnpRelatedEntry entry[TNP_RELATED_FEATURES] = {{0}};

	*r = (TnpRelated) {.n = n, .feature = chosen, .entry = entry};
	choose_entries(stats, x, n, n_features, r);
	if (r->n_features > 0)
		r->u = tnp_alloc(&model->env, 1, block_size(r));
	if (r->u == NULL)
	{
		bool		none = r->n_features == 0;

		memset(r, 0, sizeof(*r));
		return none ? TNP_OK : tnp_no_memory(error);
	}
	set_place(r);
	memcpy(r->feature, chosen, r->n_features * sizeof(*chosen));
	memcpy(r->entry, entry, r->n_entries * sizeof(*entry));
	for (int g = 0; g < r->n_features; g++)
	{
		const TnpRelatedFeature *feature = &r->feature[g];

		r->low[g] = INFINITY;
		r->high[g] = -INFINITY;
		for (int i = 0; i < n; i++)
		{
			cell[i] = cell_of(stats, r, g, x + (size_t) i * n_features);
			r->low[g] = fmin(r->low[g], cell[i]);
			r->high[g] = fmax(r->high[g], cell[i]);
		}
		fill_bins(cell, n, feature->is_label, r->bin + (size_t) g * n);
		for (int e = feature->first; e < feature->first + feature->entries; e++)
			fill_entry(r, e, cell);
	}
	for (int e = 0; e < r->n_entries; e++)
		for (int k = 0; k <= e; k++)
			r->moment[e * r->n_entries + k] = r->moment[k * r->n_entries + e]
				= moment_of(r->u + (size_t) e * n, r->u + (size_t) k * n, n);
	return TNP_OK;
}

bool
tnp_related_copy(const TnpEnv *env, const TnpRelated *from, TnpRelated *to)
{
	*to = *from;
	if (from->u == NULL)
		return true;
	to->u = tnp_alloc(env, 1, block_size(from));
	if (to->u == NULL)
		return false;
	memcpy(to->u, from->u, block_size(from));
	set_place(to);
	return true;
}

void
tnp_related_free(const TnpEnv *env, TnpRelated *related)
{
	tnp_free(env, related->u);
	related->u = NULL;
}

size_t
tnp_related_bytes(const TnpRelated *related)
{
	return related->u == NULL ? 0 : block_size(related);
}

/* ---- what they tell of one row --------------------------------------------------------------- */

/* What is asked. */
typedef struct Asked
{
	const TnpRelated *related;
	const double *x;			/* [n, width] raw rows that lend */
	int			width;
	bool		has[TNP_RELATED_FEATURES];	/* the row has this feature's cell */
	double		cell[TNP_RELATED_FEATURES],
				entry[MOST_ENTRIES];	/* of what it has */
	int			n_has,
				n_entries,		/* of features that it has */
				least;			/* rows that are left */
	double		distance[TNP_LENDERS];	/* squared, of the rows of the loan */
	bool		is_far;			/* not all are 0 */
} Asked;

/* A regression of a number on other entries. */
typedef struct Regression
{
	int			n,
				entry[MOST_TERMS];
	double		weight[MOST_TERMS],
				rest;			/* of the number's variance */
} Regression;

/* What a gain in log likelihood by this many numbers out of `among` has to reach, doubled. */
static double
least_gain(double numbers, int rows, int among)
{
	return numbers * log(rows) + 2 * log(among > 1 ? among : 1) + SURPRISE;
}

static int
count_there(const double *u, const TnpLoan *loan)
{
	int			n = 0;

	for (int i = 0; i < loan->n; i++)
		n += !isnan(u[loan->row[i]]);
	return n;
}

static void
keep_there(const double *u, TnpLoan *loan)
{
	int			n = 0;

	for (int i = 0; i < loan->n; i++)
		if (!isnan(u[loan->row[i]]))
			loan->row[n++] = loan->row[i];
	loan->n = n;
}

/*
 * Terms of a regression of entry `own`: that which tells most of what is left of it, as long as
 * this is more than chance and enough rows have it, of which alone the loan keeps its rows.
 */
static void
select_terms(const Asked *asked, int own, TnpLoan *loan, Regression *fit)
{
	const TnpRelated *r = asked->related;
	double		along[MOST_TERMS][MOST_ENTRIES],
				left[MOST_ENTRIES],
				shared[MOST_ENTRIES];
	bool		open[MOST_ENTRIES];
	int			rows = loan->n;

	for (int e = 0; e < r->n_entries; e++)
	{
		open[e] = asked->has[r->entry[e].of];
		left[e] = r->moment[e * r->n_entries + e];
		shared[e] = r->moment[own * r->n_entries + e];
	}
	fit->n = 0;
	while (fit->n < MOST_TERMS && fit->n < rows / ROWS_OF_TERM && left[own] > LEAST_LEFT)
	{
		int			best = -1;
		double		most = 0,
					root;

		for (int e = 0; e < r->n_entries; e++)
		{
			double		gain;

			if (!open[e] || left[e] <= LEAST_REST)
				continue;
			gain = fmin(shared[e] * shared[e] / (left[e] * left[own]), 1 - SURE);
			if (gain > most + SURE && count_there(r->u + (size_t) e * r->n, loan) >= asked->least)
			{
				most = gain;
				best = e;
			}
		}
		if (best < 0 || -(rows - fit->n - 2) * log1p(-most)
			< least_gain(1, rows, asked->n_entries))
			break;
		root = sqrt(left[best]);
		for (int e = 0; e < r->n_entries; e++)
		{
			double		own_share = r->moment[best * r->n_entries + e];

			for (int t = 0; t < fit->n; t++)
				own_share -= along[t][best] * along[t][e];
			along[fit->n][e] = own_share / root;
		}
		for (int e = 0; e < r->n_entries; e++)
		{
			left[e] -= along[fit->n][e] * along[fit->n][e];
			shared[e] -= along[fit->n][e] * along[fit->n][own];
		}
		open[best] = false;
		fit->entry[fit->n++] = best;
		keep_there(r->u + (size_t) best * r->n, loan);
	}
}

/*
 * Least squares of entry `own` on the terms, over the rows of the loan; false where these, each
 * left out, are not foretold better than by chance.
 */
static bool
fit_terms(const Asked *asked, int own, int rows, const TnpLoan *loan, Regression *fit)
{
	const TnpRelated *r = asked->related;
	const double *u[MOST_TERMS + 1];
	double		mean[MOST_TERMS + 1] = {0},
				gram[MOST_TERMS * MOST_TERMS] = {0},
				factor[MOST_TERMS * MOST_TERMS],
				row[MOST_TERMS],
				total = 0,
				rest = 0,
				missed = 0;
	int			n = fit->n,
				m = loan->n;

	for (int a = 0; a <= n; a++)
	{
		u[a] = r->u + (size_t) (a < n ? fit->entry[a] : own) * r->n;
		for (int i = 0; i < m; i++)
			mean[a] += u[a][loan->row[i]];
		mean[a] /= m;
	}
	memset(fit->weight, 0, sizeof(fit->weight));
	for (int i = 0; i < m; i++)
	{
		double		target = u[n][loan->row[i]] - mean[n];

		total += target * target;
		for (int a = 0; a < n; a++)
		{
			row[a] = u[a][loan->row[i]] - mean[a];
			fit->weight[a] += row[a] * target;
			for (int b = 0; b <= a; b++)
				gram[a * n + b] += row[a] * row[b];
		}
	}
	if (!(total > SURE * m) || !tnp_factorise(gram, n, PENALTY, factor))
		return false;
	tnp_solve_lower(factor, n, fit->weight);
	tnp_solve_upper(factor, n, fit->weight);
	for (int i = 0; i < m; i++)
	{
		double		away = u[n][loan->row[i]] - mean[n],
					share = 1.0 / m;

		for (int a = 0; a < n; a++)
		{
			row[a] = u[a][loan->row[i]] - mean[a];
			away -= fit->weight[a] * row[a];
		}
		tnp_solve_lower(factor, n, row);
		share += tnp_dot(n, row, row);
		rest += away * away;
		away /= fmax(1 - share, LEAST_OWN);
		missed += away * away;
	}
	fit->rest = fmax(rest / total, 1 - LARGEST_SHARE);
	return -m * log(fmax(missed / total, SURE)) >= least_gain(1, rows, asked->n_entries);
}

/* What the terms say of a row of the prefix. */
static double
foretold(const TnpRelated *r, const Regression *fit, int row)
{
	double		sum = 0;

	for (int t = 0; t < fit->n; t++)
		sum += fit->weight[t] * r->u[(size_t) fit->entry[t] * r->n + row];
	return sum;
}

/* The regression of the number g, and the rows that it leaves; of no terms if there is none. */
static void
foretell(Asked *asked, int g, TnpLoan *loan, Regression *fit)
{
	const TnpRelated *r = asked->related;
	const TnpRelatedFeature *feature = &r->feature[g];
	int			rows = loan->n,
				kept[TNP_LENDERS];

	fit->n = 0;
	if (feature->is_label || feature->entries == 0)
		return;
	memcpy(kept, loan->row, rows * sizeof(int));
	select_terms(asked, feature->first, loan, fit);
	if (fit->n > 0 && fit_terms(asked, feature->first, rows, loan, fit))
		return;
	fit->n = 0;
	loan->n = rows;
	memcpy(loan->row, kept, rows * sizeof(int));
}

/* By how much the rows' cells of the number move, or how far they are from what is foretold. */
static void
follow(Asked *asked, int g, const Regression *fit, TnpLoan *loan)
{
	const TnpRelated *r = asked->related;
	const TnpRelatedFeature *feature = &r->feature[g];
	bool		moves = !feature->has_steps && loan->n_moved < TNP_MOVED;
	double		own = 0;

	for (int t = 0; t < fit->n; t++)
		own += fit->weight[t] * asked->entry[fit->entry[t]];
	for (int i = 0; i < loan->n; i++)
	{
		double		apart = own - foretold(r, fit, loan->row[i]);

		if (moves)
			loan->moved[loan->n_moved].by[i] = apart * r->sd[feature->first];
		else
			asked->distance[i] += STEP_WEIGHT * apart * apart / fit->rest;
	}
	asked->is_far |= !moves;
	if (!moves)
		return;
	loan->moved[loan->n_moved].feature = feature->column;
	loan->moved[loan->n_moved].low = r->low[g];
	loan->moved[loan->n_moved++].high = r->high[g];
}

/*
 * How much the bins of feature g tell of what is missing: its bins, or where `missing` is a number
 * what the regression leaves of it. The ratio of the variance that they tell to the other, 0 where
 * that is chance.
 */
static double
told_by_bins(const Asked *asked, int g, int missing, const double *left, const TnpLoan *loan)
{
	const TnpRelated *r = asked->related;
	const double *bin = r->bin + (size_t) g * r->n,
			   *label = r->bin + (size_t) missing * r->n;
	bool		is_label = r->feature[missing].is_label;
	double		count[LABEL_BINS] = {0},
				sum[LABEL_BINS][LABEL_BINS] = {{0}},
				all[LABEL_BINS] = {0},
				square = 0,
				between = 0,
				total,
				share;
	int			m = 0,
				filled = 0,
				width = is_label ? LABEL_BINS : 1;

	for (int i = 0; i < loan->n; i++)
	{
		int			row = loan->row[i],
					k = is_label ? (int) label[row] : 0;
		double		value = is_label ? 1 : left[i];

		if (bin[row] < 0)
			continue;
		count[(int) bin[row]]++;
		sum[(int) bin[row]][k] += value;
		all[k] += value;
		square += value * value;
		m++;
	}
	total = square;
	for (int k = 0; k < width; k++)
		total -= m > 0 ? all[k] * all[k] / m : 0;
	for (int b = 0; b < LABEL_BINS; b++)
	{
		filled += count[b] > 0;
		for (int k = 0; k < width && count[b] > 0; k++)
			between += sum[b][k] * sum[b][k] / count[b];
	}
	if (filled < 2 || m < FEWEST_LENDERS || m <= filled || !(total > SURE * m))
		return 0;
	share = fmin(fmax(1 - (square - between) / total, 0), 1 - SURE);
	if (-m * log1p(-share) < least_gain(filled - 1, m, asked->n_has))
		return 0;
	share = fmin(1 - (1 - share) * (m - 1) / (m - filled), LARGEST_SHARE);
	return fmax(share / (1 - share), 0);
}

/* Add the rows' squared distances in feature g. */
static void
add_distance(Asked *asked, int g, double weight, const TnpLoan *loan)
{
	const TnpRelated *r = asked->related;
	const TnpRelatedFeature *feature = &r->feature[g];

	asked->is_far = true;
	for (int i = 0; i < loan->n; i++)
	{
		int			row = loan->row[i];
		bool		there = r->bin[(size_t) g * r->n + row] >= 0;
		double		apart = 1;

		if (!feature->is_label)
		{
			double		own = asked->entry[feature->first],
						other = r->u[(size_t) feature->first * r->n + row];

			apart = there ? (own - other) * (own - other) : own * own + 1;
		}
		else if (there)
			apart = asked->x[(size_t) row * asked->width + feature->column] == asked->cell[g]
				? 0 : 2;
		asked->distance[i] += weight * apart;
	}
}

/* Weights by distances, at least so wide that some rows count. */
static void
weigh(const Asked *asked, TnpLoan *loan)
{
	double		nearest = INFINITY,
				scale = 0.5,
				sum,
				square;
	int			n = 0;

	loan->equal = !asked->is_far;
	for (int i = 0; i < loan->n; i++)
		nearest = fmin(nearest, asked->distance[i]);
	for (;; scale /= WIDER * WIDER)
	{
		sum = square = 0;
		for (int i = 0; i < loan->n; i++)
		{
			loan->weight[i] = exp(-scale * (asked->distance[i] - nearest));
			sum += loan->weight[i];
			square += loan->weight[i] * loan->weight[i];
		}
		if (sum * sum >= FEWEST_COUNTED * square)
			break;
	}
	sum = 0;
	for (int i = 0; i < loan->n; i++)
	{
		if (loan->weight[i] < SMALLEST_WEIGHT)
			continue;
		loan->row[n] = loan->row[i];
		for (int k = 0; k < loan->n_moved; k++)
			loan->moved[k].by[n] = loan->moved[k].by[i];
		loan->weight[n] = loan->weight[i];
		sum += loan->weight[n++];
	}
	loan->n = n;
	for (int i = 0; i < n; i++)
		loan->weight[i] /= sum;
}

static void
look_at(const TnpStats *stats, const double *x, const int *lacks, int n_lacks, Asked *asked)
{
	const TnpRelated *r = asked->related;

	for (int g = 0; g < r->n_features; g++)
	{
		const TnpRelatedFeature *feature = &r->feature[g];

		asked->cell[g] = cell_of(stats, r, g, x);
		asked->has[g] = !isnan(asked->cell[g]);
		for (int i = 0; i < n_lacks; i++)
			asked->has[g] &= lacks[i] != feature->column;
		if (!asked->has[g])
			continue;
		asked->n_has++;
		asked->n_entries += feature->entries;
		for (int e = feature->first; e < feature->first + feature->entries; e++)
			asked->entry[e] = entry_of(r, e, asked->cell[g]);
	}
}

/* Which features of r a row x [F] misses, of those that it lacks: not those of an unknown label. */
static int
missing_of(const TnpStats *stats, const TnpRelated *r, const double *x, const int *lacks,
		   int n_lacks, int *missing)
{
	int			n = 0;

	for (int g = 0; g < r->n_features; g++)
		for (int i = 0; i < n_lacks; i++)
			if (lacks[i] == r->feature[g].column
				&& tnp_column_lacks(&stats->columns[lacks[i]], x[lacks[i]]))
				missing[n++] = g;
	return n;
}

void
tnp_related_apply(const TnpStats *stats, const TnpRelated *r, const double *rows, int width,
				  const double *x, const int *lacks, int n_lacks, TnpLoan *loan)
{
	Asked		asked = {.related = r, .x = rows, .width = width};
	Regression	fit[TNP_RELATED_FEATURES];
	int			missing[TNP_RELATED_FEATURES],
				n = missing_of(stats, r, x, lacks, n_lacks, missing);
	double		told[TNP_RELATED_FEATURES] = {0},
				left[TNP_LENDERS];

	loan->equal = true;
	loan->n_moved = 0;
	if (n == 0 || loan->n < FEWEST_LENDERS)
		return;
	look_at(stats, x, lacks, n_lacks, &asked);
	asked.least = loan->n / 2 > FEWEST_LENDERS ? loan->n / 2 : FEWEST_LENDERS;
	for (int j = 0; j < n; j++)
		foretell(&asked, missing[j], loan, &fit[j]);
	for (int j = 0; j < n; j++)
	{
		const TnpRelatedFeature *feature = &r->feature[missing[j]];

		if (!feature->is_label && feature->entries == 0)
			continue;
		for (int i = 0; i < loan->n && !feature->is_label; i++)
			left[i] = r->u[(size_t) feature->first * r->n + loan->row[i]]
				- foretold(r, &fit[j], loan->row[i]);
		for (int g = 0; g < r->n_features; g++)
			if (asked.has[g])
				told[g] = fmax(told[g], told_by_bins(&asked, g, missing[j], left, loan));
		if (fit[j].n > 0)
			follow(&asked, missing[j], &fit[j], loan);
	}
	for (int g = 0; g < r->n_features; g++)
		if (told[g] > 0)
			add_distance(&asked, g, told[g], loan);
	weigh(&asked, loan);
}
