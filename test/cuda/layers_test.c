/*
 * layers_test.c: models that are computed layer by layer. Wide ones, of which no tile's states fit
 * shared memory, agree with the engine; and, of models that would fit, answers have the same bits
 * whatever else is asked, in whatever portions rows came, and whatever runs first.
 *
 *   layers_test [MODEL]
 *
 * parity_test has every small model both ways.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cuda_tests.h"
#include "host.h"
#include "tap.h"

#define TOLERANCE 1e-4
#define HALF_TOLERANCE 2e-2		/* of weights at random */
#define CONTEXT 150				/* more than a block of rows, and than one of attention */
#define QUERIES 140
#define PARAMS 64				/* of one distribution, at most */

static TnpStatus
ask(TnpDeviceEncoding *e, int64_t rows, const TnpRows *queries, double *params)
{
	TnpRequest	r;

	memset(&r, 0, sizeof(r));
	r.kind = TNP_REQUEST_PREDICT;
	r.rows = rows;
	r.queries = *queries;
	r.queries.y = NULL;
	r.answer = params;
	return cuda_ask(e, &r);
}

/* ---- wide models ----------------------------------------------------------------------------- */

/* One encoding of n rows, and two more, against the engine's. */
static void
check_size(TnpModel *model, TnpDeviceModel *dm, const char *name, int n, double tolerance)
{
	const TnpModelInfo *info = tnp_model_info(model);
	int64_t		prefix = tnp_canonical_prefix(model, n);
	TestRows	rows;
	TnpRows		context,
				more,
				queries;
	TnpEncoding *engine;
	TnpDeviceEncoding *device;
	TnpDistributionKind kind;
	TnpError	error = {0};
	double		want[5 * PARAMS],
				got[5 * PARAMS],
				difference;
	int			size,
				components;

	tnp_answer_shape(model, &kind, &components);
	size = tnp_distribution_size(kind, components);
	test_rows_make(&rows, info, n + 7, 7);
	context = test_slice(&rows, 0, n);
	more = test_slice(&rows, n, 2);
	test_must(tnp_build(model, &context, prefix, &engine, &error), &error);
	test_must(tnp_device.encoding_build(dm, &context, prefix, 0, &device, &error), &error);
	for (int appended = 0; appended < 2; appended++)
	{
		queries = test_slice(&rows, n + 2, appended == 0 ? 5 : 1);
		queries.y = NULL;
		test_must(tnp_predict(engine, &queries, want, &error), &error);
		ok(ask(device, n + 2 * appended, &queries, got) == TNP_OK, "%s: asked about %d rows", name,
		   n);
		difference = largest_difference(got, want, (size_t) queries.n * size);
		ok(difference <= tolerance, "%s: %s %d rows, the predictions agree (%.1e)", name,
		   appended ? "two after" : "built of", n, difference);
		if (appended == 0)
		{
			test_must(tnp_append(engine, &more, &error), &error);
			test_must(tnp_device.encoding_append(device, &more, &error), &error);
		}
	}
	tnp_encoding_free(engine);
	tnp_device.encoding_free(device);
	test_rows_free(&rows);
}

static void
check_wide(const TestModel *file)
{
	TnpEnv		env = tnp_default_env;
	TnpModel   *model;
	TnpError	error;

	env.kernels = test_kernels();
	test_must(tnp_model_open(&env, file->bytes, file->length, &model, &error), &error);
	for (TnpPrecision precision = TNP_PRECISION_FP16; precision <= TNP_PRECISION_FP32; precision++)
	{
		TnpDevice  *device = cuda_open(precision, 0);
		TnpDeviceModel *dm = cuda_load_layered(device, file);
		bool		half = precision == TNP_PRECISION_FP16;
		double		tolerance = half ? HALF_TOLERANCE : TOLERANCE;

		if (dm == NULL)
		{
			tnp_device.shutdown(device);
			break;
		}
		/* that a row of 1,035 numbers of 16 bits would just fit is no matter */
		ok(!cuda_fits(dm) || half, "%s in %d bits does not fit a block", file->name,
		   half ? 16 : 32);
		check_size(model, dm, file->name, 3, tolerance);
		check_size(model, dm, file->name, 35, tolerance);
		tnp_device.model_free(dm);
		tnp_device.shutdown(device);
	}
	tnp_model_close(model);
}

/* What is too wide goes this way by itself. */
static void
check_choice(const TestModel *file)
{
	TnpDevice  *device = cuda_open(TNP_PRECISION_FP32, 0);
	TnpDeviceModel *dm;
	TnpError	error;
	TnpStatus	status = tnp_device.model_load(device, file->bytes, file->length, &dm, &error);

	ok(status == TNP_OK ? dm->layered : strstr(error.message, "no library") != NULL,
	   "%s is computed layer by layer by itself", file->name);
	if (status == TNP_OK)
		tnp_device.model_free(dm);
	tnp_device.shutdown(device);
}

/* ---- bits ------------------------------------------------------------------------------------ */

typedef struct Scene
{
	TnpDeviceModel *m;
	const char *name;
	TestRows	rows;
	int			size;			/* of an answer */
	double		want[QUERIES * PARAMS],
				got[QUERIES * PARAMS];
} Scene;

/* Queries first ... of the scene about its rows, all or the first, have the answers they had. */
static bool
same(Scene *s, TnpDeviceEncoding *e, int first, int n)
{
	TnpRows		queries = test_slice(&s->rows, CONTEXT + first, n);
	size_t		at = (size_t) first * s->size;

	memset(s->got, 0, sizeof(s->got));
	return ask(e, CONTEXT, &queries, s->got + at) == TNP_OK
		&& memcmp(s->got + at, s->want + at, (size_t) n * s->size * sizeof(double)) == 0;
}

static TnpDeviceEncoding *
build(const Scene *s, int n)
{
	TnpRows		context = test_slice(&s->rows, 0, n);
	TnpDeviceEncoding *e;
	TnpError	error;

	test_must(tnp_device.encoding_build(s->m, &context, 16, 0, &e, &error), &error);
	return e;
}

/* The same rows, in portions, and in passes of few. */
static void
check_encodings(Scene *s)
{
	static const int portions[] = {1, 3, 30, CONTEXT - 20 - 34};
	TnpDeviceEncoding *e = build(s, 20);
	TnpError	error;
	int			n = 20;

	for (size_t i = 0; i < sizeof(portions) / sizeof(portions[0]); i++)
	{
		TnpRows		more = test_slice(&s->rows, n, portions[i]);

		test_must(tnp_device.encoding_append(e, &more, &error), &error);
		n += portions[i];
	}
	ok(n == CONTEXT && same(s, e, 0, QUERIES), "%s: rows that were appended: the same bits",
	   s->name);
	tnp_device.encoding_free(e);
	cuda_layer_rows = 1;
	e = build(s, CONTEXT);
	ok(same(s, e, 0, QUERIES), "%s: rows that were encoded in two passes", s->name);
	tnp_device.encoding_free(e);
	cuda_layer_rows = 0;
	for (int order = 1; order <= 2; order++)
	{
		gpu_emulated_order(order);
		e = build(s, CONTEXT);
		ok(same(s, e, 0, 20), "%s: warps %s", s->name, order == 1 ? "backward" : "in any order");
		tnp_device.encoding_free(e);
	}
	gpu_emulated_order(0);
}

static void
check_questions(Scene *s, TnpDeviceEncoding *e)
{
	TnpRows		more = test_slice(&s->rows, CONTEXT + 100, 5);
	TnpError	error;

	for (int i = 0; i < QUERIES; i += QUERIES / 3)
		ok(same(s, e, i, 1), "%s: query %d by itself: the same bits", s->name, i);
	gpu_emulated.late = true;
	for (int chunk = 13; chunk < QUERIES; chunk += 116)
	{
		cuda_chunk_rows = chunk;
		ok(same(s, e, 0, QUERIES), "%s: in chunks of %d, by a late device", s->name, chunk);
	}
	gpu_emulated.late = false;
	cuda_chunk_rows = 0;
	test_must(tnp_device.encoding_append(e, &more, &error), &error);
	ok(same(s, e, 0, 20), "%s: rows that came later are not seen", s->name);
}

static void
check_bits(const TestModel *file, TnpPrecision precision)
{
	TnpDevice  *device = cuda_open(precision, 0);
	Scene	   *s = calloc(1, sizeof(Scene));
	TnpDeviceEncoding *e;
	TnpDistributionKind kind;
	TnpRows		queries;
	int			components;

	s->name = file->name;
	s->m = cuda_load_layered(device, file);
	if (s->m == NULL)
	{
		tnp_device.shutdown(device);
		free(s);
		return;
	}
	tnp_device.model_answer_shape(s->m, &kind, &components);
	s->size = tnp_distribution_size(kind, components);
	test_rows_make(&s->rows, tnp_device.model_info(s->m), CONTEXT + QUERIES, 14);
	queries = test_slice(&s->rows, CONTEXT, QUERIES);
	e = build(s, CONTEXT);
	ok(ask(e, CONTEXT, &queries, s->want) == TNP_OK, "%s: asked", s->name);
	check_questions(s, e);
	tnp_device.encoding_free(e);
	check_encodings(s);
	test_rows_free(&s->rows);
	tnp_device.model_free(s->m);
	tnp_device.shutdown(device);
	free(s);
}

int
main(int argc, char **argv)
{
	const char *directory = getenv("POSTERIOR_TEST_MODELS");
	char		wide[4096];
	int			n;
	TestModel  *models = test_models(&n);

	for (int i = 0; i < n; i++)
		if (strcmp(models[i].name, "prefix_causal_scaled") == 0
			&& (argc < 2 || strcmp(argv[1], models[i].name) == 0))
			for (int precision = 0; precision < 2; precision++)
				check_bits(&models[i], precision);
	test_models_free(models, n);
	snprintf(wide, sizeof(wide), "%s/wide", directory != NULL ? directory : "build/models");
	setenv("POSTERIOR_TEST_MODELS", wide, 1);
	models = test_models(&n);
	for (int i = 0; i < n; i++)
		if (argc < 2 || strcmp(argv[1], models[i].name) == 0)
		{
			check_wide(&models[i]);
			if (strcmp(models[i].name, "wide_odd") == 0)
				check_choice(&models[i]);
		}
	test_models_free(models, n);
	is_int(gpu_emulated.live, 0, "all device and host memory has been given back");
	return done_testing();
}
