/*
 * model.c: widths that follow from a model's configuration.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/file/model.h"

int
tnp_ridge_width(const TnpModel *model)
{
	int			classes = tnp_classes(model);

	return model->config.encode_x.ridge ? TNP_RIDGES * (classes > 0 ? classes + 2 : 3) : 0;
}

int
tnp_process_width(const TnpModel *model)
{
	return model->config.encode_x.process ? TNP_PROCESS_NUMBERS : 0;
}

int
tnp_logistic_width(const TnpModel *model)
{
	return model->config.encode_x.logistic ? tnp_classes(model) + 1 : 0;
}

int
tnp_prior_logits_width(const TnpModel *model)
{
	if (model->config.gate_hidden > 0)
		return TNP_PROCESS_NUMBERS + (model->config.trees_blend_weight > 0);
	if (model->config.trees_blend_weight > 0 || model->config.class_process > 0)
		return tnp_classes(model) + 1;
	return model->config.logistic_blend_weight > 0 ? tnp_classes(model) : 0;
}

int
tnp_regression_features_width(const TnpModel *model)
{
	return tnp_ridge_width(model) + tnp_process_width(model) + tnp_logistic_width(model);
}
