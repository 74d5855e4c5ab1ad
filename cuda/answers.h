/*
 * answers.h: from a head's raw outputs to distributions, and from distributions to what is asked of
 * them; one warp per row, in double precision.
 *
 * The formulas are those of src/engine/network/head.c and distribution*.c (docs/model-format.md
 * sections 8 and 11); sums run over the lanes, so the last bits differ. The normal quantile is
 * Wichura's PPND16 (Algorithm AS 241, Applied Statistics 37, 1988), good to about 1e-16. Philox
 * 4x32-10 is that of Salmon, Moraes, Dror and Shaw (SC 2011).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_ANSWERS_H
#define CUDA_ANSWERS_H

#include "layout.h"
#include "portable.h"

#define LOG_SQRT_2PI 0.91893853320467274178
#define SQRT_HALF 0.70710678118654752440
#define SQRT_2_OVER_PI 0.79788456080286535588
#define QUARTILE 0.67448975019608174320
#define QUANTILE_STEPS 200

/* What may be wanted of a distribution: as TnpReduction, and draws. */
#define WANTED_MEAN 1
#define WANTED_SD 2
#define WANTED_QUANTILES 4
#define WANTED_DENSITY 8
#define WANTED_DRAW 16

/* The two uniform numbers of (seed, draw, step) in the stream of values. */
DEVICE void
random_pair(uint64_t seed, uint64_t draw, uint32_t step, double u[2])
{
	uint32_t	c[4] = {(uint32_t) draw, (uint32_t) (draw >> 32), step, 0},
				key[2] = {(uint32_t) seed, (uint32_t) (seed >> 32)};

	for (int round = 0; round < 10; round++)
	{
		uint64_t	a = (uint64_t) 0xD2511F53u * c[0],
					b = (uint64_t) 0xCD9E8D57u * c[2];

		c[0] = (uint32_t) (b >> 32) ^ c[1] ^ key[0];
		c[1] = (uint32_t) b;
		c[2] = (uint32_t) (a >> 32) ^ c[3] ^ key[1];
		c[3] = (uint32_t) a;
		key[0] += 0x9E3779B9u;
		key[1] += 0xBB67AE85u;
	}
	for (int i = 0; i < 2; i++)
	{
		double		bits = (double) (c[2 * i] >> 5) * 67108864.0 + (double) (c[2 * i + 1] >> 6);

		u[i] = (bits + 0.5) * 1.1102230246251565e-16;
		u[i] = u[i] < 1.0 ? u[i] : 0.99999999999999988898;
	}
}

/* c[0] + c[1] x + ... + c[7] x^7 */
DEVICE double
ratio(const double *a, const double *b, double x)
{
	double		above = a[7],
				below = b[7];

	for (int i = 6; i >= 0; i--)
	{
		above = above * x + a[i];
		below = below * x + b[i];
	}
	return above / below;
}

/* The standard normal quantile; infinite at 0 and 1. */
DEVICE_CALL double
normal_quantile(double p)
{
	const double a[8] = {
		3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
		1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
		3.3430575583588128105e+4, 2.5090809287301226727e+3
	};
	const double b[8] = {
		1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
		2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
		5.2264952788528545610e+3
	};
	const double c[8] = {
		1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
		3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
		2.27238449892691845833e-2, 7.74545014278341407640e-4
	};
	const double d[8] = {
		1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
		1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
		1.05075007164441684324e-9
	};
	const double e[8] = {
		6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
		2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
		2.71155556874348757815e-5, 2.01033439929228813265e-7
	};
	const double f[8] = {
		1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
		7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
		2.04426310338993978564e-15
	};
	double		middle = p - 0.5,
				r,
				x;

	if (fabs(middle) <= 0.425)
		return middle * ratio(a, b, 0.180625 - middle * middle);
	r = middle < 0.0 ? p : 1.0 - p;
	if (!(r > 0.0))
		return middle < 0.0 ? -INFINITY : INFINITY;
	r = sqrt(-log(r));
	x = r <= 5.0 ? ratio(c, d, r - 1.6) : ratio(e, f, r - 5.0);
	return middle < 0.0 ? -x : x;
}

DEVICE_CALL double
normal_cdf(double z)
{
	return 0.5 * erfc(-z * SQRT_HALF);
}

DEVICE_CALL double
map_std(int std_map, double std_floor, double raw)
{
	double		soft = fmax(raw, 0.0) + log1p(exp(-fabs(raw)));

	switch (std_map)
	{
		case 0:
			return exp(raw);
		case 1:
			return 0.05 + 0.95 * soft;
		case 2:
			return std_floor + soft;
		case 3:
			return std_floor + (1.0 - std_floor) * soft;
		default:
			return sqrt(soft) + std_floor;
	}
}

DEVICE bool
is_finite(double v)
{
	return fabs(v) <= 1.7976931348623157e308;
}

/*
 * A location and a standard deviation that a distribution may have, as the engine checks them
 * (distribution.h).
 */
DEVICE bool
is_location(double v)
{
	return fabs(v) <= 1e150;
}

DEVICE bool
is_deviation(double v)
{
	return v >= 1e-150 && v <= 1e150;
}

/* A distribution as the engine lays it out, read by a warp. */
struct Distribution
{
	int			kind;			/* 0 gaussian, 1 mixture, 2 bars, 3 classes */
	bool		half_normal;
	int			n;
	const double *params;

	/*
	 * Warp: parameters of one row from raw outputs into `to`; whether they are proper. Of a
	 * classifier's outputs those of its classes count.
	 */
	static DEVICE bool
	make(const CudaModel &model, const float *raw, double center, double scale,
		 const CudaClasses &classes, double *to, int lane)
	{
		int			all = model.components,
					n = model.head_kind == 3 ? classes.n : all;
		bool		ordered = model.head_kind == 3 && classes.ordered;
		double		most = -INFINITY,
					sum = 0.0;
		bool		good = true;

		if (model.head_kind == 0)
		{
			double		mean = center + scale * (double) raw[0],
						sd = fabs(scale) * map_std(model.std_map, model.std_floor,
											   (double) raw[1]);

			if (lane == 0)
			{
				to[0] = mean;
				to[1] = sd;
			}
			return is_location(mean) && is_deviation(sd);
		}
		for (int i = lane; i < n; i += WARP)
		{
			most = fmax(most, (double) raw[i]);
			good = good && is_finite((double) raw[i]);
		}
		most = warp_max(most);
		for (int i = lane; i < n; i += WARP)
		{
			double		own = exp((double) raw[i] - most);

			to[ordered ? classes.given[i] : i] = own;
			sum += own;
		}
		sum = warp_sum(sum);
		for (int i = lane; i < n; i += WARP)
		{
			to[ordered ? classes.given[i] : i] /= sum;
			if (model.head_kind == 1)
			{
				double		sd = fabs(scale) * map_std(model.std_map, model.std_floor,
													   (double) raw[2 * n + i]);

				to[n + i] = center + scale * (double) raw[n + i];
				to[2 * n + i] = sd;
				good = good && is_location(to[n + i]) && is_deviation(sd);
			}
		}
		for (int i = n + lane; i < all; i += WARP)
			to[i] = 0.0;
		if (model.head_kind == 2)
			for (int i = lane; i <= n; i += WARP)
			{
				to[n + i] = center + scale * (double) load_float(model.borders + i);
				good = good && is_location(to[n + i]);
			}
		return warp_ballot(!good) == 0;
	}

	DEVICE double
	weight(int i) const
	{
		return params[i];
	}

	/* mixtures */
	DEVICE double
	mean_of(int i) const
	{
		return params[n + i];
	}

	DEVICE double
	sd_of(int i) const
	{
		return params[2 * n + i];
	}

	/* bars */
	DEVICE double
	border(int i) const
	{
		return params[n + i];
	}

	DEVICE double
	width(int i) const
	{
		return border(i + 1) - border(i);
	}

	DEVICE bool
	is_tail(int i) const
	{
		return half_normal && (i == 0 || i == n - 1);
	}

	DEVICE double
	tail_scale(int i) const
	{
		return width(i) / QUARTILE;
	}

	DEVICE double
	bucket_mean(int i) const
	{
		if (is_tail(i))
			return i == 0 ? border(1) - SQRT_2_OVER_PI * tail_scale(i)
				: border(i) + SQRT_2_OVER_PI * tail_scale(i);
		return border(i) + 0.5 * width(i);
	}

	DEVICE double
	bucket_variance(int i) const
	{
		if (is_tail(i))
			return tail_scale(i) * tail_scale(i) * (1.0 - SQRT_2_OVER_PI * SQRT_2_OVER_PI);
		return width(i) * width(i) / 12.0;
	}

	/* Warp, all of the following. The mean, or the standard deviation. */
	DEVICE double
	moment(bool deviation, int lane) const
	{
		double		middle = 0.0,
					sum = 0.0,
					total = 0.0;

		if (kind == 0)
			return deviation ? sqrt(params[1] * params[1]) : params[0];
		if (kind == 3)
			return (double) NAN;
		for (int i = lane; i < n; i += WARP)
		{
			sum += weight(i) * (kind == 1 ? mean_of(i) : bucket_mean(i));
			total += weight(i);
		}
		middle = warp_sum(sum) / warp_sum(total);
		if (!deviation)
			return middle;
		sum = total = 0.0;
		for (int i = lane; i < n; i += WARP)
		{
			double		offset = (kind == 1 ? mean_of(i) : bucket_mean(i)) - middle;

			sum += weight(i) * ((kind == 1 ? sd_of(i) * sd_of(i) : bucket_variance(i)) +
								offset * offset);
			total += weight(i);
		}
		return sqrt(warp_sum(sum) / warp_sum(total));
	}

	DEVICE double
	log_density(double y, int lane) const
	{
		double		most = -INFINITY,
					sum = 0.0,
					total = 0.0;

		if (kind == 0)
		{
			double		z = (y - params[0]) / params[1];

			return -0.5 * z * z - LOG_SQRT_2PI - log(params[1]);
		}
		if (kind == 2)
			return bars_log_density(y, lane);
		if (kind == 3)
			return y >= 0.0 && y < n && y == floor(y) ? log(weight((int) y) / total_weight(lane))
				: -INFINITY;
		for (int i = lane; i < n; i += WARP)
		{
			double		z = (y - mean_of(i)) / sd_of(i);

			most = fmax(most, log(weight(i)) - 0.5 * z * z - log(sd_of(i)));
			total += weight(i);
		}
		most = warp_max(most);
		total = warp_sum(total);
		if (most == -INFINITY)
			return -INFINITY;
		for (int i = lane; i < n; i += WARP)
		{
			double		z = (y - mean_of(i)) / sd_of(i);

			sum += exp(log(weight(i)) - 0.5 * z * z - log(sd_of(i)) - most);
		}
		return most - LOG_SQRT_2PI + log(warp_sum(sum) / total);
	}

	/* The bucket whose interval holds y; the outermost for y outside. */
	DEVICE int
	bucket_of(double y) const
	{
		int			low = 0,
					high = n - 1;

		while (low < high)
		{
			int			middle = low + (high - low) / 2;

			if (y <= border(middle + 1))
				high = middle;
			else
				low = middle + 1;
		}
		return low;
	}

	DEVICE double
	total_weight(int lane) const
	{
		double		total = 0.0;

		for (int i = lane; i < n; i += WARP)
			total += weight(i);
		return warp_sum(total);
	}

	DEVICE double
	bars_log_density(double y, int lane) const
	{
		double		total = total_weight(lane);
		int			i = bucket_of(y);

		if ((!half_normal && !(y >= border(0) && y <= border(n))) || weight(i) == 0.0)
			return -INFINITY;
		if (is_tail(i))
		{
			double		u = (i == 0 ? border(1) - y : y - border(i)) / tail_scale(i);

			return log(weight(i) / total) + log(2.0) - 0.5 * u * u - LOG_SQRT_2PI -
				log(tail_scale(i));
		}
		return log(weight(i) / total) - log(width(i));
	}

	/*
	 * The first part whose cumulative weight exceeds `wanted` (or reaches it, if `reach`), in steps
	 * of `step` from the first (1) or the last (-1); parts without weight are skipped. *before
	 * receives the weight of the parts before it. If none does, the last with weight.
	 */
	DEVICE int
	part_at(double wanted, bool reach, int step, int lane, double *before) const
	{
		double		done = 0.0,
					last_before = 0.0;
		int			last = step > 0 ? 0 : n - 1;

		for (int start = 0; start < n; start += WARP)
		{
			int			i = start + lane,
						part = step > 0 ? i : n - 1 - i;
			double		own = i < n ? weight(part) : 0.0,
						sum = own;
			unsigned	hits;

			for (int delta = 1; delta < WARP; delta *= 2)
			{
				double		below = shuffle_up(sum, delta);

				sum += lane >= delta ? below : 0.0;
			}
			sum += done;
			hits = warp_ballot(own > 0.0 && (reach ? sum >= wanted : sum > wanted));
			if (hits != 0)
			{
				int			first = 0;

				while ((hits >> first & 1) == 0)
					first++;
				*before = shuffle_from(sum - own, first);
				return shuffle_from(part, first);
			}
			hits = warp_ballot(own > 0.0);
			if (hits != 0)
			{
				int			highest = 31;

				while ((hits >> highest & 1) == 0)
					highest--;
				last = shuffle_from(part, highest);
				last_before = shuffle_from(sum - own, highest);
			}
			done = shuffle_from(sum, WARP - 1);
		}
		*before = last_before;
		return last;
	}

	/* The point of bucket i with `share` of it below. */
	DEVICE double
	point_above(int i, double share) const
	{
		if (is_tail(i))
			return i == 0 ? border(1) + tail_scale(i) * normal_quantile(0.5 * share)
				: border(i) - tail_scale(i) * normal_quantile(0.5 * (1.0 - share));
		return fmin(border(i) + share * width(i), border(i + 1));
	}

	DEVICE double
	point_below(int i, double share) const
	{
		if (is_tail(i))
			return i == 0 ? border(1) + tail_scale(i) * normal_quantile(0.5 * (1.0 - share))
				: border(i) - tail_scale(i) * normal_quantile(0.5 * share);
		return fmax(border(i + 1) - share * width(i), border(i));
	}

	DEVICE double
	bars_quantile(double p, int lane) const
	{
		double		total = total_weight(lane),
					before,
					share;
		bool		upper = p > 0.5;
		int			i = part_at(upper ? (1.0 - p) * total : p * total, p > 0.0 && !upper,
								upper ? -1 : 1, lane, &before);

		if (p == 0.0)
			return is_tail(i) && i == 0 ? -INFINITY : border(i);
		if (p == 1.0)
			return is_tail(i) ? (i == 0 ? border(1) : INFINITY) : border(i + 1);
		share = fmin(fmax(((upper ? (1.0 - p) * total : p * total) - before) / weight(i), 0.0),
					 1.0);
		return upper ? point_below(i, share) : point_above(i, share);
	}

	/* The mass beyond y, on the side where it is small, and the density there. */
	DEVICE double
	mixture_tail(double y, bool upper, int lane, double *density) const
	{
		double		tail = 0.0,
					height = 0.0;

		for (int i = lane; i < n; i += WARP)
		{
			double		z = (y - mean_of(i)) / sd_of(i);

			tail += weight(i) * normal_cdf(upper ? -z : z);
			height += weight(i) * exp(-0.5 * z * z - LOG_SQRT_2PI) / sd_of(i);
		}
		*density = warp_sum(height);
		return warp_sum(tail);
	}

	/* Newton steps on the logarithm of the tail within a bracket, bisection where they leave it. */
	DEVICE double
	mixture_quantile(double p, int lane) const
	{
		bool		upper = p > 0.5;
		double		total = total_weight(lane),
					wanted = (upper ? 1.0 - p : p) * total,
					low = INFINITY,
					high = -INFINITY,
					y;

		if (p == 0.0)
			return -INFINITY;
		if (p == 1.0)
			return INFINITY;
		/* between the smallest and the largest quantile of any component with weight */
		for (int i = lane; i < n; i += WARP)
			if (weight(i) > 0.0)
			{
				double		own = mean_of(i) +
					sd_of(i) * (upper ? -normal_quantile(1.0 - p) : normal_quantile(p));

				low = fmin(low, own);
				high = fmax(high, own);
			}
		low = -warp_max(-low);
		high = warp_max(high);
		y = low + 0.5 * (high - low);
		for (int step = 0; step < QUANTILE_STEPS && low < high; step++)
		{
			double		density,
						tail = mixture_tail(y, upper, lane, &density),
						excess = (upper ? -1.0 : 1.0) * log(tail / wanted),
						next = y - excess * tail / density;

			if (excess < 0.0)
				low = y;
			else
				high = y;
			if (!(next > low && next < high))
				next = low + 0.5 * (high - low);
			if (fabs(next - y) <= 4e-16 * fabs(y))
				return next;
			y = next;
		}
		return y;
	}

	/*
	 * The quantile p, p being its own twin; or, if `draws`, the draw of the uniform numbers p and
	 * twin: its part is chosen by the first, its place within a part by the second.
	 */
	DEVICE double
	point(bool draws, double p, double twin, int lane) const
	{
		double		before;

		if (!draws && (kind == 3 || !(p >= 0.0 && p <= 1.0)))
			return (double) NAN;
		if (kind == 0)
			return params[0] + params[1] * normal_quantile(twin);
		if (kind == 2)
			return bars_quantile(p, lane);
		if (!draws)
			return mixture_quantile(p, lane);

		int			i = part_at(p, false, 1, lane, &before);

		return kind == 3 ? i : mean_of(i) + sd_of(i) * normal_quantile(twin);
	}
};

#endif							/* CUDA_ANSWERS_H */
