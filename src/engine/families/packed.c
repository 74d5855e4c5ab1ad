/*
 * packed.c: the packed stack: one set of weights for rows and queries, whose keys come from the
 * state that enters the layer (docs/model-format.md section 6).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/families.h"

#include <stdio.h>

#include "engine/families/packed.h"
#include "engine/families/stack.h"

/* ---- keys ------------------------------------------------------------------------------------ */

static TnpStatus read_components(TnpReader *reader, const char *path, const json_t *value,
								 void *field);
static TnpStatus read_causal(TnpReader *reader, const char *path, const json_t *value, void *field);
static TnpStatus read_kernel(TnpReader *reader, const char *path, const json_t *value, void *field);

static TnpStatus read_position(TnpReader *reader, const char *path, const json_t *value,
							   void *field);

static const TnpChoice kinds[] = {
	{"softmax", TNP_SOFTMAX}, {"deep-kernel", TNP_DEEP_KERNEL},
	{"random-features", TNP_RANDOM_FEATURES}, {0}
};

static const TnpKey kernel_keys[] = {
	TNP_OWN_INTEGER("basis", TnpPackedConfig, kernel.basis, 1, TNP_MAX_BASIS),
	TNP_OWN_OTHER_OPTIONAL("components", TnpPackedConfig, kernel, read_components),
	TNP_OWN_OTHER_OPTIONAL("causal", TnpPackedConfig, kernel.causal, read_causal),
	TNP_END
};
static const TnpKey attention_keys[] = {
	TNP_CHOICE("bias", TnpConfig, bias, tnp_bias_choices),
	TNP_INTEGER_OPTIONAL("sinks", TnpConfig, sinks, 0, TNP_MAX_SINKS),
	TNP_BOOLEAN_OPTIONAL("log_scale", TnpConfig, log_scale),
	TNP_OWN_CHOICE_OPTIONAL("kind", TnpPackedConfig, kind, kinds),
	TNP_OWN_INTEGER_OPTIONAL("query_width", TnpPackedConfig, query_width, 1, TNP_MAX_WIDTH),
	TNP_OWN_INTEGER_OPTIONAL("value_width", TnpPackedConfig, value_width, 1, TNP_MAX_WIDTH),
	TNP_OWN_OTHER_OPTIONAL("value_hidden", TnpPackedConfig, value_hidden, tnp_read_hidden),
	TNP_OWN_CHOICE_OPTIONAL("value_activation", TnpPackedConfig, value_activation,
							tnp_activation_choices),
	TNP_OWN_OTHER_OPTIONAL("kernel", TnpPackedConfig, kernel, read_kernel),
	TNP_OWN_INTEGER_OPTIONAL("features", TnpPackedConfig, features, 1, TNP_MAX_WIDTH),
	TNP_OWN_OTHER_OPTIONAL("hidden", TnpPackedConfig, hidden, tnp_read_hidden),
	TNP_OWN_OTHER_OPTIONAL("position", TnpPackedConfig, no_position, read_position),
	TNP_END
};
static const TnpKey packed_keys[] = {
	TNP_STACK_SIZES,
	TNP_OBJECT("norm", tnp_norm_keys),
	TNP_OBJECT("attention", attention_keys),
	TNP_END
};

/* Add the columns of one component. */
static TnpStatus
read_component(TnpReader *reader, const char *path, const json_t *value, TnpKernelConfig *kernel,
			   int *used)
{
	int			features = ((TnpConfig *) reader->root)->n_features;
	char		expected[64];
	TnpStatus	status = TNP_OK;

	snprintf(expected, sizeof(expected), "lists of together 1 to %d columns", TNP_MAX_PLACES);
	if (json_array_size(value) == 0 || json_array_size(value) > (size_t) (TNP_MAX_PLACES - *used))
		return tnp_fail_value(reader, path, value, expected);
	for (size_t i = 0; status == TNP_OK && i < json_array_size(value); i++)
	{
		int			column = 0;

		status = tnp_read_integer(reader, path, json_array_get(value, i), 0, features - 1, &column);
		kernel->column[(*used)++] = (uint16_t) column;
	}
	kernel->end[kernel->components++] = *used;
	return status;
}

static TnpStatus
read_components(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	size_t		n = json_array_size(value);
	int			used = 0;
	TnpStatus	status = TNP_OK;

	if (n < 1 || n > TNP_MAX_COMPONENTS)
		return tnp_fail_value(reader, path, value, "1 to 8 lists of columns");
	for (size_t i = 0; status == TNP_OK && i < n; i++)
		status = read_component(reader, path, json_array_get(value, i), field, &used);
	return status;
}

static TnpStatus
read_causal(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	int			features = ((TnpConfig *) reader->root)->n_features;
	TnpStatus	status;

	if (json_is_null(value))
		return TNP_OK;
	status = tnp_read_integer(reader, path, value, 0, features - 1, field);
	*(int *) field += 1;
	return status;
}

/* The default is one component of all columns. */
static TnpStatus
read_kernel(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	TnpKernelConfig *kernel = field;
	int			features = ((TnpConfig *) reader->root)->n_features;
	TnpStatus	status = tnp_read_object(reader, path, value, kernel_keys, reader->root);

	if (status != TNP_OK || kernel->components > 0)
		return status;
	if (features < 1 || features > TNP_MAX_PLACES)
	{
		char		expected[80];

		snprintf(expected, sizeof(expected),
				 "an object with components where columns are more than %d or any number",
				 TNP_MAX_PLACES);
		return tnp_fail_value(reader, path, value, expected);
	}
	for (int f = 0; f < features; f++)
		kernel->column[f] = (uint16_t) f;
	kernel->end[kernel->components++] = features;
	return TNP_OK;
}

static TnpStatus
read_position(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	if (!json_is_boolean(value))
		return tnp_fail_value(reader, path, value, "true or false");
	*(bool *) field = json_is_false(value);
	return TNP_OK;
}

static const TnpFamily *
packed_refine(const TnpConfig *c)
{
	const TnpPackedConfig *p = tnp_packed_config(c);

	if (p->kind != TNP_SOFTMAX || p->features > 0 || p->hidden.n > 0 || p->no_position)
		return &tnp_products_family;
	if (c->embedder == TNP_SET && p->kernel.basis == 0 && p->query_width == 0
		&& p->value_width == 0 && p->value_hidden.n == 0)
		return &tnp_set_family;
	return p->kernel.basis > 0 || p->query_width > 0 || p->value_width > 0 || p->value_hidden.n > 0
		? &tnp_scan_family : c->family;
}

/* ---- the stack ------------------------------------------------------------------------------- */

static void
packed_bind(TnpBinder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;

	if (c->sinks > 0)
		m->sinks = tnp_bind_tensor(b, "sinks", 2, c->sinks, c->width, 0);
	m->layers = tnp_bind_layers(b, "layer", c->layers, c->width, c->feedforward, c->log_scale);
}

static void
packed_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	tnp_stack_shape(model, model->config.layers, shape);
}

static size_t
packed_row_bytes(const TnpModel *model)
{
	return tnp_stack_row_bytes(model, model->config.layers);
}

static double
packed_cost(const TnpModel *model, double rows, double keys)
{
	return tnp_stack_cost(model, model->config.layers, rows, keys);
}

static TnpStatus
packed_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	return tnp_stack_walk(w, w->model->layers, sizeof(TnpLayer), n, n_store, error);
}

const TnpFamily tnp_packed_family = {
	.name = "packed",
	.refine = packed_refine,
	.keys = packed_keys,
	.embedders = 1 << TNP_CONCAT | 1 << TNP_ADDITIVE | 1 << TNP_PARTS,
	.check = tnp_stack_check,
	.joint_heads = true,
	.several_targets = true,
	.bind = packed_bind,
	.head_width = tnp_stack_head_width,
	.appendable = tnp_stack_appendable,
	.on_gpu = true,
	.cache_shape = packed_cache_shape,
	.slots = tnp_stack_slots,
	.row_bytes = packed_row_bytes,
	.state_width = tnp_stack_state_width,
	.block_sizes = tnp_stack_block_sizes,
	.embed = tnp_embed,
	.embed_scratch = tnp_embed_scratch,
	.row_token = tnp_stack_row_token,
	.encode = tnp_encode_rows,
	.walk = packed_walk,
	.shares_keys = tnp_stack_shares_keys,
	.cost = packed_cost,
};
