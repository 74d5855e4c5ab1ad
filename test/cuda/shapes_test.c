/*
 * shapes_test.c: an answer has the same bits whatever the shape of the launch (rows per tile,
 * blocks per tile, keys split or not, partial results in shared memory or not), whatever runs first
 * between two barriers, and whatever else is asked in the same call; and an encoding the same bits
 * however it came about.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cuda_tests.h"
#include "host.h"
#include "kernels.h"
#include "tap.h"

#define CONTEXT 150				/* more than one chunk of keys */
#define QUERIES 17				/* more than the smallest tile */
#define DRAWS 9
#define STEPS 3
#define ORDERS 3
#define PARAMS 64				/* of one distribution, at most */

/* Everything that is compared. */
typedef struct Answers
{
	double		mean[QUERIES],
				sd[QUERIES],
				params[QUERIES * PARAMS],
				draws[DRAWS * STEPS],
				score[2];
} Answers;

static TnpStatus
ask_all(TnpDeviceEncoding *e, int64_t rows, const TestRows *all, Answers *a)
{
	TnpRequest	r[6];
	TnpError	error;
	TnpRows		queries = test_slice(all, CONTEXT + 10, QUERIES),
				steps = test_slice(all, CONTEXT + 50, STEPS),
				plain = steps;
	TnpStatus	status;

	memset(r, 0, sizeof(r));
	memset(a, 0, sizeof(*a));
	queries.y = plain.y = NULL;
	for (int i = 0; i < 2; i++)
	{
		r[i].kind = TNP_REQUEST_REDUCE;
		r[i].queries = queries;
		r[i].reductions = i == 0 ? TNP_REDUCE_MEAN : TNP_REDUCE_SD;
		r[i].answer = i == 0 ? a->mean : a->sd;
	}
	r[2].kind = TNP_REQUEST_SAMPLE;
	r[2].queries = plain;
	r[2].draws = DRAWS;
	r[2].seed = 5;
	r[2].answer = a->draws;
	for (int i = 0; i < 2; i++)
	{
		r[3 + i].kind = TNP_REQUEST_SCORE;
		r[3 + i].queries = steps;
		r[3 + i].orders = i * ORDERS;
		r[3 + i].seed = 8;
		r[3 + i].answer = &a->score[i];
	}
	r[5].kind = TNP_REQUEST_PREDICT;
	r[5].queries = queries;
	r[5].answer = a->params;
	for (int i = 0; i < 6; i++)
	{
		r[i].rows = rows;
		r[i].status = TNP_INTERRUPTED;
	}
	status = tnp_device.answer(e, 6, r, &error);
	for (int i = 0; status == TNP_OK && i < 6; i++)
		status = r[i].status;
	return status;
}

static bool
same(const Answers *a, const Answers *b)
{
	return memcmp(a, b, sizeof(Answers)) == 0;
}

static void
check_shapes(TnpDeviceEncoding *e, const char *name, const TestRows *rows, size_t number,
			 int precision)
{
	Answers		first,
				other;
	/*
	 * The first model has nearly every shape: in either precision every second one, and so all
	 * pairs of height, team and split. The others have in turn those that differ most.
	 */
	bool		all = number == 0;
	int			place = precision;

	cuda_force = (CudaForce) {16, 1, 0, 0, 1, 0};
	ok(ask_all(e, CONTEXT, rows, &first) == TNP_OK, "%s: asked", name);
	for (int height = 16; height <= 64; height *= 2)
		for (int team = 1; team <= 8; team *= 2)
			for (int split = 0; split <= 2; split++)
			{
				bool		usual = (height == 16 && team == 4 && split == 1)
					|| (height == 32 && team == 1 && split == 0)
					|| (height == 64 && team == 4 && split == 2);

				if (all && (team == 2 || place++ % 2 != 0))
					continue;
				if (!all && !usual)
					continue;
				cuda_force = (CudaForce) {height, team, split > 0, split > 1, 1, 0};
				ok(ask_all(e, CONTEXT, rows, &other) == TNP_OK && same(&first, &other),
				   "%s: %d rows, %d blocks, %s", name, height, team,
				   split == 0 ? "as planned" : split == 1 ? "split" : "split in memory");
			}
	if (all || number % 2 == 0)
	{
		cuda_force = (CudaForce) {16, 4, 0, 0, 1, -1};
		ok(ask_all(e, CONTEXT, rows, &other) == TNP_OK && same(&first, &other),
		   "%s: barriers of the team alone", name);
	}
	if (all || number % 2 == 1)
	{
		cuda_force = (CudaForce) {16, 4, 1, 0, 1, 0};
		cuda_force_late = true;
		ok(ask_all(e, CONTEXT, rows, &other) == TNP_OK && same(&first, &other),
		   "%s: keys and values asked for when they are needed", name);
		cuda_force_late = false;
	}
	for (int copies = 2; copies <= 4; copies++)
	{
		if (!all && number % 3 != (size_t) copies - 2)
			continue;
		cuda_force = (CudaForce) {16, copies == 2 ? 8 : copies == 3 ? 1 : 4, 0, 0, copies, 0};
		ok(ask_all(e, CONTEXT, rows, &other) == TNP_OK && same(&first, &other),
		   "%s: %d teams share out the keys", name, copies);
	}
	for (int order = 1; order <= 2; order++)
	{
		if (!all && number / 2 % 2 != (size_t) order - 1)
			continue;
		gpu_emulated_order(order);
		cuda_force = (CudaForce) {16, 4, 1, order == 1, order, 0};
		ok(ask_all(e, CONTEXT, rows, &other) == TNP_OK && same(&first, &other),
		   "%s: warps in another order", name);
		if (!all)
			continue;
		cuda_force = (CudaForce) {32, 1, 0, 0, order, 0};
		ok(ask_all(e, CONTEXT, rows, &other) == TNP_OK && same(&first, &other),
		   "%s: warps in another order, one block", name);
	}
	gpu_emulated_order(0);
	memset(&cuda_force, 0, sizeof(cuda_force));
	cuda_order_steps = 2 * STEPS;
	ok(ask_all(e, CONTEXT, rows, &other) == TNP_OK && same(&first, &other),
	   "%s: orders in portions", name);
	cuda_order_steps = (int64_t) 1 << 20;
}

/*
 * A context of so many chunks that they are folded by lanes, and that several teams share out its
 * keys without being told to: the bits of one team whose warps see all keys.
 */
static void
check_long(TnpDeviceModel *m, const char *name)
{
	const int	n = 33 * CUDA_CHUNK + 5;
	TestRows	rows;
	TnpRows		context,
				more;
	TnpDeviceEncoding *e;
	TnpError	error;
	CudaWalk	walk;
	CudaPlan	plan;
	Answers		want,
				got;

	test_rows_make(&rows, tnp_device.model_info(m), n + CONTEXT + 70, 12);
	context = test_slice(&rows, 0, n);
	more = test_slice(&rows, n, 1);
	if (tnp_device.encoding_build(m, &context, 128, 0, &e, &error) != TNP_OK)
	{
		ok(false, "%s: %s", name, error.message);
		return;
	}
	walk = cuda_walk_of(e, n, CUDA_QUERY);
	walk.n = 1;
	/* the emulator's largest team would take all chunks of so narrow a model */
	cuda_force = (CudaForce) {.rows = 16, .team = 1};
	ok(cuda_plan(m, walk.shared, 0, &walk, &plan, &error) == TNP_OK && walk.copies > 1,
	   "%s: %d teams share out %d rows", name, walk.copies, n);
	ok(walk.at_early > 0, "%s: first chunks come early", name);
	cuda_force = (CudaForce) {16, 1, -1, 0, 1, 0};
	ok(ask_all(e, n, &rows, &want) == TNP_OK, "%s: asked of %d rows", name, n);
	cuda_force = (CudaForce) {.rows = 16, .team = 1};
	ok(ask_all(e, n, &rows, &got) == TNP_OK && same(&want, &got),
	   "%s: folded by lanes as by one warp", name);
	ok(tnp_device.encoding_append(e, &more, &error) == TNP_OK
	   && ask_all(e, n + 1, &rows, &got) == TNP_OK, "%s: a row appended by all", name);
	tnp_device.encoding_free(e);
	context = test_slice(&rows, 0, n + 1);
	if (tnp_device.encoding_build(m, &context, 128, 0, &e, &error) == TNP_OK)
	{
		ok(ask_all(e, n + 1, &rows, &want) == TNP_OK && same(&want, &got),
		   "%s: appended as built at once", name);
		tnp_device.encoding_free(e);
	}
	memset(&cuda_force, 0, sizeof(cuda_force));
	test_rows_free(&rows);
}

/* Room for partial results does not grow with the square of what is encoded. */
static void
check_room(const TnpDeviceEncoding *e, const char *name)
{
	for (int64_t n = 1000; n <= 10000000; n *= 10)
	{
		CudaWalk	walk = cuda_walk_of(e, 128, CUDA_ENCODE);
		CudaPlan	plan;
		TnpError	error;
		TnpStatus	status;

		walk.n = n;
		status = cuda_plan(e->model, n, 0, &walk, &plan, &error);
		ok(status == TNP_OK && plan.part_bytes <= (size_t) 256 << 20,
		   "%s: encoding %lld rows takes %zu bytes of partial results", name, (long long) n,
		   plan.part_bytes);
	}
}

/* Warps that have rows and a head of their own, in tiles of that height. */
static int
warps_at_work(const CudaModel *s, int rows)
{
	int			units = s->heads * rows / 16 / CUDA_TOGETHER(s->precision, rows, s->head_tiles);

	return units < CUDA_WARPS ? units : CUDA_WARPS;
}

/*
 * Where partial results have no room, tiles are so high that every warp has rows of its own, or as
 * many warps as the highest tile would have. 96 rows for each multiprocessor are so few that low
 * tiles would be sooner done.
 */
static void
check_warps(const TnpDeviceEncoding *e, const char *name)
{
	const CudaModel *s = &e->model->shape;
	CudaWalk	walk = cuda_walk_of(e, 128, CUDA_ENCODE);
	CudaPlan	plan;
	TnpError	error;
	int			warps;

	walk.n = 96 * e->model->device->facts.multiprocessors;
	ok(cuda_plan(e->model, 10000000, 0, &walk, &plan, &error) == TNP_OK, "%s: planned", name);
	warps = warps_at_work(s, plan.kernel.rows);
	ok(walk.split
	   || warps == warps_at_work(s, cuda_largest_tile(s->precision, s->head_tiles)),
	   "%s: %d warps of a block attend to long contexts", name, warps);
}

/* Teams are no larger than run at once for all tiles. */
static void
check_teams(const TnpDeviceEncoding *e, const char *name)
{
	GpuFacts   *facts = &e->model->device->facts,
				kept = *facts;
	int			team[2];

	for (int fewer = 0; fewer < 2; fewer++)
	{
		CudaWalk	walk = cuda_walk_of(e, 128, CUDA_QUERY);
		CudaPlan	plan;
		TnpError	error;

		walk.n = 32;
		if (fewer)
			facts->teams[2] = 1;
		ok(cuda_plan(e->model, 100000, 0, &walk, &plan, &error) == TNP_OK, "%s: planned", name);
		team[fewer] = walk.tiles == 2 ? walk.team : 0;
	}
	*facts = kept;
	ok(team[0] == 4, "%s: a team of %d for each of two tiles", name, team[0]);
	ok(team[1] == 2, "%s: of %d where one of four runs at once", name, team[1]);
}

/* As many streams go into a launch as the memory of their private keys allows. */
static void
check_streams(TnpDeviceEncoding *e, const char *name, const TestRows *rows)
{
	size_t		kept = cuda_own_bytes;
	CudaWalk	walk = cuda_walk_of(e, CONTEXT, CUDA_CHAIN);
	CudaPlan	plan;
	TnpRequest	r;
	TnpError	error;
	double		y[2][16 * STEPS];

	walk.group = 8;
	walk.n = 16;
	ok(cuda_plan(e->model, CONTEXT, STEPS * 8, &walk, &plan, &error) == TNP_OK, "%s: planned",
	   name);
	memset(&r, 0, sizeof(r));
	r.kind = TNP_REQUEST_SAMPLE;
	r.rows = CONTEXT;
	r.queries = test_slice(rows, CONTEXT, STEPS);
	r.queries.y = NULL;
	r.seed = 3;
	r.draws = 16;
	for (int tight = 0; tight < 2; tight++)
	{
		long		launches;

		r.answer = y[tight];
		cuda_own_bytes = tight ? plan.own_bytes : kept;
		launches = gpu_emulated.launches;
		ok(cuda_ask(e, &r) == TNP_OK, "%s: drawn", name);
		launches = gpu_emulated.launches - launches;
		ok(launches <= 2, "16 streams in one launch, after that of their rows: %ld", launches);
	}
	cuda_own_bytes = kept;
	ok(memcmp(y[0], y[1], sizeof(y[0])) == 0, "%s: the same draws", name);
}

/* Rows appended one at a time, few and many at a time, against all at once. */
static void
check_appending(TnpDeviceModel *m, const char *name, const TestRows *rows, bool appendable,
				bool thorough)
{
	const int	parts[] = {1, 1, 15, 16, 17, 40};
	TnpRows		context = test_slice(rows, 0, CONTEXT),
				head = test_slice(rows, 0, 60);
	TnpDeviceEncoding *whole,
			   *grown;
	TnpError	error;
	Answers		want,
				got;
	int			at = 60;
	int64_t		prefix = appendable && tnp_device.model_info(m)->context[0] == 'c' ? 0 : 60;

	if (!appendable)
		return;
	for (int order = 0; order <= (thorough ? 2 : 0); order += 2)
	{
		gpu_emulated_order(order);
		if (tnp_device.encoding_build(m, &context, prefix, 0, &whole, &error) != TNP_OK
			|| tnp_device.encoding_build(m, &head, prefix, 0, &grown, &error) != TNP_OK)
		{
			ok(false, "%s: building: %s", name, error.message);
			return;
		}
		at = 60;
		for (int i = 0; i < 6; i++)
		{
			TnpRows		part = test_slice(rows, at, parts[i]);

			cuda_force.team = i % 2 == 0 ? 4 : 0;
			cuda_force.copies = i % 3 == 1 ? 1 : 2;
			if (tnp_device.encoding_append(grown, &part, &error) != TNP_OK)
				ok(false, "%s: appending: %s", name, error.message);
			at += parts[i];
		}
		cuda_force.team = cuda_force.copies = 0;
		is_int(tnp_device.encoding_rows(grown), CONTEXT, "all rows are there");
		ok(ask_all(whole, CONTEXT, rows, &want) == TNP_OK
		   && ask_all(grown, CONTEXT, rows, &got) == TNP_OK && same(&want, &got),
		   "%s: appended in parts as built at once", name);
		/* the encoding that has moved gives the answers of the one that had room */
		tnp_device.encoding_free(grown);
		tnp_device.encoding_free(whole);
	}
	gpu_emulated_order(0);
}

/*
 * A block with so little shared memory that the state must lie between the rows of an operand: the
 * same bits, of encodings, appended rows and answers.
 */
static void
check_nested(const TestModel *file, TnpPrecision precision)
{
	Answers		a[2];
	int			nested = 0;

	for (int little = 0; little < 2; little++)
	{
		TnpDevice  *device = cuda_open(precision, 0);
		TnpDeviceModel *m = cuda_load(device, file);
		TnpDeviceEncoding *e;
		TestRows	rows;
		const TnpModelInfo *info = tnp_device.model_info(m);
		int			more = info->appendable ? 5 : 0;
		TnpRows		context,
					appended;
		TnpError	error;
		CudaWalk	walk;
		CudaPlan	plan;

		/* rows of operands as a wide feed-forward part makes them; then as little as it takes */
		m->shape.operand = 256;
		while (little && cuda_fits(m))
			device->facts.shared_bytes -= 16;
		device->facts.shared_bytes += little ? 16 : 0;
		test_rows_make(&rows, info, CONTEXT + 70, 11);
		context = test_slice(&rows, 0, CONTEXT - more);
		appended = test_slice(&rows, CONTEXT - more, more);
		if (tnp_device.encoding_build(m, &context, info->context[0] == 'c' ? 0
									  : info->appendable ? 128 : CONTEXT, 0, &e,
									  &error) != TNP_OK)
		{
			ok(false, "%s: %s", file->name, error.message);
			return;
		}
		walk = cuda_walk_of(e, CONTEXT - more, CUDA_ENCODE);
		walk.n = 40;
		if (cuda_plan(m, walk.shared, 0, &walk, &plan, &error) == TNP_OK)
			nested += walk.at_h < walk.at_x1;
		ok((more == 0 || tnp_device.encoding_append(e, &appended, &error) == TNP_OK)
		   && ask_all(e, CONTEXT, &rows, &a[little]) == TNP_OK, "%s: asked with %d bytes",
		   file->name, device->facts.shared_bytes);
		tnp_device.encoding_free(e);
		test_rows_free(&rows);
		tnp_device.model_free(m);
		tnp_device.shutdown(device);
	}
	is_int(nested, 1, "the state lies between the rows of an operand");
	ok(same(&a[0], &a[1]), "%s: the same bits in little memory", file->name);
}

int
main(void)
{
	static const char *const names[] = {"prefix_causal", "incremental_fixed", "packed_causal_roles",
										"head_bars", "rows_tokens", "packed_tnpa", "rows_causal",
	"classes_lean", "rows_gated",
	/* heads of 52 and of 83 features */
	"transparent_prefix", "transparent_order"};
	const size_t wide = 9;
	int			n;
	TestModel  *models = test_models(&n);

	for (int precision = 0; precision < 2; precision++)
	{
		TnpDevice  *device = cuda_open((TnpPrecision) precision, 0);

		for (int i = 0; i < n; i++)
			for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			{
				TnpDeviceModel *m;
				TnpDeviceEncoding *e;
				TnpRows		context;
				TestRows	rows;
				TnpError	error;
				const TnpModelInfo *info;

				/* wide ones have weights beyond the range of 16 bits: they are computed in 32 */
				if (strcmp(models[i].name, names[k]) != 0
					|| (k >= wide ? precision == 0 : precision == 1 && k > 1))
					continue;
				m = cuda_load(device, &models[i]);
				info = tnp_device.model_info(m);
				test_rows_make(&rows, info, CONTEXT + 70, 11);
				context = test_slice(&rows, 0, CONTEXT);
				if (tnp_device.encoding_build(m, &context, info->context[0] == 'c' ? 0
											  : info->appendable ? 128 : CONTEXT, 0, &e,
											  &error) == TNP_OK)
				{
					check_shapes(e, names[k], &rows, k, precision);
					check_room(e, names[k]);
					check_warps(e, names[k]);
					if (k == 0 && precision == 0)
					{
						check_teams(e, names[k]);
						check_streams(e, names[k], &rows);
					}
					tnp_device.encoding_free(e);
				}
				else
					ok(false, "%s: %s", names[k], error.message);
				check_appending(m, names[k], &rows, info->appendable, k < 1);
				if (k == 0 && precision == 0)
					check_long(m, names[k]);
				test_rows_free(&rows);
				tnp_device.model_free(m);
			}
		tnp_device.shutdown(device);
	}
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < wide; k++)
			for (int precision = 0; precision < (k < 1 ? 2 : 1); precision++)
				if (strcmp(models[i].name, names[k]) == 0)
					check_nested(&models[i], (TnpPrecision) precision);
	is_int(gpu_emulated.live, 0, "all memory has been given back");
	test_models_free(models, n);
	return done_testing();
}
