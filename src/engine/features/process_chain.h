/*
 * process_chain.h: what the Gaussian process of the prefix says of a row of a chain, given the rows
 * of the chain before it (docs/model-format.md section 9, "head.process_chain").
 *
 * The places of the rows decide how they depend on each other, their targets what that means. So
 * draws of the same rows share a TnpProcessChain, and each has a TnpProcessTold of its own.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PROCESS_CHAIN_H
#define TNP_PROCESS_CHAIN_H

#include "engine/features/statistics.h"

#define TNP_CHAIN_KEEPS 64		/* rows of a chain that are kept when others are forgotten */
#define TNP_CHAIN_ROWS (2 * TNP_CHAIN_KEEPS)

/*
 * The rows of a chain that are remembered, and behind them the one that was asked about last. What
 * is of a row is [TNP_CHAIN_ROWS], squares are [TNP_CHAIN_ROWS, TNP_CHAIN_ROWS].
 */
typedef struct TnpProcessChain
{
	const TnpModel *model;
	const TnpStats *stats;
	int			n;				/* rows that are remembered, less than TNP_CHAIN_ROWS */
	TnpPoints	points;
	double	   *reached,		/* [.., carriers] features of a row, */
			   *unknown,		/* [.., carriers] and of what the process does not know of these; */
			   *mean,			/* what the process alone says of it, */
			   *variance,		/* and how sure it is, in units of its variance; */
			   *factor;			/* lower Cholesky factor of the rows' covariances in these units */
} TnpProcessChain;

/* Targets of the remembered rows. */
typedef struct TnpProcessTold
{
	double		away[TNP_CHAIN_ROWS],	/* from the process's mean */
				news[TNP_CHAIN_ROWS];	/* L^-1 away, L the factor */
} TnpProcessTold;

/* Whether chains of this model have one. */
bool		tnp_process_chain_wanted(const TnpModel *model);

/* An empty chain; freed by the caller also after a failure. */
TnpStatus	tnp_process_chain_make(const TnpModel *model, const TnpStats *stats,
								   TnpProcessChain *chain, TnpError *error);
void		tnp_process_chain_free(TnpProcessChain *chain);

/* The first of the rows before its row `step`, from 0, that a chain remembers there. */
int64_t		tnp_process_chain_first(int64_t step);

/* Forget all rows. */
void		tnp_process_chain_reset(TnpProcessChain *chain);

/* Ask about the row of raw cells x [F]. */
void		tnp_process_chain_ask(TnpProcessChain *chain, const double *x);

/*
 * The first two of the process's numbers (section 5) of the row that was asked about last, to one
 * that knows these targets.
 */
void		tnp_process_chain_say(const TnpProcessChain *chain, const TnpProcessTold *told,
								  float *said);

/*
 * The row that was asked about last becomes one of the chain. After it all that know targets must
 * be told its own.
 */
void		tnp_process_chain_take(TnpProcessChain *chain);
void		tnp_process_chain_tell(const TnpProcessChain *chain, double y, TnpProcessTold *told);

/*
 * Forget all rows but the last TNP_CHAIN_KEEPS once TNP_CHAIN_ROWS are there: true then, and all
 * that know targets must forget as well. Wanted after each row.
 */
bool		tnp_process_chain_forget(TnpProcessChain *chain);
void		tnp_process_told_forget(const TnpProcessChain *chain, TnpProcessTold *told);

#endif							/* TNP_PROCESS_CHAIN_H */
