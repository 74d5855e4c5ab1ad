/*
 * stack.c: what families share that are stacks of attention blocks over one state per token.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/stack.h"

#define BEYOND_CACHE 8e6		/* bytes */
/* multiplications in the time that one byte takes to come from memory */
#define COST_OF_READ 2

int
tnp_stack_state_width(const TnpModel *model)
{
	return model->config.width;
}

int
tnp_stack_head_width(const TnpConfig *config)
{
	return config->width;
}

void
tnp_stack_block_sizes(const TnpModel *model, TnpBlockSizes *sizes)
{
	const TnpConfig *c = &model->config;

	*sizes = (TnpBlockSizes) {c->width, c->width, c->width, c->feedforward, c->heads, 0, 1};
}

void
tnp_stack_shape(const TnpModel *model, int layers, TnpCacheShape *shape)
{
	const TnpConfig *c = &model->config;
	int			head_width = c->width / c->heads;

	*shape = (TnpCacheShape) {layers, c->heads, head_width, head_width,
							  model->kernels->number, .planes = 1};
}

size_t
tnp_stack_row_bytes(const TnpModel *model, int layers)
{
	return (size_t) layers * 2 * model->config.width * model->kernels->number;
}

int64_t
tnp_stack_slots(const TnpModel *model, int64_t prefix, int64_t rows)
{
	(void) prefix;
	return model->config.sinks + rows;
}

void
tnp_stack_row_token(const TnpEncoding *e, int64_t i, TnpToken *token)
{
	const TnpConfig *c = &e->model->config;
	int64_t		seen = i < e->prefix ? e->prefix : i + (c->strict ? 0 : 1);

	*token = (TnpToken) {c->sinks + seen, 0, NULL, c->sinks + i};
}

bool
tnp_stack_appendable(const TnpConfig *config)
{
	return config->context != TNP_FULL;
}

bool
tnp_stack_shares_keys(const TnpConfig *config)
{
	(void) config;
	return true;
}

double
tnp_stack_cost(const TnpModel *model, int layers, double rows, double keys)
{
	const TnpConfig *c = &model->config;
	double		d = c->width,
				read = layers * 2 * d * keys * (double) model->kernels->number;

	/*
	 * where few rows meet more keys than caches hold, the time is the memory's, and threads have
	 * more of it than one
	 */
	return rows * layers * (4 * d * d + 2 * d * c->feedforward + 2 * d * keys)
		+ (read > BEYOND_CACHE ? COST_OF_READ * read : 0);
}

TnpStatus
tnp_stack_walk(TnpWalk *w, const void *layers, size_t size, int64_t n, int64_t n_store,
			   TnpError *error)
{
	int			last = w->model->config.layers - 1;
	TnpStatus	status = TNP_OK;

	for (int l = 0; status == TNP_OK && l <= last; l++)
	{
		/* after the last layer the states of tokens that only store are read by nothing */
		int64_t		first = l == last ? n_store : 0;
		const void *layer = (const char *) layers + (size_t) l * size;

		w->entry = l == 0;
		if (n_store > 0)
			status = tnp_walk_store(w, layer, l, n_store, error);
		if (status == TNP_OK && n_store > 0 && w->stored != NULL)
			status = w->stored(w, n_store, error);
		if (status == TNP_OK)
			status = tnp_walk_attend(w, layer, l, first, n, error);
	}
	return status;
}
