/*
 * magnitudes_test.c: features and targets of all magnitudes on the emulated CUDA device, in both
 * precisions, against the engine's reference kernels: an answer is right, or it is refused. In 32
 * bits nothing is refused that the range of a float holds.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cuda_tests.h"
#include "tap.h"

#define CONTEXT 10
#define QUERIES 3
#define PARAMS 64

/* Where the number goes. */
typedef enum Place { A_QUERY, A_ROW, A_TARGET, ALL_FEATURES, PLACES } Place;

static const char *const places[PLACES] = {"a query", "a row of the context", "a target",
										   "all features"};

static void
put(TestRows *rows, Place place, double value)
{
	int			n = CONTEXT + QUERIES;

	for (int i = 0; i < n; i++)
	{
		rows->x[i] = 4.0 * ((7 * i) % n) / n - 2;
		rows->y[i] = sin(2 * rows->x[i]);
		if (place == ALL_FEATURES)
			rows->x[i] *= value;
	}
	if (place == A_QUERY)
		rows->x[CONTEXT + 1] = value;
	else if (place == A_ROW)
		rows->x[2] = -value;
	else if (place == A_TARGET)
		rows->y[3] = value;
}

/* Mean and standard deviation of every query [QUERIES, 2] by the engine. */
static TnpStatus
ask_engine(TnpModel *model, const TestRows *rows, double *out)
{
	TnpRows		given = test_slice(rows, 0, CONTEXT),
				queries = test_slice(rows, CONTEXT, QUERIES);
	TnpDistribution d;
	double		params[QUERIES * PARAMS];
	TnpEncoding *e;
	TnpError	error;
	TnpStatus	status = tnp_build(model, &given, CONTEXT, &e, &error);

	if (status != TNP_OK)
		return status;
	status = tnp_predict(e, &queries, params, &error);
	tnp_answer_shape(model, &d.kind, &d.n);
	for (int i = 0; status == TNP_OK && i < QUERIES; i++)
	{
		d.params = params + i * tnp_distribution_size(d.kind, d.n);
		out[2 * i] = tnp_mean(&d);
		out[2 * i + 1] = sqrt(tnp_variance(&d));
	}
	tnp_encoding_free(e);
	return status;
}

static TnpStatus
ask_device(TnpDeviceModel *model, const TestRows *rows, double *out)
{
	TnpRows		given = test_slice(rows, 0, CONTEXT);
	TnpRequest	r = {0};
	TnpDeviceEncoding *e;
	TnpError	error;
	TnpStatus	status = tnp_device.encoding_build(model, &given, CONTEXT, 0, &e, &error);

	if (status != TNP_OK)
		return status;
	r.rows = CONTEXT;
	r.kind = TNP_REQUEST_REDUCE;
	r.reductions = TNP_REDUCE_MEAN | TNP_REDUCE_SD;
	r.queries = test_slice(rows, CONTEXT, QUERIES);
	r.queries.y = NULL;
	r.answer = out;
	status = cuda_ask(e, &r);
	tnp_device.encoding_free(e);
	return status;
}

static bool
near(const double *got, const double *want, double tolerance)
{
	for (int i = 0; i < QUERIES; i++)
		if (!(fabs(got[2 * i] - want[2 * i]) <= tolerance * want[2 * i + 1]
			  && fabs(got[2 * i + 1] - want[2 * i + 1]) <= tolerance * want[2 * i + 1]))
			return false;
	return true;
}

static void
check(const TestModel *file, TnpPrecision precision)
{
	static const int exponents[] = {-300, 0, 4, 8, 19, 36, 39};
	bool		wide = precision == TNP_PRECISION_FP32;
	TnpDevice  *device = cuda_open(precision, 0);
	TnpDeviceModel *m = cuda_load(device, file);
	TnpModel   *model;
	TnpError	error;
	TestRows	rows;

	test_must(tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error), &error);
	test_rows_make(&rows, tnp_model_info(model), CONTEXT + QUERIES, 1);
	for (int place = 0; place < PLACES; place++)
	{
		int			wrong = 0,
					refused = 0;

		for (size_t i = 0; i < sizeof(exponents) / sizeof(exponents[0]); i++)
		{
			double		want[2 * QUERIES],
						got[2 * QUERIES];
			TnpStatus	wanted,
						status;
			bool		bad;

			put(&rows, place, pow(10, exponents[i]));
			wanted = ask_engine(model, &rows, want);
			status = ask_device(m, &rows, got);
			bad = status == TNP_OK ? wanted != TNP_OK || !near(got, want, wide ? 2e-3 : 0.05)
				: status != TNP_BAD_VALUE;
			wrong += bad;
			refused += status != TNP_OK && exponents[i] <= (wide ? 36 : 0);
			if (bad)
				diag("1e%d: status %d, mean %g sd %g instead of %g %g", exponents[i], status,
					 got[0], got[1], want[0], want[1]);
		}
		ok(wrong == 0, "%s in %d bits, %s: right or refused", file->name, wide ? 32 : 16,
		   places[place]);
		ok(refused == 0, "%s in %d bits, %s: refused only where it must be", file->name,
		   wide ? 32 : 16, places[place]);
	}
	test_rows_free(&rows);
	tnp_model_close(model);
	tnp_device.model_free(m);
	tnp_device.shutdown(device);
}

/*
 * Rows whose keys have no room in 16 bits are not appended, and leave nothing behind that an answer
 * would read: its bits are those of an encoding that was never given them.
 */
static void
check_append(const TestModel *file)
{
	TnpDevice  *device = cuda_open(TNP_PRECISION_FP16, 0);
	TnpDeviceModel *m = cuda_load(device, file);
	TestRows	rows;
	TnpRows		context,
				more;
	TnpDeviceEncoding *e;
	TnpRequest	r = {0};
	TnpError	error;
	double		before[2 * QUERIES],
				after[2 * QUERIES];

	test_rows_make(&rows, tnp_device.model_info(m), CONTEXT + QUERIES, 1);
	put(&rows, A_QUERY, 0.5);
	context = test_slice(&rows, 0, CONTEXT - 4);
	more = test_slice(&rows, CONTEXT - 4, 4);
	r.rows = CONTEXT - 4;
	r.kind = TNP_REQUEST_REDUCE;
	r.reductions = TNP_REDUCE_MEAN | TNP_REDUCE_SD;
	r.queries = test_slice(&rows, CONTEXT, QUERIES);
	r.queries.y = NULL;
	r.answer = before;
	ok(tnp_device.encoding_build(m, &context, 0, CONTEXT + 20, &e, &error) == TNP_OK
	   && cuda_ask(e, &r) == TNP_OK, "built and asked");
	for (int row = CONTEXT - 4; row < CONTEXT; row++)
	{
		double		was = rows.y[row];

		rows.y[row] = 1e30;
		is_int(tnp_device.encoding_append(e, &more, &error), TNP_BAD_VALUE,
			   "a target whose keys have no room is not appended");
		contains(error.message, "too large for the model", "which is said");
		rows.y[row] = was;
	}
	is_int((long long) tnp_device.encoding_rows(e), CONTEXT - 4, "no row is added");
	r.answer = after;
	is_int(cuda_ask(e, &r), TNP_OK, "the encoding can still be asked");
	ok(memcmp(before, after, sizeof(before)) == 0, "with the same answers");
	is_int(tnp_device.encoding_append(e, &more, &error), TNP_OK, "and good rows are appended");
	r.rows = CONTEXT;
	is_int(cuda_ask(e, &r), TNP_OK, "and seen");
	tnp_device.encoding_free(e);
	tnp_device.model_free(m);
	tnp_device.shutdown(device);
	test_rows_free(&rows);
}

int
main(void)
{
	int			n;
	TestModel  *models;

	setenv("POSTERIOR_TEST_MODELS", "models", 1);
	models = test_models(&n);
	for (int i = 0; i < n; i++)
		if (strcmp(models[i].name, "toy") == 0)
		{
			check(&models[i], TNP_PRECISION_FP32);
			check(&models[i], TNP_PRECISION_FP16);
			check_append(&models[i]);
		}
	is_int(gpu_emulated.live, 0, "all memory has been given back");
	test_models_free(models, n);
	return done_testing();
}
