/*
 * quantiles_test.c: distributions made from quantiles: monotone repair, tails, units, and what
 * decisions ask of them. The properties of all kinds are in distribution_test.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/distribution/quantiles.h"

#include <math.h>
#include <stdlib.h>

#include "tap.h"

#define N 99

static const double steps[] = {-1, 0, 0.5, 3, 0.7, 2};
static const TnpDistribution by_hand = {TNP_QUANTILES, 4, steps};

static bool
close_to(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance * (1.0 + fabs(b));
}

/* Quantiles of a distribution whose tails are exponential have its scales. */
static void
test_tails(void)
{
	double		q[N],
				params[N + 2];
	TnpDistribution d = {TNP_QUANTILES, N, params};

	for (int i = 0; i < N; i++)
	{
		double		p = (i + 1.0) / (N + 1.0);

		q[i] = p < 0.5 ? 0.3 * log(p / 0.5) : -2.0 * log((1.0 - p) / 0.5);
	}
	tnp_quantiles_make(N, q, 10.0, 5.0, params);
	ok(close_to(params[N], 1.5, 1e-12) && close_to(params[N + 1], 10.0, 1e-12),
	   "the scales of exponential tails are found, in the target's unit");
	ok(close_to(params[0], 10.0 + 5.0 * q[0], 1e-15), "quantiles are in the target's unit");
	ok(tnp_distribution_check(&d, NULL) == TNP_OK, "what is made passes the check");
	ok(close_to(tnp_quantile(&d, 1e-6), 10.0 + 1.5 * log(1e-6 / 0.5), 1e-9)
	   && close_to(tnp_quantile(&d, 1.0 - 1e-6), 10.0 - 10.0 * log(1e-6 / 0.5), 1e-9),
	   "beyond the outer quantiles the quantile function goes on");

	for (int i = 0; i < N; i++)
		q[i] = i * 1e-9;
	tnp_quantiles_make(N, q, 0.0, 1.0, params);
	ok(params[N] == TNP_SMALLEST_TAIL && params[N + 1] == TNP_SMALLEST_TAIL,
	   "a tail has a smallest scale");
	for (int i = 0; i < N; i++)
		q[i] = i * 1e6;
	tnp_quantiles_make(N, q, 0.0, 1.0, params);
	ok(params[N] == TNP_LARGEST_TAIL && params[N + 1] == TNP_LARGEST_TAIL, "and a largest one");
}

static void
test_repair(void)
{
	double		q[] = {0.5, -1.0, 0.5, 2.0, 0.5},
				params[7];
	TnpDistribution d = {TNP_QUANTILES, 5, params};

	tnp_quantiles_sort(5, q);
	ok(q[0] == -1.0 && q[1] == 0.5 && q[3] == 0.5 && q[4] == 2.0, "crossing quantiles are sorted");
	tnp_quantiles_make(5, q, 0.0, 3.0, params);
	ok(params[1] == 1.5 && params[3] > params[2] && params[3] - params[1] < 1e-8,
	   "equal ones are moved apart, but little");
	ok(tnp_distribution_check(&d, NULL) == TNP_OK && isfinite(tnp_log_pdf(&d, 1.5)),
	   "the density is finite");
	tnp_quantiles_make(5, q, 1e15, 1e-3, params);
	ok(tnp_distribution_check(&d, NULL) == TNP_OK, "also where the target's unit is coarse");
	for (int i = 0; i < 5; i++)
		q[i] = 7.0;
	tnp_quantiles_make(5, q, 0.0, 1.0, params);
	ok(tnp_distribution_check(&d, NULL) == TNP_OK && close_to(tnp_quantile(&d, 0.5), 7.0, 1e-8),
	   "where all are equal the distribution is narrow");
}

/* Expected excess is the integral of the upper tail. */
static void
test_excess(void)
{
	static const double at[] = {-5.0, -1.0, -0.3, 0.2, 0.5, 2.0, 3.0, 4.0, 12.0};
	bool		good = true;

	for (int k = 0; k < 9; k++)
	{
		double		sum = 0.0,
					h = 1e-3;

		/* Simpson's rule; the tail's scale of 2 leaves nothing beyond 100 */
		for (double t = at[k]; t < 100.0; t += h)
			sum += h / 6.0 * (3.0 - tnp_cdf(&by_hand, t) - tnp_cdf(&by_hand, t + h)
							  + 3.0 - 4.0 * tnp_cdf(&by_hand, t + h / 2.0));
		good = good && close_to(tnp_expected_excess(&by_hand, at[k]), sum, 1e-6);
		if (!close_to(tnp_expected_excess(&by_hand, at[k]), sum, 1e-6))
			printf("# at %g: %.10g, integral %.10g\n", at[k],
				   tnp_expected_excess(&by_hand, at[k]), sum);
	}
	ok(good, "expected excess is the integral of the upper tail");
	ok(close_to(tnp_expected_excess(&by_hand, -1e6), tnp_mean(&by_hand) + 1e6, 1e-12),
	   "far below it is the mean's distance");
}

static void
test_units(void)
{
	double		params[6];
	TnpDistribution d = {TNP_QUANTILES, 4, params};
	bool		good = true;

	tnp_affine(&by_hand, -2.0, 1.0, params);
	ok(tnp_distribution_check(&d, NULL) == TNP_OK && params[4] == 4.0 && params[5] == 1.4,
	   "turned round, the tails change places");
	for (double p = 0.01; p < 1.0; p += 0.07)
		good = good && close_to(tnp_quantile(&d, p), 1.0 - 2.0 * tnp_quantile(&by_hand, 1.0 - p),
								1e-12);
	ok(good, "and so do the quantiles");
	ok(close_to(tnp_variance(&d), 4.0 * tnp_variance(&by_hand), 1e-12)
	   && close_to(tnp_entropy(&d), tnp_entropy(&by_hand) + log(2.0), 1e-12)
	   && close_to(tnp_crps(&d, 2.0), 2.0 * tnp_crps(&by_hand, -0.5), 1e-12),
	   "variance, entropy and crps follow the unit");
}

/* Values worked out by hand: masses of one fifth. */
static void
test_by_hand(void)
{
	ok(close_to(tnp_mean(&by_hand), (-1.7 - 0.5 + 0.25 + 1.75 + 5.0) / 5.0, 1e-15), "mean");
	ok(tnp_mode(&by_hand) == 0.25, "mode: the middle of the narrowest interval");
	ok(close_to(tnp_pdf(&by_hand, 0.25), 0.4, 1e-15), "density within an interval");
	ok(close_to(tnp_pdf(&by_hand, -1.7), 0.2 / 0.7 * exp(-1.0), 1e-15), "density in a tail");
	ok(close_to(tnp_cdf(&by_hand, 0.5), 0.6, 1e-15) &&
	   close_to(tnp_cdf(&by_hand, 1.75), 0.7, 1e-15),
	   "distribution function");
	ok(close_to(tnp_cdf(&by_hand, 5.0), 1.0 - 0.2 * exp(-1.0), 1e-15), "and in a tail");
	ok(tnp_quantile(&by_hand, 0.4) == 0.0 && tnp_quantile(&by_hand, 0.2) == -1.0
	   && tnp_quantile(&by_hand, 0.8) == 3.0, "quantiles at their levels");
	ok(tnp_quantile(&by_hand, 0.0) == -INFINITY && tnp_quantile(&by_hand, 1.0) == INFINITY,
	   "the support is unbounded");
}

int
main(void)
{
	test_tails();
	test_repair();
	test_excess();
	test_units();
	test_by_hand();
	done_testing();
}
