/*
 * stack.h: what families share that are stacks of attention blocks over one state per token.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_STACK_H
#define TNP_STACK_H

#include "engine/file/bind.h"
#include "engine/network/encode_rows.h"
#include "engine/network/walk.h"

/* The state is a vector of the configured width, which the head reads. */
int			tnp_stack_state_width(const TnpModel *model);
int			tnp_stack_head_width(const TnpConfig *config);
void		tnp_stack_block_sizes(const TnpModel *model, TnpBlockSizes *sizes);

/* `layers` cache layers with keys and values of the configured heads. */
void		tnp_stack_shape(const TnpModel *model, int layers, TnpCacheShape *shape);
size_t		tnp_stack_row_bytes(const TnpModel *model, int layers);

/* Slots are sinks, then rows. */
int64_t		tnp_stack_slots(const TnpModel *model, int64_t prefix, int64_t rows);
void		tnp_stack_row_token(const TnpEncoding *e, int64_t i, TnpToken *token);

/* Appended rows cost the new rows only unless all rows see each other. */
bool		tnp_stack_appendable(const TnpConfig *config);

/* The kernels attend as they are. */
bool		tnp_stack_shares_keys(const TnpConfig *config);

/* Multiplications of `layers` blocks. */
double		tnp_stack_cost(const TnpModel *model, int layers, double rows, double keys);

/*
 * One set of layers, each of `size` bytes, for all tokens; keys come from the state that enters the
 * layer.
 */
TnpStatus	tnp_stack_walk(TnpWalk *w, const void *layers, size_t size, int64_t n, int64_t n_store,
						   TnpError *error);

#endif							/* TNP_STACK_H */
