/*
 * block.h: one transformer block on a tile of rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_BLOCK_H
#define TNP_BLOCK_H

#include "engine/network/scratch.h"

/* What the rows of a tile may see. */
typedef struct TnpView
{
	const void *k,				/* shared keys and values */
			   *v;
	const int64_t *context;		/* [n] visible shared keys */
	const TnpKeys *own;			/* [n] visible private keys */
	/*
	 * the last so many rows, 0 or more, enter with the same state and see the same shared keys and
	 * as many of their own
	 */
	int			shared_rows;
} TnpView;

/* n rows that see the first m shared keys and no others; visible and own [n] are the caller's. */
static inline TnpView
tnp_view_of_all(int n, const void *k, const void *v, int64_t m, int64_t *visible, TnpKeys *own)
{
	for (int i = 0; i < n; i++)
	{
		visible[i] = m;
		own[i] = (TnpKeys) {NULL, NULL, 0};
	}
	return (TnpView) {k, v, visible, own, 0};
}

/*
 * Keys and values (work->q, work->att) [n, d] that `layer` makes of the states h [n, d] entering
 * it.
 */
void		tnp_block_keys(const TnpModel *model, const TnpLayer *layer, bool post_norm, int n,
						   const float *h, TnpBlockWork *work);

/* The block itself on n <= TNP_TILE rows, in place: h [n, d] attends to view, then feed-forward. */
void		tnp_block(const TnpModel *model, const TnpLayer *layer, int heads, bool post_norm,
					  int n, float *h, const TnpView *view, TnpBlockWork *work);

/*
 * The same in three steps, so that others may do the sums of attention's spans in between: work->q
 * and `attention` are then what the spans need.
 */
void		tnp_block_query(const TnpModel *model, const TnpLayer *layer, int heads, bool post_norm,
							int n, const float *h, const TnpView *view,
						  TnpBlockWork *work, TnpAttention *attention);
void		tnp_block_finish(const TnpModel *model, const TnpLayer *layer, bool post_norm, int n,
							 float *h, TnpBlockWork *work);

/* The last step with an activation of its own. */
void		tnp_block_finish_with(const TnpModel *model, const TnpLayer *layer, bool post_norm,
								  TnpActivation activation, int n, float *h, TnpBlockWork *work);

struct TnpToken;
struct TnpWalk;

/*
 * How a family's layers store and attend, so that one walk (walk.h) serves all that keep keys and
 * values. `layer` is the family's own structure; states h are [n, state width].
 */
typedef struct TnpBlockOps
{
	/* keys and values of n states: work->q [n, heads * key width], work->att [n, heads * value] */
	void		(*keys) (const TnpModel *model, const void *layer, int n, const float *h,
						 TnpBlockWork *work);
	/* what attention needs, up to the sums that others may make */
	void		(*query) (const TnpModel *model, const void *layer, int n, const float *h,
						  const TnpView *view, TnpBlockWork *work, TnpAttention *attention);
	/* the sums of attention, where the kernels' are others: attention->out; or NULL */
	void		(*attend) (const struct TnpWalk *walk, const struct TnpToken *tokens, int n,
						   const float *h, const TnpView *view, const TnpAttention *attention);
	/* the rest of the block, from work->att */
	void		(*finish) (const TnpModel *model, const void *layer, int n, float *h,
						   TnpBlockWork *work);
} TnpBlockOps;

/* A layer is a TnpLayer, placement of norms and heads are those of the configuration. */
extern const TnpBlockOps tnp_block_ops;

#endif							/* TNP_BLOCK_H */
