/*
 * config.c: the configuration of a model, parsed and checked.
 *
 * The keys are tables (keys.h); what single values cannot say, that one option excludes or needs
 * another, are rules (config_rules.c). The meaning of every key is docs/model-format.md, whose
 * limits these are.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/file/config.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/file/keys.h"

#define MAX_VALUES 20000
#define MAX_ROWS 1000000
#define MAX_ROW_LIMIT 100000000
#define ROW_LIMIT 20000			/* of a model that does not say: every row reads every other */
#define MAX_FAMILIES 32
#define MAX_KEYS 48
#define MAX_BUCKETS 65536
#define MAX_READOUTS 64
#define MIN_EPS 1e-30			/* below it, eps would not be a normal float32 */

_Static_assert(sizeof(TnpActivation) == sizeof(int) && sizeof(TnpEncoderKind) == sizeof(int),
			   "enums are as wide as int");

/* ---- values of their own form ---------------------------------------------------------------- */

static TnpStatus
read_format(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	char		shown[TNP_JSON_SHOWN];

	(void) path;
	(void) field;
	if (json_is_integer(value) && json_integer_value(value) == 1)
		return TNP_OK;
	tnp_fail(reader->error, TNP_BAD_CONFIG, "unknown model format %s", tnp_json_show(value, shown));
	tnp_detail(reader->error, "known is 1");
	return TNP_BAD_CONFIG;
}

/* One line, cut between characters where it is long; control characters become spaces. */
static TnpStatus
read_description(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	const size_t max = sizeof(((TnpConfig *) 0)->description) - 1;
	const char *text = json_string_value(value);
	size_t		length = json_string_length(value);
	char	   *description = field;

	if (text == NULL)
		return tnp_fail_value(reader, path, value, "a text");
	if (length > max)
		for (length = max; ((unsigned char) text[length] & 0xc0) == 0x80;)
			length--;
	memcpy(description, text, length);
	description[length] = '\0';
	for (char *p = description; *p != '\0'; p++)
		if ((unsigned char) *p < 0x20 || *p == 0x7f)
			*p = ' ';
	return TNP_OK;
}

TnpStatus
tnp_read_hidden(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	TnpHidden  *hidden = field;
	size_t		n = json_array_size(value);
	char		expected[64];
	TnpStatus	status;

	if (!json_is_array(value) || n > TNP_MAX_HIDDEN)
	{
		snprintf(expected, sizeof(expected), "an array of at most %d sizes", TNP_MAX_HIDDEN);
		return tnp_fail_value(reader, path, value, expected);
	}
	for (size_t i = 0; i < n; i++)
		if ((status = tnp_read_integer(reader, path, json_array_get(value, i), 1,
									   TNP_MAX_FEEDFORWARD,
									   &hidden->size[i])) != TNP_OK)
			return status;
	hidden->n = (int) n;
	return TNP_OK;
}

/* The row tokeniser's one hidden size, kept as a list of one. */
static TnpStatus
read_one_hidden(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	TnpHidden  *hidden = field;

	hidden->n = 1;
	return tnp_read_integer(reader, path, value, 1, TNP_MAX_FEEDFORWARD, &hidden->size[0]);
}

/* K, or null for no limit. */
static TnpStatus
read_buffer(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	if (json_is_null(value))
	{
		*(int *) field = 0;
		return TNP_OK;
	}
	if (!json_is_integer(value))
		return tnp_fail_value(reader, path, value, "a positive integer or null");
	return tnp_read_integer(reader, path, value, 1, MAX_ROWS, field);
}

/*
 * One number of at least min for each feature, into memory of its own; the number of features has
 * been read before.
 */
static TnpStatus
read_vector(TnpReader *reader, const char *path, const json_t *value, double min, double **vector)
{
	int			n = ((TnpConfig *) reader->root)->n_features;
	char		expected[64];
	TnpStatus	status;

	if (!json_is_array(value) || n == 0 || json_array_size(value) != (size_t) n)
	{
		snprintf(expected, sizeof(expected), "an array of one number for each of inputs.features");
		return tnp_fail_value(reader, path, value, expected);
	}
	*vector = tnp_keep(reader->env, (size_t) n, sizeof(double));
	if (*vector == NULL)
		return tnp_no_memory(reader->error);
	for (int i = 0; i < n; i++)
		if ((status = tnp_read_number(reader, path, json_array_get(value, (size_t) i), min, DBL_MAX,
									  &(*vector)[i])) != TNP_OK)
			return status;
	return TNP_OK;
}

static TnpStatus
read_centers(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	return read_vector(reader, path, value, -DBL_MAX, field);
}

static TnpStatus
read_scales(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	return read_vector(reader, path, value, DBL_MIN, field);
}

/* A number of at least min, or where a row has several targets an array of one for each. */
static TnpStatus
read_targets(TnpReader *reader, const char *path, const json_t *value, double min, double *field)
{
	int			n = ((TnpConfig *) reader->root)->n_targets;
	TnpStatus	status = TNP_OK;

	if (n == 1)
		return tnp_read_number(reader, path, value, min, DBL_MAX, field);
	if (!json_is_array(value) || json_array_size(value) != (size_t) n)
		return tnp_fail_value(reader, path, value,
							  "an array of one number for each of target.count");
	for (int t = 0; status == TNP_OK && t < n; t++)
		status = tnp_read_number(reader, path, json_array_get(value, (size_t) t), min, DBL_MAX,
								 &field[t]);
	return status;
}

static TnpStatus
read_target_centers(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	return read_targets(reader, path, value, -DBL_MAX, field);
}

static TnpStatus
read_target_scales(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	return read_targets(reader, path, value, DBL_MIN, field);
}

static TnpStatus read_architecture(TnpReader *reader, const char *path, const json_t *value,
								   void *field);
static TnpStatus read_tokens(TnpReader *reader, const char *path, const json_t *value, void *field);
static TnpStatus read_encoder_x(TnpReader *reader, const char *path, const json_t *value,
								void *field);
static TnpStatus read_encoder_y(TnpReader *reader, const char *path, const json_t *value,
								void *field);
static TnpStatus read_encoder(TnpReader *reader, const char *path, const json_t *value,
							  void *field);
static TnpStatus read_part_x(TnpReader *reader, const char *path, const json_t *value,
							 void *field);
static TnpStatus read_part_y(TnpReader *reader, const char *path, const json_t *value,
							 void *field);
static TnpStatus read_embedder(TnpReader *reader, const char *path, const json_t *value,
							   void *field);
static TnpStatus read_head(TnpReader *reader, const char *path, const json_t *value, void *field);

/* ---- the tables ------------------------------------------------------------------------------ */

static const TnpChoice scalings[] = {{"none", TNP_SCALE_NONE}, {"fixed", TNP_SCALE_FIXED},
									 {"prefix", TNP_SCALE_PREFIX}, {"power", TNP_SCALE_POWER},
									 {0}};
static const TnpChoice target_scalings[] = {
	{"none", TNP_SCALE_NONE}, {"fixed", TNP_SCALE_FIXED}, {"prefix", TNP_SCALE_PREFIX},
	{"classes", TNP_SCALE_CLASSES}, {0}
};
static const TnpChoice contexts[] = {{"full", TNP_FULL}, {"causal", TNP_CAUSAL},
									 {"prefix-causal", TNP_PREFIX_CAUSAL}, {0}};
static const TnpChoice masks[] = {{"inclusive", false}, {"strict", true}, {0}};
static const TnpChoice norms[] = {{"layer", TNP_LAYER_NORM}, {"rms", TNP_RMS_NORM}, {0}};
static const TnpChoice placements[] = {{"pre", false}, {"post", true}, {0}};
const TnpChoice tnp_activation_choices[] = {{"relu", TNP_RELU}, {"gelu", TNP_GELU},
										{"gelu-tanh", TNP_GELU_TANH}, {0}};
const TnpChoice tnp_bias_choices[] = {{"all", TNP_BIAS_ALL}, {"output", TNP_BIAS_OUTPUT},
								   {"none", TNP_BIAS_NONE}, {0}};
static const TnpChoice embedders[] = {{"concat", TNP_CONCAT}, {"additive", TNP_ADDITIVE},
									  {"separate", TNP_SEPARATE}, {"parts", TNP_PARTS},
									  {"set", TNP_SET}, {0}};
static const TnpChoice class_orders[] = {{"given", false}, {"counts", true}, {0}};
static const TnpChoice code_orders[] = {{"identity", false}, {"targets", true}, {0}};
static const TnpChoice encoders_x[] = {
	{"linear", TNP_ENCODE_LINEAR}, {"mlp", TNP_ENCODE_MLP}, {"skip-mlp", TNP_ENCODE_SKIP_MLP},
	{"rows", TNP_ENCODE_ROWS}, {0}
};
static const TnpChoice encoders[] = {
	{"linear", TNP_ENCODE_LINEAR}, {"mlp", TNP_ENCODE_MLP}, {"skip-mlp", TNP_ENCODE_SKIP_MLP}, {0}
};
static const TnpChoice parts_x[] = {
	{"none", TNP_ENCODE_NONE}, {"identity", TNP_ENCODE_IDENTITY}, {"linear", TNP_ENCODE_LINEAR},
	{"mlp", TNP_ENCODE_MLP}, {0}
};
static const TnpChoice parts_y[] = {
	{"identity", TNP_ENCODE_IDENTITY}, {"linear", TNP_ENCODE_LINEAR}, {"mlp", TNP_ENCODE_MLP}, {0}
};
static const TnpChoice encoders_y[] = {
	{"linear", TNP_ENCODE_LINEAR}, {"mlp", TNP_ENCODE_MLP}, {"skip-mlp", TNP_ENCODE_SKIP_MLP},
	{"classes", TNP_ENCODE_CLASSES}, {0}
};
static const TnpChoice head_kinds[] = {
	{"gaussian", TNP_HEAD_GAUSSIAN}, {"mixture", TNP_HEAD_MIXTURE}, {"bars", TNP_HEAD_BARS},
	{"classes", TNP_HEAD_CLASSES}, {"joint-gaussian", TNP_HEAD_JOINT}, {0}
};
static const TnpChoice tails[] = {{"bounded", false}, {"half-normal", true}, {0}};
static const TnpChoice std_maps[] = {
	{"exp", TNP_STD_EXP}, {"bounded", TNP_STD_BOUNDED}, {"softplus", TNP_STD_SOFTPLUS},
	{"softplus-complement", TNP_STD_SOFTPLUS_COMPLEMENT}, {"sqrt-softplus", TNP_STD_SQRT_SOFTPLUS},
	{0}
};


static const TnpKey tokens_keys[] = {
	TNP_INTEGER("width", TnpEncoderConfig, token_width, 1, TNP_MAX_WIDTH),
	TNP_INTEGER("layers", TnpEncoderConfig, token_layers, 1, TNP_MAX_LAYERS),
	TNP_INTEGER("heads", TnpEncoderConfig, token_heads, 1, TNP_MAX_WIDTH),
	TNP_INTEGER("feedforward", TnpEncoderConfig, token_feedforward, 1, TNP_MAX_FEEDFORWARD),
	TNP_INTEGER("readouts", TnpEncoderConfig, token_readouts, 1, MAX_READOUTS),
	TNP_END
};

static const TnpKey encoder_linear_keys[] = {
	TNP_CHOICE("kind", TnpEncoderConfig, kind, encoders_x),
	TNP_END
};
static const TnpKey encoder_mlp_keys[] = {
	TNP_CHOICE("kind", TnpEncoderConfig, kind, encoders_x),
	TNP_OTHER("hidden", TnpEncoderConfig, hidden, tnp_read_hidden),
	TNP_END
};
static const TnpKey encoder_rows_keys[] = {
	TNP_CHOICE("kind", TnpEncoderConfig, kind, encoders_x),
	TNP_OTHER("hidden", TnpEncoderConfig, hidden, read_one_hidden),
	TNP_OTHER("tokens", TnpEncoderConfig, kind, read_tokens),
	TNP_BOOLEAN_OPTIONAL("ridge", TnpEncoderConfig, ridge),
	TNP_BOOLEAN_OPTIONAL("logistic", TnpEncoderConfig, logistic),
	TNP_BOOLEAN_OPTIONAL("prune", TnpEncoderConfig, prune),
	TNP_BOOLEAN_OPTIONAL("prune_judged", TnpEncoderConfig, prune_judged),
	TNP_INTEGER_OPTIONAL("prune_below", TnpEncoderConfig, prune_below, 1, MAX_ROWS),
	TNP_BOOLEAN_OPTIONAL("pairs", TnpEncoderConfig, pairs),
	TNP_BOOLEAN_OPTIONAL("absent", TnpEncoderConfig, absent),
	TNP_FLAG_OPTIONAL("codes", TnpEncoderConfig, codes_by_targets, code_orders),
	TNP_INTEGER_OPTIONAL("split", TnpEncoderConfig, split, 2, TNP_MOST_PARTS),
	TNP_BOOLEAN_OPTIONAL("process", TnpEncoderConfig, process),
	TNP_INTEGER_OPTIONAL("directions", TnpEncoderConfig, directions, 1, TNP_MOST_DIRECTIONS),
	TNP_BOOLEAN_OPTIONAL("additive", TnpEncoderConfig, additive),
	TNP_BOOLEAN_OPTIONAL("nearest", TnpEncoderConfig, nearest),
	TNP_BOOLEAN_OPTIONAL("line", TnpEncoderConfig, line),
	TNP_BOOLEAN_OPTIONAL("labels", TnpEncoderConfig, labels),
	TNP_INTEGER_OPTIONAL("donors", TnpEncoderConfig, donors, 1, TNP_MOST_DONORS),
	TNP_BOOLEAN_OPTIONAL("shift", TnpEncoderConfig, shift),
	TNP_BOOLEAN_OPTIONAL("orient", TnpEncoderConfig, orient),
	TNP_END
};
static const TnpKey encoder_classes_keys[] = {
	TNP_CHOICE("kind", TnpEncoderConfig, kind, encoders_y),
	TNP_END
};
static const TnpVariant encoder_variants[] = {
	{TNP_ENCODE_LINEAR, encoder_linear_keys},
	{TNP_ENCODE_MLP, encoder_mlp_keys},
	{TNP_ENCODE_SKIP_MLP, encoder_mlp_keys},
	{TNP_ENCODE_ROWS, encoder_rows_keys},
	{TNP_ENCODE_CLASSES, encoder_classes_keys}
};

static const TnpKey part_plain_keys[] = {
	TNP_CHOICE("kind", TnpEncoderConfig, kind, parts_x),
	TNP_END
};
static const TnpKey part_linear_keys[] = {
	TNP_CHOICE("kind", TnpEncoderConfig, kind, parts_x),
	TNP_INTEGER("width", TnpEncoderConfig, width, 1, TNP_MAX_WIDTH),
	TNP_END
};
static const TnpKey part_mlp_keys[] = {
	TNP_CHOICE("kind", TnpEncoderConfig, kind, parts_x),
	TNP_OTHER("hidden", TnpEncoderConfig, hidden, tnp_read_hidden),
	TNP_INTEGER("width", TnpEncoderConfig, width, 1, TNP_MAX_WIDTH),
	TNP_END
};
static const TnpVariant part_variants[] = {
	{TNP_ENCODE_NONE, part_plain_keys}, {TNP_ENCODE_IDENTITY, part_plain_keys},
	{TNP_ENCODE_LINEAR, part_linear_keys}, {TNP_ENCODE_MLP, part_mlp_keys}
};

static const TnpKey concat_keys[] = {
	TNP_CHOICE("kind", TnpConfig, embedder, embedders),
	TNP_OTHER("hidden", TnpConfig, concat_hidden, tnp_read_hidden),
	TNP_BOOLEAN("flag", TnpConfig, concat_flag),
	TNP_CHOICE_OPTIONAL("activation", TnpConfig, embedder_activation, tnp_activation_choices),
	TNP_END
};
static const TnpKey additive_keys[] = {
	TNP_CHOICE("kind", TnpConfig, embedder, embedders),
	TNP_OTHER("x", TnpConfig, encode_x, read_encoder_x),
	TNP_OTHER("y", TnpConfig, encode_y, read_encoder_y),
	TNP_BOOLEAN("roles", TnpConfig, roles),
	TNP_INTEGER("positions", TnpConfig, positions, 0, MAX_ROWS),
	TNP_CHOICE_OPTIONAL("activation", TnpConfig, embedder_activation, tnp_activation_choices),
	TNP_END
};
static const TnpKey separate_keys[] = {
	TNP_CHOICE("kind", TnpConfig, embedder, embedders),
	TNP_OTHER("x", TnpConfig, encode_x, read_encoder),
	TNP_OTHER("y", TnpConfig, encode_y, read_encoder),
	TNP_CHOICE_OPTIONAL("activation", TnpConfig, embedder_activation, tnp_activation_choices),
	TNP_END
};
static const TnpKey parts_keys[] = {
	TNP_CHOICE("kind", TnpConfig, embedder, embedders),
	TNP_INTEGER("observed", TnpConfig, observed, 1, TNP_MAX_WIDTH),
	TNP_OTHER("x", TnpConfig, encode_x, read_part_x),
	TNP_OTHER("y", TnpConfig, encode_y, read_part_y),
	TNP_OTHER("hidden", TnpConfig, concat_hidden, tnp_read_hidden),
	TNP_BOOLEAN("norm", TnpConfig, parts_norm),
	TNP_CHOICE_OPTIONAL("activation", TnpConfig, embedder_activation, tnp_activation_choices),
	TNP_END
};
static const TnpChoice takes[] = {{"first", false}, {"all", true}, {0}};
static const TnpChoice layouts[] = {{"interleaved", false}, {"half", true}, {0}};
#define STAGE_KEYS(stage) \
	TNP_INTEGER("layers", TnpConfig, set.stage.layers, 1, TNP_MAX_LAYERS), \
	TNP_INTEGER("heads", TnpConfig, set.stage.heads, 1, TNP_MAX_WIDTH), \
	TNP_INTEGER("feedforward", TnpConfig, set.stage.feedforward, 1, TNP_MAX_FEEDFORWARD)

static const TnpKey set_columns_keys[] = {
	TNP_INTEGER("width", TnpConfig, set.width, 1, TNP_MAX_WIDTH),
	STAGE_KEYS(columns),
	TNP_INTEGER("inducing", TnpConfig, set.inducing, 1, TNP_MAX_WIDTH),
	TNP_END
};
static const TnpKey set_rows_keys[] = {
	STAGE_KEYS(rows),
	TNP_INTEGER("readouts", TnpConfig, set.readouts, 1, MAX_READOUTS),
	TNP_FLAG("take", TnpConfig, set.take_all, takes),
	TNP_NUMBER("rotary", TnpConfig, set.rotary, DBL_MIN, DBL_MAX),
	TNP_FLAG("layout", TnpConfig, set.halves, layouts),
	TNP_END
};
static const TnpKey set_keys[] = {
	TNP_CHOICE("kind", TnpConfig, embedder, embedders),
	TNP_OBJECT("columns", set_columns_keys),
	TNP_OBJECT("rows", set_rows_keys),
	TNP_OTHER("y", TnpConfig, encode_y, read_encoder),
	TNP_BOOLEAN("roles", TnpConfig, roles),
	TNP_INTEGER("positions", TnpConfig, positions, 0, MAX_ROWS),
	TNP_CHOICE_OPTIONAL("activation", TnpConfig, embedder_activation, tnp_activation_choices),
	TNP_END
};
static const TnpVariant embedder_variants[] = {{TNP_CONCAT, concat_keys},
											   {TNP_ADDITIVE, additive_keys},
											   {TNP_SEPARATE, separate_keys},
											   {TNP_PARTS, parts_keys},
											   {TNP_SET, set_keys}};

#define HEAD_KEYS \
	TNP_CHOICE("kind", TnpConfig, head, head_kinds), \
	TNP_OTHER("hidden", TnpConfig, head_hidden, tnp_read_hidden), \
	TNP_CHOICE_OPTIONAL("activation", TnpConfig, head_activation, tnp_activation_choices)
#define STD_KEYS \
	TNP_CHOICE("std", TnpConfig, std_map, std_maps), \
	TNP_NUMBER_OPTIONAL("floor", TnpConfig, std_floor, 0, DBL_MAX)

static const TnpKey gaussian_keys[] = {HEAD_KEYS, STD_KEYS, TNP_END};
static const TnpKey mixture_keys[] = {
	HEAD_KEYS,
	STD_KEYS,
	TNP_INTEGER("components", TnpConfig, head_outputs, 1, TNP_MOST_COMPONENTS),
	TNP_INTEGER_OPTIONAL("process", TnpConfig, gate_hidden, 1, TNP_MAX_GATE),
	TNP_BOOLEAN_OPTIONAL("process_record", TnpConfig, gate_record),
	TNP_BOOLEAN_OPTIONAL("process_behind", TnpConfig, gate_behind),
	TNP_BOOLEAN_OPTIONAL("process_chain", TnpConfig, process_chain),
	TNP_NUMBER_OPTIONAL("trees", TnpConfig, trees_blend_weight, 0, 1),
	TNP_NUMBER_OPTIONAL("few_values", TnpConfig, few_values, 0, 1),
	TNP_NUMBER_OPTIONAL("rare", TnpConfig, rare, 1, 100),
	TNP_NUMBER_OPTIONAL("levels", TnpConfig, levels, 0, 1),
	TNP_END
};
static const TnpKey bars_keys[] = {
	HEAD_KEYS,
	TNP_INTEGER("buckets", TnpConfig, head_outputs, 1, MAX_BUCKETS),
	TNP_FLAG("tails", TnpConfig, half_normal_tails, tails),
	TNP_END
};
static const TnpKey classes_keys[] = {
	HEAD_KEYS,
	TNP_INTEGER("classes", TnpConfig, head_outputs, 2, TNP_MAX_CLASS_ROOM),
	TNP_NUMBER_OPTIONAL("logistic", TnpConfig, logistic_blend_weight, 0, 1),
	TNP_NUMBER_OPTIONAL("trees", TnpConfig, trees_blend_weight, 0, 1),
	TNP_NUMBER_OPTIONAL("class_process", TnpConfig, class_process, 0, 1),
	TNP_END
};
static const TnpKey joint_keys[] = {
	HEAD_KEYS,
	TNP_INTEGER("rank", TnpConfig, head_rank, 1, TNP_MOST_COMPONENTS),
	TNP_INTEGER("layers", TnpConfig, head_blocks, 0, TNP_MAX_LAYERS),
	TNP_OTHER("projector", TnpConfig, head_projector, tnp_read_hidden),
	TNP_NUMBER_OPTIONAL("jitter", TnpConfig, head_jitter, 0, DBL_MAX),
	TNP_END
};
static const TnpVariant head_variants[] = {
	{TNP_HEAD_GAUSSIAN, gaussian_keys}, {TNP_HEAD_MIXTURE, mixture_keys},
	{TNP_HEAD_BARS, bars_keys}, {TNP_HEAD_CLASSES, classes_keys},
	{TNP_HEAD_JOINT, joint_keys}
};

static const TnpKey inputs_keys[] = {
	TNP_INTEGER_OPTIONAL("features", TnpConfig, n_features, 1, TNP_MAX_FEATURES),
	TNP_INTEGER_OPTIONAL("max_features", TnpConfig, max_features, 1,
						 TNP_MOST_SLOTS),
	TNP_CHOICE("scaling", TnpConfig, input_scaling, scalings),
	TNP_OTHER_OPTIONAL("center", TnpConfig, input_center, read_centers),
	TNP_OTHER_OPTIONAL("scale", TnpConfig, input_scale, read_scales),
	TNP_NUMBER_OPTIONAL("clip", TnpConfig, input_clip, 0, DBL_MAX),
	TNP_NUMBER_OPTIONAL("far", TnpConfig, far_cells, 0, 1e6),
	TNP_END
};
/* the count comes before the numbers of which there are so many */
static const TnpKey target_keys[] = {
	TNP_CHOICE("scaling", TnpConfig, target_scaling, target_scalings),
	TNP_FLAG_OPTIONAL("order", TnpConfig, orders_classes, class_orders),
	TNP_INTEGER_OPTIONAL("count", TnpConfig, n_targets, 1, TNP_MAX_TARGETS),
	TNP_OTHER_OPTIONAL("center", TnpConfig, target_center, read_target_centers),
	TNP_OTHER_OPTIONAL("scale", TnpConfig, target_scale, read_target_scales),
	TNP_NUMBER_OPTIONAL("clip", TnpConfig, target_clip, 0, DBL_MAX),
	TNP_NUMBER_OPTIONAL("far", TnpConfig, far_targets, 0, 1e6),
	TNP_END
};
static const TnpKey chain_keys[] = {
	TNP_OTHER("buffer", TnpConfig, buffer, read_buffer),
	TNP_FLAG_OPTIONAL("mask", TnpConfig, strict, masks),
	TNP_END
};
static const TnpKey limits_keys[] = {
	TNP_INTEGER_OPTIONAL("rows", TnpConfig, row_limit, 0, MAX_ROW_LIMIT),
	TNP_END
};
const TnpKey tnp_norm_keys[] = {
	TNP_CHOICE("kind", TnpConfig, norm, norms),
	TNP_FLAG("placement", TnpConfig, post_norm, placements),
	TNP_NUMBER("eps", TnpConfig, norm_eps, MIN_EPS, 1),
	TNP_BOOLEAN("final", TnpConfig, final_norm),
	TNP_END
};
const TnpKey tnp_attention_keys[] = {
	TNP_CHOICE("bias", TnpConfig, bias, tnp_bias_choices),
	TNP_INTEGER_OPTIONAL("sinks", TnpConfig, sinks, 0, TNP_MAX_SINKS),
	TNP_BOOLEAN_OPTIONAL("log_scale", TnpConfig, log_scale),
	TNP_END
};

/*
 * What every configuration has; the keys of its family come between the two. The activation comes
 * before the embedder and the head, whose default it is.
 */
static const TnpKey first_keys[] = {
	TNP_OTHER("format", TnpConfig, description, read_format),
	TNP_OTHER_OPTIONAL("description", TnpConfig, description, read_description),
	TNP_OTHER("architecture", TnpConfig, family, read_architecture),
	TNP_OBJECT("inputs", inputs_keys),
	TNP_OBJECT("target", target_keys),
	TNP_INTEGER("min_rows", TnpConfig, min_rows, 0, MAX_ROWS),
	TNP_CHOICE("context", TnpConfig, context, contexts),
	TNP_OBJECT("chain", chain_keys),
	TNP_OBJECT_OPTIONAL("limits", limits_keys),
	TNP_END
};
static const TnpKey width_keys[] = {
	TNP_INTEGER("width", TnpConfig, width, 1, TNP_MAX_WIDTH),
	TNP_END
};
static const TnpKey last_keys[] = {
	TNP_CHOICE("activation", TnpConfig, activation, tnp_activation_choices),
	TNP_OTHER("embedder", TnpConfig, embedder, read_embedder),
	TNP_OTHER("head", TnpConfig, head, read_head),
	TNP_END
};

/* ---- the variants ---------------------------------------------------------------------------- */

/* The family of this name: its number in the table is the choice. */
static TnpStatus
read_architecture(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	TnpChoice	names[MAX_FAMILIES + 1] = {{0}};
	int			family = 0,
				n = 0;
	TnpStatus	status;

	for (int i = 0; i < MAX_FAMILIES && tnp_families[i] != NULL; i++)
		if (tnp_families[i]->published == NULL)
			names[n++] = (TnpChoice) {tnp_families[i]->name, i};
	status = tnp_read_choice(reader, path, value, names, &family);
	if (status == TNP_OK)
		*(const TnpFamily **) field = tnp_families[family];
	return status;
}

static TnpStatus
read_encoder_x(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	return tnp_read_variant(reader, path, value, encoders_x, encoder_variants, field);
}

static TnpStatus
read_encoder_y(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	return tnp_read_variant(reader, path, value, encoders_y, encoder_variants, field);
}

static TnpStatus
read_part_x(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	return tnp_read_variant(reader, path, value, parts_x, part_variants, field);
}

static TnpStatus
read_part_y(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	return tnp_read_variant(reader, path, value, parts_y, part_variants, field);
}

/* An encoder of a vector of numbers. */
static TnpStatus
read_encoder(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	return tnp_read_variant(reader, path, value, encoders, encoder_variants, field);
}

/*
 * field is the encoder that the tokens belong to: its first member is what the table's row names.
 */
static TnpStatus
read_tokens(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	_Static_assert(offsetof(TnpEncoderConfig, kind) == 0,
				   "the row \"tokens\" names the encoder itself");
	return json_is_null(value) ? TNP_OK : tnp_read_object(reader, path, value, tokens_keys, field);
}

static TnpStatus
read_embedder(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	TnpConfig  *config = reader->root;

	(void) field;
	config->embedder_activation = config->activation;
	return tnp_read_variant(reader, path, value, embedders, embedder_variants, config);
}

static TnpStatus
read_head(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	TnpConfig  *config = reader->root;

	(void) field;
	config->head_activation = config->activation;
	return tnp_read_variant(reader, path, value, head_kinds, head_variants, config);
}

/* All keys of a family's configuration, in the order in which they are read. */
static void
join_keys(const TnpFamily *family, TnpKey keys[MAX_KEYS])
{
	static const TnpKey none[] = {TNP_END};
	const TnpKey *const parts[] = {first_keys, family->bare ? none : width_keys, family->keys,
		family->bare ? none : last_keys};
	int			n = 0;

	memset(keys, 0, MAX_KEYS * sizeof(TnpKey));
	for (int p = 0; p < 4; p++)
		for (const TnpKey *key = parts[p]; key->name != NULL && n < MAX_KEYS - 1; key++)
			keys[n++] = *key;
}

/* ---- entry points ---------------------------------------------------------------------------- */

static bool
config_keeps_scale(TnpScaling scaling)
{
	return scaling == TNP_SCALE_NONE || scaling == TNP_SCALE_FIXED;
}

/* Whether appended rows leave all that is kept of a full context as it is. */
static bool
config_rows_append(const TnpConfig *config)
{
	return config->context == TNP_FULL && config->positions == 0
		&& config_keeps_scale(config->input_scaling) && config_keeps_scale(config->target_scaling)
		&& config->family->lone_rows != NULL && config->family->lone_rows(config);
}

/* Whether nothing that is kept of a context depends on where its prefix ends. */
static bool
config_has_no_prefix(const TnpConfig *config)
{
	return config->context == TNP_PREFIX_CAUSAL && config->family->take_over != NULL
		&& config_keeps_scale(config->input_scaling) && config_keeps_scale(config->target_scaling);
}

/* Turn what was convenient for reading into what config.h promises. */
static void
config_settle(TnpConfig *config)
{
	if (config->n_features != 0)
		config->max_features = config->n_features;
	for (int t = 0; config->target_scaling != TNP_SCALE_FIXED && t < config->n_targets; t++)
	{
		config->target_center[t] = 0;
		config->target_scale[t] = 1;
	}
	if (config_rows_append(config))
	{
		config->context = TNP_PREFIX_CAUSAL;
		config->buffer = 0;
	}
	if (config_has_no_prefix(config))
		config->context = TNP_CAUSAL;
}

TnpStatus
tnp_config_parse(const TnpEnv *env, const char *json, size_t length, TnpConfig *config,
				 TnpError *error)
{
	TnpReader	reader = {env, error, config};
	json_t	   *root = NULL;
	TnpStatus	status;

	memset(config, 0, sizeof(*config));
	config->target_center[0] = config->target_scale[0] = NAN;
	config->head_outputs = 1;
	config->n_targets = 1;
	config->row_limit = ROW_LIMIT;

	status = tnp_json_parse(json, length, MAX_VALUES, TNP_BAD_CONFIG, "the configuration", &root,
							error);
	/* The format comes first: what other formats have in them is unknown here. */
	if (status == TNP_OK && json_object_get(root, "format") != NULL)
		status = read_format(&reader, "format", json_object_get(root, "format"), NULL);
	/* then the architecture, which says what the other keys are */
	if (status == TNP_OK && json_object_get(root, "architecture") != NULL)
		status = read_architecture(&reader, "architecture", json_object_get(root, "architecture"),
								   &config->family);
	if (status == TNP_OK)
	{
		TnpKey		keys[MAX_KEYS];

		join_keys(config->family != NULL ? config->family : tnp_families[0], keys);
		status = tnp_read_object(&reader, "", root, keys, config);
	}
	if (status == TNP_OK && config->family->refine != NULL)
		config->family = config->family->refine(config);
	if (status == TNP_OK)
		status = tnp_config_check(config, error);
	if (status == TNP_OK && config->family->check != NULL)
		status = config->family->check(config, error);
	json_decref(root);
	if (status == TNP_OK)
	{
		config_settle(config);
		if (config->family->bare)
			config->family->complete(config);
	}
	else
		tnp_config_free(env, config);
	return status;
}

TnpStatus
tnp_config_parse_published(const TnpEnv *env, const char *json, size_t length, TnpConfig *config,
						   TnpError *error)
{
	TnpReader	reader = {env, error, config};
	json_t	   *root = NULL;
	TnpStatus	status;

	memset(config, 0, sizeof(*config));
	config->n_targets = 1;
	config->row_limit = ROW_LIMIT;
	for (int i = 0; tnp_families[i] != NULL && config->family == NULL; i++)
		if (tnp_families[i]->published != NULL)
			config->family = tnp_families[i];
	if (config->family == NULL)
		return tnp_fail(error, TNP_BAD_CONFIG, "no package's own configurations are known");
	status = tnp_json_parse(json, length, MAX_VALUES, TNP_BAD_CONFIG, "the configuration", &root,
							error);
	if (status == TNP_OK)
		status = tnp_read_object(&reader, "", root, config->family->published, config);
	if (status == TNP_OK)
		status = config->family->check(config, error);
	json_decref(root);
	if (status == TNP_OK)
	{
		config->family->complete(config);
		config_settle(config);
	}
	else
		tnp_config_free(env, config);
	return status;
}

void
tnp_config_free(const TnpEnv *env, TnpConfig *config)
{
	tnp_drop(env, config->input_center);
	tnp_drop(env, config->input_scale);
	memset(config, 0, sizeof(*config));
}
