/*
 * model_fuzz.c: libFuzzer target for the model reader: any bytes are either a model that works or a
 * refusal that says why.
 *
 * An input that starts with a brace is read as a configuration alone, because random mutations of a
 * whole file seldom get past its length fields.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/file/config.h"
#include "engine/tnp.h"

/* Memory that one input may take; beyond it the allocator says no, as a server would. */
#define BUDGET ((size_t) 64 << 20)

static size_t used;

static void *
budget_alloc(void *arg, size_t size)
{
	size_t	   *block;

	(void) arg;
	if (size > BUDGET - used || (block = malloc(size + 16)) == NULL)
		return NULL;
	used += size;
	block[0] = size;
	return block + 2;
}

static void
budget_free(void *arg, void *pointer)
{
	size_t	   *block = (size_t *) pointer - 2;

	(void) arg;
	used -= block[0];
	free(block);
}

static const TnpEnv env = {.alloc = budget_alloc, .free = budget_free};

/* A failure must carry a message. */
static void
expect_message(TnpStatus status, const TnpError *error)
{
	if (status != TNP_OK && (error->status != status || error->message[0] == '\0'))
		abort();
}

/* Ask a model that was read for a prediction; whatever its weights, it answers or refuses. */
static void
try_model(const TnpModel *model)
{
	const TnpModelInfo *info = tnp_model_info(model);
	int			features = info->n_features > 0 ? info->n_features : 3,
				n = info->min_rows > 4 ? info->min_rows : 4,
				targets = info->n_targets;
	double	   *x,
			   *y,
			   *params;
	TnpEncoding *e;
	TnpError	error = {0};
	TnpStatus	status;

	if (info->min_rows > 16 || features > 64 || info->n_parameters > 200000)
		return;
	x = malloc((size_t) n * features * sizeof(double));
	y = malloc((size_t) n * targets * sizeof(double));
	params = malloc((size_t) tnp_answer_size(model) * sizeof(double));
	for (int i = 0; i < n; i++)
	{
		for (int f = 0; f < features; f++)
			x[i * features + f] = sin(i * 3 + f);
		for (int t = 0; t < targets; t++)
			y[i * targets + t] = info->n_classes > 0 ? i % info->n_classes : cos(i + t);
	}
	status = tnp_build(model, &(TnpRows){n, features, NULL, x, y, 0, 0, targets},
					   tnp_whole_prefix(model, n), &e, &error);
	expect_message(status, &error);
	if (status == TNP_OK)
	{
		status = tnp_predict(e, &(TnpRows) {1, features, NULL, x, NULL, 0, 0, 1}, params, &error);
		expect_message(status, &error);
		tnp_encoding_free(e);
	}
	free(x);
	free(y);
	free(params);
}

int			LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	TnpError	error = {0};
	TnpStatus	status;

	if (size > 0 && data[0] == '{')
	{
		TnpConfig	config;

		status = tnp_config_parse(&env, (const char *) data, size, &config, &error);
		expect_message(status, &error);
		if (status == TNP_OK)
			tnp_config_free(&env, &config);
		status = tnp_config_parse_published(&env, (const char *) data, size, &config, &error);
		expect_message(status, &error);
		if (status == TNP_OK)
			tnp_config_free(&env, &config);
	}
	else
	{
		TnpModel   *model;

		status = tnp_model_open(&env, data, size, &model, &error);
		expect_message(status, &error);
		if (status == TNP_OK)
		{
			try_model(model);
			tnp_model_close(model);
		}
	}
	if (used != 0)
		abort();
	return 0;
}
