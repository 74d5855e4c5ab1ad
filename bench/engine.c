/*
 * engine.c: the engine's side of the benchmarks, without a database: answers commands on standard
 * input, one line each, by lines of numbers.
 *
 *     engine MODEL
 *     kernels NAME            reference, or one of those of the CPU provider; the first is its
 *                             choice
 *     list                    the names of the tables of kernels, the best first
 *     threads T
 *     features STEP...        column j of row i is the fraction of i STEP_j, spread over [-2, 2];
 *                             one column to begin with
 *     rows N PERIOD           encodes N rows of a function of the first and the last column; rows
 *                             repeat after PERIOD of them
 *     time OPERATION SIZE SECONDS
 *                             milliseconds of each call, and of all processors meanwhile; of
 *                             short predictions the mean of some, as clocks take time to read.
 *                             OPERATION: predict (SIZE queries), sample (SIZE draws of 16 steps),
 *                             density (SIZE orders of 16 rows), append (SIZE rows), build (of all
 *                             rows), again (16 steps of SIZE draws, where every step encodes
 *                             context and draws anew)
 *     answer OPERATION SIZE   what such a call says, a number per line: draws, a log density, or
 *                             mean and standard deviation of each query; after append and build,
 *                             of the next 16 rows
 *     team SECONDS            milliseconds of starting and ending as many threads that have
 *                             nothing to do
 *     limits SECONDS [KIB]    multiply-adds of numbers and of words of 16 bits, exponentials and
 *                             reads per second that one thread and T threads reach, as JSON
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

#include "cpu/cpu.h"
#include "engine/inference/encode.h"
#include "limits.h"
#include "engine/network/team.h"
#include "engine/tnp.h"

#define STEPS 16
/* milliseconds: a call that needs no other before it to warm caches up */
#define LONG 500
#define SHORT 0.02				/* milliseconds: a call beside which reading clocks takes time */
#define AT_ONCE 16				/* such calls between two readings */
#define MAX_FEATURES 64
/*
 * an encoding that rows are appended to has at most a sixteenth more than it began with, if they
 * are few
 */
#define GROWTH 16
#define MORE (128 * 1024)		/* rows behind the context, to be asked about */

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

/* Milliseconds of a call: by the clock, and of all processors. */
typedef struct Took
{
	double		wall,
				processors;
} Took;

static void
check(TnpStatus status, const TnpError *error)
{
	if (status == TNP_OK)
		return;
	fprintf(stderr, "%s (%s)\n", error->message, error->detail);
	exit(1);
}

static double
read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double) t.tv_sec * 1e3 + (double) t.tv_nsec * 1e-6;
}

static Took
since(Took start)
{
	return (Took) {read_clock(CLOCK_MONOTONIC) - start.wall,
				   read_clock(CLOCK_PROCESS_CPUTIME_ID) - start.processors};
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
make_rows(int64_t n, int64_t period)
{
	int64_t		total = n + MORE;
	TnpRows		context;
	TnpError	error;

	x = realloc(x, (size_t) total * n_features * sizeof(double));
	y = realloc(y, (size_t) total * sizeof(double));
	for (int64_t i = 0; i < total; i++)
	{
		double	   *row = x + i * n_features,
					place = (double) (i % period + 1);

		for (int f = 0; f < n_features; f++)
			row[f] = -2 + 4 * (place * steps[f] - floor(place * steps[f]));
		y[i] = sin(3 * row[0]) + 0.1 * cos(57 * row[n_features - 1]);
	}
	n_rows = n;
	context = rows(0, n);
	tnp_encoding_free(encoding);
	tnp_encoding_free(grown);
	grown = NULL;
	check(tnp_build(model, &context, tnp_whole_prefix(model, n), &encoding, &error), &error);
}

/* Draws [draws, STEPS] by encoding context and drawn rows anew for every step, without a buffer. */
static void
sample_again(int64_t draws, double *drawn)
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

			check(tnp_build(model, &context, tnp_whole_prefix(model, context.n), &e, &error),
				  &error);
			check(tnp_predict(e, &query, params, &error), &error);
			y[n_rows + k] = tnp_draw(&d, 1, (uint64_t) b, (uint32_t) k);
			tnp_encoding_free(e);
		}
		memcpy(drawn + b * STEPS, y + n_rows, sizeof(kept));
		memcpy(y + n_rows, kept, sizeof(kept));
	}
	free(params);
}

/*
 * Have an encoding that `size` rows can be appended to. It is copied now and then, not each time:
 * what was copied just now is in no cache as keys are in use.
 */
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

/* Mean and standard deviation of each of n predictions. */
static void
print_moments(const double *params, int64_t n)
{
	TnpDistributionKind kind;
	int			components;

	tnp_answer_shape(model, &kind, &components);
	for (int64_t i = 0; i < n; i++)
	{
		TnpDistribution d = {kind, components,
							 params + i * tnp_distribution_size(kind, components)};

		printf("%.17g\n%.17g\n", tnp_mean(&d), sqrt(tnp_variance(&d)));
	}
}

/* What an encoding says of the STEPS rows from `first` on. */
static void
print_next(const TnpEncoding *e, int64_t first)
{
	TnpRows		next = rows(first, STEPS);
	TnpDistributionKind kind;
	TnpError	error;
	int			n;
	double	   *params;

	tnp_answer_shape(model, &kind, &n);
	params = malloc((size_t) STEPS * tnp_distribution_size(kind, n) * sizeof(double));
	check(tnp_predict(e, &next, params, &error), &error);
	print_moments(params, STEPS);
	free(params);
}

static void
print_numbers(const double *numbers, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		printf("%.17g\n", numbers[i]);
}

/* `times` predictions of the same rows; milliseconds of one. */
static Took
predict(const TnpRows *queries, int times, double *params)
{
	Took		took = since((Took) {0, 0});
	TnpError	error;

	for (int i = 0; i < times; i++)
		check(tnp_predict(encoding, queries, params, &error), &error);
	took = since(took);
	return (Took) {took.wall / times, took.processors / times};
}

/*
 * One call, or the mean of several predictions; returns the milliseconds of what counts. With
 * `print`, says its answer.
 */
static Took
run(const char *operation, int64_t size, int times, bool print)
{
	TnpRows		more = rows(n_rows, strcmp(operation, "predict") == 0
							|| strcmp(operation, "append") == 0 ? size : STEPS),
				context = rows(0, n_rows);
	TnpDistributionKind kind;
	TnpError	error;
	TnpEncoding *copy = NULL;
	Took		start,
				took;
	double	   *out;
	int			n;

	tnp_answer_shape(model, &kind, &n);
	out = malloc((size_t) (size > STEPS ? size : STEPS) * STEPS * tnp_distribution_size(kind, n) *
				 sizeof(double));
	if (strcmp(operation, "append") == 0)
		make_room(size);
	start = since((Took) {0, 0});
	if (strcmp(operation, "predict") == 0)
		took = predict(&more, times, out);
	else if (strcmp(operation, "sample") == 0)
		check(tnp_sample(encoding, &more, 1, 0, size, out, &error), &error);
	else if (strcmp(operation, "density") == 0)
		check(tnp_score(encoding, &more, size > 1 ? size : 0, 1, out, NULL, &error), &error);
	else if (strcmp(operation, "append") == 0)
		check(tnp_append(grown, &more, &error), &error);
	else if (strcmp(operation, "build") == 0)
		check(tnp_build(model, &context, tnp_whole_prefix(model, n_rows), &copy, &error), &error);
	else if (strcmp(operation, "again") == 0)
		sample_again(size, out);
	else
	{
		fprintf(stderr, "unknown operation %s\n", operation);
		exit(1);
	}
	if (strcmp(operation, "predict") != 0)
		took = since(start);
	if (print && strcmp(operation, "predict") == 0)
		print_moments(out, size);
	else if (print && strcmp(operation, "append") == 0)
		print_next(grown, n_rows + size);
	else if (print)
		print_numbers(out, strcmp(operation, "density") == 0 ? 1 : size * STEPS);
	tnp_encoding_free(copy);
	free(out);
	return took;
}

static void
print_answer(const char *operation, int64_t size)
{
	/* what is said after append is of the rows appended now */
	tnp_encoding_free(grown);
	grown = NULL;
	if (strcmp(operation, "build") == 0)
		print_next(encoding, n_rows);	/* `rows` has built it, by the same call */
	else
		run(operation, size, 1, true);
}

static void
print_times(const char *operation, int64_t size, double seconds)
{
	double		end = read_clock(CLOCK_MONOTONIC) + 1e3 * seconds;
	Took		took = run(operation, size, 1, false);
	int			times = 1;

	if (took.wall < LONG)
		took = run(operation, size, 1, false);
	if (took.wall < SHORT)
	{
		times = AT_ONCE;
		took = run(operation, size, times, false);
	}
	for (;;)
	{
		printf("%.6f %.6f\n", took.wall, took.processors);
		if (read_clock(CLOCK_MONOTONIC) >= end)
			break;
		took = run(operation, size, times, false);
	}
}

static TnpStatus
do_nothing(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	(void) state;
	(void) worker;
	(void) item;
	(void) error;
	return TNP_OK;
}

static void
print_team(double seconds)
{
	double		end = read_clock(CLOCK_MONOTONIC) + 1e3 * seconds;

	do
	{
		Took		start = since((Took) {0, 0});
		TnpTeam    *team;
		TnpError	error;

		check(tnp_team_with_scratch(model, &encoding->stats, 1, n_threads, INFINITY, &team, &error),
			  &error);
		check(tnp_team_run(team, n_threads, do_nothing, NULL, &error), &error);
		tnp_team_free(team);
		printf("%.6f\n", since(start).wall);
	} while (read_clock(CLOCK_MONOTONIC) < end);
}

/* The columns, from the words after the command; the rows are made by `rows`. */
static void
set_features(char *words)
{
	n_features = 0;
	for (char *word = strtok(words, " \n"); word != NULL && n_features < MAX_FEATURES;
		 word = strtok(NULL, " \n"))
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
	long long	size,
				period;
	double		seconds;

	if (argc != 2)
		return 2;
	read_file(argv[1]);
	kernels = tnp_cpu_kernels();
	open_model();
	while (fgets(line, sizeof(line), stdin) != NULL)
	{
		if (sscanf(line, "threads %d", &n_threads) == 1)
			;
		else if (sscanf(line, "rows %lld %lld", &size, &period) == 2)
			make_rows(size, period);
		else if (strncmp(line, "features ", 9) == 0)
			set_features(line + 9);
		else if (strcmp(line, "list\n") == 0)
			list();
		else if (sscanf(line, "kernels %63s", word) == 1)
			choose(word);
		else if (sscanf(line, "limits %lf %lld", &seconds, &size) == 2)
			print_limits(kernels->name, n_threads, seconds, (size_t) size << 10);
		else if (sscanf(line, "limits %lf", &seconds) == 1)
			print_limits(kernels->name, n_threads, seconds, 0);
		else if (sscanf(line, "team %lf", &seconds) == 1)
			print_team(seconds);
		else if (sscanf(line, "answer %63s %lld", word, &size) == 2)
			print_answer(word, size);
		else if (sscanf(line, "time %63s %lld %lf", word, &size, &seconds) == 3)
			print_times(word, size, seconds);
		else
			fprintf(stderr, "not understood: %s", line);
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
