/*
 * half_test.c: the bundled models in 16-bit precision on the emulated CUDA device against the
 * engine: the error of the mean, in predictive standard deviations, has its 99th percentile at one
 * per cent at most; and what is not finite is told.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cuda_tests.h"
#include "tap.h"

#define SEEDS 2
#define QUERIES 48
#define STEPS 4
#define DRAWS 16

static int
ascending(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

/*
 * Rows like those that the bundled models were trained on: smooth functions of a few features, with
 * noise.
 */
static void
make_rows(TestRows *rows, int features, int n, unsigned seed)
{
	unsigned	state = seed * 2654435761u + 99;
	double		slope = 1 + 2 * test_uniform(&state),
				phase = 6 * test_uniform(&state);

	rows->x = malloc((size_t) n * features * sizeof(double));
	rows->y = malloc((size_t) n * sizeof(double));
	for (int i = 0; i < n; i++)
	{
		double		sum = 0;

		for (int f = 0; f < features; f++)
		{
			rows->x[i * features + f] = 4 * test_uniform(&state) - 2;
			sum += sin(slope * rows->x[i * features + f] + phase) / (f + 1);
		}
		rows->y[i] = sum + 0.2 * (test_uniform(&state) - 0.5);
	}
	rows->view = (TnpRows) {n, features, NULL, rows->x, rows->y, 0, 0, 1};
}

static void
check_model(TnpDevice *device, const TestModel *file, int context)
{
	TnpDeviceModel *m = cuda_load(device, file);
	TnpModel   *model;
	TnpDistributionKind kind;
	int			components,
				size;
	TnpError	error;
	double	   *mean = malloc(SEEDS * QUERIES * sizeof(double)),
			   *draw = malloc(SEEDS * STEPS * DRAWS * sizeof(double)),
				spread = 0,
				density = 0,
				joint = 0;
	bool		answered = true,
				learns;

	tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error);
	learns = tnp_model_info(model)->learns_in_chains;
	tnp_answer_shape(model, &kind, &components);
	size = tnp_distribution_size(kind, components);
	for (int seed = 0; seed < SEEDS; seed++)
	{
		TestRows	rows;
		TnpRows		given,
					queries,
					steps;
		TnpEncoding *want;
		TnpDeviceEncoding *got;
		double	   *params = malloc((size_t) QUERIES * size * sizeof(double)),
					reduced[QUERIES * 3],
					draws[STEPS * DRAWS],
					wanted[STEPS * DRAWS],
					score[2];
		TnpRequest	r[3];

		make_rows(&rows, tnp_model_info(model)->n_features > 0 ? tnp_model_info(model)->n_features
				  : 3, context + QUERIES + STEPS, (unsigned) seed + 1);
		given = test_slice(&rows, 0, context);
		queries = test_slice(&rows, context, QUERIES);
		steps = test_slice(&rows, context + QUERIES, STEPS);
		answered = answered && tnp_build(model, &given, context, &want, &error) == TNP_OK
			&& tnp_device.encoding_build(m, &given, context, 0, &got, &error) == TNP_OK;
		if (!answered)
			break;
		memset(r, 0, sizeof(r));
		for (int i = 0; i < 3; i++)
		{
			r[i].rows = context;
			r[i].queries = i == 0 ? queries : steps;
		}
		r[0].kind = TNP_REQUEST_REDUCE;
		r[0].reductions = TNP_REDUCE_MEAN | TNP_REDUCE_SD | TNP_REDUCE_LOG_DENSITY;
		r[0].answer = reduced;
		r[1].kind = TNP_REQUEST_SAMPLE;
		r[1].draws = DRAWS;
		r[1].seed = 17;
		r[1].answer = draws;
		r[2].kind = TNP_REQUEST_SCORE;
		r[2].orders = TNP_AS_APPENDED;
		r[2].answer = &score[0];
		/* chains that a process learns from are the session's */
		for (int i = 0; i < 3; i++)
			answered = cuda_ask(got, &r[i]) == (i == 1 && learns ? TNP_NOT_HERE : TNP_OK)
				&& answered;
		answered = answered && tnp_predict(want, &queries, params, &error) == TNP_OK
			&& tnp_sample(want, &steps, 17, 0, DRAWS, wanted, &error) == TNP_OK
				&& tnp_score(want, &steps, TNP_AS_APPENDED, 0, &score[1], NULL, &error) == TNP_OK;
		if (learns)
			memcpy(draws, wanted, sizeof(draws));
		for (int i = 0; answered && i < QUERIES; i++)
		{
			TnpDistribution d = {kind, components, params + (size_t) i * size};
			double		sd = sqrt(tnp_variance(&d));

			mean[seed * QUERIES + i] = fabs(reduced[3 * i] - tnp_mean(&d)) / sd;
			spread = fmax(spread, fabs(reduced[3 * i + 1] / sd - 1));
			density += (reduced[3 * i + 2] - tnp_log_pdf(&d, queries.y[i])) / (SEEDS * QUERIES);
		}
		for (int i = 0; answered && i < STEPS * DRAWS; i++)
			draw[seed * STEPS * DRAWS + i] = fabs(draws[i] - wanted[i]);
		joint = fmax(joint, fabs(score[0] - score[1]));
		tnp_encoding_free(want);
		tnp_device.encoding_free(got);
		test_rows_free(&rows);
		free(params);
	}
	ok(answered, "%s: answered", file->name);
	if (answered)
	{
		qsort(mean, SEEDS * QUERIES, sizeof(double), ascending);
		qsort(draw, SEEDS * STEPS * DRAWS, sizeof(double), ascending);
		ok(mean[SEEDS * QUERIES * 99 / 100] <= 0.01,
		   "%s, %d rows: error of the mean, 99th percentile: %.2f %% of the sd", file->name,
		   context, 100 * mean[SEEDS * QUERIES * 99 / 100]);
		ok(spread <= 0.02, "%s, %d rows: largest relative error of the sd %.2f %%", file->name,
		   context, 100 * spread);
		ok(fabs(density) <= 1e-3, "%s, %d rows: mean error of the log density %.1e", file->name,
		   context, density);
		ok(joint <= 0.1, "%s, %d rows: largest error of a joint log density %.1e", file->name,
		   context, joint);
		/* a draw near the border of two components may take the other one */
		if (!learns)
			ok(draw[SEEDS * STEPS * DRAWS * 9 / 10] <= 0.02,
			   "%s, %d rows: nine tenths of the draws differ by %.1e at most", file->name, context,
			   draw[SEEDS * STEPS * DRAWS * 9 / 10]);
	}
	free(mean);
	free(draw);
	tnp_model_close(model);
	tnp_device.model_free(m);
}

/* A classifier: probabilities, and draws of classes. */
static void
check_classifier(TnpDevice *device, const TestModel *file, int context)
{
	TnpDeviceModel *m = cuda_load(device, file);
	TnpModel   *model;
	TnpDistributionKind kind;
	int			classes;
	TnpError	error;
	TestRows	rows;
	TnpRows		given,
				queries;
	TnpEncoding *want;
	TnpDeviceEncoding *got;
	TnpRequest	r;
	double	   *wanted,
			   *answer,
				largest = 0;

	tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error);
	tnp_answer_shape(model, &kind, &classes);
	make_rows(&rows, 3, context + QUERIES, 5);
	for (int i = 0; i < context + QUERIES; i++)
		rows.y[i] = rows.y[i] < -0.3 ? 0 : rows.y[i] < 0.4 ? 1 : 2;
	rows.view.n_classes = 3;
	given = test_slice(&rows, 0, context);
	queries = test_slice(&rows, context, QUERIES);
	wanted = malloc((size_t) QUERIES * classes * sizeof(double));
	answer = malloc((size_t) QUERIES * classes * sizeof(double));
	memset(&r, 0, sizeof(r));
	r.kind = TNP_REQUEST_PREDICT;
	r.rows = context;
	r.queries = queries;
	r.answer = answer;
	if (tnp_build(model, &given, context, &want, &error) == TNP_OK
		&& tnp_device.encoding_build(m, &given, context, 0, &got, &error) == TNP_OK)
	{
		ok(cuda_ask(got, &r) == TNP_OK && tnp_predict(want, &queries, wanted, &error) == TNP_OK,
		   "%s: answered", file->name);
		for (int i = 0; i < QUERIES * classes; i++)
			largest = fmax(largest, fabs(answer[i] - wanted[i]));
		ok(largest <= 0.01, "%s, %d rows: largest error of a probability %.1e", file->name, context,
		   largest);
		tnp_encoding_free(want);
		tnp_device.encoding_free(got);
	}
	else
		ok(false, "%s: %s", file->name, error.message);
	free(wanted);
	free(answer);
	test_rows_free(&rows);
	tnp_model_close(model);
	tnp_device.model_free(m);
}

/*
 * What is too large for operands of 16 bits, or not finite, is told, to the requests alone that
 * have it; what just fits one of them may not fit another.
 */
static bool
as_told(TnpStatus status, bool fits)
{
	return status == TNP_BAD_VALUE || (fits && status == TNP_OK);
}

static void
check_finite(TnpDevice *device, const TestModel *file, int context)
{
	static const double features[] = {70000, 1e20, 1e38, 3e38};
	TnpDeviceModel *m = cuda_load(device, file);
	TnpModel   *model;
	TnpError	error;
	TestRows	rows;
	TnpRows		given;
	TnpEncoding *want;
	TnpDeviceEncoding *got;
	TnpRequest	r[4];
	double		params[64],
				answer[4];

	tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error);
	make_rows(&rows, 1, context + 2, 3);
	given = test_slice(&rows, 0, context);
	if (tnp_build(model, &given, context, &want, &error) != TNP_OK
		|| tnp_device.encoding_build(m, &given, context, 0, &got, &error) != TNP_OK)
	{
		ok(false, "%s: %s", file->name, error.message);
		return;
	}
	for (int i = 0; i < 4; i++)
	{
		TnpRows		usual = test_slice(&rows, 0, 1),
					large = {.n = 1, .n_features = 1, .x = &features[i]},
					joint = test_slice(&rows, context, 2);
		TnpStatus	expected = i < 2 ? TNP_OK : TNP_BAD_VALUE;

		rows.x[context] = features[i];
		memset(r, 0, sizeof(r));
		for (int k = 0; k < 4; k++)
		{
			r[k].rows = context;
			r[k].kind = k < 2 ? TNP_REQUEST_REDUCE : k == 2 ? TNP_REQUEST_SAMPLE
				: TNP_REQUEST_SCORE;
			r[k].reductions = TNP_REDUCE_MEAN;
			r[k].draws = 1;
			r[k].queries = k == 0 ? usual : k < 3 ? large : joint;
			r[k].answer = &answer[k];
			r[k].status = TNP_INTERRUPTED;
		}
		ok(tnp_device.answer(got, 4, r, &error) == TNP_OK && r[0].status == TNP_OK
		   && isfinite(answer[0]), "%s: a usual row beside a feature of %g", file->name,
		   features[i]);
		is_int(tnp_predict(want, &large, params, &error), expected,
			   "the engine predicts what is finite");
		ok(as_told(r[1].status, i == 0), "the device refuses what does not fit");
		ok(as_told(r[2].status, i == 0), "and draws likewise");
		is_int(tnp_score(want, &joint, 0, 0, &answer[0], NULL, &error), expected,
			   "the engine's density likewise");
		ok(as_told(r[3].status, i == 0), "the device's is refused");
	}
	tnp_encoding_free(want);
	tnp_device.encoding_free(got);
	/* keys and values that are not finite are refused where they would be kept */
	rows.x[0] = features[3];
	is_int(tnp_device.encoding_build(m, &given, context, 0, &got, &error), TNP_BAD_VALUE,
		   "a context that is not finite is not kept");
	test_rows_free(&rows);
	tnp_model_close(model);
	tnp_device.model_free(m);
}

static bool
on_gpu(const TestModel *file)
{
	TnpModel   *model;
	TnpError	error;
	bool		on_gpu;

	tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error);
	on_gpu = tnp_model_info(model)->on_gpu;
	tnp_model_close(model);
	return on_gpu;
}

int
main(void)
{
	int			n;
	TestModel  *models;
	TnpDevice  *device = cuda_open(TNP_PRECISION_FP16, 0);

	setenv("POSTERIOR_TEST_MODELS", "models", 1);
	models = test_models(&n);
	for (int i = 0; i < n; i++)
	{
		/* sums have no kernels; parity_test sees that such models are refused by name */
		if (!on_gpu(&models[i]))
		{
			ok(strcmp(models[i].name, "tabular_sums") == 0, "%s has no kernels", models[i].name);
			continue;
		}
		if (strstr(models[i].name, "class") != NULL)
		{
			check_classifier(device, &models[i], 96);
			continue;
		}
		if (strcmp(models[i].name, "gp1d") == 0)
			check_finite(device, &models[i], 20);
		check_model(device, &models[i], 24);
		check_model(device, &models[i], 96);
	}
	tnp_device.shutdown(device);
	is_int(gpu_emulated.live, 0, "all memory has been given back");
	test_models_free(models, n);
	return done_testing();
}
