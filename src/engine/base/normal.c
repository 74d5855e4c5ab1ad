/*
 * normal.c: the standard normal distribution in double precision.
 *
 * The quantile starts from Wichura's rational approximation (Algorithm AS 241, PPND16, Applied
 * Statistics 37, 1988) and is then made the exact inverse of the C library's erf and erfc by a
 * short search, which removes the rounding errors of the approximation and makes the result
 * non-decreasing in p.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/base/normal.h"

#include "engine/base/search.h"

#include <float.h>
#include <math.h>

double
tnp_normal_pdf(double z)
{
	return TNP_1_SQRT2PI * exp(-0.5 * z * z);
}

double
tnp_normal_log_pdf(double z)
{
	return -0.5 * z * z - TNP_LOG_SQRT2PI;
}

double
tnp_normal_cdf(double z)
{
	return 0.5 * erfc(-z * TNP_SQRT1_2);
}

double
tnp_normal_log_cdf(double z)
{
	double		term = 1.0,
				sum = 1.0,
				r;

	if (z > 0.0)
		return log1p(-tnp_normal_cdf(-z));
	if (!(z < -30.0))
		return log(tnp_normal_cdf(z));
	if (isinf(z))
		return -INFINITY;

	/* Mills' ratio: 1 - 1/z^2 + 3/z^4 - 15/z^6 + ...; at 30 the ninth term is below 1e-18. */
	r = 1.0 / (z * z);
	for (int k = 1; k <= 8; k++)
	{
		term *= -(2 * k - 1) * r;
		sum += term;
	}
	return tnp_normal_log_pdf(z) - log(-z) + log(sum);
}

/* c[0] + c[1] x + ... + c[7] x^7 */
static double
polynomial(const double c[8], double x)
{
	double		sum = c[7];

	for (int i = 6; i >= 0; i--)
		sum = sum * x + c[i];
	return sum;
}

/* AS 241 for the upper tail: x > 0 with 1 - Phi(x) = p, for p in (0, 1/2). */
static double
wichura(double p)
{
	static const double a[8] = {
		3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
		1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
		3.3430575583588128105e+4, 2.5090809287301226727e+3
	};
	static const double b[8] = {
		1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
		2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
		5.2264952788528545610e+3
	};
	static const double c[8] = {
		1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
		3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
		2.27238449892691845833e-2, 7.74545014278341407640e-4
	};
	static const double d[8] = {
		1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
		1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
		1.05075007164441684324e-9
	};
	static const double e[8] = {
		6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
		2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
		2.71155556874348757815e-5, 2.01033439929228813265e-7
	};
	static const double f[8] = {
		1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
		7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
		2.04426310338993978564e-15
	};
	double		q = 0.5 - p;
	double		r;

	if (q <= 0.425)
	{
		r = 0.180625 - q * q;
		return q * polynomial(a, r) / polynomial(b, r);
	}
	r = sqrt(-log(p));
	if (r <= 5.0)
		return polynomial(c, r - 1.6) / polynomial(d, r - 1.6);
	return polynomial(e, r - 5.0) / polynomial(f, r - 5.0);
}

/*
 * Has x passed the point with upper tail p? Near the centre the comparison is made on the distance
 * from 1/2.
 */
static bool
past_tail(double x, const void *arg)
{
	double		p = *(const double *) arg;

	if (p >= 0.25)
		return 0.5 * erf(x * TNP_SQRT1_2) >= 0.5 - p;
	return 0.5 * erfc(x * TNP_SQRT1_2) <= p;
}

/* The x > 0 with upper tail p in (0, 1/2). */
static double
upper_point(double p)
{
	double		x = wichura(p);
	double		step = 8 * DBL_EPSILON * x;
	double		below = x - step;
	double		above = x + step;

	/*
	 * The approximation is good to a few units in the last place; where p is subnormal the steps
	 * are longer.
	 */
	while (below > 0.0 && past_tail(below, &p))
	{
		step *= 4;
		below = x - step > 0.0 ? x - step : 0.0;
	}
	while (!past_tail(above, &p))
	{
		step *= 4;
		above = x + step;
	}
	x = tnp_first_reached(below, above, past_tail, &p);

	/* The two comparisons of past_tail must not overtake each other where they meet. */
	return p >= 0.25 ? fmin(x, TNP_QUARTILE) : fmax(x, TNP_QUARTILE);
}

double
tnp_normal_quantile(double p)
{
	if (!(p >= 0.0 && p <= 1.0))
		return NAN;
	if (p == 0.0)
		return -INFINITY;
	if (p == 1.0)
		return INFINITY;
	if (p == 0.5)
		return 0.0;
	return p < 0.5 ? -upper_point(p) : upper_point(1.0 - p);
}
