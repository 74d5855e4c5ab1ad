/*
 * parity_test.c: every test model on the emulated CUDA device against the engine's reference
 * provider, in 32-bit precision: encodings, predictions, reductions, draws, densities; appended,
 * built at once, and asked by first rows.
 *
 *   parity_test [MODEL]
 *
 * On a GPU, shapes of launches that are never chosen for so few rows are tested as well:
 * CUDA_TEST_SHAPE="ROWS TEAM SPLIT IN_MEMORY" chooses them (host.h), and CUDA_TEST_PRECISION=fp16
 * the kernels of 16 bits, whose answers to weights at random are only near.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cuda_tests.h"
#include "engine/features/class_process.h"
#include "engine/features/trees.h"
#include "host.h"
#include "tap.h"

#define LINE 16				/* rows that tell one */
#define LEVELS 16				/* rows of two levels, or more */
#define TREES 512				/* rows of which trees are grown */
#define TOLERANCE 1e-4
#define LOG_TOLERANCE 1e-3
#define HALF_TOLERANCE 50		/* as many of either in 16 bits */
#define QUERIES 5
#define DRAWS 9				/* more than share a block of private keys; of each third model */
#define FEW_DRAWS 3

static const double levels[4] = {0.02, 0.5, 0.77, 0.999};
static double tolerances = 1;
static int	draws = DRAWS;

/* Both sides' encoding of the same rows. */
typedef struct Pair
{
	const char *name;
	TnpEncoding *engine;
	TnpDeviceEncoding *device;
	TnpDistributionKind kind;
	int			components,
				size;
	bool		leaves_chains;	/* to the session's CPU */
} Pair;

static TnpRequest
request(TnpRequestKind kind, const Pair *p, const TnpRows *queries, double *answer)
{
	TnpRequest	r;

	memset(&r, 0, sizeof(r));
	r.kind = kind;
	r.rows = tnp_encoding_rows(p->engine);
	r.queries = *queries;
	r.answer = answer;
	return r;
}

static void
check_predictions(const Pair *p, const TnpRows *queries, const char *what)
{
	size_t		n = (size_t) queries->n * p->size;
	double	   *want = malloc(n * sizeof(double)),
			   *got = malloc(n * sizeof(double)),
			   *wanted = malloc((size_t) queries->n * 7 * sizeof(double)),
			   *reduced = malloc((size_t) queries->n * 7 * sizeof(double));
	TnpRows		plain = *queries;
	TnpRequest	r;
	TnpError	error = {0};
	double		difference;

	plain.y = NULL;
	r = request(TNP_REQUEST_PREDICT, p, &plain, got);
	ok(tnp_predict(p->engine, &plain, want, &error) == TNP_OK && cuda_ask(p->device, &r) == TNP_OK,
	   "%s: %s predictions: %s%s", p->name, what, error.message,
	   r.status == TNP_OK ? "" : r.error.message);
	difference = largest_difference(got, want, n);
	ok(difference <= tolerances * TOLERANCE, "%s: %s predictions agree (%.1e)", p->name, what,
	   difference);

	r = request(TNP_REQUEST_REDUCE, p, queries, reduced);
	r.reductions = TNP_REDUCE_MEAN | TNP_REDUCE_SD | TNP_REDUCE_QUANTILES | TNP_REDUCE_LOG_DENSITY;
	r.n_levels = 4;
	r.levels = levels;
	for (int64_t i = 0; i < queries->n; i++)
	{
		/* of the device's own parameters, so that only the reduction is compared */
		TnpDistribution d = {p->kind, p->components, got + i * p->size};
		double	   *to = wanted + i * 7;

		to[0] = tnp_mean(&d);
		to[1] = sqrt(tnp_variance(&d));
		for (int l = 0; l < 4; l++)
			to[2 + l] = tnp_quantile(&d, levels[l]);
		to[6] = tnp_log_pdf(&d, queries->y[i]);
	}
	ok(cuda_ask(p->device, &r) == TNP_OK, "%s: %s reductions: %s", p->name, what,
	   r.status == TNP_OK ? "done" : r.error.message);
	difference = largest_difference(reduced, wanted, (size_t) queries->n * 7);
	ok(difference <= 1e-9, "%s: %s reductions agree (%.1e)", p->name, what, difference);
	free(want);
	free(got);
	free(wanted);
	free(reduced);
}

/*
 * Whether draws are determined but for rounding. Ids in targets must be small integers; a draw that
 * is the target of the next row is none, sums of weights as large as 2^23 cancel there, and what is
 * left of them depends on the order of summation.
 */
static bool
has_defined_draws(const Pair *p)
{
	return strcmp(p->name, "transparent_target") != 0;
}

static void
check_chains(const Pair *p, const TnpRows *rows, const char *what)
{
	size_t		n = (size_t) rows->n * draws;
	double	   *want = malloc(n * sizeof(double)),
			   *got = malloc(n * sizeof(double)),
				score = 0,
				wanted = 0,
				difference;
	TnpRows		plain = *rows;
	TnpRequest	r;
	TnpError	error = {0};
	TnpStatus	status;

	plain.y = NULL;
	if (has_defined_draws(p))
	{
		r = request(TNP_REQUEST_SAMPLE, p, &plain, got);
		r.seed = 4711;
		r.first_draw = 3;
		r.draws = draws;
		status = cuda_ask(p->device, &r);
		if (status == TNP_NOT_HERE)
		{
			ok(p->leaves_chains, "%s: %s chains are the session's", p->name, what);
			free(want);
			free(got);
			return;
		}
		ok(tnp_sample(p->engine, &plain, 4711, 3, draws, want, &error) == TNP_OK
		   && status == TNP_OK, "%s: %s draws: %s%s", p->name, what, error.message,
		   status == TNP_OK ? "" : r.error.message);
		difference = largest_difference(got, want, n);
		ok(difference <= tolerances * 10 * TOLERANCE, "%s: %s draws agree (%.1e)", p->name, what,
		   difference);
	}
	for (int64_t orders = TNP_AS_APPENDED; orders <= 3; orders += orders < 0 ? 1 : 3)
	{
		r = request(TNP_REQUEST_SCORE, p, rows, &score);
		r.orders = orders;
		r.seed = 99;
		status = cuda_ask(p->device, &r);
		if (status == TNP_NOT_HERE)
		{
			ok(p->leaves_chains && (orders >= 0 || p->device->model->layered),
			   "%s: %s density is the session's", p->name, what);
			continue;
		}
		ok(tnp_score(p->engine, rows, orders, 99, &wanted, NULL, &error) == TNP_OK
		   && status == TNP_OK, "%s: %s density: %s%s", p->name, what, error.message,
		   status == TNP_OK ? "" : r.error.message);
		is_near(score, wanted, tolerances * LOG_TOLERANCE * (1 + fabs(wanted) / 10),
				"the density agrees");
	}
	free(want);
	free(got);
}

/*
 * Classes by steps of columns, which trees find and regressions do not. Some of the rows from
 * `asked` on have a cell that no row of the context has, in a column of few values; those from
 * `whole` on lack no cells, so that devices answer joint questions about them.
 */
static void
make_steps(TestRows *rows, int64_t asked, int64_t whole)
{
	for (int64_t i = 0; i < rows->view.n; i++)
	{
		double	   *x = rows->x + i * rows->view.n_features;

		for (int f = 0; i >= whole && f < rows->view.n_features; f++)
			x[f] = isnan(x[f]) ? 0 : x[f];
		x[0] = round(4 * x[0]) / 4 + (i >= asked && i % 3 == 0 ? 0.125 : 0);
		rows->y[i] = x[0] > 0 ? x[2] > 0.3 : 2 * (x[3] > 0.2);
	}
}

/*
 * Targets that a model which takes them for nearer calls far: one of the context, one of a row that
 * chains ask about, and one that is appended.
 */
static void
make_far(const char *name, TestRows *rows, int64_t n)
{
	rows->y[2] = strcmp(name, "rows_far_chains") == 0 ? 4 : 40;
	rows->y[n + QUERIES + 1] = -12;
	rows->y[n + 13] = 15;
}

/* Targets that are a sum of two columns, one of them with a long tail: a line, beyond the clips. */
static void
make_line(TestRows *rows)
{
	for (int64_t i = 0; i < rows->view.n; i++)
	{
		double	   *x = rows->x + i * rows->view.n_features;
		int			last = rows->view.n_features - 1;

		x[0] = 1e3 / (double) ((i * 7) % 40 + 1);
		rows->y[i] = x[0] - (last > 1 && !isnan(x[last]) ? 30 * x[last] : 0);
	}
}

/* Targets of two values, far apart. */
static void
make_levels(TestRows *rows)
{
	for (int64_t i = 0; i < rows->view.n; i++)
		rows->y[i] = rows->y[i] > 0 ? 3 : -4;
}

/*
 * The device's model against the engine's, with n rows of which the prefix is the canonical one or
 * all; `columns` of them where the model takes any number, 0 for as many as is usual.
 */
static void
check_model(const TestModel *file, TnpDeviceModel *dm, TnpModel *model, int n, int columns,
			bool whole)
{
	const TnpModelInfo *info = tnp_model_info(model);
	TnpModelInfo shape = *info;
	TestRows	rows;
	TnpRows		context,
				queries,
				few;
	Pair		p = {file->name, NULL, NULL, 0, 0, 0,
					dm->layered || info->has_donors || info->learns_in_chains};
	TnpError	error;
	int64_t		prefix = whole ? tnp_whole_prefix(model, n) : tnp_canonical_prefix(model, n);
	int			more = info->appendable ? 3 : info->buffer == 0 ? 2 : 0;

	tnp_answer_shape(model, &p.kind, &p.components);
	p.size = tnp_distribution_size(p.kind, p.components);
	if (columns > 0)
		shape.n_features = columns;
	test_rows_make(&rows, &shape, n + 20, 7);
	if (n >= TREES)
		make_steps(&rows, n, n + QUERIES);
	if (strncmp(file->name, "rows_far_", 9) == 0)
		make_far(file->name, &rows, n);
	if (strncmp(file->name, "rows_line", 9) == 0)
		make_line(&rows);
	if (strcmp(file->name, "rows_levels") == 0)
		make_levels(&rows);
	context = test_slice(&rows, 0, n);
	queries = test_slice(&rows, n, QUERIES);
	if (tnp_build(model, &context, prefix, &p.engine, &error) != TNP_OK
		|| tnp_device.encoding_build(dm, &context, prefix, 0, &p.device, &error) != TNP_OK)
	{
		ok(false, "%s: building %d rows: %s", file->name, n, error.message);
		test_rows_free(&rows);
		return;
	}
	if (n >= TREES)
		ok(tnp_trees_blend_weight(model, &p.device->stats) > 0.05
		   || p.device->stats.trees.share > 0.05
		   || tnp_class_process_share(model, &p.device->stats) > 0.05,
		   "%s: trees, or a process of classes, have a share of the answers", p.name);
	if (strncmp(file->name, "rows_line", 9) == 0 && p.device->stats.n0 >= LINE)
		ok(p.device->stats.process.is_certain,
		   "%s: a line of %d rows", p.name, (int) p.device->stats.n0);
	if (strcmp(file->name, "rows_levels") == 0 && p.device->stats.n0 >= LEVELS)
		ok(p.device->stats.target_levels.n == 2,
		   "%s: targets of two values, %d rows", p.name, (int) p.device->stats.n0);
	check_predictions(&p, &queries, whole ? "built" : "canonical");
	few = test_slice(&rows, n + QUERIES, 6);
	check_chains(&p, &few, whole ? "built" : "canonical");

	if (more > 0)
	{
		TnpRows		added = test_slice(&rows, n + 12, more);
		TnpRequest	r;
		double	   *before = malloc((size_t) QUERIES * p.size * sizeof(double)),
				   *after = malloc((size_t) QUERIES * p.size * sizeof(double));

		r = request(TNP_REQUEST_PREDICT, &p, &queries, before);
		ok(cuda_ask(p.device, &r) == TNP_OK, "%s: asked before appending", file->name);
		ok(tnp_append(p.engine, &added, &error) == TNP_OK
		   && tnp_device.encoding_append(p.device, &added, &error) == TNP_OK, "%s: appended",
		   file->name);
		check_predictions(&p, &queries, "appended");
		r.answer = after;
		ok(cuda_ask(p.device, &r) == TNP_OK, "%s: the first rows are asked", file->name);
		ok(memcmp(before, after, (size_t) QUERIES * p.size * sizeof(double)) == 0,
		   "%s: rows appended later change nothing", file->name);
		free(before);
		free(after);
	}
	tnp_encoding_free(p.engine);
	tnp_device.encoding_free(p.device);
	test_rows_free(&rows);
}

/* The same layer by layer, where that can be. */
static void
check_layered(TnpDevice *device, const TestModel *file, TnpModel *model)
{
	TnpDeviceModel *dm = cuda_load_layered(device, file);

	if (dm == NULL)
		return;
	if (dm->layered)
		check_model(file, dm, model, 23,
					0, tnp_canonical_prefix(model, 23) == tnp_whole_prefix(model, 23));
	tnp_device.model_free(dm);
}

/* The precision, and the shape of launches, that the environment asks for. */
static TnpPrecision
read_environment(void)
{
	const char *precision = getenv("CUDA_TEST_PRECISION");

	cuda_read_shape();
	if (precision == NULL || strcmp(precision, "fp16") != 0)
		return TNP_PRECISION_FP32;
	tolerances = HALF_TOLERANCE;
	return TNP_PRECISION_FP16;
}

int
main(int argc, char **argv)
{
	int			n;
	TestModel  *models = test_models(&n);
	TnpDevice  *device = cuda_open(read_environment(), 0);
	int			refused = 0;

	for (int i = 0; i < n; i++)
	{
		TnpEnv		env = tnp_default_env;
		TnpModel   *model;
		TnpError	error;
		TnpDeviceModel *dm;
		TnpStatus	status;

		if (argc > 1 && strcmp(argv[1], models[i].name) != 0)
			continue;
		draws = i % 3 == 0 ? DRAWS : FEW_DRAWS;
		if (tnp_model_open(&env, models[i].bytes, models[i].length, &model, &error) != TNP_OK)
			continue;
		/* an architecture without kernels is refused, and left to the sessions */
		status = tnp_device.model_load(device, models[i].bytes, models[i].length, &dm, &error);
		if (!tnp_model_info(model)->on_gpu)
		{
			ok(status == TNP_BAD_CONFIG && strstr(error.message, "no kernels") != NULL,
			   "%s has no kernels and is refused", models[i].name);
			tnp_model_close(model);
			refused++;
			continue;
		}
		if (status == TNP_OK)
			tnp_device.model_free(dm);
		dm = cuda_load(device, &models[i]);
		check_model(&models[i], dm, model, 9, 0, true);
		/*
		 * columns that are not there have weights in a slot linear of so few inputs that it reads
		 * raw numbers
		 */
		if (tnp_model_info(model)->n_features == 0 && tnp_model_info(model)->max_features <= 4)
			check_model(&models[i], dm, model, 9, 2, true);
		if (tnp_canonical_prefix(model, 23) != tnp_whole_prefix(model, 23))
			check_model(&models[i], dm, model, 23, 0, false);
		if (model->config.trees_blend_weight > 0 || model->config.class_process > 0)
			check_model(&models[i], dm, model, TREES, 0, true);
		tnp_device.model_free(dm);
		check_layered(device, &models[i], model);
		tnp_model_close(model);
	}
	tnp_device.shutdown(device);
	ok(argc > 1 || 2 * refused < n, "most models have kernels, %d of %d have none", refused, n);
	is_int(gpu_emulated.live, 0, "all device and host memory has been given back");
	test_models_free(models, n);
	return done_testing();
}
