/*
 * chunks_test.c: questions about many rows, which are computed in chunks, two of them at once, and
 * made ready by threads: the bits of one chunk, whatever its size, however late the device is, and
 * however many threads there are. Runs on a GPU, too.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cuda_tests.h"
#include "host.h"
#include "tap.h"

#define CONTEXT 40
#define QUERIES 100				/* more than a thread makes ready at once */
#define FIRST 61				/* of the first request; the second one has the others */
#define PARAMS 64				/* of one distribution, at most */

/* Everything that is compared. */
typedef struct Answers
{
	double		reduced[FIRST * 4],
				params[(QUERIES - FIRST) * PARAMS],
				one[1];
} Answers;

static const double levels[2] = {0.1, 0.9};

/* Three requests of different wishes, about so many rows each; r[3] has their statuses. */
static void
make_requests(const TestRows *rows, const TnpModelInfo *info, Answers *a, TnpRequest *r)
{
	static const int first[3] = {0, FIRST, QUERIES - 1},
				many[3] = {FIRST, QUERIES - FIRST, 1};

	memset(r, 0, 3 * sizeof(TnpRequest));
	memset(a, 0, sizeof(*a));
	for (int i = 0; i < 3; i++)
	{
		r[i].rows = CONTEXT;
		r[i].queries = test_slice(rows, CONTEXT + first[i], many[i]);
		r[i].kind = i == 1 ? TNP_REQUEST_PREDICT : TNP_REQUEST_REDUCE;
		r[i].status = TNP_INTERRUPTED;
		if (i > 0)
			r[i].queries.y = NULL;
	}
	/* classes have no density */
	r[0].reductions = info->n_classes > 0 ? TNP_REDUCE_MEAN
		: TNP_REDUCE_LOG_DENSITY | TNP_REDUCE_QUANTILES | TNP_REDUCE_MEAN;
	r[0].levels = levels;
	r[0].n_levels = info->n_classes > 0 ? 0 : 2;
	r[0].answer = a->reduced;
	r[1].answer = a->params;
	r[2].reductions = TNP_REDUCE_MEAN;
	r[2].answer = a->one;
}

static TnpStatus
ask_all(TnpDeviceEncoding *e, const TestRows *rows, const TnpModelInfo *info, Answers *a)
{
	TnpRequest	r[3];
	TnpError	error;
	TnpStatus	status;

	make_requests(rows, info, a, r);
	status = tnp_device.answer(e, 3, r, &error);
	for (int i = 0; status == TNP_OK && i < 3; i++)
		status = r[i].status;
	return status;
}

/* One request has a value that no float holds, in a late chunk; the others are as they were. */
static void
check_refused(TnpDeviceEncoding *e, const TestRows *rows, const TnpModelInfo *info,
			  const Answers *want, const char *name)
{
	Answers		got;
	TnpRequest	r[3];
	TnpError	error;
	int			features = rows->view.n_features;
	double	   *x = malloc((size_t) FIRST * features * sizeof(double));

	make_requests(rows, info, &got, r);
	memcpy(x, r[0].queries.x, (size_t) FIRST * features * sizeof(double));
	for (int f = 0; f < features; f++)
		x[(FIRST - 2) * features + f] = 1e39;
	r[0].queries.x = x;
	ok(tnp_device.answer(e, 3, r, &error) == TNP_OK && r[0].status == TNP_BAD_VALUE
	   && r[1].status == TNP_OK && r[2].status == TNP_OK
	   && memcmp(got.params, want->params, sizeof(got.params)) == 0
	   && memcmp(got.one, want->one, sizeof(got.one)) == 0,
	   "%s: a value that is too large fails its request alone", name);
	contains(r[0].error.detail, "row 60", "and is named");
	free(x);
}

static void
check_chunks(TnpDeviceModel *m, const char *name)
{
	static const int64_t sizes[] = {7, 33, QUERIES - 1};
	const TnpModelInfo *info = tnp_device.model_info(m);
	TestRows	rows;
	TnpRows		context;
	TnpDeviceEncoding *e;
	TnpError	error;
	Answers		want,
				got;

	test_rows_make(&rows, info, CONTEXT + QUERIES, 14);
	context = test_slice(&rows, 0, CONTEXT);
	if (tnp_device.encoding_build(m, &context, CONTEXT, 0, &e, &error) != TNP_OK)
	{
		ok(false, "%s: %s", name, error.message);
		test_rows_free(&rows);
		return;
	}
	cuda_threads = 1;
	ok(ask_all(e, &rows, info, &want) == TNP_OK, "%s: one chunk, one thread", name);
	cuda_threads = -3;
	ok(ask_all(e, &rows, info, &got) == TNP_OK && memcmp(&got, &want, sizeof(want)) == 0,
	   "%s: the same bits from three threads", name);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		cuda_chunk_rows = sizes[i];
		cuda_threads = i == 0 ? 1 : -2;
		gpu_emulated.late = i != 1;
		ok(ask_all(e, &rows, info, &got) == TNP_OK && memcmp(&got, &want, sizeof(want)) == 0,
		   "%s: and in chunks of %lld rows", name, (long long) sizes[i]);
		if (i == 0 && !info->takes_missing)
			check_refused(e, &rows, info, &want, name);
	}
	cuda_chunk_rows = cuda_threads = 0;
	gpu_emulated.late = false;
	tnp_device.encoding_free(e);
	test_rows_free(&rows);
}

int
main(void)
{
	/* plain columns, cells, a process, rows that lack cells, cells as tokens, classes */
	static const char *const names[] = {"prefix_causal_scaled", "rows_gated", "rows_donors",
	"rows_tokens", "classes_lean", "packed_tnpa"};
	int			n;
	TestModel  *models = test_models(&n);
	TnpDevice  *device = cuda_open(TNP_PRECISION_FP16, 0);

	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (strcmp(models[i].name, names[k]) == 0)
			{
				TnpDeviceModel *m = cuda_load(device, &models[i]);

				check_chunks(m, names[k]);
				tnp_device.model_free(m);
			}
	tnp_device.shutdown(device);
	is_int(gpu_emulated.live, 0, "all memory has been given back");
	test_models_free(models, n);
	return done_testing();
}
