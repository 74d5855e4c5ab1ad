/*
 * faults_test.c: memory that runs out at every single allocation, and an interrupt at every single
 * poll, in every verb and for every test model: the call says so, everything is freed, and the next
 * call works.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 9
#define QUERIES 5
#define LARGEST 96

static TestEnv env;
static TnpModel *model;
static TestRows rows;

/* One pass through all the verbs; stops at the first failure, freeing what it has. */
static TnpStatus
work(TnpError *error)
{
	TnpRows		context = test_slice(&rows, 0, CONTEXT - 1),
				next = test_slice(&rows, CONTEXT - 1, 1),
				asked = test_slice(&rows, CONTEXT, QUERIES),
				all = test_slice(&rows, 0, CONTEXT);
	double		params[QUERIES * LARGEST],
				draws[3 * QUERIES * TNP_MAX_TARGETS],
				density;
	int64_t		conditioned;
	TnpEncoding *e,
			   *other;
	TnpStatus	status = tnp_build(model, &context, tnp_canonical_prefix(model, context.n), &e,
								   error);

	if (status != TNP_OK)
		return status;
	status = tnp_encoding_copy(e, tnp_encoding_rows(e), tnp_encoding_rows(e) + 1, true, &other,
							   error);
	if (status == TNP_OK)
		tnp_encoding_free(other);
	if (status == TNP_OK)
		status = tnp_encoding_first(e, tnp_encoding_rows(e), &other, error);
	if (status == TNP_OK)
		tnp_encoding_free(other);
	if (status == TNP_OK)
		status = tnp_grow(e, &next, error);
	if (status == TNP_OK)
		status = tnp_score(e, &asked, 2, 1, &density, NULL, error);
	asked.y = NULL;
	if (status == TNP_OK)
		status = tnp_predict(e, &asked, params, error);
	if (status == TNP_OK)
		status = tnp_sample(e, &asked, 1, 0, 3, draws, error);
	if (status == TNP_OK && tnp_model_info(model)->appendable)
		status = tnp_append_predict(e, &next, &asked, params, error);
	tnp_encoding_free(e);
	if (status == TNP_OK)
		status = tnp_evidence(model, &all, &density, &conditioned, NULL, error);
	return status;
}

/* Opening a model with allocation number first, first + step, … failing, until it succeeds. */
static void
test_open(const TestModel *m, long first, long step)
{
	TnpError	error = {0};
	TnpStatus	status = TNP_NO_MEMORY;
	bool		clean = true;
	long		n;

	for (n = first; status == TNP_NO_MEMORY; n += step)
	{
		env.calls = 0;
		env.fail_at = n;
		status = tnp_model_open(&env.env, m->bytes, m->length, &model, &error);
		clean = clean && (status == TNP_OK || (model == NULL && env.live == 0));
	}
	env.fail_at = 0;
	ok(clean && status == TNP_OK && n > 3,
	   "%s: opening survives the lack of any of %ld allocations", m->name, n - step - 1);
}

/*
 * The verbs with the n-th allocation failing, or the n-th poll interrupting; from the first-th on,
 * from `step` to `step`.
 */
static void
test_verbs(const TestModel *m, bool memory, long first, long step)
{
	long		held = env.live,
				n;
	TnpStatus	expected = memory ? TNP_NO_MEMORY : TNP_INTERRUPTED,
				status = expected;
	TnpError	error = {0};
	bool		clean = true;

	for (n = first; status == expected; n += step)
	{
		env.calls = env.polls = 0;
		env.fail_at = memory ? n : 0;
		env.stop_at = memory ? 0 : n;
		status = work(&error);
		clean = clean && env.live == held && (status == TNP_OK || error.status == expected);
	}
	env.fail_at = env.stop_at = 0;
	ok(clean && status == TNP_OK && n > 2 * step, "%s: the verbs survive %s at any of %ld places",
	   m->name,
	   memory ? "the lack of memory" : "an interrupt", n - step);
	ok(work(&error) == TNP_OK && env.live == held, "%s: and work afterwards", m->name);
}

int
main(void)
{
	int			n;
	TestModel  *models = test_models(&n);
	/*
	 * with sanitizers and under valgrind a part of the places, others for the next model, and there
	 * every fourth model
	 */
	bool		quick = getenv("TNP_QUICK") != NULL;
	long		step = quick ? 61 : TEST_EVERY * TEST_EVERY * TEST_EVERY;

	for (int i = 0; i < n; i += quick ? 4 : 1)
	{
		long		first = 1 + i % step,
					open_step = quick ? 7 : TEST_EVERY;

		test_env_init(&env, test_kernels());
		test_open(&models[i], 1 + i % open_step, open_step);
		test_rows_make(&rows, tnp_model_info(model), CONTEXT + QUERIES, 3);
		test_verbs(&models[i], true, first, step);
		test_verbs(&models[i], false, first, step);
		test_rows_free(&rows);
		tnp_model_close(model);
		ok(env.live == 0, "%s: everything is freed", models[i].name);
	}
	test_models_free(models, n);
	return done_testing();
}
