/*
 * open.c: opens a model file: container, configuration, and every tensor bound to the layer that
 * uses it (bind.h; the tensors of a stack by its family).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/file/bind.h"

#include <stdio.h>

static void
bind_joint_head(TnpBinder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;

	if (c->final_norm)
		m->final_norm = tnp_bind_norm(b, "final_norm", c->width);
	m->head = tnp_bind_mlp(b, "head.mean", c->width, &c->head_hidden, c->n_targets,
						   c->head_activation);
	m->head_blocks = tnp_bind_layers(b, "head.block", c->head_blocks, c->width, c->feedforward,
									 false);
	m->projector = tnp_bind_mlp(b, "head.projector", c->width, &c->head_projector,
								c->n_targets * c->head_rank, c->head_activation);
}

static void
bind_head(TnpBinder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;
	int			out = c->n_targets * (c->head == TNP_HEAD_GAUSSIAN ? 2
									  : c->head == TNP_HEAD_MIXTURE ? 3 * c->head_outputs
									  : c->head_outputs);

	if (c->head == TNP_HEAD_JOINT)
	{
		bind_joint_head(b);
		return;
	}
	if (c->final_norm)
		m->final_norm = tnp_bind_norm(b, "final_norm", c->width);
	m->head = tnp_bind_mlp(b, "head", c->family->head_width(c), &c->head_hidden, out,
						   c->head_activation);
	if (c->gate_hidden > 0)
	{
		TnpHidden	hidden = {1, {c->gate_hidden}};

		m->gate = tnp_bind_mlp(b, "head.gate",
							   TNP_GATE_NUMBERS + (c->gate_record ? TNP_RECORD_NUMBERS : 0)
							   + (c->gate_behind ? 1 : 0),
							   &hidden, 1, c->head_activation);
	}
	if (c->head != TNP_HEAD_BARS)
		return;
	m->borders = tnp_bind_tensor(b, "head.borders", 1, c->head_outputs + 1, 0, 0);
	for (int i = 0; b->status == TNP_OK && i < c->head_outputs; i++)
		if (!(m->borders[i] < m->borders[i + 1]))
		{
			b->status = tnp_fail(b->error, TNP_BAD_TENSOR,
								 "tensor \"head.borders\" is not strictly increasing");
			tnp_detail(b->error, "border %d is %g, border %d is %g", i, m->borders[i], i + 1,
					   m->borders[i + 1]);
		}
}

/* Bind every tensor that the configuration asks for, and refuse a file that holds others. */
static TnpStatus
bind_model(TnpModel *m, const TnpFile *file, TnpError *error)
{
	TnpBinder	b = {m, file, error, TNP_OK, 0};

	if (!file->published && !m->config.family->bare)
		tnp_bind_embedder(&b);
	m->config.family->bind(&b);
	if (!file->published && !m->config.family->bare)
		bind_head(&b);
	if (b.status == TNP_OK && b.bound != file->n_tensors)
	{
		b.status = tnp_fail(error, TNP_BAD_TENSOR,
							"the file holds tensors that the configuration does not use");
		tnp_detail(error, "%d tensors in the file, %d used by the configuration", file->n_tensors,
				   b.bound);
	}
	return b.status;
}

/* What a published file says of itself, for people. */
static void
model_describe(TnpConfig *c, const TnpFile *file)
{
	if (!file->published)
		return;
	snprintf(c->description, sizeof(c->description), "licence %s; source %s",
			 file->licence[0] != '\0' ? file->licence : "not stated",
			 file->source[0] != '\0' ? file->source : "not stated");
}

static void
fill_info(TnpModel *m)
{
	static const char *const contexts[] = {"full", "causal", "prefix-causal"};
	static const char *const heads[] = {"gaussian", "mixture", "bars", "classes",
											  "quantiles", "joint-gaussian"};
	const TnpConfig *c = &m->config;
	TnpModelInfo *info = &m->info;
	bool		rows = c->embedder == TNP_ADDITIVE && c->encode_x.kind == TNP_ENCODE_ROWS;

	info->architecture = c->family->name;
	info->context = contexts[c->context];
	info->description = c->description;
	info->head = heads[c->head];
	info->n_classes = tnp_classes(m);
	info->n_targets = c->n_targets;
	info->each_target = c->family->each_target && c->n_targets == 1 && c->head != TNP_HEAD_JOINT;
	info->n_features = c->n_features;
	info->max_features = c->max_features;
	info->min_rows = c->min_rows;
	info->has_donors = c->encode_x.donors > 0;
	info->learns_in_chains = c->process_chain;
	info->has_views = c->family->published != NULL;
	info->buffer = c->buffer;
	info->row_limit = c->row_limit;
	info->appendable = c->family->appendable(c);
	info->mergeable = c->family->sums != NULL;
	info->revisable = c->family->take_over != NULL;
	info->takes_missing = info->takes_categories = rows || c->embedder == TNP_SET
		|| c->family->takes_any_cells;
	info->on_gpu = c->family->on_gpu && c->embedder != TNP_PARTS && c->head != TNP_HEAD_JOINT
		&& c->n_targets == 1
		&& c->width / c->heads <= (c->gate_hidden > 0 ? TNP_GPU_GATED_HEAD : TNP_GPU_HEAD);
	info->scales_by_prefix = tnp_scales_inputs(c)
		|| c->target_scaling == TNP_SCALE_PREFIX;
	info->goes_on = c->family->go_on != NULL && !info->scales_by_prefix;
	info->encoding_bytes_per_row = c->family->row_bytes(m)
		+ (c->encode_x.logistic ? tnp_classes(m) * sizeof(float) : 0);
}

TnpStatus
tnp_model_open(const TnpEnv *env, const void *bytes, size_t length, TnpModel **model,
			   TnpError *error)
{
	TnpModel   *m;
	TnpFile		file;
	TnpStatus	status;

	*model = NULL;
	if (env == NULL)
		env = &tnp_default_env;
	m = tnp_keep_zero(env, 1, sizeof(TnpModel));
	if (m == NULL)
		return tnp_no_memory(error);
	m->env = *env;
	m->kernels = env->kernels != NULL ? env->kernels : &tnp_reference_kernels;
	if (m->kernels->api != TNP_KERNELS_API || m->kernels->size != sizeof(TnpKernels))
	{
		tnp_fail(error, TNP_BAD_ARGUMENT,
				 "provider \"%s\" has interface version %d, this engine needs %d", m->kernels->name,
				 m->kernels->api, TNP_KERNELS_API);
		tnp_drop(env, m);
		return TNP_BAD_ARGUMENT;
	}

	status = tnp_file_open(env, bytes, length, &file, error);
	if (status != TNP_OK)
	{
		tnp_drop(env, m);
		return status;
	}
	status = (file.published ? tnp_config_parse_published : tnp_config_parse)
		(env, file.config, file.config_length, &m->config, error);
	if (status == TNP_OK)
	{
		model_describe(&m->config, &file);
		status = bind_model(m, &file, error);
	}
	tnp_file_close(env, &file);
	if (status != TNP_OK)
	{
		tnp_model_close(m);
		return status;
	}
	fill_info(m);
	*model = m;
	return TNP_OK;
}

TnpStatus
tnp_model_several(const TnpModel *model, int targets, TnpModel **several, TnpError *error)
{
	TnpModel   *m;

	*several = NULL;
	if (!model->info.each_target)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the model takes %d target%s per row",
						model->config.n_targets, model->config.n_targets == 1 ? "" : "s");
	if (targets < 1 || targets > TNP_MAX_TARGETS)
	{
		tnp_fail(error, TNP_BAD_ARGUMENT, "a row has 1 to %d targets", TNP_MAX_TARGETS);
		tnp_detail(error, "targets is %d", targets);
		return TNP_BAD_ARGUMENT;
	}
	m = tnp_keep_zero(&model->env, 1, sizeof(TnpModel));
	if (m == NULL)
		return tnp_no_memory(error);
	*m = *model;
	m->borrowed = true;
	m->config.n_targets = targets;
	m->config.each_target = true;
	for (int t = 1; t < targets; t++)
	{
		m->config.target_center[t] = m->config.target_center[0];
		m->config.target_scale[t] = m->config.target_scale[0];
	}
	fill_info(m);
	*several = m;
	return TNP_OK;
}

void
tnp_model_close(TnpModel *model)
{
	TnpEnv		env;

	if (model == NULL)
		return;
	env = model->env;
	if (model->borrowed)
	{
		tnp_drop(&env, model);
		return;
	}
	for (int i = 0; i < model->n_blocks; i++)
		tnp_drop(&env, model->blocks[i]);
	tnp_drop(&env, model->blocks);
	tnp_config_free(&env, &model->config);
	tnp_drop(&env, model);
}

const TnpModelInfo *
tnp_model_info(const TnpModel *model)
{
	return &model->info;
}
