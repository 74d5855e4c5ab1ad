/*
 * overlap_test.c: the host makes a chunk of queries ready while the device has the one before: in
 * which order the device is asked, and what happens when something fails in between. The device is
 * as late as it may be, so that what is written, read or given back too early is found.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cuda_tests.h"
#include "host.h"
#include "tap.h"

#define CONTEXT 20
#define CHUNK 4
#define QUERIES 18				/* five chunks */

typedef struct Scene
{
	TnpDevice  *device;
	TnpDeviceModel *m;
	TnpDeviceEncoding *e;
	TestRows	rows;
} Scene;

static void
open_scene(Scene *s, const TestModel *file, size_t memory)
{
	TnpRows		context;
	TnpError	error;

	s->device = cuda_open(TNP_PRECISION_FP32, memory);
	s->m = cuda_load(s->device, file);
	test_rows_make(&s->rows, tnp_device.model_info(s->m), CONTEXT + QUERIES, 21);
	context = test_slice(&s->rows, 0, CONTEXT);
	if (tnp_device.encoding_build(s->m, &context, 16, 0, &s->e, &error) != TNP_OK)
	{
		printf("Bail out! %s\n", error.message);
		exit(2);
	}
}

static void
close_scene(Scene *s)
{
	tnp_device.encoding_free(s->e);
	tnp_device.model_free(s->m);
	tnp_device.shutdown(s->device);
	test_rows_free(&s->rows);
}

/*
 * Mean and sd of queries [first, first + n), or the log density of their targets in place of the
 * sd: then pieces lie elsewhere in the rooms. How the device was asked is in its trace.
 */
static TnpStatus
ask_for(Scene *s, int first, int n, bool density, double *answer)
{
	TnpRequest	r;

	memset(&r, 0, sizeof(r));
	r.kind = TNP_REQUEST_REDUCE;
	r.reductions = TNP_REDUCE_MEAN | (density ? TNP_REDUCE_LOG_DENSITY : TNP_REDUCE_SD);
	r.rows = CONTEXT;
	r.queries = test_slice(&s->rows, CONTEXT + first, n);
	if (!density)
		r.queries.y = NULL;
	r.answer = answer;
	memset(answer, 0, (size_t) n * 2 * sizeof(double));
	gpu_emulated.trace[0] = '\0';
	gpu_emulated.trace_room = sizeof(gpu_emulated.trace);
	return cuda_ask(s->e, &r);
}

static TnpStatus
ask(Scene *s, int first, int n, double *answer)
{
	return ask_for(s, first, n, false, answer);
}

static void
reset(void)
{
	gpu_emulated.calls = gpu_emulated.fail_at = gpu_emulated.allocations =
		gpu_emulated.no_memory_at = gpu_emulated.launches = gpu_emulated.refuse_at = 0;
	cuda_polls = cuda_stop_at = 0;
}

/*
 * The order: the second chunk goes to the other queue before the first is awaited, the third one
 * into the first's room when its answers have been taken.
 */
static void
check_order(const TestModel *file)
{
	Scene		s;
	double		answer[2 * QUERIES],
				again[2 * QUERIES];
	size_t		used;

	open_scene(&s, file, 0);
	ok(ask(&s, 0, CHUNK, answer) == TNP_OK, "one chunk");
	is_string(gpu_emulated.trace, "u0l0d0w0", "is asked of one queue");
	used = tnp_device.memory_used(s.device);
	ok(ask(&s, 0, CHUNK, answer) == TNP_OK && tnp_device.memory_used(s.device) == used
	   && s.device->rooms[1].scratch == NULL && s.device->rooms[1].staging == NULL,
	   "and has no second buffers");
	ok(ask(&s, 0, 3 * CHUNK, answer) == TNP_OK, "three chunks");
	is_string(gpu_emulated.trace, "f1u0l0d0f1u1l1d1w0u0l0d0w1w0",
		   "the second is asked before the first is awaited, and the third before the second");
	ok(tnp_device.memory_used(s.device) == used + s.device->rooms[1].scratch_bytes
	   && s.device->rooms[1].scratch_bytes > 0, "the second room counts as memory in use");
	ok(ask(&s, 0, 3 * CHUNK, again) == TNP_OK
	   && memcmp(answer, again, 3 * CHUNK * 2 * sizeof(double)) == 0, "the same again");
	is_string(gpu_emulated.trace, "f1u0l0d0u1l1d1w0u0l0d0w1w0", "in rooms that are there");
	ok(ask(&s, 0, CHUNK + 1, again) == TNP_OK
	   && memcmp(answer, again, (CHUNK + 1) * 2 * sizeof(double)) == 0, "two chunks");
	is_string(gpu_emulated.trace, "f1u0l0d0u1l1d1w0w1", "are on both queues at once");
	close_scene(&s);
}

/* Every limit of memory: two rooms where they fit, one where one fits, the same answers. */
static void
check_limits(const TestModel *file)
{
	Scene		s;
	double		want[2 * QUERIES],
				got[2 * QUERIES];
	size_t		least,
				most;
	int			none = 0,
				one = 0,
				two = 0,
				wrong = 0;

	open_scene(&s, file, 0);
	least = tnp_device.memory_used(s.device) - s.device->rooms[0].scratch_bytes;
	ok(ask(&s, 0, QUERIES, want) == TNP_OK, "without a limit");
	most = least + 32768;
	close_scene(&s);
	/* building takes room, too, which it gives back */
	for (size_t limit = least + 512; limit < most; limit += 512)
	{
		TnpStatus	status;
		TnpRows		context;
		TnpError	error;

		s.device = cuda_open(TNP_PRECISION_FP32, limit);
		s.m = cuda_load(s.device, file);
		test_rows_make(&s.rows, tnp_device.model_info(s.m), CONTEXT + QUERIES, 21);
		context = test_slice(&s.rows, 0, CONTEXT);
		if (tnp_device.encoding_build(s.m, &context, 16, 0, &s.e, &error) != TNP_OK)
		{
			none++;
			s.e = NULL;
			close_scene(&s);
			continue;
		}
		gpu_emulated.most_held = 0;
		status = ask(&s, 0, QUERIES, got);
		if (status == TNP_OK)
			*(strchr(gpu_emulated.trace, '1') == NULL
			  || strstr(gpu_emulated.trace, "u1") == NULL ? &one : &two) += 1;
		else
			none++;
		if (status == TNP_OK ? memcmp(want, got, sizeof(want)) != 0 : status != TNP_NO_MEMORY)
			wrong++;
		if (gpu_emulated.most_held > limit || tnp_device.memory_used(s.device) > limit)
			wrong++;
		close_scene(&s);
	}
	ok(none > 0 && one > 0 && two > 0 && wrong == 0,
	   "any limit of memory: %d too small, %d for one room, %d for two, the same answers", none,
	   one, two);
	is_int(gpu_emulated.live, 0, "nothing is left");
}

/*
 * Every call, allocation, launch and poll of a question of some chunks fails in turn. Where the
 * device goes on, another question has its own answers at once, and then the first one.
 */
static void
check_faults(const TestModel *file, const char *what, long *counter, long *fail_at,
			 TnpStatus expected)
{
	double		want[2 * QUERIES],
				other[2 * QUERIES],
				got[2 * QUERIES];
	long		n,
				wrong = 0;
	Scene		s;

	reset();
	open_scene(&s, file, 0);
	ok(ask_for(&s, CHUNK, QUERIES - CHUNK, true, other) == TNP_OK, "another question");
	close_scene(&s);
	open_scene(&s, file, 0);
	reset();
	ok(ask(&s, 0, QUERIES, want) == TNP_OK, "several chunks");
	n = *counter;
	close_scene(&s);
	for (long k = 1; k <= n; k++)
	{
		TnpStatus	status;
		bool		lost;

		open_scene(&s, file, 0);
		reset();
		*fail_at = k;
		status = ask(&s, 0, QUERIES, got);
		lost = tnp_device.lost(s.device);
		reset();
		if (lost != (fail_at == &gpu_emulated.fail_at))
			wrong++;
		/* with less memory there is one room, or chunks are smaller */
		if (status == TNP_OK ? expected != TNP_NO_MEMORY || memcmp(want, got, sizeof(want)) != 0
			: status != expected)
			wrong++;
		if (!lost && (ask_for(&s, CHUNK, QUERIES - CHUNK, true, got) != TNP_OK
					  || memcmp(other, got, (QUERIES - CHUNK) * 2 * sizeof(double)) != 0
					  || ask(&s, 0, QUERIES, got) != TNP_OK
					  || memcmp(want, got, sizeof(want)) != 0))
			wrong++;
		close_scene(&s);
		if (gpu_emulated.live != 0)
			wrong++;
	}
	ok(n > 1 && wrong == 0, "each of %ld %s of these chunks can fail, and nothing else does", n,
	   what);
	reset();
}

/* A team of a launch beside another one is refused: smaller ones, the same bits. */
static void
check_refused_team(const TestModel *file)
{
	double		want[2 * QUERIES],
				got[2 * QUERIES];
	Scene		s;

	open_scene(&s, file, 0);
	ok(ask(&s, 0, QUERIES, want) == TNP_OK, "as planned");
	reset();
	cuda_force.team = 4;
	gpu_emulated.refuse_at = 2;
	ok(ask(&s, 0, QUERIES, got) == TNP_OK && memcmp(want, got, sizeof(want)) == 0
	   && s.device->facts.team == 2, "the second chunk's team is refused: the same bits");
	cuda_force.team = 0;
	reset();
	close_scene(&s);
}

int
main(void)
{
	int			n;
	TestModel  *models = test_models(&n);

	gpu_emulated.late = true;
	cuda_chunk_rows = CHUNK;
	for (int i = 0; i < n; i++)
		if (strcmp(models[i].name, "prefix_causal_scaled") == 0)
		{
			check_order(&models[i]);
			check_limits(&models[i]);
			check_faults(&models[i], "calls", &gpu_emulated.calls, &gpu_emulated.fail_at,
						 TNP_BAD_ARGUMENT);
			check_faults(&models[i], "allocations", &gpu_emulated.allocations,
						 &gpu_emulated.no_memory_at, TNP_NO_MEMORY);
			check_faults(&models[i], "polls", &cuda_polls, &cuda_stop_at, TNP_INTERRUPTED);
			gpu_emulated.team = 1;
			check_faults(&models[i], "launches", &gpu_emulated.launches, &gpu_emulated.refuse_at,
						 TNP_BAD_CONFIG);
			gpu_emulated.team = 0;
			check_refused_team(&models[i]);
			/* of two chunks, layer by layer */
			cuda_chunk_rows = QUERIES / 2;
			cuda_force_layers = true;
			check_faults(&models[i], "kernels and products, layer by layer,",
						 &gpu_emulated.launches, &gpu_emulated.refuse_at, TNP_BAD_CONFIG);
			cuda_force_layers = false;
		}
	is_int(gpu_emulated.live, 0, "all memory has been given back");
	test_models_free(models, n);
	return done_testing();
}
