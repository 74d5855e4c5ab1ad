/*
 * config_rules.c: what keys of a configuration exclude or need of each other.
 *
 * A rule is a row of a table; the first that is broken is the error. Those of one family are in its
 * own file. docs/model-format.md says why.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/file/config.h"

#include <math.h>

#include "engine/base/error.h"

TnpStatus
tnp_check_rules(size_t n, const TnpRule *rules, TnpError *error)
{
	for (size_t i = 0; i < n; i++)
	{
		if (!rules[i].broken)
			continue;
		tnp_fail(error, TNP_BAD_CONFIG, "%s", rules[i].message);
		if (rules[i].name_b != NULL)
			tnp_detail(error, "%s is %d, %s is %d", rules[i].name_a, rules[i].a, rules[i].name_b,
					   rules[i].b);
		else if (rules[i].name_a != NULL)
			tnp_detail(error, "%s is %d", rules[i].name_a, rules[i].a);
		return TNP_BAD_CONFIG;
	}
	return TNP_OK;
}

TnpStatus
tnp_stack_check(const TnpConfig *c, TnpError *error)
{
	const TnpRule rules[] = {
		{c->min_rows < 1 && c->sinks == 0,
		 "min_rows must be at least 1 in a model without attention.sinks",
		 "min_rows", c->min_rows, NULL, 0},
		{c->width % c->heads != 0, "heads must divide width", "heads", c->heads, "width", c->width},
	};

	return tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error);
}

/* Components of a query's donors before they are joined. */
#define MOST_JOINED 4096

TnpStatus
tnp_config_check(const TnpConfig *c, TnpError *error)
{
	const bool	rows = c->embedder == TNP_ADDITIVE && c->encode_x.kind == TNP_ENCODE_ROWS;
	const bool	input_fixed = c->input_scaling == TNP_SCALE_FIXED;
	const bool	target_fixed = c->target_scaling == TNP_SCALE_FIXED;
	const bool	prefix = tnp_scales_inputs(c) || c->target_scaling == TNP_SCALE_PREFIX;
	const bool	full = c->context == TNP_FULL;
	const bool	several = c->n_targets > 1;
	const bool	classes = c->target_scaling == TNP_SCALE_CLASSES;
	const bool	encodes_classes = c->embedder == TNP_ADDITIVE
		&& c->encode_y.kind == TNP_ENCODE_CLASSES;
	const bool	target_numbers = !isnan(c->target_center[0]) || !isnan(c->target_scale[0]);
	const int	tokens = c->encode_x.token_width;
	const int	token_heads = c->encode_x.token_heads;

	const unsigned taken = c->family->embedders != 0 ? c->family->embedders
		: 1 << TNP_CONCAT | 1 << TNP_ADDITIVE;
	const TnpRule rules[] = {
		{(taken & 1 << c->embedder) == 0,
		 "embedder.kind is not one that the architecture takes", NULL, 0, NULL, 0},
		{c->head == TNP_HEAD_JOINT && !c->family->joint_heads,
		 "the architecture, or its attention, excludes head.kind \"joint-gaussian\"",
		 NULL, 0, NULL, 0},
		{several && !c->family->several_targets, "the architecture takes one target per row",
		 "target.count", c->n_targets, NULL, 0},
		{several && rows, "the embedder's x.kind \"rows\" takes one target per row",
		 "target.count", c->n_targets, NULL, 0},
		{several && c->head != TNP_HEAD_GAUSSIAN && c->head != TNP_HEAD_MIXTURE
		 && c->head != TNP_HEAD_BARS && c->head != TNP_HEAD_JOINT,
		 "several targets need head.kind \"gaussian\", \"mixture\", \"bars\" or "
		 "\"joint-gaussian\"",
		 "target.count", c->n_targets, NULL, 0},
		{c->n_features == 0 && c->max_features == 0,
		 "one of inputs.features and inputs.max_features is needed", NULL, 0, NULL, 0},
		{c->n_features != 0 && c->max_features != 0,
		 "inputs.features and inputs.max_features exclude each other",
		"inputs.features", c->n_features, "inputs.max_features", c->max_features},
		{c->max_features != 0 && !rows && c->embedder != TNP_SET && !c->family->bare,
		 "inputs.max_features needs the embedder's x.kind \"rows\"",
		 NULL, 0, NULL, 0},
		{rows && c->max_features == 0, "the embedder's x.kind \"rows\" needs inputs.max_features",
		 NULL, 0, NULL, 0},
		{c->input_scaling == TNP_SCALE_POWER && c->embedder != TNP_SET,
		 "inputs.scaling \"power\" needs the embedder \"set\"", NULL, 0, NULL, 0},
		{rows && c->input_scaling != TNP_SCALE_PREFIX,
		 "the embedder's x.kind \"rows\" needs inputs.scaling \"prefix\"", NULL, 0, NULL, 0},
		{rows && c->target_scaling != TNP_SCALE_PREFIX && !classes,
		"the embedder's x.kind \"rows\" needs target.scaling \"prefix\" or \"classes\"", NULL, 0,
		NULL, 0},
		{c->far_cells > 0 && !rows, "inputs.far needs the embedder's x.kind \"rows\"", NULL, 0,
		 NULL, 0},
		{c->far_targets > 0 && !(rows && !classes && c->n_targets == 1),
		 "target.far needs the embedder's x.kind \"rows\" and one target, which is a number", NULL,
		 0, NULL, 0},
		{c->orders_classes && !(rows && classes),
		 "target.order \"counts\" needs target.scaling \"classes\" and the embedder's x.kind "
		 "\"rows\"", NULL, 0, NULL, 0},
		{rows && c->encode_x.prune && classes, "embedder.x.prune is for regression models", NULL, 0,
		 NULL, 0},
		{rows && c->encode_x.ridge && !(c->input_clip > 0), "embedder.x.ridge needs inputs.clip",
		 NULL, 0, NULL, 0},
		{rows && c->encode_x.ridge && !classes && !(c->target_clip > 0),
		 "embedder.x.ridge needs target.clip", NULL, 0, NULL, 0},
		{rows && c->encode_x.logistic && !classes, "embedder.x.logistic is for classifiers", NULL,
		 0, NULL, 0},
		{rows && c->encode_x.logistic && !(c->input_clip > 0),
		 "embedder.x.logistic needs inputs.clip", NULL, 0, NULL, 0},
		{c->logistic_blend_weight > 0 && !(rows && c->encode_x.logistic),
		 "head.logistic needs embedder.x.logistic", NULL, 0, NULL, 0},
		{c->trees_blend_weight > 0 && c->head == TNP_HEAD_CLASSES
		 && !(rows && c->encode_x.logistic),
		 "head.trees needs embedder.x.logistic", NULL, 0, NULL, 0},
		{c->class_process > 0 && !(rows && c->encode_x.logistic),
		 "head.class_process needs embedder.x.logistic", NULL, 0, NULL, 0},
		{c->trees_blend_weight > 0 && c->head == TNP_HEAD_MIXTURE && c->gate_hidden == 0,
		 "head.trees needs head.process", NULL, 0, NULL, 0},
		{c->few_values > 0 && !(c->trees_blend_weight > 0 && rows && c->encode_x.ridge),
		 "head.few_values needs head.trees and embedder.x.ridge", NULL, 0, NULL, 0},
		{c->levels > 0 && c->gate_hidden == 0, "head.levels needs head.process", NULL, 0, NULL, 0},
		{c->rare > 0 && c->gate_hidden == 0, "head.rare needs head.process", NULL, 0, NULL, 0},
		{c->rare > 0 && c->head_outputs < 3, "head.rare needs head.components of 3 or more", NULL,
		 0, NULL, 0},
		{rows && c->encode_x.prune && !c->encode_x.ridge, "embedder.x.prune needs embedder.x.ridge",
		 NULL, 0, NULL, 0},
		{rows && c->encode_x.prune_judged && !(c->encode_x.prune && c->encode_x.process),
		 "embedder.x.prune_judged needs embedder.x.prune and embedder.x.process", NULL, 0, NULL, 0},
		{rows && c->encode_x.prune_below > 0 && !c->encode_x.prune,
		 "embedder.x.prune_below needs embedder.x.prune", NULL, 0, NULL, 0},
		{rows && c->encode_x.pairs && !c->encode_x.prune,
		 "embedder.x.pairs needs embedder.x.prune", NULL, 0, NULL, 0},
		{rows && c->encode_x.absent && classes, "embedder.x.absent is for regression models", NULL,
		 0, NULL, 0},
		{rows && c->encode_x.absent && !c->encode_x.ridge,
		 "embedder.x.absent needs embedder.x.ridge", NULL, 0, NULL, 0},
		{rows && c->encode_x.donors > 0 && !(c->input_clip > 0),
		 "embedder.x.donors needs inputs.clip", NULL, 0, NULL, 0},
		{rows && c->encode_x.donors > 0 && c->head == TNP_HEAD_JOINT,
		 "embedder.x.donors excludes head.kind \"joint-gaussian\"", NULL, 0, NULL, 0},
		{rows && c->encode_x.donors > 0 && c->head == TNP_HEAD_MIXTURE
		 && (c->encode_x.donors + 1) * (c->head_outputs + (c->gate_hidden > 0))
		 > MOST_JOINED,
		 "embedder.x.donors are too many for so many components", "embedder.x.donors",
		 c->encode_x.donors, "head.components", c->head_outputs},
		{rows && c->encode_x.shift && (c->encode_x.donors == 0 || !c->encode_x.process),
		 "embedder.x.shift needs embedder.x.donors and process", NULL, 0, NULL, 0},
		{rows && c->encode_x.shift
		 && c->head != TNP_HEAD_GAUSSIAN && c->head != TNP_HEAD_MIXTURE,
		 "embedder.x.shift needs head.kind \"gaussian\" or \"mixture\"", NULL, 0, NULL, 0},
		{rows && c->encode_x.codes_by_targets && classes && !c->orders_classes,
		 "embedder.x.codes \"targets\" of a classifier needs target.order \"counts\"",
		 NULL, 0, NULL, 0},
		{rows && c->encode_x.orient && classes && !c->orders_classes,
		 "embedder.x.orient of a classifier needs target.order \"counts\"", NULL, 0, NULL, 0},
		{rows && c->encode_x.orient && !classes
		 && c->head != TNP_HEAD_GAUSSIAN && c->head != TNP_HEAD_MIXTURE,
		 "embedder.x.orient needs head.kind \"gaussian\" or \"mixture\"", NULL, 0, NULL, 0},
		{c->gate_hidden > 0 && !(rows && c->encode_x.process),
		 "head.process needs embedder.x.process", NULL, 0, NULL, 0},
		{c->gate_hidden > 0 && c->head_outputs == TNP_MOST_COMPONENTS,
		 "head.process needs room for one more of head.components", "head.components",
		 c->head_outputs, NULL, 0},
		{c->gate_record && !(c->gate_hidden > 0 && rows && c->encode_x.ridge),
		 "head.process_record needs head.process and embedder.x.ridge", NULL, 0, NULL, 0},
		{c->gate_behind && c->gate_hidden == 0, "head.process_behind needs head.process", NULL, 0,
		 NULL, 0},
		{c->process_chain && c->gate_hidden == 0, "head.process_chain needs head.process", NULL, 0,
		 NULL, 0},
		{rows && c->encode_x.process && classes, "embedder.x.process is for regression models",
		 NULL, 0, NULL, 0},
		{rows && c->encode_x.process && !(c->input_clip > 0),
		 "embedder.x.process needs inputs.clip", NULL, 0, NULL, 0},
		{rows && c->encode_x.process && !(c->target_clip > 0),
		 "embedder.x.process needs target.clip", NULL, 0, NULL, 0},
		{rows && c->encode_x.directions > 0 && !c->encode_x.process,
		 "embedder.x.directions needs embedder.x.process", NULL, 0, NULL, 0},
		{rows && c->encode_x.additive && !c->encode_x.process,
		 "embedder.x.additive needs embedder.x.process", NULL, 0, NULL, 0},
		{rows && c->encode_x.nearest && !c->encode_x.process,
		 "embedder.x.nearest needs embedder.x.process", NULL, 0, NULL, 0},
		{rows && c->encode_x.line && !c->encode_x.process,
		 "embedder.x.line needs embedder.x.process", NULL, 0, NULL, 0},
		{rows && c->encode_x.labels && !c->encode_x.process && !c->encode_x.logistic,
		 "embedder.x.labels needs embedder.x.process or embedder.x.logistic", NULL, 0, NULL, 0},
		{classes && c->head != TNP_HEAD_CLASSES,
		 "target.scaling \"classes\" needs head.kind \"classes\"", NULL, 0, NULL, 0},
		{!classes && c->head == TNP_HEAD_CLASSES,
		 "head.kind \"classes\" needs target.scaling \"classes\"", NULL, 0, NULL, 0},
		{classes && !encodes_classes,
		 "target.scaling \"classes\" needs the embedder's y.kind \"classes\"", NULL, 0, NULL, 0},
		{!classes && encodes_classes,
		 "the embedder's y.kind \"classes\" needs target.scaling \"classes\"", NULL, 0, NULL, 0},
		{classes && c->target_clip != 0, "target.clip must be 0 for target.scaling \"classes\"",
		 NULL, 0, NULL, 0},
		{input_fixed && (c->input_center == NULL || c->input_scale == NULL),
		"inputs.scaling \"fixed\" needs inputs.center and inputs.scale", NULL, 0, NULL, 0},
		{!input_fixed && (c->input_center != NULL || c->input_scale != NULL),
		"inputs.center and inputs.scale are for inputs.scaling \"fixed\"", NULL, 0, NULL, 0},
		{target_fixed && (isnan(c->target_center[0]) || isnan(c->target_scale[0])),
		"target.scaling \"fixed\" needs target.center and target.scale", NULL, 0, NULL, 0},
		{!target_fixed && target_numbers,
		 "target.center and target.scale are for target.scaling \"fixed\"", NULL, 0, NULL, 0},
		{c->min_rows < 2 && prefix, "min_rows must be at least 2 where a scaling is \"prefix\"",
		 "min_rows", c->min_rows, NULL, 0},
		{!full && c->buffer != 0, "chain.buffer must be null unless context is \"full\"",
		 "chain.buffer", c->buffer, NULL, 0},
		{!full && c->positions > 0, "embedder.positions must be 0 unless context is \"full\"",
		"embedder.positions", c->positions, NULL, 0},
		{!full && c->strict, "chain.mask \"strict\" needs context \"full\"", NULL, 0, NULL, 0},
		{c->positions > 0 && c->buffer == 0, "embedder.positions needs a limit in chain.buffer",
		"embedder.positions", c->positions, NULL, 0},
		{c->positions > 0 && c->positions < c->buffer - 1,
		 "embedder.positions must be at least chain.buffer - 1",
		"embedder.positions", c->positions, "chain.buffer", c->buffer},
		{tokens > 0 && tokens % token_heads != 0,
		 "embedder.x.tokens.heads must divide embedder.x.tokens.width",
		"heads", token_heads, "width", tokens},
		{(c->std_map == TNP_STD_EXP || c->std_map == TNP_STD_BOUNDED) && c->std_floor != 0,
		"head.floor must be 0 for head.std \"exp\" and \"bounded\"", NULL, 0, NULL, 0},
		{c->std_map == TNP_STD_SOFTPLUS_COMPLEMENT && c->std_floor >= 1,
		"head.floor must be below 1 for head.std \"softplus-complement\"", NULL, 0, NULL, 0},
		{c->half_normal_tails && c->head_outputs < 2,
		 "head.tails \"half-normal\" needs at least 2 buckets",
		"head.buckets", c->head_outputs, NULL, 0},
	};

	return tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error);
}
