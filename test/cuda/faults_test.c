/*
 * faults_test.c: the CUDA device when something fails: every GPU call in turn, every allocation in
 * turn, every poll in turn; too little memory; questions that cannot be answered. Nothing is
 * leaked, what was there stays as it was, and neighbours get their answers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cuda_tests.h"
#include "host.h"
#include "tap.h"

#define ROWS 25
#define QUERIES 3

typedef struct Scene
{
	const TestModel *file;
	TestRows	rows;
	size_t		memory;
	bool		half;			/* in 16 bits, else in 32 */
	bool		layered;		/* layer by layer: marginal questions alone */
	double		answers[2 * QUERIES + 3 * QUERIES + 1];
} Scene;

/*
 * Everything once, from opening to closing. The status of what failed first; *lost as the device
 * says then.
 */
static TnpStatus
play(Scene *s, bool *lost, TnpError *error)
{
	TnpDeviceConfig config = {0};
	TnpDevice  *device = cuda_open(s->half ? TNP_PRECISION_FP16 : TNP_PRECISION_FP32, s->memory);
	TnpDeviceModel *model = NULL;
	TnpDeviceEncoding *e = NULL;
	TnpRows		context = test_slice(&s->rows, 0, ROWS),
				more = test_slice(&s->rows, ROWS, 4),
				queries = test_slice(&s->rows, ROWS + 4, QUERIES);
	TnpRequest	r[3];
	TnpStatus	status;

	(void) config;
	gpu_emulated.most_held = 0;
	memset(r, 0, sizeof(r));
	for (int i = 0; i < 3; i++)
	{
		r[i].queries = queries;
		r[i].queries.y = i == 2 ? queries.y : NULL;
		r[i].rows = ROWS;
	}
	r[0].kind = TNP_REQUEST_REDUCE;
	r[0].reductions = TNP_REDUCE_MEAN | TNP_REDUCE_SD;
	r[0].answer = s->answers;
	r[1].kind = TNP_REQUEST_SAMPLE;
	r[1].draws = 3;
	r[1].answer = s->answers + 2 * QUERIES;
	r[2].kind = TNP_REQUEST_SCORE;
	r[2].answer = s->answers + 5 * QUERIES;
	if (s->layered)
	{
		r[1].kind = r[2].kind = TNP_REQUEST_REDUCE;
		r[1].reductions = TNP_REDUCE_SD;
		r[2].reductions = TNP_REDUCE_LOG_DENSITY;
		r[2].queries.n = 1;
	}
	cuda_force_layers = s->layered;
	status = tnp_device.model_load(device, s->file->bytes, s->file->length, &model, error);
	cuda_force_layers = false;
	if (status == TNP_OK)
		status = tnp_device.encoding_build(model, &context, 16, 0, &e, error);
	if (status == TNP_OK)
	{
		status = tnp_device.encoding_append(e, &more, error);
		if (tnp_device.encoding_rows(e) != ROWS + (status == TNP_OK ? 4 : 0))
			ok(false, "a failed append changes the number of rows");
	}
	for (int i = 0; i < 3; i++)
		r[i].status = TNP_INTERRUPTED;
	if (status == TNP_OK)
		status = tnp_device.answer(e, 3, r, error);
	for (int i = 0; status == TNP_OK && i < 3; i++)
		if ((status = r[i].status) != TNP_OK)
			*error = r[i].error;
	*lost = tnp_device.lost(device);
	if (gpu_emulated.most_held > (s->memory > 0 ? s->memory : SIZE_MAX))
		ok(false, "more memory is held than allowed");
	tnp_device.encoding_free(e);
	if (model != NULL)
		tnp_device.model_free(model);
	tnp_device.shutdown(device);
	return status;
}

static void
reset(void)
{
	gpu_emulated.calls = gpu_emulated.fail_at = gpu_emulated.allocations =
		gpu_emulated.no_memory_at = 0;
	cuda_polls = cuda_stop_at = 0;
}

static void
check_faults(const TestModel *file, bool layered)
{
	Scene		s = {.file = file, .layered = layered},
				again;
	TnpModel   *model;
	TnpError	error = {0};
	bool		lost;
	long		calls,
				allocations,
				polls,
				wrong;

	if (tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error) != TNP_OK)
		return;
	test_rows_make(&s.rows, tnp_model_info(model), ROWS + 4 + QUERIES, 3);
	tnp_model_close(model);
	again = s;
	reset();
	ok(play(&s, &lost, &error) == TNP_OK && !lost, "%s: without a fault: %s", file->name,
	   error.message);
	calls = gpu_emulated.calls;
	allocations = gpu_emulated.allocations;
	polls = cuda_polls;
	is_int(gpu_emulated.live, 0, "nothing is left");

	wrong = 0;
	for (long k = 1; k <= calls; k++)
	{
		reset();
		gpu_emulated.fail_at = k;
		if (play(&again, &lost, &error) == TNP_OK || !lost
			|| strstr(error.message, "illegal memory access") == NULL || gpu_emulated.live != 0)
			wrong++;
	}
	ok(calls > 20 && wrong == 0,
	   "%s: each of %ld calls can fail: the device is lost, the text is its own, nothing is leaked",
	   file->name, calls);
	if (wrong > 0)
		diag("%ld did not; live %ld, last \"%s\"", wrong, gpu_emulated.live, error.message);

	wrong = 0;
	for (long k = 1; k <= allocations; k++)
	{
		TnpStatus	status;

		reset();
		gpu_emulated.no_memory_at = k;
		status = play(&again, &lost, &error);
		/* with less memory an answer may come in smaller pieces; else it says so */
		if (lost || gpu_emulated.live != 0
			|| (status == TNP_OK ? memcmp(s.answers, again.answers, sizeof(s.answers)) != 0
			 : status != TNP_NO_MEMORY))
			wrong++;
	}
	ok(allocations > 2 && wrong == 0, "%s: each of %ld allocations can find no memory", file->name,
	   allocations);

	wrong = 0;
	for (long k = 1; k <= polls; k++)
	{
		reset();
		cuda_stop_at = k;
		if (play(&again, &lost, &error) != TNP_INTERRUPTED || lost || gpu_emulated.live != 0)
			wrong++;
	}
	ok(polls > 5 && wrong == 0, "%s: each of %ld polls can interrupt", file->name, polls);

	reset();
	for (size_t memory = 1 << 10; memory <= 1 << 24; memory *= 2)
	{
		TnpStatus	status;

		again.memory = memory;
		status = play(&again, &lost, &error);
		if (lost || gpu_emulated.live != 0
			|| (status == TNP_OK ? memcmp(s.answers, again.answers, sizeof(s.answers)) != 0
											   : status != TNP_NO_MEMORY))
			wrong++;
	}
	ok(wrong == 0 && play(&again, &lost, &error) == TNP_OK,
	   "%s: with any amount of memory it answers the same, or says that there is too little",
	   file->name);
	test_rows_free(&s.rows);
}

/*
 * Teams that wait for each other, which kernels of 16 bits alone have: the bits of one team,
 * whether the device grants them or refuses them, which it is asked once.
 */
static void
check_refused_copies(const TestModel *file)
{
	Scene		s = {.file = file, .half = true},
				again;
	TnpModel   *model;
	TnpError	error = {0};
	bool		lost;

	if (tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error) != TNP_OK)
		return;
	test_rows_make(&s.rows, tnp_model_info(model), ROWS + 4 + QUERIES, 3);
	tnp_model_close(model);
	again = s;
	reset();
	ok(play(&s, &lost, &error) == TNP_OK, "one team");
	for (int team = 1; team <= 8; team *= 8)
		for (int refuse = 0; refuse < 2; refuse++)
		{
			reset();
			cuda_force.team = team;
			cuda_force.copies = 2;
			gpu_emulated.refuse_copies = refuse;
			gpu_emulated.refuse_teams = 0;
			gpu_emulated.refused = 0;
			memset(again.answers, 0, sizeof(again.answers));
			ok(play(&again, &lost, &error) == TNP_OK && !lost && gpu_emulated.refused == refuse
			   && memcmp(s.answers, again.answers, sizeof(s.answers)) == 0,
			   "teams of %d that wait for each other, %s: the same bits", team,
			   refuse ? "refused once" : "granted");
		}
	cuda_force.team = cuda_force.copies = 0;
	gpu_emulated.refuse_copies = 0;
	test_rows_free(&s.rows);
}

/* A scene, whole at first, then with each of its launches refused, more than `least`. */
static void
refuse_each_launch(Scene *s, long least, const char *what)
{
	TnpError	error = {0};
	bool		lost;
	long		launches,
				wrong = 0;

	gpu_emulated.launches = 0;
	ok(play(s, &lost, &error) == TNP_OK, "%s, without a refusal", what);
	launches = gpu_emulated.launches;
	for (long k = 1; k <= launches; k++)
	{
		reset();
		gpu_emulated.launches = 0;
		gpu_emulated.refuse_at = k;
		if (play(s, &lost, &error) != TNP_BAD_CONFIG || lost || gpu_emulated.live != 0
			|| strstr(error.message, "too many resources") == NULL)
			wrong++;
	}
	gpu_emulated.refuse_at = 0;
	ok(launches > least && wrong == 0,
	   "%s, each of %ld launches can be refused: an error that says so, nothing is lost", what,
	   launches);
}

/*
 * Launches that the device refuses: the request fails, the device goes on, and what is asked again
 * has its answer. A refused team is given up for a smaller one, unseen; in 16 bits those push.
 */
static void
check_refused_launches(const TestModel *file, bool half)
{
	Scene		s = {.file = file, .half = half},
				again;
	TnpModel   *model;
	TnpError	error = {0};
	bool		lost;

	if (tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error) != TNP_OK)
		return;
	test_rows_make(&s.rows, tnp_model_info(model), ROWS + 4 + QUERIES, 3);
	tnp_model_close(model);
	again = s;
	reset();
	ok(play(&s, &lost, &error) == TNP_OK, "without a refusal");
	cuda_force.team = 8;
	for (int team = 4; team >= 1; team /= 2)
	{
		reset();
		gpu_emulated.refuse_teams = team;
		gpu_emulated.refused = 0;
		memset(again.answers, 0, sizeof(again.answers));
		ok(play(&again, &lost, &error) == TNP_OK && !lost && gpu_emulated.refused > 0
		   && memcmp(s.answers, again.answers, sizeof(s.answers)) == 0,
		   "clusters of more than %d blocks are refused: the same bits from smaller ones", team);
	}
	cuda_force.team = 0;
	gpu_emulated.refuse_teams = 0;
	gpu_emulated.team = 1;
	refuse_each_launch(&again, 3, "without clusters");
	gpu_emulated.team = 0;
	test_rows_free(&s.rows);
}

/*
 * The same of a model that is computed layer by layer, from the look at its products on; and a
 * library that is not there, or whose bits depend on where a row stands.
 */
static void
check_refused_steps(const TestModel *file)
{
	Scene		s = {.file = file, .half = true, .layered = true};
	TnpModel   *model;
	TnpError	error = {0};
	bool		lost;

	if (tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error) != TNP_OK)
		return;
	test_rows_make(&s.rows, tnp_model_info(model), ROWS + 4 + QUERIES, 3);
	tnp_model_close(model);
	reset();
	refuse_each_launch(&s, 50, "layer by layer");
	gpu_emulated.no_products = 1;
	is_int(play(&s, &lost, &error), TNP_BAD_CONFIG, "without a library the model is refused");
	contains(error.message, "no library of matrix products", "which is said");
	gpu_emulated.no_products = 0;
	gpu_emulated.crooked = 1;
	is_int(play(&s, &lost, &error), TNP_BAD_CONFIG, "as with one whose bits depend on the row");
	contains(error.detail, "row 130 of equal ones", "which is said");
	gpu_emulated.crooked = 0;
	ok(!lost && gpu_emulated.live == 0, "nothing is lost, or left");
	test_rows_free(&s.rows);
}

/* Room that a question has left behind gives way to an encoding. */
static void
check_room(const TestModel *file)
{
	size_t		limit = 0,
				plain = 0,
				wanted = 0;
	TestRows	rows;

	for (int pass = 0; pass < 2; pass++)
	{
		TnpDevice  *device = cuda_open(TNP_PRECISION_FP32, limit);
		TnpDeviceModel *m = cuda_load(device, file);
		TnpDeviceEncoding *first,
				   *second;
		TnpRows		context;
		TnpRequest	r;
		TnpError	error;
		double		answer[QUERIES];
		size_t		used;

		test_rows_make(&rows, tnp_device.model_info(m), ROWS + QUERIES, 3);
		context = test_slice(&rows, 0, ROWS);
		memset(&r, 0, sizeof(r));
		r.kind = TNP_REQUEST_REDUCE;
		r.reductions = TNP_REDUCE_MEAN;
		r.rows = ROWS;
		r.queries = test_slice(&rows, ROWS, QUERIES);
		r.queries.y = NULL;
		r.answer = answer;
		ok(tnp_device.encoding_build(m, &context, 16, 0, &first, &error) == TNP_OK
		   && cuda_ask(first, &r) == TNP_OK, "an encoding, and a question about it");
		used = tnp_device.memory_used(device);
		gpu_emulated.most_held = 0;
		ok(tnp_device.encoding_build(m, &context, 16, 1000, &second, &error) == TNP_OK,
		   "another one with room for a thousand rows");
		if (pass == 0)
		{
			plain = tnp_device.encoding_bytes(first);
			wanted = tnp_device.encoding_bytes(second);
			limit = used + wanted / 2;
			ok(wanted > 4 * plain, "which is larger");
		}
		is_int((long long) tnp_device.encoding_bytes(second), (long long) wanted,
			   "it gets it, although the question's room stood in its way");
		ok(pass == 0 || gpu_emulated.most_held <= limit, "within the limit, what is kept included");
		ok(cuda_ask(first, &r) == TNP_OK, "and questions find room again");
		tnp_device.encoding_free(first);
		tnp_device.encoding_free(second);
		tnp_device.model_free(m);
		tnp_device.shutdown(device);
		test_rows_free(&rows);
	}
}

/* Requests that fail beside others that do not. */
static void
check_neighbours(const TestModel *file)
{
	TnpDevice  *device = cuda_open(TNP_PRECISION_FP32, 0);
	TnpDeviceModel *m = cuda_load(device, file);
	TestRows	rows;
	TnpRows		context;
	TnpDeviceEncoding *e;
	TnpRequest	r[6];
	TnpError	error;
	double		answers[6][QUERIES],
				bad[4 * QUERIES];

	test_rows_make(&rows, tnp_device.model_info(m), ROWS + QUERIES, 3);
	context = test_slice(&rows, 0, ROWS);
	memset(r, 0, sizeof(r));
	for (int i = 0; i < 6; i++)
	{
		r[i].kind = TNP_REQUEST_REDUCE;
		r[i].reductions = TNP_REDUCE_MEAN;
		r[i].rows = ROWS;
		r[i].queries = test_slice(&rows, ROWS, QUERIES);
		r[i].queries.y = NULL;
		r[i].answer = answers[i];
		r[i].status = TNP_INTERRUPTED;
	}
	for (int i = 0; i < 4 * QUERIES; i++)
		bad[i] = i == 1 ? NAN : i == 8 ? 1e39 : 0.5;
	r[1].queries.x = bad;
	r[2].queries.n_features++;
	r[3].rows = 3;
	r[4].queries.x = bad + 2 * QUERIES;
	ok(tnp_device.encoding_build(m, &context, 16, 0, &e, &error) == TNP_OK, "built");
	ok(tnp_device.answer(e, 6, r, &error) == TNP_OK, "all requests have a status");
	is_int(r[0].status, TNP_OK, "a good request");
	is_int(r[1].status, TNP_BAD_VALUE, "a missing feature");
	contains(r[1].error.message, "missing", "which is said");
	is_int(r[2].status, TNP_BAD_SHAPE, "one column too many");
	is_int(r[3].status, TNP_BAD_ARGUMENT, "rows that are no encoding of their own");
	is_int(r[4].status, TNP_BAD_VALUE, "a feature too large for a float");
	contains(r[4].error.message, "too large", "which is said");
	is_int(r[5].status, TNP_OK, "a good request after bad ones");
	ok(memcmp(answers[0], answers[5], sizeof(answers[0])) == 0,
	   "with the answers it would have had alone");
	tnp_device.encoding_free(e);
	tnp_device.model_free(m);
	tnp_device.shutdown(device);
	test_rows_free(&rows);
}

/* What the device cannot serve, and a device that is not there. */
static void
check_refusals(const TestModel *file, const TestModel *streams)
{
	TnpDeviceConfig config = {.ordinal = 1};
	TnpDevice  *device;
	TnpDeviceModel *m;
	TnpError	error;

	is_int(tnp_device.init(&config, &device, &error), TNP_BAD_ARGUMENT,
		   "a device that does not exist");
	contains(error.message, "CUDA device 1", "is named");
	gpu_emulated.shared_bytes = 4096;
	device = cuda_open(TNP_PRECISION_FP16, 0);
	is_int(tnp_device.model_load(device, streams->bytes, streams->length, &m, &error),
		   TNP_BAD_CONFIG, "a model of two streams too wide for the device");
	contains(error.message, "shared memory", "says what does not fit");
	is_int(tnp_device.model_load(device, file->bytes, 100, &m, &error), TNP_BAD_FILE,
		   "half a file");
	is_int((long long) tnp_device.memory_used(device), 0, "neither costs memory");
	tnp_device.shutdown(device);
	gpu_emulated.shared_bytes = 0;
}

int
main(void)
{
	int			n;
	TestModel  *models = test_models(&n);

	const TestModel *streams = NULL;

	gpu_emulated.late = true;
	for (int i = 0; i < n; i++)
		if (strcmp(models[i].name, "two_stream_buffer") == 0)
			streams = &models[i];
	for (int i = 0; i < n; i++)
	{
		if (strcmp(models[i].name, "prefix_causal_scaled") == 0)
		{
			check_faults(&models[i], false);
			check_faults(&models[i], true);
			check_refused_steps(&models[i]);
			check_refused_launches(&models[i], false);
			check_refused_launches(&models[i], true);
			check_refused_copies(&models[i]);
			check_room(&models[i]);
			check_neighbours(&models[i]);
			check_refusals(&models[i], streams);
		}
	}
	is_int(gpu_emulated.live, 0, "all memory has been given back");
	test_models_free(models, n);
	return done_testing();
}
