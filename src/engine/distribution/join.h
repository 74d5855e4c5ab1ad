/*
 * join.h: one distribution in place of several of equal shape.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_JOIN_H
#define TNP_JOIN_H

#include "engine/distribution/distribution.h"

/* Doubles of scratch that joining `count` distributions of n components takes. */
size_t		tnp_join_work(TnpDistributionKind kind, int n, int count);

/*
 * The weighted mean of `count` distributions of n components each, whose parameters are `step`
 * doubles apart from params on; weight [count] sums to one. It has n components, too, into
 * joined [size]: classes and bars of equal borders exactly, Gaussians and mixtures of these with
 * the same mean and variance (docs/model-format.md section 8, "Joining"). wider [count], or NULL,
 * are standard deviations that Gaussians and components of each get in addition.
 */
void		tnp_join(TnpDistributionKind kind, int n, int count, const double *params, size_t step,
					 const double *weight, const double *wider, double *work, double *joined);

/*
 * wider [count]: how far the answers to a sample stand for what lies between them, 0 of others; the
 * sample is the first `sample` of the `count` Gaussians or mixtures of n components, whose means
 * come into mean [count].
 */
void		tnp_join_sample(TnpDistributionKind kind, int n, int count, int sample,
							const double *params, size_t step, double *mean, double *wider);

/*
 * Adds to wider [count] what a new label may differ by more than those of the `count` answers of
 * these means and weights, which sum to one, with labels `step` apart; two rows have the same one
 * with probability `alike`. Together the answers then have the tails of Student's t.
 */
void		tnp_join_new(int count, const double *mean, const double *weight, const double *label,
						 size_t step, double alike, double *wider);

/*
 * The probabilities joined [n_classes] of a row with a new label, given those params [count] `step`
 * apart with known ones: where these differ by their labels, as `alike` says how many there are,
 * one label more may be of any class; share [n_classes] of it has each before anything is known.
 */
void		tnp_join_new_class(int n_classes, int count, const double *params, size_t step,
							   const double *weight, const double *label, size_t label_step,
							   double alike, const double *share, double *joined);

/* A normal number that a target may be shifted by. */
typedef struct TnpShift
{
	double		weight,			/* how probable that is */
				mean,
				sd;
} TnpShift;

#define TNP_MOST_SHIFTS 9		/* none, and those of up to eight cells together */

/* Doubles of scratch that tnp_join_shifted() takes. */
size_t		tnp_join_shifted_work(TnpDistributionKind kind, int n);

/*
 * A Gaussian, or a mixture of n, plus one of `count` normal numbers, at most TNP_MOST_SHIFTS, whose
 * weights sum to one: params [size] become the answer's.
 */
void		tnp_join_shifted(TnpDistributionKind kind, int n, int count, const TnpShift *shift,
							 double *work, double *params);

#endif							/* TNP_JOIN_H */
