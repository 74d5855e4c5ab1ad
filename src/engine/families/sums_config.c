/*
 * sums_config.c: the configuration of contexts that are sums (docs/sums.md, "The file").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums.h"

#include <float.h>
#include <jansson.h>

static TnpStatus
read_lengths(TnpReader *reader, const char *path, const json_t *value, void *field)
{
	SumsConfig *c = (SumsConfig *) (void *) ((TnpConfig *) reader->root)->own;
	TnpStatus	status = TNP_OK;

	(void) field;
	if (!json_is_array(value) || json_array_size(value) < 1
		|| json_array_size(value) > SUMS_MOST_LENGTHS)
		return tnp_fail_value(reader, path, value, "a list of 1 to 8 numbers above 0");
	c->n_lengths = (int) json_array_size(value);
	for (int i = 0; status == TNP_OK && i < c->n_lengths; i++)
		status = tnp_read_number(reader, path, json_array_get(value, i), DBL_MIN, 1e6,
								 &c->lengths[i]);
	return status;
}

static const TnpChoice profiles[] = {{"matern", SUMS_MATERN}, {"gaussian", SUMS_GAUSSIAN}, {0}};

#define MOST 1e6				/* of shapes, rates, and precisions that evidence begins with */

const TnpKey sums_keys[] = {
	TNP_OWN_INTEGER("waves", SumsConfig, waves, 0, 256),
	TNP_OWN_INTEGER("pairs", SumsConfig, pairs, 0, 64),
	TNP_OWN_INTEGER("pair_waves", SumsConfig, pair_waves, 1, 8),
	TNP_OWN_INTEGER("levels", SumsConfig, levels, 1, 64),
	TNP_OWN_INTEGER("buckets", SumsConfig, buckets, 1, 64),
	TNP_OWN_INTEGER("steps", SumsConfig, steps, 0, 64),
	TNP_OWN_INTEGER("points", SumsConfig, points, 1, SUMS_MOST_POINTS),
	TNP_OWN_INTEGER_OPTIONAL("directions", SumsConfig, directions, 0, 8),
	TNP_OWN_BOOLEAN("linear", SumsConfig, linear),
	{"profile", TNP_KEY_CHOICE, false, offsetof(TnpConfig, own) + offsetof(SumsConfig, profile),
		0, 0, profiles, NULL, NULL},
	TNP_OWN_OTHER("lengths", SumsConfig, lengths, read_lengths),
	TNP_OWN_NUMBER("start", SumsConfig, start, DBL_MIN, MOST),
	TNP_OWN_NUMBER("prior_shape", SumsConfig, prior_shape, DBL_MIN, MOST),
	TNP_OWN_NUMBER("prior_rate", SumsConfig, prior_rate, DBL_MIN, MOST),
	TNP_OWN_NUMBER("noise_shape", SumsConfig, noise_shape, DBL_MIN, MOST),
	TNP_OWN_NUMBER("noise_rate", SumsConfig, noise_rate, DBL_MIN, MOST),
	TNP_END
};

TnpStatus
sums_check(const TnpConfig *config, TnpError *error)
{
	const SumsConfig *c = TNP_OWN(config, SumsConfig);
	const TnpRule rules[] = {
		{config->context != TNP_PREFIX_CAUSAL,
		 "architecture \"sums\" needs context \"prefix-causal\"", NULL, 0, NULL, 0},
		{config->target_scaling == TNP_SCALE_CLASSES,
		 "architecture \"sums\" takes no labels", NULL, 0, NULL, 0},
		{config->input_clip != 0 || config->target_clip != 0,
		 "architecture \"sums\" excludes inputs.clip and target.clip", NULL, 0, NULL, 0},
		{config->min_rows < 1, "architecture \"sums\" needs min_rows of at least 1",
		 "min_rows", config->min_rows, NULL, 0},
		{c->directions > 0 && c->waves == 0, "directions need waves", "directions",
		 c->directions, "waves", c->waves},
	};

	return tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error);
}

/* Scaling belongs to the basis, and what the common parts see is unscaled. */
void
sums_complete(TnpConfig *config)
{
	SumsConfig *c = (SumsConfig *) (void *) config->own;

	c->inputs = config->input_scaling;
	c->target = config->target_scaling;
	config->input_scaling = TNP_SCALE_NONE;
	config->target_scaling = TNP_SCALE_NONE;
	config->head = TNP_HEAD_MIXTURE;
	config->head_outputs = c->n_lengths * c->points;
	config->width = 1;
}
