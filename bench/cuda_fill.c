/*
 * cuda_fill.c: times what the host does for a row that the CUDA device is asked about, by itself
 * and in one thread: no GPU is needed.
 *
 *     build/cuda-fill MODEL... (make build/cuda-fill)
 *
 * One line per model and number of columns, tab-separated: model, columns, numbers that the network
 * reads of a row, rows that carry its process, and microseconds per row: to check it, to make it
 * ready (cuda/features.c), to take its distribution's parameters out of the memory of copies, into
 * memory that is new. Of 8,192 rows each, on a context of 1,024; the least of five rounds.
 * bench/cuda_model reckons with these numbers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/features/scale.h"
#include "engine/features/stats.h"
#include "engine/features/trees.h"
#include "engine/inference/variants.h"
#include "engine/kernels/kernels.h"

#define CONTEXT 1024
#define QUERIES 8192
#define ROUNDS 5

/* Microseconds that this thread has had a processor. */
static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static void
fail(const char *path, const char *message)
{
	printf("# %s: %s\n", path, message);
	exit(1);
}

/* The least of the times so far, and one more, which began then. */
static double
least(double so_far, double began)
{
	double		time = now() - began;

	return time < so_far ? time : so_far;
}

static void
measure(const TnpModel *model, const char *name, int features)
{
	int			classes = tnp_model_info(model)->n_classes;
	size_t		all = CONTEXT + QUERIES,
				wide = tnp_answer_size(model),
				width;
	double	   *x = malloc(all * features * sizeof(double)),
			   *y = calloc(all, sizeof(double)),
			   *answers = calloc(QUERIES * wide, sizeof(double)),
				check = INFINITY,
				fill = INFINITY,
				take = INFINITY;
	float	   *numbers,
				prior[TNP_MAX_CLASS_ROOM] = {0};
	TnpRows		context = {.n = CONTEXT,.n_features = features,.x = x,.y = y,
						   .n_classes = classes > 0 ? 2 : 0},
				queries = {.n = QUERIES,.n_features = features,.x = x + CONTEXT * features};
	TnpStats	stats;
	TnpError	error;

	srand(1);
	for (size_t i = 0; i < all; i++)
	{
		for (int f = 0; f < features; f++)
		{
			x[i * features + f] = 4.0 * rand() / RAND_MAX - 2;
			y[i] += sin(2 * x[i * features + f]) / (f + 1);
		}
		/* classes by steps, of which trees know more than regressions */
		y[i] = classes == 0 ? y[i] + 0.1 * rand() / RAND_MAX
			: x[i * features] > 0 ? x[i * features + 1] > 0.5 : x[i * features + 2] > 0;
	}
	if (tnp_stats_build(model, &context, CONTEXT, &stats, &error) != TNP_OK)
		fail(name, error.message);
	if (model->config.trees_blend_weight > 0 && tnp_trees_blend_weight(model, &stats) == 0)
		fail(name, "trees have no share");
	width = tnp_features_width(model, &stats);
	numbers = malloc(QUERIES * width * sizeof(float));
	for (int round = 0; round < ROUNDS; round++)
	{
		double		began = now();
		double	   *taken;

		if (tnp_rows_check(model, &queries, false, &error) != TNP_OK
			|| tnp_variants_wanted(model, &stats, &queries))
			fail(name, "the rows are not plain");
		check = least(check, began);
		began = now();
		for (int64_t i = 0; i < QUERIES; i++)
		{
			/* as many at once as there */
			if (i % TNP_TILE == 0)
				tnp_scale_features(model, &stats, &queries, i,
								   QUERIES - i < TNP_TILE ? (int) (QUERIES - i) : TNP_TILE, false,
								   numbers + i * width);
			if (!tnp_all_finite(width, numbers + i * width))
				fail(name, "a number is too large");
			tnp_prior_logits(model, &stats, queries.x + i * features, prior);
		}
		fill = least(fill, began);
		began = now();
		taken = malloc(QUERIES * wide * sizeof(double));
		memcpy(taken, answers, QUERIES * wide * sizeof(double));
		/* so that the compiler leaves the copy there */
		*(volatile double *) taken = taken[QUERIES - 1];
		take = least(take, began);
		free(taken);
	}
	printf("%s\t%d\t%zu\t%d\t%.3f\t%.3f\t%.3f\n", name, features, width, stats.process.points.n,
		   check / QUERIES, fill / QUERIES, take / QUERIES);
	tnp_stats_free(&model->env, &stats);
	free(numbers);
	free(x);
	free(y);
	free(answers);
}

int
main(int argc, char **argv)
{
	static const int columns[] = {4, 10, 30};

	printf("# model\tcolumns\tnumbers\tcarriers\tcheck_us\tfill_us\ttake_us\n");
	for (int i = 1; i < argc; i++)
	{
		const char *name = strrchr(argv[i], '/') != NULL ? strrchr(argv[i], '/') + 1 : argv[i];
		FILE	   *f = fopen(argv[i], "rb");
		long		length;
		void	   *bytes;
		TnpModel   *model;
		TnpError	error;
		int			fixed;

		if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (length = ftell(f)) < 0)
			fail(argv[i], "cannot be read");
		rewind(f);
		bytes = malloc((size_t) length);
		if (bytes == NULL || fread(bytes, 1, (size_t) length, f) != (size_t) length)
			fail(argv[i], "cannot be read");
		fclose(f);
		if (tnp_model_open(&tnp_default_env, bytes, (size_t) length, &model, &error) != TNP_OK)
			fail(argv[i], error.message);
		fixed = tnp_model_info(model)->n_features;
		for (int k = 0; k < (fixed > 0 ? 1 : 3); k++)
			measure(model, name, fixed > 0 ? fixed : columns[k]);
		tnp_model_close(model);
		free(bytes);
	}
	return 0;
}
