/*
 * cuda.c: times the CUDA device: kernels alone (events around each launch) and whole calls of the
 * device's interface, medians over rounds.
 *
 *     bench MODEL... [--small] [--fp32] [--only QUESTION]
 *
 * One line per model and question, tab-separated: model, question, microseconds in kernels,
 * microseconds of the call, launches. --small is for trying out the program where a GPU is missing
 * or slow; CUDA_TEST_SHAPE, as for parity_test, asks for other shapes of launches than those that
 * are chosen. Nothing here checks answers: build/gpu/parity_test does.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_tests.h"

#define MOST_ROUNDS 50

static bool small = false;
static const char *only = NULL; /* this question alone */

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static int
ascending(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

/* One question about one model. */
typedef struct Work
{
	const char *model,
			   *question;
	TnpDeviceModel *m;
	TnpDeviceEncoding *e;
	TnpRows		rows;			/* build: the context */
	int64_t		prefix;
	TnpRequest	request;		/* kind 0: build or append */
	bool		append;
} Work;

static void
fail(const Work *w, const char *message)
{
	printf("# %s, %s: %s\n", w->model, w->question, message);
	exit(1);
}

static void
once(Work *w)
{
	TnpError	error;

	if (w->request.kind != 0)
	{
		if (cuda_ask(w->e, &w->request) != TNP_OK)
			fail(w, w->request.error.message);
	}
	else if (w->append)
	{
		if (tnp_device.encoding_append(w->e, &w->rows, &error) != TNP_OK)
			fail(w, error.message);
	}
	else
	{
		if (tnp_device.encoding_build(w->m, &w->rows, w->prefix, 0, &w->e, &error) != TNP_OK)
			fail(w, error.message);
		tnp_device.encoding_free(w->e);
	}
}

/* Rounds until half a second has passed, after two that do not count. */
static void
measure(Work *w)
{
	double		kernels[MOST_ROUNDS],
				calls[MOST_ROUNDS],
				began = now();
	int			launches = 0,
				rounds = 0;

	if (only != NULL && strcmp(only, w->question) != 0)
		return;
	for (int i = 0; i < (small ? 0 : 2); i++)
		once(w);
	while (rounds < 5 || (rounds < MOST_ROUNDS && now() - began < 5e5))
	{
		double		start,
					milliseconds;

		gpu_profile(true);
		once(w);
		gpu_profile(false);
		if (gpu_profiled(&milliseconds, &launches) != GPU_OK)
			fail(w, gpu_error());
		kernels[rounds] = milliseconds * 1e3;
		/* the events cost time themselves: the call is timed without them */
		start = now();
		once(w);
		calls[rounds++] = now() - start;
		if (small)
			break;
	}
	qsort(kernels, rounds, sizeof(double), ascending);
	qsort(calls, rounds, sizeof(double), ascending);
	printf("%s\t%s\t%.1f\t%.1f\t%d\n", w->model, w->question, kernels[rounds / 2],
		   calls[rounds / 2], launches);
	fflush(stdout);
}

/* Smooth rows, as many as asked for. */
static TnpRows
make_rows(int features, int64_t n, unsigned seed)
{
	double	   *x = malloc((size_t) n * features * sizeof(double)),
			   *y = malloc((size_t) n * sizeof(double));
	unsigned	state = seed;

	for (int64_t i = 0; i < n; i++)
	{
		y[i] = 0;
		for (int f = 0; f < features; f++)
		{
			x[i * features + f] = 4 * test_uniform(&state) - 2;
			y[i] += sin(2 * x[i * features + f]) / (f + 1);
		}
		y[i] += 0.1 * (test_uniform(&state) - 0.5);
	}
	return (TnpRows) {.n = n,.n_features = features,.x = x,.y = y};
}

static void
free_rows(TnpRows *rows)
{
	free((void *) rows->x);
	free((void *) rows->y);
}

static void
ask(Work *w, const char *question, TnpRequestKind kind, int64_t context, const TnpRows *queries,
	int64_t n, int64_t draws)
{
	int64_t		doubles = kind == TNP_REQUEST_SAMPLE ? n * draws : 2 * n + 1;

	memset(&w->request, 0, sizeof(w->request));
	w->question = question;
	w->request.kind = kind;
	w->request.rows = context;
	w->request.queries = *queries;
	w->request.queries.n = n;
	if (kind != TNP_REQUEST_SCORE)
		w->request.queries.y = NULL;
	w->request.reductions = TNP_REDUCE_MEAN | TNP_REDUCE_SD;
	w->request.draws = draws;
	w->request.orders = kind == TNP_REQUEST_SCORE ? draws : 0;
	w->request.answer = malloc((size_t) doubles * sizeof(double));
	measure(w);
	free(w->request.answer);
	w->request.kind = 0;
}

static void
bench_model(TnpDevice *device, const TestModel *file, const char *name)
{
	int			scale = small ? 16 : 1;
	Work		w = {.model = name};
	const TnpModelInfo *info;
	TnpRows		context,
				queries,
				one;
	TnpError	error;
	int			features;

	w.m = cuda_load(device, file);
	info = tnp_device.model_info(w.m);
	features = info->n_features > 0 ? info->n_features : 8;
	for (int64_t n = 1024 / scale; n <= 10240 / scale; n *= 10)
	{
		context = make_rows(features, n, 1);
		queries = make_rows(features, 1000000 / scale / scale / scale, 2);
		one = make_rows(features, 1, 3);
		w.rows = context;
		w.prefix = n;
		w.question = n < 2000 ? "build 1k" : "build 10k";
		w.append = false;
		measure(&w);
		if (tnp_device.encoding_build(w.m, &context, n, n + 4 * MOST_ROUNDS, &w.e,
									  &error) != TNP_OK)
			fail(&w, error.message);
		ask(&w, n < 2000 ? "predict 1 (1k)" : "predict 1 (10k)", TNP_REQUEST_REDUCE, n, &queries, 1,
			0);
		if (n < 2000)
		{
			ask(&w, "predict 16 (1k)", TNP_REQUEST_REDUCE, n, &queries, 16, 0);
			ask(&w, "predict 1024 (1k)", TNP_REQUEST_REDUCE, n, &queries, 1024 / scale, 0);
			ask(&w, "predict 1M (1k)", TNP_REQUEST_REDUCE, n, &queries, queries.n, 0);
			ask(&w, "sample 16 x 1 (1k)", TNP_REQUEST_SAMPLE, n, &queries, 16, 1);
			ask(&w, "sample 16 x 16 (1k)", TNP_REQUEST_SAMPLE, n, &queries, 16, 16);
			ask(&w, "sample 16 x 256 (1k)", TNP_REQUEST_SAMPLE, n, &queries, 16, 256 / scale);
			ask(&w, "sample 16 x 4096 (1k)", TNP_REQUEST_SAMPLE, n, &queries, 16,
				4096 / scale / scale);
			ask(&w, "score 16, 128 orders (1k)", TNP_REQUEST_SCORE, n, &queries, 16, 128 / scale);
		}
		if (info->appendable)
		{
			w.rows = one;
			w.append = true;
			w.question = n < 2000 ? "append 1 (1k)" : "append 1 (10k)";
			measure(&w);
		}
		tnp_device.encoding_free(w.e);
		free_rows(&context);
		free_rows(&queries);
		free_rows(&one);
	}
	tnp_device.model_free(w.m);
}

/* A model file in memory. */
static TestModel
read_file(const char *path)
{
	TestModel	file;
	FILE	   *f = fopen(path, "rb");
	long		length;

	memset(&file, 0, sizeof(file));
	if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (length = ftell(f)) < 0)
	{
		printf("# cannot read %s\n", path);
		exit(1);
	}
	rewind(f);
	file.length = (size_t) length;
	file.bytes = malloc(file.length);
	if (file.bytes == NULL || fread(file.bytes, 1, file.length, f) != file.length)
		exit(1);
	fclose(f);
	return file;
}

int
main(int argc, char **argv)
{
	TnpDevice  *device;
	TnpDeviceInfo info;
	TnpPrecision precision = TNP_PRECISION_FP16;

	for (int i = 1; i < argc; i++)
	{
		small = small || strcmp(argv[i], "--small") == 0;
		if (strcmp(argv[i], "--fp32") == 0)
			precision = TNP_PRECISION_FP32;
		if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
			only = argv[i + 1];
	}
	cuda_read_shape();
	device = cuda_open(precision, 0);
	tnp_device.describe(device, &info);
	printf("# %s, %s, %s\n", info.name, info.version,
		   precision == TNP_PRECISION_FP16 ? "fp16" : "fp32");
	printf("# model\tquestion\tkernels_us\tcall_us\tlaunches\n");
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--", 2) != 0 && argv[i] != only)
		{
			TestModel	file = read_file(argv[i]);
			const char *name = strrchr(argv[i], '/');

			bench_model(device, &file, name != NULL ? name + 1 : argv[i]);
			free(file.bytes);
		}
	tnp_device.shutdown(device);
	return 0;
}
