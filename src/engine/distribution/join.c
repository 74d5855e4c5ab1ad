/*
 * join.c: one distribution in place of several. A mixture of mixtures is reduced by merging
 * neighbours, which keeps mean and variance; those are merged first whose merger loses least by a
 * bound on the Kullback-Leibler divergence (Runnalls 2007, eq. 21).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/distribution/join.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/normal.h"

#define NEAR 4					/* of a sample, those that tell how close it is about an answer */
#define HALF_WAY 0.5			/* of the distance to the last of these, which is cut at */
#define OF_NEAREST 4.0			/* times the harmonic mean of those to the first two */
#define GOLDEN 0.6180339887498949	/* multiples of it are spread evenly over the unit interval */
#define MOST_VARIANCE 16.0		/* of groups of which few are known, times theirs */
#define OF_BETWEEN 4.0			/* times the share of labels in all variance: do they matter */
#define MORE_LABELS 3.0			/* of any class, that are added to those there are */

/* One component on its way. */
typedef struct Part
{
	double		weight,
				mean,
				variance,
				loss;			/* of its merger with the next one */
} Part;

size_t
tnp_join_work(TnpDistributionKind kind, int n, int count)
{
	bool		merges = kind == TNP_GAUSSIAN || kind == TNP_MIXTURE;

	return merges ? (size_t) n * count * (sizeof(Part) / sizeof(double)) : 0;
}

static int
compare_parts(const void *a, const void *b)
{
	const Part *x = a,
			   *y = b;

	if (x->mean != y->mean)
		return x->mean > y->mean ? 1 : -1;
	if (x->variance != y->variance)
		return x->variance > y->variance ? 1 : -1;
	return (x->weight > y->weight) - (x->weight < y->weight);
}

static Part
merged(const Part *a, const Part *b)
{
	Part		m = {.weight = a->weight + b->weight};
	double		share = b->weight / m.weight,
				apart = b->mean - a->mean;

	m.mean = a->mean + share * apart;
	m.variance = (1 - share) * a->variance + share * b->variance
		+ share * (1 - share) * apart * apart;
	return m;
}

static double
loss_of(const Part *a, const Part *b)
{
	Part		m = merged(a, b);

	return m.weight * log(m.variance) - a->weight * log(a->variance)
		- b->weight * log(b->variance);
}

/* All parts that weigh anything, in units of `scale` about `center`; returns how many. */
static int
collect_parts(TnpDistributionKind kind, int n, int count, const double *params, size_t step,
			  const double *weight, const double *wider, double center, double scale, Part *part)
{
	int			parts = 0;

	for (int k = 0; k < count; k++)
	{
		double		more = wider == NULL ? 0 : wider[k] / scale;

		for (int i = 0; i < n; i++)
		{
			const double *own = params + k * step;
			double		w = kind == TNP_MIXTURE ? own[i] : 1,
						mean = kind == TNP_MIXTURE ? own[n + i] : own[0],
						sd = (kind == TNP_MIXTURE ? own[2 * n + i] : own[1]) / scale;

			if (w * weight[k] > 0)
				part[parts++] = (Part) {w * weight[k], (mean - center) / scale,
										sd * sd + more * more, 0};
		}
	}
	return parts;
}

/* Merge neighbours until n are left. */
static void
merge_parts(int parts, int n, Part *part)
{
	for (int i = 0; i + 1 < parts; i++)
		part[i].loss = loss_of(&part[i], &part[i + 1]);
	for (; parts > n; parts--)
	{
		int			least = 0;

		for (int i = 1; i + 1 < parts; i++)
			if (part[i].loss < part[least].loss)
				least = i;
		part[least] = merged(&part[least], &part[least + 1]);
		memmove(&part[least + 1], &part[least + 2], (parts - least - 2) * sizeof(Part));
		if (least > 0)
			part[least - 1].loss = loss_of(&part[least - 1], &part[least]);
		if (least + 2 < parts)
			part[least].loss = loss_of(&part[least], &part[least + 1]);
	}
}

static void
join_mixtures(TnpDistributionKind kind, int n, int count, const double *params, size_t step,
			  const double *weight, const double *wider, double *work, double *joined)
{
	Part	   *part = (Part *) (void *) work;
	/* squares have room in a unit of the parameters' own */
	double		center = kind == TNP_MIXTURE ? params[n] : params[0],
				scale = kind == TNP_MIXTURE ? params[2 * n] : params[1];
	int			parts = collect_parts(kind, n, count, params, step, weight, wider, center,
										 scale, part);

	qsort(part, parts, sizeof(Part), compare_parts);
	merge_parts(parts, n, part);
	for (int i = 0; i < n; i++)
	{
		const Part *own = &part[i < parts ? i : parts - 1];

		if (kind == TNP_MIXTURE)
			joined[i] = i < parts ? own->weight : 0;
		joined[kind == TNP_MIXTURE ? n + i : 0] = center + scale * own->mean;
		joined[kind == TNP_MIXTURE ? 2 * n + i : 1] = scale * sqrt(own->variance);
	}
}

void
tnp_join(TnpDistributionKind kind, int n, int count, const double *params, size_t step,
		 const double *weight, const double *wider, double *work, double *joined)
{
	int			size = tnp_distribution_size(kind, n);

	if (kind == TNP_GAUSSIAN || kind == TNP_MIXTURE)
		join_mixtures(kind, n, count, params, step, weight, wider, work, joined);
	else
	{
		/* what follows the n masses is the same in all */
		memcpy(joined, params, size * sizeof(double));
		for (int i = 0; i < n; i++)
		{
			joined[i] = 0;
			for (int k = 0; k < count; k++)
				joined[i] += weight[k] * params[k * step + i];
		}
	}
}

/*
 * The distance of mean k to a near one, which few others are nearer than. Where the nearest are
 * nearer by far, as in a clump of few, what lies behind the gap is another clump's.
 */
static double
distance_near(int sample, const double *mean, int k)
{
	double		nearest[NEAR] = {0};
	int			found = 0;

	for (int j = 0; j < sample; j++)
	{
		double		apart = fabs(mean[j] - mean[k]);
		int			place = found;

		if (j == k || (found == NEAR && apart >= nearest[NEAR - 1]))
			continue;
		if (found < NEAR)
			found++;
		else
			place--;
		for (; place > 0 && nearest[place - 1] > apart; place--)
			nearest[place] = nearest[place - 1];
		nearest[place] = apart;
	}
	if (found == 0 || nearest[0] == 0)
		return 0;
	return fmin(nearest[found - 1],
				2 * OF_NEAREST / (1 / nearest[0] + 1 / nearest[found > 1 ? 1 : 0]));
}

void
tnp_join_sample(TnpDistributionKind kind, int n, int count, int sample, const double *params,
				size_t step, double *mean, double *wider)
{
	for (int k = 0; k < count; k++)
		mean[k] = tnp_mean(&(TnpDistribution) {kind, n, params + k * step});
	for (int k = 0; k < count; k++)
		wider[k] = k < sample ? HALF_WAY * distance_near(sample, mean, k) : 0;
}

/*
 * The variance between labels of numbers value [count], `step` apart, of these weights; *all
 * becomes their mean.
 */
static double
between_labels(int count, const double *value, size_t step, const double *weight,
			   const double *label, size_t label_step, double *all)
{
	double		between = 0;

	*all = 0;
	for (int k = 0; k < count; k++)
		*all += weight[k] * value[k * step];
	for (int k = 0; k < count; k++)
	{
		double		sum = 0,
					share = 0;

		for (int j = 0; j < count; j++)
			if (label[j * label_step] == label[k * label_step])
			{
				sum += weight[j] * value[j * step];
				share += weight[j];
			}
		if (share > 0)
			between += weight[k] * (sum / share - *all) * (sum / share - *all);
	}
	return between;
}

/*
 * What the variance of groups, of which few are known, may be instead of theirs, by answer k: a
 * scaled inverse chi-square variable, by which a normal one is Student's t. Its quantiles are of
 * Wilson & Hilferty 1931.
 */
static double
variance_of_few(int k, double alike)
{
	double		ninth = 2 / (9 * fmax(1 / alike - 1, 1)),
				place = (k + 0.5) * GOLDEN,
				root = 1 - ninth + tnp_normal_quantile(place - floor(place)) * sqrt(ninth);

	return 1 / fmax(pow(fmax(root, 0), 3), 1 / MOST_VARIANCE);
}

void
tnp_join_new(int count, const double *mean, const double *weight, const double *label,
			 size_t step, double alike, double *wider)
{
	double		all,
				between = between_labels(count, mean, 1, weight, label, step, &all);

	/*
	 * of labels of shares p the weighted variance is in the mean that of groups times 1 - sum p^2,
	 * and what one more has about their weighted mean that times 1 + sum p^2
	 */
	for (int k = 0; k < count; k++)
	{
		double		more = between * ((1 + alike) / (1 - alike) * variance_of_few(k, alike) - 1);

		wider[k] = hypot(wider[k], sqrt(fmax(more, 0)));
	}
}

void
tnp_join_new_class(int n_classes, int count, const double *params, size_t step,
				   const double *weight, const double *label, size_t label_step, double alike,
				   const double *share, double *joined)
{
	double		between = 0,
				total = 0,
				other;

	for (int c = 0; c < n_classes; c++)
	{
		double		all;

		between += between_labels(count, params + c, step, weight, label, label_step, &all);
		total += all * (1 - all);
	}
	if (between <= 0 || total <= 0)
		return;
	other = fmin(OF_BETWEEN * between / total, 1) * MORE_LABELS / (MORE_LABELS + 1 / alike);
	for (int c = 0; c < n_classes; c++)
		joined[c] += other * (share[c] - joined[c]);
}

size_t
tnp_join_shifted_work(TnpDistributionKind kind, int n)
{
	return tnp_join_work(kind, n, TNP_MOST_SHIFTS)
		+ TNP_MOST_SHIFTS * (size_t) tnp_distribution_size(kind, n);
}

void
tnp_join_shifted(TnpDistributionKind kind, int n, int count, const TnpShift *shift, double *work,
				 double *params)
{
	size_t		size = tnp_distribution_size(kind, n);
	double	   *all = work + tnp_join_work(kind, n, TNP_MOST_SHIFTS),
				weights[TNP_MOST_SHIFTS];
	int			components = kind == TNP_MIXTURE ? n : 1,
				means = kind == TNP_MIXTURE ? n : 0;

	for (int k = 0; k < count; k++)
	{
		double	   *shifted = all + k * size;

		weights[k] = shift[k].weight;
		memcpy(shifted, params, size * sizeof(double));
		for (int i = 0; i < components; i++)
		{
			double	   *sd = &shifted[means + components + i];

			shifted[means + i] += shift[k].mean;
			*sd = hypot(*sd, shift[k].sd);
		}
	}
	tnp_join(kind, n, count, all, size, weights, NULL, work, params);
}
