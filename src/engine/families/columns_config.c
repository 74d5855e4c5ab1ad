/*
 * columns_config.c: TabICL's own configuration, as the constructor of its network takes it.
 *
 * Every key that changes the arithmetic must be there: heads and the layout of rotary positions do
 * not show in the shapes of tensors, and a wrong value would answer wrongly in silence.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <string.h>

#include "engine/families/columns.h"

#define MAX_EMBED 1024
#define MAX_BLOCKS 64
#define MAX_INDUCING 1024
#define MAX_CLS 16
#define MAX_QUANTILES 9999
#define CONTEXT_ROWS 10000		/* row limit: memory grows with rows times columns */

/* false, true, or one of the names. */
static TnpStatus
read_flag_or_name(TnpReader *reader, const char *path, const json_t *value, int if_false,
				  int if_true, const TnpChoice *names, int *field)
{
	if (json_is_boolean(value))
	{
		*field = json_is_true(value) ? if_true : if_false;
		return TNP_OK;
	}
	return tnp_read_choice(reader, path, value, names, field);
}

static TnpStatus
read_scaling(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	static const TnpChoice names[] = {
		{"none", COLUMNS_SCALE_NONE}, {"ssmax", COLUMNS_SCALE_HEADS},
		{"ssmax-mlp", COLUMNS_SCALE_MLP}, {"ssmax-mlp-elementwise", COLUMNS_SCALE_MLP_EACH},
		{"qassmax-mlp", COLUMNS_SCALE_AWARE},
		{"qassmax-mlp-elementwise", COLUMNS_SCALE_AWARE_EACH}, {NULL, 0}
	};

	return read_flag_or_name(reader, path, value, COLUMNS_SCALE_NONE, COLUMNS_SCALE_AWARE_EACH,
							 names, field);
}

static TnpStatus
read_grouping(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	static const TnpChoice names[] = {
		{"same", COLUMNS_CIRCULAR}, {"valid", COLUMNS_PADDED}, {NULL, 0}
	};

	return read_flag_or_name(reader, path, value, COLUMNS_ALONE, COLUMNS_CIRCULAR, names, field);
}

static TnpStatus
read_activation(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	static const TnpChoice names[] = {{"relu", TNP_RELU}, {"gelu", TNP_GELU}, {NULL, 0}};

	return tnp_read_choice(reader, path, value, names, field);
}

/* Keys of training, which change no answer. */
static TnpStatus
skip_value(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	(void) reader;
	(void) path;
	(void) value;
	(void) field;
	return TNP_OK;
}

#define INTEGER(name, field, min, max) TNP_OWN_INTEGER(name, ColumnsConfig, field, min, max)
#define BOOLEAN(name, field) TNP_OWN_BOOLEAN(name, ColumnsConfig, field)
#define OTHER(name, field, read) TNP_OWN_OTHER(name, ColumnsConfig, field, read)
#define SKIPPED(name) TNP_OWN_OTHER_OPTIONAL(name, ColumnsConfig, max_classes, skip_value)

const TnpKey columns_published[] = {
	INTEGER("max_classes", max_classes, 0, TNP_MAX_CLASS_ROOM),
	{"num_quantiles", TNP_KEY_INTEGER, true,
	 offsetof(TnpConfig, own) + offsetof(ColumnsConfig, quantiles), 2, MAX_QUANTILES, NULL, NULL,
	 NULL},
	INTEGER("embed_dim", embed, 2, MAX_EMBED),
	INTEGER("col_num_blocks", column_blocks, 1, MAX_BLOCKS),
	INTEGER("col_nhead", column_heads, 1, MAX_EMBED),
	INTEGER("col_num_inds", inducing, 1, MAX_INDUCING),
	BOOLEAN("col_affine", affine),
	OTHER("col_feature_group", grouping, read_grouping),
	{"col_feature_group_size", TNP_KEY_INTEGER, true,
	 offsetof(TnpConfig, own) + offsetof(ColumnsConfig, group_size), 1, 16, NULL, NULL, NULL},
	BOOLEAN("col_target_aware", target_aware),
	OTHER("col_ssmax", column_scaling, read_scaling),
	INTEGER("row_num_blocks", row_blocks, 1, MAX_BLOCKS),
	INTEGER("row_nhead", row_heads, 1, MAX_EMBED),
	INTEGER("row_num_cls", cls, 1, MAX_CLS),
	TNP_OWN_NUMBER("row_rope_base", ColumnsConfig, rotary_base, 1.0, 1e12),
	BOOLEAN("row_rope_interleaved", interleaved),
	INTEGER("icl_num_blocks", context_blocks, 1, MAX_BLOCKS),
	INTEGER("icl_nhead", context_heads, 1, MAX_EMBED),
	OTHER("icl_ssmax", context_scaling, read_scaling),
	INTEGER("ff_factor", ff_factor, 1, 16),
	OTHER("activation", activation, read_activation),
	BOOLEAN("norm_first", norm_first),
	BOOLEAN("bias_free_ln", plain_norms),
	SKIPPED("dropout"),
	SKIPPED("zero_init"),
	SKIPPED("recompute"),
	TNP_END
};

TnpStatus
columns_check(const TnpConfig *config, TnpError *error)
{
	const ColumnsConfig *c = TNP_OWN(config, ColumnsConfig);
	const TnpRule rules[] = {
		{c->embed % c->column_heads != 0, "col_nhead does not divide embed_dim", "embed_dim",
		 c->embed, "col_nhead", c->column_heads},
		{c->embed % c->row_heads != 0 || c->embed / c->row_heads % 2 != 0,
		 "row_nhead does not divide embed_dim into heads of an even width", "embed_dim", c->embed,
		 "row_nhead", c->row_heads},
		{columns_width(c) > TNP_MAX_WIDTH, "embed_dim times row_num_cls is too large", "embed_dim",
		 c->embed, "row_num_cls", c->cls},
		{columns_width(c) % c->context_heads != 0,
		 "icl_nhead does not divide embed_dim times row_num_cls", "icl_nhead", c->context_heads,
		 NULL, 0},
		{!c->norm_first, "norm_first = false is not supported", NULL, 0, NULL, 0},
		{c->max_classes == 1, "max_classes is 1", NULL, 0, NULL, 0},
		{c->max_classes == 0 && c->quantiles == 0,
		 "a regression model needs the key num_quantiles", NULL, 0, NULL, 0},
		{c->grouping != COLUMNS_ALONE && c->group_size == 0,
		 "groups of columns need the key col_feature_group_size", NULL, 0, NULL, 0},
		{c->grouping != COLUMNS_ALONE && c->affine,
		 "col_affine excludes groups of columns", NULL, 0, NULL, 0},
	};

	return tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error);
}

void
columns_complete(TnpConfig *config)
{
	ColumnsConfig *c = (ColumnsConfig *) (void *) config->own;

	if (c->grouping == COLUMNS_ALONE)
		c->group_size = 1;
	config->max_features = TNP_MAX_ORDERED;
	config->min_rows = 1;
	config->row_limit = CONTEXT_ROWS;
	config->context = TNP_FULL;
	config->buffer = 1;
	config->width = columns_width(c);
	config->layers = c->context_blocks;
	config->heads = c->context_heads;
	config->feedforward = c->ff_factor * config->width;
	config->norm = TNP_LAYER_NORM;
	config->final_norm = true;
	config->norm_eps = 1e-5;
	config->activation = c->activation;
	config->embedder = TNP_ADDITIVE;
	config->target_scaling = c->max_classes > 0 ? TNP_SCALE_CLASSES : TNP_SCALE_NONE;
	config->head = c->max_classes > 0 ? TNP_HEAD_CLASSES : TNP_HEAD_QUANTILES;
	config->head_outputs = c->max_classes > 0 ? c->max_classes : c->quantiles;
}
