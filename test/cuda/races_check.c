/*
 * races_check.c: looks for races of the kernels on the emulator (races.h), over models, shapes of
 * launches, sizes of teams and orders of warps and lanes; and sees that it would find them: each
 * barrier of the kernels is left out in turn, in a process of its own, and must be missed.
 *
 *   races_check [--all | SOURCE:LINE]
 *
 * SOURCE:LINE leaves out that barrier alone, such as rows.h:206, and does nothing else. What is
 * done with bells counts as barriers; where pushes are expected, a word more or less is tried, too.
 *
 * Without --all: one model of each kind, and the shapes in which blocks and warps share most. The
 * barriers that the kernels have are read from their sources, so none is forgotten.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_tests.h"
#include "host.h"
#include "tap.h"

#define ROWS 40
#define FEW 4
#define QUERIES 3
#define MOST_BARRIERS 64

typedef struct Shape
{
	CudaForce	force;
	TnpPrecision precision;
	int			order;
	bool		layered;		/* the kernels between two products, and no other */
} Shape;

static const char *const sources[] = {"attention.h", "embedder.h", "linears.h", "rows.h", "walk.h",
									  "answers.h", "pull.h", "levels.h", "rare.h", "products.h",
									  "softmax.h", "layered.h"};

/* Rows, team, split, partial results in memory, teams that compute the same, whether they push. */
static const Shape few_shapes[] = {
	{{16, 8, 1, 0, 1, 0}, TNP_PRECISION_FP16, 0, false},
	{{16, 4, 1, 0, 1, 0}, TNP_PRECISION_FP32, 2, false},
	{{16, 2, 0, 0, 1, 0}, TNP_PRECISION_FP16, 3, false},
	{{16, 2, 0, 0, 3, 0}, TNP_PRECISION_FP16, 2, false},
	{{16, 4, 0, 0, 1, -1}, TNP_PRECISION_FP16, 1, false},
	{{32, 2, 1, 1, 1, 0}, TNP_PRECISION_FP16, 1, false},
	{{64, 1, 0, 0, 1, 0}, TNP_PRECISION_FP16, 2, false},
	{{0, 0, 0, 0, 0, 0}, TNP_PRECISION_FP16, 2, true}
};

static const char *const few_models[] = {"prefix_causal", "two_stream_buffer", "packed_tnpd",
										 "prefix_causal_post", "buffer_sinks", "classes_lean",
										 "rows_trees_tokens"};

#define FEW_MODELS ((int) (sizeof(few_models) / sizeof(few_models[0])))
#define FEW_SHAPES ((int) (sizeof(few_shapes) / sizeof(few_shapes[0])))

static TestModel *models;
static int	n_models;
/* that threads have come to by the end of each of these, one after the other */
static int	barriers_after[FEW_MODELS * FEW_SHAPES];

/* Everything once: build, append, ask. False when something of it failed. */
static bool
play(const TestModel *file, const Shape *shape)
{
	TnpDevice  *device;
	TnpDeviceModel *m;
	TnpDeviceEncoding *e;
	TestRows	rows;
	TnpRows		context,
				more,
				queries;
	TnpRequest	r[3];
	TnpError	error;
	TnpStatus	status;
	double		answers[4 * QUERIES + 2 * FEW * QUERIES];

	cuda_force = shape->force;
	cuda_force_layers = shape->layered;
	gpu_emulated_order(shape->order);
	device = cuda_open(shape->precision, 0);
	status = tnp_device.model_load(device, file->bytes, file->length, &m, &error);
	if (status != TNP_OK)
	{
		tnp_device.shutdown(device);
		return status == TNP_BAD_CONFIG;
	}
	test_rows_make(&rows, tnp_device.model_info(m), ROWS + FEW + QUERIES, 3);
	context = test_slice(&rows, 0, ROWS);
	more = test_slice(&rows, ROWS, FEW);
	queries = test_slice(&rows, ROWS + FEW, QUERIES);
	status = tnp_device.encoding_build(m, &context, tnp_whole_prefix(m->model, ROWS), 0, &e,
									   &error);
	if (status == TNP_OK)
	{
		/* as if there were rows enough for trees, whatever these say */
		if (m->model->config.trees_blend_weight > 0 && e->stats.n_classes == 0)
			e->stats.trees.share = 0.5;
		/* a buffer may be full */
		status = tnp_device.encoding_append(e, &more, &error);
		if (status == TNP_BAD_ARGUMENT)
			status = TNP_OK;
		memset(r, 0, sizeof(r));
		for (int i = 0; i < 3; i++)
		{
			r[i].queries = queries;
			r[i].queries.y = i == 2 ? queries.y : NULL;
			r[i].rows = tnp_device.encoding_rows(e);
			r[i].status = TNP_INTERRUPTED;
		}
		r[0].kind = TNP_REQUEST_REDUCE;
		r[0].reductions = tnp_device.model_info(m)->n_classes > 0 ? TNP_REDUCE_MEAN
			: TNP_REDUCE_MEAN | TNP_REDUCE_SD;
		r[0].answer = answers;
		r[1].kind = TNP_REQUEST_SAMPLE;
		r[1].draws = FEW;
		r[1].answer = answers + 2 * QUERIES;
		r[2].kind = TNP_REQUEST_SCORE;
		r[2].answer = answers + 2 * QUERIES + FEW * QUERIES;
		if (status == TNP_OK)
			status = tnp_device.answer(e, 3, r, &error);
		tnp_device.encoding_free(e);
	}
	tnp_device.model_free(m);
	tnp_device.shutdown(device);
	test_rows_free(&rows);
	return status == TNP_OK;
}

static const TestModel *
find_model(const char *name)
{
	for (int i = 0; i < n_models; i++)
		if (strcmp(models[i].name, name) == 0)
			return &models[i];
	return NULL;
}

/* The shapes of --all, one after the other; false after the last. */
static bool
next_shape(int number, Shape *shape)
{
	static const int heights[] = {16, 32, 64};

	*shape = (Shape) {{heights[number / 32 % 3], 1 << number / 8 % 4, number / 4 % 2,
					   number / 2 % 2, number % 8 == 7 ? 2 : 1, 0},
					  number % 2 == 0 ? TNP_PRECISION_FP16 : TNP_PRECISION_FP32, number % 4,
					  number >= 96};
	return number < 100;
}

static void
look_for_races(bool all)
{
	for (int i = 0; i < (all ? n_models : FEW_MODELS); i++)
	{
		const TestModel *file = all ? &models[i] : find_model(few_models[i]);
		Shape		shape;
		int			shapes = 0;

		gpu_emulated.races = 0;
		for (; all ? next_shape(shapes, &shape) : shapes < FEW_SHAPES; shapes++)
		{
			int		   *after = &barriers_after[i * FEW_SHAPES + shapes],
						line;

			if (!play(file, all ? &shape : &few_shapes[shapes]))
				ok(false, "%s can be asked in shape %d", file->name, shapes);
			while (!all && gpu_emulated_barrier(*after, &line) != NULL)
				++*after;
		}
		ok(gpu_emulated.races == 0, "%s: no race in %d shapes, %ld found", file->name, shapes,
		   gpu_emulated.races);
	}
}

/* A barrier in a source. */
typedef struct Barrier
{
	int			line;
	bool		expects;		/* pushes */
} Barrier;

/* Those of a source; returns how many. */
static int
read_barriers(const char *source, Barrier *barriers)
{
	static const char *const calls[] = {"sync_block(", "sync_team(", "sync_warp(", "sync_grid(",
										"open_bell(", "await_pushes(", "expect_pushes("};
	const int	n_calls = sizeof(calls) / sizeof(calls[0]);
	char		path[64],
				text[256];
	FILE	   *file;
	int			n = 0;

	snprintf(path, sizeof(path), "cuda/%s", source);
	file = fopen(path, "r");
	if (file == NULL)
		return 0;
	for (int line = 1; fgets(text, sizeof(text), file) != NULL; line++)
	{
		const char *at = text + strspn(text, "\t ");
		int			call = 0;

		while (call < n_calls && strncmp(at, calls[call], strlen(calls[call])) != 0)
			call++;
		if (call < n_calls && n < MOST_BARRIERS)
			barriers[n++] = (Barrier) {line, call == n_calls - 1};
	}
	fclose(file);
	return n;
}

/*
 * The name under which the kernels know a barrier, and the first play, of a model in a shape, in
 * which threads have come to it; NULL: in none.
 */
static const char *
known_as(const char *source, int line, int *first)
{
	const char *name;
	int			at;

	for (int i = 0; (name = gpu_emulated_barrier(i, &at)) != NULL; i++)
	{
		const char *slash = strrchr(name, '/');

		if (at != line || strcmp(slash != NULL ? slash + 1 : name, source) != 0)
			continue;
		*first = 0;
		while (*first < FEW_MODELS * FEW_SHAPES - 1 && barriers_after[*first] <= i)
			++*first;
		return name;
	}
	return NULL;
}

/*
 * Whether a process in which this barrier is left out, or so many bytes too many are expected
 * there, finds a race, or is stopped; beginning with this play of a model in a shape, for none
 * before has the barrier, and then with the last models, which are least like it.
 */
static bool
is_missed(const char *name, int line, int bytes, int first)
{
	for (int i = 0; i < FEW_MODELS; i++)
	{
		pid_t		child;
		int			status = 0;

		fflush(stdout);
		child = fork();
		if (child == 0)
		{
			if (bytes == 0)
				gpu_emulated_leave_out(name, line);
			else
				gpu_emulated_miscount(name, line, bytes);
			gpu_emulated.races = 0;
			gpu_emulated.quiet = 1;
			if (freopen("/dev/null", "w", stdout) == NULL
				|| freopen("/dev/null", "w", stderr) == NULL)
				_exit(0);
			for (int s = i == 0 ? first % FEW_SHAPES : 0; s < FEW_SHAPES; s++)
			{
				play(find_model(few_models[i == 0 ? first / FEW_SHAPES : FEW_MODELS - i]),
					 &few_shapes[s]);
				if (gpu_emulated.races > 0)
					_exit(1);
			}
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			return false;
		if (WIFSIGNALED(status) || WEXITSTATUS(status) == 1)
			return true;
	}
	return false;
}

/* The checker itself: accesses that bells order, and those that they do not. */
static void
look_for_known_races(void)
{
	static const char *const mistakes[] = {
		"nothing that a warp does together lies between a read and the push that tells of it",
		"a push tells of a read, not of a write", "a push is not awaited before the next",
		"what is pushed is read before its bell is awaited",
		"a push does not tell of a store into another block, whatever barrier lies between"
	};

	ok(gpu_emulated_pushed_back(0) == 0,
	   "no race: what a warp read before it pushed is overwritten");
	gpu_emulated.quiet = 1;
	for (int i = 0; i < (int) (sizeof(mistakes) / sizeof(mistakes[0])); i++)
		ok(gpu_emulated_pushed_back(i + 1) > 0, "a race: %s", mistakes[i]);
	gpu_emulated.quiet = 0;
	gpu_emulated.races = 0;
}

static void
leave_out_each(void)
{
	int			n_barriers = 0;

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
	{
		Barrier		barriers[MOST_BARRIERS];
		int			n = read_barriers(sources[i], barriers);

		n_barriers += n;
		for (int j = 0; j < n; j++)
		{
			int			line = barriers[j].line,
						first;
			const char *name = known_as(sources[i], line, &first);

			if (name == NULL)
				ok(false, "%s:%d: threads come to the barrier", sources[i], line);
			else
				ok(is_missed(name, line, 0, first),
				   "%s:%d: the barrier is missed when it is left out", sources[i], line);
			if (name != NULL && barriers[j].expects)
				for (int bytes = -4; bytes <= 4; bytes += 8)
					ok(is_missed(name, line, bytes, first), "%s:%d: %d bytes more are missed",
					   sources[i], line, bytes);
		}
	}
	ok(n_barriers > 12, "%d barriers in the sources", n_barriers);
}

int
main(int argc, char **argv)
{
	const char *colon = argc > 1 ? strchr(argv[1], ':') : NULL;

	models = test_models(&n_models);
	for (int i = 0; i < FEW_MODELS; i++)
		if (find_model(few_models[i]) == NULL)
		{
			ok(false, "the model %s is there", few_models[i]);
			return done_testing();
		}
	if (colon != NULL)
	{
		char		name[64];

		snprintf(name, sizeof(name), "cuda/%.*s", (int) (colon - argv[1]), argv[1]);
		ok(is_missed(name, atoi(colon + 1), 0, 0), "%s: the barrier is missed when it is left out",
		   argv[1]);
		test_models_free(models, n_models);
		return done_testing();
	}
	look_for_known_races();
	look_for_races(argc > 1 && strcmp(argv[1], "--all") == 0);
	leave_out_each();
	test_models_free(models, n_models);
	return done_testing();
}
