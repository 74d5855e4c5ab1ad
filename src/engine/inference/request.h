/*
 * request.h: one request about an encoding, in the form that sessions, the server process and
 * devices share. The engine answers it with tnp_execute(); a GPU has kernels of its own.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_REQUEST_H
#define TNP_REQUEST_H

#include "engine/tnp.h"

/* What a request asks of the first rows of an encoding. */
typedef enum TnpRequestKind
{
	/*
	 * parameters of the distributions of every query's D targets: tnp_predict. answer [n,
	 * tnp_answer_size]
	 */
	TNP_REQUEST_PREDICT = 1,
	/* what is wanted of them: answer [n, D, tnp_reduction_width(request)] */
	TNP_REQUEST_REDUCE = 2,
	TNP_REQUEST_SAMPLE = 3,		/* joint draws: tnp_sample. answer [draws, n, D] */
	/* joint log density of queries with targets: tnp_score. answer [1] */
	TNP_REQUEST_SCORE = 4,
	/* means and covariances of the queries: tnp_joint. answer [n D] and [n D, n D] */
	TNP_REQUEST_JOINT = 5
} TnpRequestKind;

/*
 * Columns of a reduced answer, in this order: the wanted ones stand side by side. Moments are those
 * of tnp_mean and tnp_variance.
 */
typedef enum TnpReduction
{
	TNP_REDUCE_MEAN = 1,
	TNP_REDUCE_SD = 2,
	TNP_REDUCE_QUANTILES = 4,	/* one column per level */
	TNP_REDUCE_LOG_DENSITY = 8	/* of the query's target: queries.y is then given */
} TnpReduction;

#define TNP_MAX_LEVELS 64

typedef struct TnpRequest
{
	TnpRequestKind kind;
	/* the encoding's leading rows that are the context of this request */
	int64_t		rows;
	TnpRows		queries;		/* y for TNP_REQUEST_SCORE and TNP_REDUCE_LOG_DENSITY, else NULL */
	unsigned	reductions;		/* REDUCE: a set of TnpReduction, not empty */
	int			n_levels;		/* REDUCE with quantiles, 1 to TNP_MAX_LEVELS */
	const double *levels;		/* [n_levels] in [0, 1] */
	uint64_t	seed;			/* SAMPLE, SCORE */
	uint64_t	first_draw;		/* SAMPLE: draws are numbered from here */
	int64_t		draws;			/* SAMPLE */
	int64_t		orders;			/* SCORE: 0 is the given order; TNP_AS_APPENDED */
	/* the caller's room for what the kind says; undefined after a failure */
	double	   *answer;
	/* of a request that is one of several: set by the device, error when status is not TNP_OK */
	TnpStatus	status;
	TnpError	error;
} TnpRequest;

/* Columns of a reduced answer. */
static inline int
tnp_reduction_width(const TnpRequest *request)
{
	return ((request->reductions & TNP_REDUCE_MEAN) != 0)
		+ ((request->reductions & TNP_REDUCE_SD) != 0)
		+ ((request->reductions & TNP_REDUCE_QUANTILES) != 0 ? request->n_levels : 0)
		+ ((request->reductions & TNP_REDUCE_LOG_DENSITY) != 0);
}

/*
 * Write the columns that a reduced answer has of one distribution to `to` [tnp_reduction_width]; y
 * is the query's target or NaN.
 */
TNP_EXPORT void tnp_request_reduce(const TnpRequest *request, const TnpDistribution *d, double y,
								   double *to);

/* What is wrong with a request whatever the encoding is: TNP_BAD_ARGUMENT, or TNP_OK. */
TNP_EXPORT TnpStatus tnp_request_check(const TnpRequest *request, TnpError *error);

/*
 * Answer a request into request->answer by this process. request->rows is between
 * tnp_encoding_base_rows and the rows of the encoding; all else is checked, and fails as the
 * functions do that the kind names. Status and error of the request stay as they are.
 */
TNP_EXPORT TnpStatus tnp_execute(const TnpEncoding *encoding, const TnpRequest *request,
								 TnpError *error);

#endif							/* TNP_REQUEST_H */
