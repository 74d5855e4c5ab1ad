/*
 * encoding.h: the encoding of a context: its rows, their statistics, and what the family keeps.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_ENCODING_H
#define TNP_ENCODING_H

#include "engine/features/statistics.h"
#include "engine/network/kv_cache.h"

struct TnpEncoding
{
	const TnpModel *model;
	int64_t		n,				/* rows */
				prefix,			/* rows that see each other */
				capacity;		/* rows that x and y have room for */
	int			n_features;
	TnpColumnKind *kinds;		/* [n_features] */
	double	   *x,				/* [n, n_features] raw rows, for re-encoding */
			   *y;				/* [n, D] */
	TnpStats	stats;
	bool		borrowed_stats;	/* a merged encoding: they belong to another */
	bool		borrowed;		/* a view: all memory but the struct belongs to another */
	bool		kept;			/* in the environment's lasting memory */
	TnpKvCache	cache;			/* what the family keeps of rows; slots are its own */
	int			estimators;		/* of a family with several views of a table */
	/* what a family that answers for itself keeps: own_size bytes at the next multiple of 64 */
	void	   *own;
	size_t		own_size;
	const TnpEncoding *viewed;	/* a view: of this one */
	void	   *total;			/* of a family that sums up rows: the sum of the first `totalled` */
	size_t		total_size;
	int64_t		totalled;
};

/* Slots of its cache in use. */
static inline int64_t
tnp_encoding_slots(const TnpEncoding *e)
{
	return e->model->config.family->slots(e->model, e->prefix, e->n);
}

/* Room of own_size bytes that begins at a multiple of 64 within memory of TNP_OWN_SLACK more. */
#define TNP_OWN_SLACK 256

static inline void *
tnp_encoding_own(const TnpEncoding *e)
{
	return (char *) e->own + (64 - (uintptr_t) e->own % 64) % 64;
}

#endif							/* TNP_ENCODING_H */
