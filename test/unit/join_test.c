/*
 * join_test.c: one distribution in place of several: what stays, and what is merged.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "tap.h"
#include "engine/distribution/join.h"

#define MOST 12
#define COUNT 5

static double work[MOST * COUNT * 8];

static double
mean_of(TnpDistributionKind kind, int n, const double *params)
{
	return tnp_mean(&(TnpDistribution) {kind, n, (double *) params});
}

static double
variance_of(TnpDistributionKind kind, int n, const double *params)
{
	return tnp_variance(&(TnpDistribution) {kind, n, (double *) params});
}

/* COUNT random mixtures of n components, around `center`, in the unit `scale`. */
static void
random_mixtures(int n, double center, double scale, unsigned seed, double *params)
{
	for (int k = 0; k < COUNT; k++, params += 3 * n)
	{
		double		total = 0;

		for (int i = 0; i < n; i++)
		{
			total += params[i] = test_uniform(&seed) + 0.01;
			params[n + i] = center + scale * (test_uniform(&seed) - 0.5);
			params[2 * n + i] = scale * (0.01 + test_uniform(&seed));
		}
		for (int i = 0; i < n; i++)
			params[i] /= total;
	}
}

/* Mean and variance of the whole are those of the joined one. */
static void
test_moments(int n, double center, double scale)
{
	const double weight[COUNT] = {0.1, 0.2, 0.3, 0.25, 0.15};
	double		params[COUNT * 3 * MOST],
				joined[3 * MOST],
				mean = 0,
				square = 0;

	random_mixtures(n, center, scale, (unsigned) n, params);
	tnp_join(TNP_MIXTURE, n, COUNT, params, 3 * n, weight, NULL, work, joined);
	for (int k = 0; k < COUNT; k++)
		mean += weight[k] * mean_of(TNP_MIXTURE, n, params + k * 3 * n);
	for (int k = 0; k < COUNT; k++)
		square += weight[k] * (variance_of(TNP_MIXTURE, n, params + k * 3 * n)
							   + pow(mean_of(TNP_MIXTURE, n, params + k * 3 * n) - mean, 2));
	ok(tnp_distribution_check(&(TnpDistribution) {TNP_MIXTURE, n, joined}, NULL) == TNP_OK,
	   "%d components: a distribution", n);
	is_near(mean_of(TNP_MIXTURE, n, joined) / scale, mean / scale, 1e-9, "of the same mean");
	is_near(variance_of(TNP_MIXTURE, n, joined) / square, 1, 1e-9, "and variance");
}

/* Equal components are merged before different ones are. */
static void
test_what_is_merged(void)
{
	/* two answers with peaks at 0 and 5, one of them with a share of 0 */
	const double params[] = {0.5, 0.5, 0, 5, 1, 0.1, 0.5, 0.5, 0, 5, 1, 0.1},
				weight[] = {0.25, 0.75};
	double		joined[6];

	tnp_join(TNP_MIXTURE, 2, 2, params, 6, weight, NULL, work, joined);
	for (int i = 0; i < 6; i++)
		is_near(joined[i], params[i], 1e-12, "two equal answers are that answer");
}

static void
test_few(void)
{
	const double params[] = {1, 0, 3, 9, 2, 9, 1, 0, 3, 8, 2, 8},
				weight[] = {0.5, 0.5};
	double		joined[6];

	/* what weighs nothing is no component, and leaves room */
	tnp_join(TNP_MIXTURE, 2, 2, params, 6, weight, NULL, work, joined);
	ok(joined[0] == 0.5 && joined[1] == 0.5 && joined[2] == 3 && joined[3] == 3,
	   "components that weigh nothing are left out");
	tnp_join(TNP_MIXTURE, 2, 2, (const double[]) {1, 0, 3, 9, 2, 9, 0, 1, 7, 3, 8, 2}, 6,
			 (const double[]) {1, 0}, NULL, work, joined);
	ok(joined[0] == 1 && joined[1] == 0 && joined[3] == 3 && joined[5] == 2,
	   "and what is left is filled up with nothing");
}

/*
 * Answers to a sample reach half way to their fourth nearest, or less far where the nearest are
 * nearer by far; the others stay as they are.
 */
static void
test_sample(void)
{
	const double params[] = {0, 1, 1, 1, 2, 1, 4, 1, 8, 1, 100, 1, 50, 1},
				expected[] = {8.0 / 3, 2, 8.0 / 3, 2, 4, 49.5, 0},
				weight[] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.4};
	double		mean[7],
				wider[7],
				joined[2];

	tnp_join_sample(TNP_GAUSSIAN, 1, 7, 6, params, 2, mean, wider);
	for (int k = 0; k < 7; k++)
		is_near(wider[k], expected[k], 1e-12, "an answer of a sample");
	tnp_join(TNP_GAUSSIAN, 1, 7, params, 2, weight, wider, work, joined);
	is_near(joined[0], 31.5, 1e-9, "the mean stays");
	/* 1 + mean of wider^2 + variance of the means */
	is_near(joined[1] * joined[1], 1 + 0.1 * (128.0 / 9 + 24 + 2450.25) + 1016.25, 1e-9,
			"the variance grows");
	tnp_join_sample(TNP_GAUSSIAN, 1, 2, 2, params, 2, mean, wider);
	ok(wider[0] == 0.5 && wider[1] == 0.5, "the farthest of fewer");
	tnp_join_sample(TNP_GAUSSIAN, 1, 1, 1, params, 2, mean, wider);
	ok(wider[0] == 0, "nothing of one");
	tnp_join_sample(TNP_GAUSSIAN, 1, 3, 3, (const double[]) {5, 1, 5, 1, 9, 1}, 2, mean,
					wider);
	ok(wider[0] == 0 && wider[1] == 0 && wider[2] == 2, "nothing of what is said twice");
	tnp_join_sample(TNP_MIXTURE, 2, 2, 2, (const double[]) {0.5, 0.5, 0, 2, 1, 1, 0.25, 0.75, 0, 4,
															 1, 1}, 6, mean, wider);
	ok(wider[0] == 1 && wider[1] == 1, "by the means of mixtures");
}

/*
 * What a new label may differ by: nothing where labels do not differ; else as much as groups that
 * are few may, the fewer the more, and more of some answers than of others.
 */
static void
test_new(void)
{
	double		mean[] = {1, 1, -1, -1, 1, 1, -1, -1},
				weight[] = {0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125},
				label[] = {3, 3, 8, 8, 3, 3, 8, 8},
				wider[8] = {0},
				less[8] = {0},
				same[8] = {0},
				sum = 0,
				fewer = 0;

	tnp_join_new(8, mean, weight, label, 1, 0.5, wider);
	tnp_join_new(8, mean, weight, label, 1, 0.1, less);
	for (int k = 0; k < 8; k++)
	{
		sum += wider[k] * wider[k] / 8;
		fewer += less[k] * less[k] / 8;
		mean[k] = 1;
	}
	tnp_join_new(8, mean, weight, label, 1, 0.5, same);
	/* between labels the variance is 1; of one more of two it is 3 in all if theirs is known */
	ok(sum > 2, "a new label beside two differs by more than two of known variance");
	ok(fewer > 0.2 && fewer < 1, "and by less beside ten");
	ok(wider[0] != wider[1], "by more of some answers than of others");
	ok(same[0] == 0 && same[7] == 0, "by nothing where labels do not differ");
}

static void
test_others(void)
{
	const double gaussians[] = {1, 2, 5, 3},
				classes[] = {0.2, 0.3, 0.5, 0.6, 0.4, 0},
				bars[] = {0.5, 0.5, -1, 0, 4, 0.1, 0.9, -1, 0, 4},
				weight[] = {0.25, 0.75};
	double		joined[5];

	tnp_join(TNP_GAUSSIAN, 1, 2, gaussians, 2, weight, NULL, work, joined);
	is_near(joined[0], 4, 1e-12, "the mean of Gaussians");
	is_near(joined[1] * joined[1], 0.25 * 4 + 0.75 * 9 + 0.25 * 9 + 0.75 * 1, 1e-12,
			"and their variance");
	tnp_join(TNP_CLASSES, 3, 2, classes, 3, weight, NULL, work, joined);
	is_near(joined[0], 0.5, 1e-12, "probabilities are averaged");
	is_near(joined[2], 0.125, 1e-12, "of every class");
	tnp_join(TNP_BARS, 2, 2, bars, 5, weight, NULL, work, joined);
	is_near(joined[0], 0.2, 1e-12, "so are masses");
	ok(joined[2] == -1 && joined[3] == 0 && joined[4] == 4, "between the same borders");
}

int
main(void)
{
	for (int n = 1; n <= MOST; n++)
		test_moments(n, 3, 2);
	test_moments(4, 1e4, 1e-2);
	test_moments(4, 0, 1e100);
	test_what_is_merged();
	test_few();
	test_sample();
	test_new();
	test_others();
	return done_testing();
}
