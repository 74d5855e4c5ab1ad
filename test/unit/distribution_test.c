/*
 * distribution_test.c: properties of thousands of random distributions, and known values.
 *
 * Integrals are compared with Gauss-Legendre sums over pieces half a standard deviation long, which
 * knows nothing of the engine's own ways. One line of output stands for one property of one kind
 * over all rounds.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "models.h"
#include "tap.h"

#include "engine/base/normal.h"
#include "engine/base/random.h"
#include "engine/distribution/distribution.h"
#include "engine/tnp.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PARTS 24
#define MAX_CUTS (64 * MAX_PARTS)

/* ---- random numbers and distributions -------------------------------------------------------- */

static uint64_t counter = 0;

static double
uniform(void)
{
	double		u[2];

	tnp_random(20240229, counter++, 7, 9, u);
	return u[0];
}

static double
between(double low, double high)
{
	return low + (high - low) * uniform();
}

static double
power(double low, double high)
{
	return pow(10.0, between(low, high));
}

typedef struct Sample
{
	TnpDistribution d;
	double		params[3 * MAX_PARTS + 1];
} Sample;

/* Weights between 1e-12 and 1, some of them 0, summing to 1. */
static void
random_weights(double *weights, int n)
{
	double		sum = 0.0;

	for (int i = 0; i < n; i++)
	{
		weights[i] = uniform() < 0.1 ? 0.0 : uniform() < 0.2 ? power(-12, 0) : between(0.05, 1.0);
		sum += weights[i];
	}
	if (sum == 0.0)
		sum = weights[0] = 1.0;
	for (int i = 0; i < n; i++)
		weights[i] /= sum;
}

/*
 * wild: components up to a million times farther apart than wide, and widths that differ by as
 * much.
 */
static Sample *
random_distribution(TnpDistributionKind kind, bool wild)
{
	static Sample sample;
	double		scale = power(-9, 3);
	double		range = wild ? 6 : 1.5;
	int			n = 1 + (int) (uniform() * MAX_PARTS / 2);
	double	   *p = sample.params;

	if (kind == TNP_GAUSSIAN)
		n = 1;
	if ((kind == TNP_BARS_HALF_NORMAL || kind == TNP_QUANTILES) && n < 2)
		n = 2;
	sample.d.kind = kind;
	sample.d.n = n;
	sample.d.params = p;
	switch (kind)
	{
		case TNP_GAUSSIAN:
			p[0] = scale * between(-1, 1) * power(-2, range);
			p[1] = scale;
			break;
		case TNP_MIXTURE:
			random_weights(p, n);
			for (int i = 0; i < n; i++)
			{
				p[n + i] = scale * between(-1, 1) * power(-1, range);
				p[2 * n + i] = scale * power(-range, 0);
			}
			break;
		case TNP_BARS:
		case TNP_BARS_HALF_NORMAL:
			random_weights(p, n);
			p[n] = scale * between(-10, 10);
			for (int i = 0; i < n; i++)
				p[n + i + 1] = p[n + i] + scale * power(-range, 1);
			break;
		case TNP_CLASSES:
			random_weights(p, n);
			break;
		case TNP_QUANTILES:
			p[0] = scale * between(-10, 10);
			for (int i = 1; i < n; i++)
				p[i] = p[i - 1] + scale * power(-range, 1);
			p[n] = scale * power(-range, 1);
			p[n + 1] = scale * power(-range, 1);
			break;
	}
	return &sample;
}

/* ---- quadrature ------------------------------------------------------------------------------ */

typedef struct Cuts
{
	int			n;
	double		at[MAX_CUTS];
} Cuts;

static int
compare(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

static void
cut_normal(Cuts *cuts, double mean, double sd)
{
	for (int k = -24; k <= 24; k++)
		cuts->at[cuts->n++] = mean + 0.5 * k * sd;
}

/* Points between which the density is smooth on the scale of their distance, y among them. */
static Cuts *
cuts_of(const TnpDistribution *d, double y)
{
	static Cuts cuts;
	const double *p = d->params;
	int			n = d->n;

	cuts.n = 0;
	cuts.at[cuts.n++] = y;
	if (d->kind == TNP_GAUSSIAN)
		cut_normal(&cuts, p[0], p[1]);
	else if (d->kind == TNP_MIXTURE)
	{
		for (int i = 0; i < n; i++)
			cut_normal(&cuts, p[n + i], p[2 * n + i]);
	}
	else if (d->kind == TNP_QUANTILES)
	{
		for (int i = 0; i < n; i++)
			cuts.at[cuts.n++] = p[i];
		for (int k = 1; k <= 80; k++)
		{
			cuts.at[cuts.n++] = p[0] - 0.5 * k * p[n];
			cuts.at[cuts.n++] = p[n - 1] + 0.5 * k * p[n + 1];
		}
	}
	else
	{
		for (int i = 0; i <= n; i++)
			cuts.at[cuts.n++] = p[n + i];
		if (d->kind == TNP_BARS_HALF_NORMAL)
		{
			cut_normal(&cuts, p[n + 1], (p[n + 1] - p[n]) / 0.67448975019608174);
			cut_normal(&cuts, p[2 * n - 1], (p[2 * n] - p[2 * n - 1]) / 0.67448975019608174);
		}
	}
	qsort(cuts.at, cuts.n, sizeof(double), compare);
	return &cuts;
}

typedef double (*Integrand) (const TnpDistribution *d, double t, double y);

/* The sum over all pieces inside [from, to] of 10-point Gauss-Legendre. */
static double
integral(const TnpDistribution *d, const Cuts *cuts, double from, double to, Integrand f, double y)
{
	static const double node[5] = {
		0.148874338981631210885, 0.433395394129247190799, 0.679409568299024406234,
		0.865063366688984510732,
		0.973906528517171720078
	};
	static const double weight[5] = {
		0.295524224714752870174, 0.269266719309996355091, 0.219086362515982043996,
		0.149451349150580593146,
		0.066671344308688137594
	};
	double		sum = 0.0;

	for (int i = 0; i + 1 < cuts->n; i++)
	{
		double		a = fmax(cuts->at[i], from),
					b = fmin(cuts->at[i + 1], to);
		double		half = 0.5 * (b - a);

		if (!(half > 0.0))
			continue;
		for (int k = 0; k < 5; k++)
			sum += half * weight[k] *
				(f(d, a + half * (1.0 - node[k]), y) + f(d, a + half * (1.0 + node[k]), y));
	}
	return sum;
}

static double
density(const TnpDistribution *d, double t, double y)
{
	(void) y;
	return tnp_pdf(d, t);
}

static double
first_moment(const TnpDistribution *d, double t, double y)
{
	return (t - y) * tnp_pdf(d, t);
}

static double
second_moment(const TnpDistribution *d, double t, double y)
{
	return (t - y) * (t - y) * tnp_pdf(d, t);
}

static double
surprise(const TnpDistribution *d, double t, double y)
{
	double		f = tnp_pdf(d, t);

	(void) y;
	return f > 0.0 ? -f * log(f) : 0.0;
}

static double
brier(const TnpDistribution *d, double t, double y)
{
	double		F = tnp_cdf(d, t);

	return t < y ? F * F : (1.0 - F) * (1.0 - F);
}

/* ---- properties ------------------------------------------------------------------------------ */

typedef struct Tally
{
	const char *property;
	int			checked,
				failed;
	double		worst;
	char		first[256];
} Tally;

/* The error and its bound; the first distribution that exceeds it is kept for the report. */
static void
note(Tally *tally, const TnpDistribution *d, double error, double bound, double at)
{
	tally->checked++;
	if (error / bound > tally->worst)
		tally->worst = error / bound;
	if (error <= bound)
		return;
	if (tally->failed++ == 0)
	{
		int			length = snprintf(tally->first, sizeof(tally->first),
									  "n %d, at %.17g, error %g, bound %g, params",
									  d->n, at, error, bound);

		for (int i = 0; i < tnp_distribution_size(d->kind, d->n) && length < 220; i++)
			length += snprintf(tally->first + length, sizeof(tally->first) - length, " %.17g",
							   d->params[i]);
	}
}

static void
report(Tally *tally, int n, const char *name)
{
	for (int i = 0; i < n; i++)
	{
		ok(tally[i].failed == 0 && tally[i].checked > 0, "%s: %s (%d checks)", name,
		   tally[i].property, tally[i].checked);
		if (tally[i].failed > 0)
			printf("# %d failed, worst %g times its bound; first: %s\n", tally[i].failed,
				   tally[i].worst, tally[i].first);
	}
}

/*
 * The largest difference between neighbouring doubles around y, and what it does to the
 * distribution function.
 */
static double
grain(const TnpDistribution *d, double y)
{
	double		ulp = fmax(nextafter(fabs(y), INFINITY) - fabs(y), 4e-324);

	return fmax(fmax(tnp_pdf(d, y), tnp_pdf(d, nextafter(y, INFINITY))),
				tnp_pdf(d, nextafter(y, -INFINITY))) * ulp;
}

static double
random_probability(void)
{
	double		u = uniform();

	if (u < 0.2)
		return power(-300, -1);
	if (u < 0.3)
		return 1.0 - power(-15, -1);
	return uniform();
}

/* A point that matters to the distribution, or one far out. */
static double
random_point(const TnpDistribution *d)
{
	double		q = tnp_quantile(d, between(0.001, 0.999));

	if (uniform() < 0.7)
		return q;
	return q + (tnp_quantile(d, 0.99) - tnp_quantile(d, 0.01)) * between(-5, 5);
}

enum
{
	VALID, CDF_OF_QUANTILE, FIRST_SUCH, QUANTILE_OF_CDF, ORDERED, NEIGHBOURS, MEDIAN, LOG_PDF,
		PDF_TO_CDF, CDF_GROWS,
	MEAN, VARIANCE, CRPS, ENTROPY, MODE, N_PROPERTIES
};

static void
check_quantiles(Tally *t, const TnpDistribution *d)
{
	double		p[12],
				middle = tnp_quantile(d, 0.5);

	for (int i = 0; i < 12; i++)
		p[i] = i < 2 ? i : random_probability();
	qsort(p, 12, sizeof(double), compare);
	for (int i = 1; i < 11; i++)
	{
		double		q = tnp_quantile(d, p[i]);
		double		before = nextafter(q, -INFINITY);
		double		tolerance = 1e-13 + 2e-14 * p[i] + 4 * grain(d, q);
		double		level = uniform();

		if (p[i] < 0.5)
			tolerance = 1e-12 * p[i] * (1 - log(p[i])) + 4 * grain(d, q);
		note(&t[CDF_OF_QUANTILE], d, fabs(tnp_cdf(d, q) - p[i]), tolerance, p[i]);
		note(&t[FIRST_SUCH], d, tnp_cdf(d, before) - p[i], tolerance, p[i]);
		note(&t[ORDERED], d, !(tnp_quantile(d, p[i - 1]) <= q && q <= tnp_quantile(d, p[i + 1])),
			 0.5, p[i]);
		note(&t[NEIGHBOURS], d,
			 !(tnp_quantile(d, nextafter(p[i], 0)) <= q &&
			   q <= tnp_quantile(d, nextafter(p[i], 1))),
			 0.5, p[i]);
		note(&t[MEDIAN], d,
			 !(tnp_quantile(d, (1 - level) / 2) <= middle &&
			   middle <= tnp_quantile(d, (1 + level) / 2)),
			 0.5, level);
	}
}

static void
check_density(Tally *t, const TnpDistribution *d, bool wild)
{
	double		a = random_point(d),
				b = random_point(d);
	double		from = fmin(a, b),
				to = fmax(a, b);
	double		f = tnp_pdf(d, a),
				log_f = tnp_log_pdf(d, a);
	double		F = tnp_cdf(d, a);
	double		back = tnp_quantile(d, F);

	note(&t[VALID], d, tnp_distribution_check(d, NULL) != TNP_OK, 0.5, 0);
	note(&t[LOG_PDF], d, fabs(exp(log_f) - f),
		 (f > 0.0 ? 1e-12 * f * (1 + fabs(log_f)) : 0.0) + 1e-300, a);
	note(&t[PDF_TO_CDF], d,
		 fabs(integral(d, cuts_of(d, a), from, to, density, 0) -
			  (tnp_cdf(d, to) - tnp_cdf(d, from))),
		 (wild ? 1e-7 : 1e-12) + 50 * (grain(d, from) + grain(d, to)), a);
	note(&t[CDF_GROWS], d, !(tnp_cdf(d, from) <= tnp_cdf(d, to) + 1e-15 && F >= 0 && F <= 1), 0.5,
		 a);
	/* where the cdf is flat to the last bit, the quantile is the first point of that stretch */
	if (f > 0.0 && F > 1e-200 && F < 0.999)
		note(&t[QUANTILE_OF_CDF], d, fabs(tnp_cdf(d, back) - F) <= 1e-13 * F ? 0 : fabs(back - a),
			 1e-12 * (fabs(a) + F / f), a);
}

static void
check_shape(Tally *t, const TnpDistribution *d, bool wild)
{
	double		mean = tnp_mean(d),
				sd = sqrt(tnp_variance(d));
	double		y = random_point(d);
	const Cuts *cuts = cuts_of(d, y);
	double		mode = tnp_mode(d),
				highest = fmax(tnp_pdf(d, mode), tnp_pdf(d, nextafter(mode, INFINITY)));
	double		crps = integral(d, cuts, -INFINITY, INFINITY, brier, y);

	note(&t[MEAN], d, fabs(integral(d, cuts, -INFINITY, INFINITY, first_moment, mean)),
		 (wild ? 1e-7 : 1e-11) * (sd + fabs(mean)), mean);
	note(&t[VARIANCE], d,
		 fabs(integral(d, cuts, -INFINITY, INFINITY, second_moment, mean) - sd * sd),
		 (wild ? 1e-6 : 1e-11) * sd * sd + 1e-12 * sd * fabs(mean), mean);
	note(&t[CRPS], d, fabs(tnp_crps(d, y) - crps),
		 (wild ? 1e-9 : 1e-11) * crps + 1e-14 * (sd + fabs(y - mean)) + 1e-15 * fabs(y), y);
	note(&t[ENTROPY], d, fabs(integral(d, cuts, -INFINITY, INFINITY, surprise, y) - tnp_entropy(d)),
		 wild ? 1e-4 : 1e-8, 0);
	for (int i = 0; i < cuts->n; i++)
		note(&t[MODE], d, tnp_pdf(d, cuts->at[i]) / highest - 1.0, 1e-9, cuts->at[i]);
}

static void
test_properties(TnpDistributionKind kind, bool wild, int rounds, const char *name)
{
	Tally		t[N_PROPERTIES] = {
		[VALID] = {.property = "passes the check"},
		[CDF_OF_QUANTILE] = {.property = "cdf(quantile(p)) = p"},
		[FIRST_SUCH] = {.property = "the quantile is the first such point"},
		[QUANTILE_OF_CDF] = {.property = "quantile(cdf(y)) = y"},
		[ORDERED] = {.property = "quantiles are ordered"},
		[NEIGHBOURS] = {.property = "quantiles of neighbouring doubles are ordered"},
		[MEDIAN] = {.property = "the median is inside every central interval"},
		[LOG_PDF] = {.property = "log_pdf is the logarithm of pdf"},
		[PDF_TO_CDF] = {.property = "pdf integrates to cdf"},
		[CDF_GROWS] = {.property = "cdf grows from 0 to 1"},
		[MEAN] = {.property = "mean"},
		[VARIANCE] = {.property = "variance"},
		[CRPS] = {.property = "crps is its integral"},
		[ENTROPY] = {.property = "entropy is its integral"},
		[MODE] = {.property = "no density above that of the mode"},
	};

	for (int i = 0; i < rounds; i++)
	{
		Sample	   *sample = random_distribution(kind, wild);

		check_quantiles(t, &sample->d);
		check_density(t, &sample->d, wild);
		check_shape(t, &sample->d, wild);
	}
	report(t, N_PROPERTIES, name);
}

/* ---- known values ---------------------------------------------------------------------------- */

static bool
close_to(double value, double expected, double relative)
{
	return fabs(value - expected) <= relative * fabs(expected);
}

/* Values to 25 digits, computed with 800-digit arithmetic. */
static void
test_normal(void)
{
	static const double cdf[][3] = {
		{-38.5, 0, -7.456952702904110813296103e+2},
		{-37.5, 4.605353009581954843827969e-308, -7.076689893175071910661132e+2},
		{-30.5, 1.302937913178076350922755e-204, -4.694627373229121143866555e+2},
		{-30, 4.906713927148187059533809e-198, -4.543212439563431971073558e+2},
		{-29.75, 8.670693523462394187366070e-195, -4.468441443550734479850622e+2},
		{-20, 2.753624118606233695075623e-89, -2.039171553710972639368045e+2},
		{-10, 7.619853024160526065973343e-24, -5.323128515051247057834703e+1},
		{-8, 6.220960574271784123515995e-16, -3.501343715991454989550413e+1},
		{-5.5, 1.898956246588771938385127e-8, -1.777937635262526051059443e+1},
		{-3, 1.349898031630094526651815e-3, -6.607726221510349543276077e+0},
		{-2, 2.275013194817920720028264e-2, -3.783184333682031948835547e+0},
		{-1, 1.586552539314570514147675e-1, -1.841021645009263505770783e+0},
		{-0.5, 3.085375387259868963622954e-1, -1.175911761593618608879729e+0},
		{-0x1p-30, 4.999999996284560482935676e-1, -6.931471813030332131061868e-1},
		{0, 0.5, -6.931471805599453094172321e-1},
		{0.5, 6.914624612740131036377046e-1, -3.689464152886563930656156e-1},
		{1, 8.413447460685429485852325e-1, -1.727537790234498895264832e-1},
		{2, 9.772498680518207927997174e-1, -2.301290932896348846533617e-2},
		{3, 9.986501019683699054733482e-1, -1.350809964748193798841110e-3},
		{5.5, 9.999999810104375341122806e-1, -1.898956264618946298934460e-8},
		{8, 9.999999999999993779039426e-1, -6.220960574271786058533519e-16},
		{10, 1, -7.619853024160526065973372e-24},
		{-50, 0, -1.254831361139419901254133e+3},
		{-100, 0, -5.005524208694205088626302e+3},
		{-1000, 0, -5.000078266948121843098062e+5},
	};
	static const double quantile[][2] = {
		{1e-300, -3.704709629936119923654704e+1},
		{1e-200, -3.020559417957964306312401e+1},
		{1e-100, -2.127345356096532429417952e+1},
		{1e-50, -1.493333753478848898065821e+1},
		{1e-20, -9.262340089798407579572095e+0},
		{1e-10, -6.361340902404056199100397e+0},
		{1e-5, -4.264890793922824610233749e+0},
		{0.001, -3.090232306167813535358005e+0},
		{0.01, -2.326347874040841093075096e+0},
		{0.025, -1.959963984540054211779584e+0},
		{0.05, -1.644853626951472687952128e+0},
		{0.075, -1.439531470938455934949801e+0},
		{0.1, -1.281551565544600435334517e+0},
		{0.2, -8.416212335729141655224906e-1},
		{0.25, -6.744897501960817432022270e-1},
		{0.3, -5.244005127080408159694544e-1},
		{0.4, -2.533471031357997413246887e-1},
		{0.45, -1.256613468550740061604284e-1},
		{0.49, -2.506890825871105803269163e-2},
		{0.499999, -2.506628274566559377905064e-6},
		{0.5 - 0x1p-40, -2.279765135091111462694032e-12},
		{0.50001, 2.506628274882086270557266e-5},
		{0.6, 2.533471031357997413246887e-1},
		{0.75, 6.744897501960817432022270e-1},
		{0.9, 1.281551565544600593487448e+0},
		{0.975, 1.959963984540053855604431e+0},
		{0.99, 2.326347874040840767637189e+0},
		{0.999, 3.090232306167813277758202e+0},
		{1 - 0x1p-33, 6.337957754553789252493251e+0},
		{1 - 0x1p-53, 8.209536151601386855630769e+0},
	};
	int			wrong = 0;
	double		previous = -INFINITY;

	for (size_t i = 0; i < sizeof(cdf) / sizeof(cdf[0]); i++)
	{
		double		z = cdf[i][0];

		ok((cdf[i][1] == 0 ||
			close_to(tnp_normal_cdf(z), cdf[i][1], 1e-15 * (3 + (z < 0 ? z * z : 0)))) &&
		   close_to(tnp_normal_log_cdf(z), cdf[i][2], 1e-14), "normal cdf and log cdf at %g", z);
	}
	for (size_t i = 0; i < sizeof(quantile) / sizeof(quantile[0]); i++)
		ok(close_to(tnp_normal_quantile(quantile[i][0]), quantile[i][1], 6e-16),
		   "normal quantile at %.17g", quantile[i][0]);
	ok(tnp_normal_quantile(0) == -INFINITY && tnp_normal_quantile(1) == INFINITY &&
	   tnp_normal_quantile(0.5) == 0 &&
	   isnan(tnp_normal_quantile(-1e-9)) && isnan(tnp_normal_quantile(NAN)),
	   "normal quantile at the ends and outside");
	ok(tnp_normal_log_cdf(-INFINITY) == -INFINITY && tnp_normal_log_cdf(INFINITY) == 0,
	   "normal log cdf at infinity");

	/* Order over the places where the formulas change, one double at a time. */
	for (int k = 0; k < 5; k++)
	{
		double		p = (const double[]) {0.075, 0.25, 0.5, 0.75, exp(-25)}[k];

		for (int i = 0; i < 500; i++)
			p = nextafter(p, 0);
		previous = -INFINITY;
		for (int i = 0; i < 1000; i++, p = nextafter(p, 1))
		{
			double		z = tnp_normal_quantile(p);

			wrong += !(z >= previous);
			previous = z;
		}
	}
	ok(wrong == 0, "normal quantile is monotone across its seams");
}

/* The known answers that Random123 ships, by way of the two uniform numbers. */
static void
test_philox(void)
{
	static const struct
	{
		uint64_t	seed,
					draw;
		uint32_t	step,
					stream,
					words[4];
	}			known[] = {
		{0, 0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX,
		 {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{UINT64_C(0x299f31d0a4093822), UINT64_C(0x85a308d3243f6a88), 0x13198a2e, 0x03707344,
		{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};

	for (int i = 0; i < 3; i++)
	{
		const uint32_t *w = known[i].words;
		double		u[2];

		tnp_random(known[i].seed, known[i].draw, known[i].step, known[i].stream, u);
		ok(u[0] == ((double) (((uint64_t) (w[0] >> 5) << 26) + (w[1] >> 6)) + 0.5) / 0x1p53 &&
		   u[1] == ((double) (((uint64_t) (w[2] >> 5) << 26) + (w[3] >> 6)) + 0.5) / 0x1p53,
		   "Philox known answer %d", i + 1);
	}
}

/*
 * Well separated components: the entropy has a closed form, however narrow and far apart they are.
 */
static void
test_extreme_entropy(void)
{
	static const double far[] = {1 - 1e-12, 1e-12, 0, 1e9, 1e-9, 1e-3};
	static const double same[] = {0.25, 0.75, 1e9, 1e9, 1e-9, 1e-9};
	static const double comb[] = {0.2, 0.3, 0.5, -1e12, 5, 1e12, 1e-12, 1e-9, 1e3};
	static const double *cases[] = {far, same, comb};
	static const int n[] = {2, 2, 3};
	double		many[3 * 1024];
	TnpDistribution d = {TNP_MIXTURE, 1024, many};

	for (int k = 0; k < 3; k++)
	{
		TnpDistribution one = {TNP_MIXTURE, n[k], cases[k]};
		double		expected = 0.0;

		for (int i = 0; i < n[k]; i++)
		{
			double		w = k == 1 ? 1.0 : cases[k][i];

			if (k == 1 && i > 0)
				break;
			expected += w * (0.5 * log(2 * M_PI * M_E) + log(cases[k][2 * n[k] + i]) - log(w));
		}
		ok(fabs(tnp_entropy(&one) - expected) <= 1e-9, "entropy of an extreme mixture, case %d",
		   k + 1);
	}

	/*
	 * 1024 equal components 1/8 apart are uniform inside: compare with the slab less its two soft
	 * edges.
	 */
	for (int i = 0; i < 1024; i++)
	{
		many[i] = 1.0 / 1024;
		many[1024 + i] = 0.125 * i;
		many[2048 + i] = 1.0;
	}
	{
		double		full = tnp_entropy(&d);

		for (int i = 0; i < 1024; i++)
			many[1024 + i] += 1e6;
		ok(fabs(tnp_entropy(&d) - full) <= 1e-8 && fabs(full - log(128.0)) < 0.05,
		   "entropy of 1024 components");
	}
}

/*
 * Every class as often as its probability says, within four standard deviations; one without any
 * probability never.
 */
static void
test_class_draws(const TnpDistribution *c)
{
	static const double gap[] = {0, 0.3, 0, 0.7, 0};
	TnpDistribution g = {TNP_CLASSES, 5, gap};
	const int	n = 20000;
	int			count[3] = {0, 0, 0};
	bool		good = true;

	for (int i = 0; i < n; i++)
	{
		double		y = tnp_draw(c, 7, (uint64_t) i, 0),
					z = tnp_draw(&g, 7, (uint64_t) i, 1);

		good = good && (y == 0 || y == 1 || y == 2) && (z == 1 || z == 3);
		if (good)
			count[(int) y]++;
	}
	for (int k = 0; k < 3; k++)
		good = good &&
			fabs(count[k] - n * c->params[k]) <= 4 * sqrt(n * c->params[k] * (1 - c->params[k]));
	ok(good, "classes: draws");
}

/* Answers that can be worked out by hand. */
static void
test_by_hand(void)
{
	static const double bars[] = {0.25, 0, 0.75, 0, 1, 2, 5};
	static const double half[] = {0.5, 0.5, -TNP_QUARTILE, 0, TNP_QUARTILE};
	static const double flat[] = {0.5, 0.5, 0, 100, 1, 1};
	static const double one[] = {1, 3, 0.5};
	static const double gauss[] = {3, 0.5};
	static const double classes[] = {0.5, 0.25, 0.25};
	TnpDistribution b = {TNP_BARS, 3, bars};
	TnpDistribution h = {TNP_BARS_HALF_NORMAL, 2, half};
	TnpDistribution f = {TNP_MIXTURE, 2, flat};
	TnpDistribution m = {TNP_MIXTURE, 1, one};
	TnpDistribution g = {TNP_GAUSSIAN, 1, gauss};
	TnpDistribution c = {TNP_CLASSES, 3, classes};
	bool		same = true;

	ok(close_to(tnp_mean(&b), 0.25 * 0.5 + 0.75 * 3.5, 1e-15) && tnp_mode(&b) == 0.5,
	   "bars: mean and mode");
	ok(tnp_quantile(&b, 0) == 0 && tnp_quantile(&b, 0.25) == 1 && tnp_quantile(&b, 0.625) == 3.5 &&
	   tnp_quantile(&b, 1) == 5,
	   "bars: quantiles skip an empty bucket");
	ok(tnp_pdf(&b, 0) == 0.25 && tnp_pdf(&b, 1) == 0.25 && tnp_pdf(&b, 1.5) == 0 &&
	   tnp_pdf(&b, 5) == 0.25 &&
	   tnp_pdf(&b, -1e-9) == 0 && tnp_pdf(&b, 5.1) == 0 && tnp_log_pdf(&b, 1.5) == -INFINITY,
	   "bars: density at borders and outside");
	ok(close_to(tnp_crps(&b, -2), tnp_crps(&b, 0) + 2, 1e-15) &&
	   close_to(tnp_crps(&b, 7), tnp_crps(&b, 5) + 2, 1e-15),
	   "bars: crps outside grows with the distance");

	/* Two half-normals of scale 1 back to back are the standard normal. */
	for (double y = -12; y <= 12; y += 0.37)
	{
		static const double standard[] = {0, 1};
		TnpDistribution n = {TNP_GAUSSIAN, 1, standard};

		same = same && close_to(tnp_cdf(&h, y), tnp_cdf(&n, y), 1e-14) &&
			close_to(tnp_pdf(&h, y), tnp_pdf(&n, y), 1e-14) &&
			close_to(tnp_crps(&h, y), tnp_crps(&n, y), 1e-14) &&
				close_to(tnp_log_pdf(&h, y), tnp_log_pdf(&n, y), 1e-14);
		if (y < 8)
			same = same &&
				fabs(tnp_quantile(&h, tnp_cdf(&n, y)) - tnp_quantile(&n, tnp_cdf(&n, y))) <= 1e-14 *
					fabs(y);
		same = same && close_to(tnp_variance(&h), 1, 1e-15) &&
			close_to(tnp_entropy(&h), tnp_entropy(&n), 1e-15);
	}
	ok(same, "half-normal tails back to back are a normal distribution");
	ok(tnp_quantile(&h, 0) == -INFINITY && tnp_quantile(&h, 1) == INFINITY,
	   "half-normal tails have no end");

	ok(tnp_quantile(&f, 0.5) > 5 && tnp_quantile(&f, 0.5) < 95 &&
	   tnp_cdf(&f, tnp_quantile(&f, 0.5)) == 0.5,
	   "mixture: a median between two far components");
	same = true;
	for (double p = 0.001; p < 1; p += 0.01)
		same = same && close_to(tnp_quantile(&m, p), tnp_quantile(&g, p), 4e-16);
	ok(same && tnp_mode(&m) == 3 && close_to(tnp_entropy(&m), tnp_entropy(&g), 1e-12) &&
	   close_to(tnp_crps(&m, 2), tnp_crps(&g, 2), 1e-14), "a mixture of one is that one");
	ok(close_to(tnp_quantile(&f, 1e-100),
				tnp_quantile(&(TnpDistribution) {TNP_GAUSSIAN, 1, (const double[]) {0, 1}}, 2e-100),
				1e-14) &&
	   isfinite(tnp_quantile(&f, 5e-324)) && tnp_quantile(&f, 5e-324) <= tnp_quantile(&f, 1e-323),
	   "mixture: far lower tail");

	{
		/* distances in standard deviations beyond the range of a double */
		const TnpDistribution sharp = {TNP_GAUSSIAN, 1, (const double[]) {0, 1e-150}},
					two = {TNP_MIXTURE, 2,
						   (const double[]) {0.5, 0.5, 0, 1, 1e-150, 1e-150}},
					none = {TNP_MIXTURE, 2, (const double[]) {0.9999995, 0, 0, 1e6, 1, 1}};
		const double u[2] = {0.9999999, 0.5};

		ok(tnp_crps(&sharp, 1e200) == 1e200 && tnp_crps(&two, -1e200) == 1e200 &&
		   tnp_expected_excess(&sharp, -1e200) == 1e200 &&
		   tnp_expected_excess(&sharp, 1e200) == 0 &&
		   tnp_expected_excess(&two, -1e200) == 1e200,
		   "far outside of a narrow distribution: crps and excess are the distance");
		ok(tnp_mixture_ops.draw(&none, u) == 0, "mixture: no draw from a component of weight 0");
	}

	ok(close_to(tnp_entropy(&c), 1.5 * log(2), 1e-15), "classes: entropy");
	ok(tnp_mode(&c) == 0 && tnp_pdf(&c, 0) == 0.5 && tnp_pdf(&c, 2) == 0.25 &&
	   close_to(tnp_log_pdf(&c, 1), log(0.25), 1e-15),
	   "classes: mode and probabilities");
	ok(tnp_pdf(&c, 3) == 0 && tnp_pdf(&c, -1) == 0 && tnp_pdf(&c, 0.5) == 0 &&
	   tnp_pdf(&c, INFINITY) == 0 &&
	   tnp_log_pdf(&c, 3) == -INFINITY && isnan(tnp_pdf(&c, NAN)),
	   "classes: no probability of what is no class");
	ok(isnan(tnp_mean(&c)) && isnan(tnp_variance(&c)) && isnan(tnp_cdf(&c, 0)) &&
	   isnan(tnp_quantile(&c, 0.5)) && isnan(tnp_crps(&c, 0)) &&
	   isnan(tnp_crps(&c, INFINITY)), "classes: no mean and no distribution function");
	test_class_draws(&c);
	ok(isnan(tnp_quantile(&g, -0.1)) && isnan(tnp_quantile(&g, 1.1)) &&
	   isnan(tnp_quantile(&g, NAN)) && isnan(tnp_pdf(&m, NAN)) &&
	   isnan(tnp_cdf(&b, NAN)) && isnan(tnp_crps(&f, NAN)), "NaN in, NaN out");
	for (int k = 0; k < 4; k++)
	{
		const TnpDistribution *d = (const TnpDistribution *[]) {&g, &f, &b, &h}[k];

		ok(tnp_cdf(d, -INFINITY) == 0 && tnp_cdf(d, INFINITY) == 1 && tnp_pdf(d, INFINITY) == 0 &&
		   tnp_pdf(d, -INFINITY) == 0 &&
		   tnp_log_pdf(d, INFINITY) == -INFINITY && tnp_crps(d, -INFINITY) == INFINITY,
		   "infinite y, kind %d", d->kind);
	}
}

/* A mixture that is widened keeps its mean, and its median where it is symmetric or has a peak. */
static void
test_widen(int rounds)
{
	/* a peak at 7, and one component in a hundred far above it */
	static const double skewed[] = {0.69, 0.3, 0.01, 7, 7, 12, 1e-6, 1e-3, 2};
	static const double turned[] = {0.69, 0.3, 0.01, -7, -7, -12, 1e-6, 1e-3, 2};
	static const double even[] = {0.25, 0.5, 0.25, -4, 1, 6, 1, 2, 1};
	TnpDistribution s = {TNP_MIXTURE, 3, skewed},
				t = {TNP_MIXTURE, 3, turned},
				e = {TNP_MIXTURE, 3, even};
	bool		means = true,
				widths = true;
	double		params[3 * MAX_PARTS],
				other[3 * MAX_PARTS];
	TnpDistribution wide = {TNP_MIXTURE, 3, params};

	for (double factor = 0.75; factor <= 2; factor += 1.25)
	{
		tnp_widen(&s, factor, params);
		tnp_widen(&t, factor, other);
		ok(close_to(tnp_mean(&wide), tnp_mean(&s), 1e-14) &&
		   fabs(tnp_quantile(&wide, 0.5) - 7) < 1e-6 &&
		   tnp_quantile(&wide, 0.05) < 7 && tnp_quantile(&wide, 0.95) > 7,
		   "a peak stays, and a mean beside it, %g times as wide", factor);
		ok(close_to(params[3], -other[3], 1e-14) && close_to(params[5], -other[5], 1e-14) &&
		   params[8] == other[8],
		   "whichever side has less, %g", factor);
		tnp_widen(&e, factor, params);
		ok(close_to(tnp_quantile(&wide, 0.5), 1, 1e-14) && close_to(tnp_mean(&wide), 1, 1e-14) &&
		   close_to(tnp_variance(&wide), factor * factor * tnp_variance(&e), 1e-14),
		   "what is symmetric is all %g times as wide", factor);
	}
	for (int i = 0; i < rounds; i++)
	{
		const Sample *sample = random_distribution(TNP_MIXTURE, false);
		double		factor = between(0.5, 2);

		wide.n = sample->d.n;
		tnp_widen(&sample->d, factor, params);
		means = means && fabs(tnp_mean(&wide) - tnp_mean(&sample->d)) <=
			1e-12 * sqrt(tnp_variance(&sample->d));
		widths = widths && tnp_variance(&wide) >=
			fmin(factor, 1) * fmin(factor, 1) * tnp_variance(&sample->d) * (1 - 1e-9) &&
			tnp_variance(&wide) <=
				fmax(factor, 1) * fmax(factor, 1) * tnp_variance(&sample->d) * (1 + 1e-9);
	}
	ok(means, "a wider mixture has the same mean");
	ok(widths, "its variance is within the square of the factor");
}

static void
test_check(void)
{
	static const struct
	{
		TnpDistributionKind kind;
		int			n;
		double		params[9];
		const char *message;
	}			bad[] = {
		{0, 1, {0}, "unknown kind"},
		{7, 1, {0}, "unknown kind"},
		{TNP_GAUSSIAN, 2, {0, 1}, "wrong number"},
		{TNP_MIXTURE, 0, {0}, "wrong number"},
		{TNP_MIXTURE, 1025, {0}, "wrong number"},
		{TNP_BARS_HALF_NORMAL, 1, {1, 0, 1}, "wrong number"},
		{TNP_CLASSES, -5, {0}, "wrong number"},
		{TNP_GAUSSIAN, 1, {NAN, 1}, "a mean is not finite"},
		{TNP_GAUSSIAN, 1, {INFINITY, 1}, "a mean is not finite"},
		{TNP_GAUSSIAN, 1, {1e200, 1}, "a mean is not finite"},
		{TNP_GAUSSIAN, 1, {0, 0}, "a standard deviation is not positive"},
		{TNP_GAUSSIAN, 1, {0, -1}, "a standard deviation is not positive"},
		{TNP_GAUSSIAN, 1, {0, NAN}, "a standard deviation is not positive"},
		{TNP_MIXTURE, 2, {0.5, 0.6, 0, 0, 1, 1}, "the weights do not sum to 1"},
		{TNP_MIXTURE, 2, {-0.5, 1.5, 0, 0, 1, 1}, "a weight is not between"},
		{TNP_MIXTURE, 2, {0.5, 0.5, 0, NAN, 1, 1}, "a mean is not finite"},
		{TNP_BARS, 2, {0.5, 0.5, 0, 0, 1}, "the borders do not increase"},
		{TNP_BARS, 2, {0.5, 0.5, 0, INFINITY, 1}, "a border is not finite"},
		{TNP_BARS, 2, {0.5, 0.4, 0, 1, 2}, "the masses do not sum to 1"},
		{TNP_CLASSES, 2, {0.5, NAN}, "a probability is not between"},
		{TNP_QUANTILES, 1, {0, 1, 1}, "wrong number"},
		{TNP_QUANTILES, 2, {1, 1, 1, 1}, "the quantiles do not increase"},
		{TNP_QUANTILES, 2, {0, NAN, 1, 1}, "a quantile is not finite"},
		{TNP_QUANTILES, 2, {0, 1, 0, 1}, "the scale of a tail is not positive"},
		{TNP_QUANTILES, 2, {0, 1, 1, INFINITY}, "the scale of a tail is not positive"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		TnpDistribution d = {bad[i].kind, bad[i].n, bad[i].params};
		TnpError	error = {TNP_OK, "", ""};

		ok(tnp_distribution_check(&d, &error) == TNP_BAD_ARGUMENT &&
		   error.status == TNP_BAD_ARGUMENT &&
		   strncmp(error.message, bad[i].message, strlen(bad[i].message)) == 0, "refused: %s (%s)",
		   bad[i].message, error.message);
	}
	ok(tnp_distribution_size(TNP_GAUSSIAN, 1) == 2 && tnp_distribution_size(TNP_MIXTURE, 4) == 12 &&
	   tnp_distribution_size(TNP_BARS, 4) == 9 && tnp_distribution_size(TNP_CLASSES, 4) == 4 &&
	   tnp_distribution_size(TNP_MIXTURE, 0) == 0 && tnp_distribution_size(9, 1) == 0, "sizes");
}

/*
 * Draws follow their distribution: Kolmogorov and Smirnov's distance, and moments, with a fixed
 * seed.
 */
static void
test_draws(int n)
{
	static const double gauss[] = {-3, 2};
	static const double mixture[] = {0.3, 0.0, 0.7, 1, 9, 4, 0.2, 1, 1};
	static const double bars[] = {0.2, 0, 0.8, 0, 1, 2, 2.5};
	static const double half[] = {0.2, 0.6, 0.2, 0, 1, 2, 2.5};
	static const double steps[] = {-1, 0, 0.5, 3, 0.7, 2};
	static const TnpDistribution all[] = {
		{TNP_GAUSSIAN, 1, gauss}, {TNP_MIXTURE, 3, mixture}, {TNP_BARS, 3, bars},
		{TNP_BARS_HALF_NORMAL, 3, half},
		{TNP_QUANTILES, 4, steps}
	};
	double	   *y = malloc(n * sizeof(double));
	double		u[2];

	for (int k = 0; k < 5; k++)
	{
		double		sum = 0,
					distance = 0,
					sd = sqrt(tnp_variance(&all[k]));

		for (int i = 0; i < n; i++)
		{
			y[i] = tnp_draw(&all[k], 42, i, 3);
			sum += y[i];
		}
		qsort(y, n, sizeof(double), compare);
		for (int i = 0; i < n; i++)
			distance = fmax(distance, fabs(tnp_cdf(&all[k], y[i]) - (i + 0.5) / n));
		ok(distance < 1.6 / sqrt(n) && fabs(sum / n - tnp_mean(&all[k])) < 3 * sd / sqrt(n),
		   "draws follow kind %d (distance %.2f / sqrt(n))", all[k].kind, distance * sqrt(n));
		ok(tnp_draw(&all[k], 42, 5, 3) == tnp_draw(&all[k], 42, 5, 3) &&
		   tnp_draw(&all[k], 42, 5, 3) != tnp_draw(&all[k], 42, 6, 3) &&
		   tnp_draw(&all[k], 42, 5, 3) != tnp_draw(&all[k], 42, 5, 4) &&
		   tnp_draw(&all[k], 42, 5, 3) != tnp_draw(&all[k], 43, 5, 3),
		   "draws of kind %d are a function of seed, draw and step", all[k].kind);
	}

	/* The recipe of the model format, step by step. */
	tnp_random(9, 8, 7, TNP_STREAM_VALUES, u);
	ok(tnp_draw(&all[0], 9, 8, 7) == -3 + 2 * tnp_normal_quantile(u[1]),
	   "a normal draw uses the second number");
	ok(tnp_draw(&all[1], 9, 8, 7) == (u[0] < 0.3 ? 1 + 0.2 * tnp_normal_quantile(u[1])
									  : 4 + tnp_normal_quantile(u[1])),
	   "a mixture draw uses the first number for the component");
	ok(tnp_draw(&all[4], 9, 8, 7) == tnp_quantile(&all[4], u[0]),
	   "a draw from quantiles is the quantile of the first number");
	ok(tnp_draw(&all[2], 9, 8, 7) == tnp_quantile(&all[2], u[0]),
	   "a bars draw is the quantile of the first number");
	free(y);
}

int
main(void)
{
	int			rounds = getenv("TNP_QUICK") != NULL ? 4 : 1500 / TEST_EVERY;

	test_normal();
	test_philox();
	test_properties(TNP_GAUSSIAN, false, rounds, "normal");
	test_properties(TNP_GAUSSIAN, true, rounds, "normal, far from zero");
	test_properties(TNP_MIXTURE, false, rounds, "mixture");
	test_properties(TNP_MIXTURE, true, rounds, "wild mixture");
	test_properties(TNP_BARS, false, rounds, "bars");
	test_properties(TNP_BARS, true, rounds, "wild bars");
	test_properties(TNP_QUANTILES, false, rounds, "quantiles");
	test_properties(TNP_QUANTILES, true, rounds, "wild quantiles");
	test_properties(TNP_BARS_HALF_NORMAL, false, rounds, "half-normal bars");
	test_properties(TNP_BARS_HALF_NORMAL, true, rounds, "wild half-normal bars");
	test_extreme_entropy();
	test_by_hand();
	test_check();
	test_widen(rounds);
	test_draws(getenv("TNP_QUICK") != NULL ? 2000 : 50000);
	return done_testing();
}
