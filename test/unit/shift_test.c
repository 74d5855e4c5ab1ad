/*
 * shift_test.c: a model that knows where rows are by a kernel of their distance alone answers the
 * same when all rows and queries are shifted.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 60
#define QUERIES 5
#define SHIFT 1048576.0			/* a power of two: the shifted numbers lose 20 bits */

/* Means and standard deviations [QUERIES, 2] with `shift` added to every feature. */
static void
answer(const TnpModel *model, double shift, double *params)
{
	TestRows	rows;
	TnpRows		context,
				queries;
	TnpEncoding *e;
	TnpError	error;

	test_rows_make(&rows, tnp_model_info(model), CONTEXT + QUERIES, 3);
	for (int i = 0; i < (CONTEXT + QUERIES) * rows.view.n_features; i++)
		rows.x[i] += shift;
	context = test_slice(&rows, 0, CONTEXT);
	queries = test_slice(&rows, CONTEXT, QUERIES);
	queries.y = NULL;
	test_must(tnp_build(model, &context, tnp_whole_prefix(model, CONTEXT), &e, &error), &error);
	test_must(tnp_predict(e, &queries, params, &error), &error);
	tnp_encoding_free(e);
	test_rows_free(&rows);
}

int
main(void)
{
	int			n,
				shifted = 0;
	TestModel  *models = test_models(&n);

	for (int m = 0; m < n; m++)
	{
		TnpEnv		env = tnp_default_env;
		TnpModel   *model;
		TnpError	error;
		double		here[2 * QUERIES],
					there[2 * QUERIES],
					off = 0;

		/* the others with this beginning embed the features, too */
		if (strcmp(models[m].name, "scan") != 0 && strcmp(models[m].name, "scan_causal") != 0
			&& strcmp(models[m].name, "scan_prefix_causal") != 0
			&& strcmp(models[m].name, "scan_time") != 0)
			continue;
		env.kernels = test_kernels();
		test_must(tnp_model_open(&env, models[m].bytes, models[m].length, &model, &error), &error);
		answer(model, 0, here);
		answer(model, SHIFT, there);
		for (int i = 0; i < 2 * QUERIES; i++)
			off = fmax(off, fabs(here[i] - there[i]));
		ok(off < 1e-5, "%s: rows shifted by 2^20 change answers by rounding only", models[m].name);
		if (off >= 1e-5)
			diag("by %g", off);
		shifted++;
		tnp_model_close(model);
	}
	ok(shifted >= (getenv("TNP_QUICK") != NULL ? 1 : 3), "models with kernels were there");
	test_models_free(models, n);
	return done_testing();
}
