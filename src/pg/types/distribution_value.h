/*
 * distribution_value.h: the varlena layout of posterior.distribution, and how other files make and
 * read values.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_DISTRIBUTION_VALUE_H
#define POSTERIOR_DISTRIBUTION_VALUE_H

#include "pg/base/compat.h"

#include "pg/rows/labels.h"

#include "engine/tnp.h"

#define POSTERIOR_DISTRIBUTION_VERSION 1

/*
 * Type posterior.distribution: ALIGNMENT = double. Labels (categorical only) are n NUL-terminated
 * strings after the parameters.
 */
typedef struct PosteriorDistribution
{
	int32		vl_len_;
	uint8		version;
	uint8		kind;			/* TnpDistributionKind */
	uint16		unused;			/* 0 */
	int32		n;				/* components, buckets or classes */
	int32		label_bytes;
	double		params[FLEXIBLE_ARRAY_MEMBER];
} PosteriorDistribution;

#define PG_GETARG_DISTRIBUTION(n) ((PosteriorDistribution *) PG_DETOAST_DATUM(PG_GETARG_DATUM(n)))

/*
 * A value from parameters that are known to be sound, in the current memory context. labels may be
 * NULL.
 */
PosteriorDistribution *posterior_make_distribution(TnpDistributionKind kind, int n,
												   const double *params, const char *labels,
												   int label_bytes);

/* The answer of a model: its parameters, for a classifier with the labels of the context. */
PosteriorDistribution *posterior_answer(TnpDistributionKind kind, int n, const double *params,
										const PosteriorLabelList *labels);

/* A value from untrusted parameters: checked, or an error of class 22023. */
PosteriorDistribution *posterior_check_distribution(TnpDistributionKind kind, int n,
													const double *params, const char *labels,
													int label_bytes);

/* The engine's view of a value. */
static inline TnpDistribution
posterior_view(const PosteriorDistribution *d)
{
	return (TnpDistribution) {(TnpDistributionKind) d->kind, d->n, d->params};
}

/* First label; the next one follows its NUL. */
static inline const char *
posterior_labels(const PosteriorDistribution *d)
{
	return (const char *) (d->params + tnp_distribution_size((TnpDistributionKind) d->kind, d->n));
}

#endif							/* POSTERIOR_DISTRIBUTION_VALUE_H */
