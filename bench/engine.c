/*
 * engine.c: the engine's side of the benchmarks, without a database: answers commands on standard input, one line each, by lines of milliseconds.
 *
 *     engine MODEL
 *     kernels NAME            reference, or one of those of the CPU provider; the first is its choice
 *     list                    the names of the tables of kernels, the best first
 *     threads T
 *     features STEP...        column j of row i is the fraction of i STEP_j, spread over [-2, 2]; one column to begin with
 *     rows N                  encodes N rows of a function of the first and the last column
 *     time OPERATION SIZE SECONDS
 *                             OPERATION: predict (SIZE queries), sample (SIZE draws of 16 steps), density (SIZE orders of 16 rows), append (SIZE rows),
 *                             build (of all rows), again (16 steps of SIZE draws, where every step encodes context and draws anew)
 *     limits SECONDS          fused multiply-adds, exponentials and reads per second that one thread and T threads reach, as JSON
 *
 * Every answer ends with an empty line.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu.h"
#include "limits.h"
#include "tnp.h"

#define STEPS 16
#define MAX_FEATURES 64
#define GROWTH 16				/* an encoding that rows are appended to has at most a sixteenth more than it began with, if they are few */

static int	n_threads = 1;
static const TnpKernels *kernels;
static void *file;
static size_t file_length;
static TnpModel *model;
static TnpEncoding *encoding;
static TnpEncoding *grown;		/* a copy of the encoding that rows are appended to */
static int64_t n_rows;
static int	n_features = 1;
static double steps[MAX_FEATURES] = {0.6180339887};
static double *x,				/* [rows, n_features] */
		   *y;

static void
check(TnpStatus status, const TnpError *error)
{
	if (status == TNP_OK)
		return;
	fprintf(stderr, "%s (%s)\n", error->message, error->detail);
	exit(1);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec * 1e3 + (double) t.tv_nsec * 1e-6;
}

static int
threads(void *arg)
{
	(void) arg;
	return n_threads;
}

static void
read_file(const char *path)
{
	FILE	   *f = fopen(path, "rb");

	if (f == NULL)
	{
		perror(path);
		exit(1);
	}
	fseek(f, 0, SEEK_END);
	file_length = (size_t) ftell(f);
	rewind(f);
	file = malloc(file_length);
	if (file == NULL || fread(file, 1, file_length, f) != file_length)
		exit(1);
	fclose(f);
}

static void
open_model(void)
{
	TnpEnv		env = tnp_default_env;
	TnpError	error;

	env.kernels = kernels;
	env.threads = threads;
	tnp_encoding_free(encoding);
	tnp_encoding_free(grown);
	encoding = grown = NULL;
	if (model != NULL)
		tnp_model_close(model);
	check(tnp_model_open(&env, file, file_length, &model, &error), &error);
}

/* n rows from `first` on. */
static TnpRows
rows(int64_t first, int64_t n)
{
	return (TnpRows) {.n = n,.n_features = n_features,.x = x + first * n_features,.y = y + first};
}

static void
make_rows(int64_t n)
{
	int64_t		total = n + 4096;
	TnpRows		context;
	TnpError	error;

	x = realloc(x, (size_t) total * n_features * sizeof(double));
	y = realloc(y, (size_t) total * sizeof(double));
	for (int64_t i = 0; i < total; i++)
	{
		double	   *row = x + i * n_features;

		for (int f = 0; f < n_features; f++)
			row[f] = -2 + 4 * ((double) (i + 1) * steps[f] - floor((double) (i + 1) * steps[f]));
		y[i] = sin(3 * row[0]) + 0.1 * cos(57 * row[n_features - 1]);
	}
	n_rows = n;
	context = rows(0, n);
	tnp_encoding_free(encoding);
	tnp_encoding_free(grown);
	grown = NULL;
	check(tnp_build(model, &context, tnp_whole_prefix(model, n), &encoding, &error), &error);
}

/* Draws by encoding context and drawn rows anew for every step, without a buffer. */
static void
sample_again(int64_t draws)
{
	TnpDistributionKind kind;
	TnpError	error;
	int			n;
	double	   *params;

	tnp_answer_shape(model, &kind, &n);
	params = malloc(tnp_distribution_size(kind, n) * sizeof(double));
	for (int64_t b = 0; b < draws; b++)
	{
		double		kept[STEPS];

		memcpy(kept, y + n_rows, sizeof(kept));
		for (int k = 0; k < STEPS; k++)
		{
			TnpRows		context = rows(0, n_rows + k),
						query = rows(n_rows + k, 1);
			TnpDistribution d = {kind, n, params};
			TnpEncoding *e;

			check(tnp_build(model, &context, tnp_whole_prefix(model, context.n), &e, &error), &error);
			check(tnp_predict(e, &query, params, &error), &error);
			y[n_rows + k] = tnp_draw(&d, 1, (uint64_t) b, (uint32_t) k);
			tnp_encoding_free(e);
		}
		memcpy(y + n_rows, kept, sizeof(kept));
	}
	free(params);
}

/* Have an encoding that `size` rows can be appended to. It is copied now and then, not each time: what was copied just now is in no cache as keys are in use. */
static void
make_room(int64_t size)
{
	int64_t		room = n_rows + (size > n_rows / GROWTH ? size : n_rows / GROWTH);
	TnpError	error;

	if (grown != NULL && tnp_encoding_rows(grown) + size <= tnp_encoding_capacity(grown))
		return;
	tnp_encoding_free(grown);
	check(tnp_encoding_copy(encoding, n_rows, room, false, &grown, &error), &error);
}

/* One run; returns the milliseconds of what counts. */
static double
run(const char *operation, int64_t size)
{
	TnpRows		more = rows(n_rows, strcmp(operation, "predict") == 0 || strcmp(operation, "append") == 0 ? size : STEPS);
	TnpDistributionKind kind;
	TnpError	error;
	TnpEncoding *copy = NULL;
	double	   *out,
				start,
				density;
	int			n;

	tnp_answer_shape(model, &kind, &n);
	out = malloc((size_t) (size > STEPS ? size : STEPS) * STEPS * tnp_distribution_size(kind, n) * sizeof(double));
	if (strcmp(operation, "append") == 0)
		make_room(size);
	start = now();
	if (strcmp(operation, "predict") == 0)
		check(tnp_predict(encoding, &more, out, &error), &error);
	else if (strcmp(operation, "sample") == 0)
		check(tnp_sample(encoding, &more, 1, 0, size, out, &error), &error);
	else if (strcmp(operation, "density") == 0)
		check(tnp_score(encoding, &more, size > 1 ? size : 0, 1, &density, NULL, &error), &error);
	else if (strcmp(operation, "append") == 0)
		check(tnp_append(grown, &more, &error), &error);
	else if (strcmp(operation, "build") == 0)
	{
		TnpRows		context = rows(0, n_rows);

		check(tnp_build(model, &context, tnp_whole_prefix(model, n_rows), &copy, &error), &error);
	}
	else if (strcmp(operation, "again") == 0)
		sample_again(size);
	else
	{
		fprintf(stderr, "unknown operation %s\n", operation);
		exit(1);
	}
	start = now() - start;
	tnp_encoding_free(copy);
	free(out);
	return start;
}

/* The columns, from the words after the command; the rows are made by `rows`. */
static void
set_features(char *words)
{
	n_features = 0;
	for (char *word = strtok(words, " \n"); word != NULL && n_features < MAX_FEATURES; word = strtok(NULL, " \n"))
		steps[n_features++] = strtod(word, NULL);
}

static void
list(void)
{
	const TnpKernels *tables[TNP_CPU_TABLES];
	int			n = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES);

	for (int i = 0; i < n; i++)
		printf("%s\n", tables[i]->name);
}

static void
choose(const char *name)
{
	const TnpKernels *tables[TNP_CPU_TABLES];
	int			n = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES);

	kernels = strcmp(name, "reference") == 0 ? &tnp_reference_kernels : NULL;
	for (int i = 0; i < n; i++)
		if (strcmp(name, tables[i]->name) == 0)
			kernels = tables[i];
	if (kernels == NULL)
	{
		fprintf(stderr, "no kernels %s here\n", name);
		exit(1);
	}
	open_model();
}

int
main(int argc, char **argv)
{
	char		line[2048],
				word[64];
	long long	size;
	double		seconds;

	if (argc != 2)
		return 2;
	read_file(argv[1]);
	kernels = tnp_cpu_kernels();
	open_model();
	while (fgets(line, sizeof(line), stdin) != NULL)
	{
		if (sscanf(line, "threads %d", &n_threads) == 1 || sscanf(line, "rows %lld", &size) == 1)
		{
			if (line[0] == 'r')
				make_rows(size);
		}
		else if (strncmp(line, "features ", 9) == 0)
			set_features(line + 9);
		else if (strcmp(line, "list\n") == 0)
			list();
		else if (sscanf(line, "kernels %63s", word) == 1)
			choose(word);
		else if (sscanf(line, "limits %lf", &seconds) == 1)
			print_limits(kernels->name, n_threads, seconds);
		else if (sscanf(line, "time %63s %lld %lf", word, &size, &seconds) == 3)
		{
			double		end = now() + 1e3 * seconds;

			run(word, size);
			do
				printf("%.6f\n", run(word, size));
			while (now() < end);
		}
		else
			fprintf(stderr, "not understood: %s", line);
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
