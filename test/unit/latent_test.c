/*
 * latent_test.c: an encoding of latents that goes on with the sums of one of fewer rows keeps and
 * answers, bitwise, what one keeps that has read all rows (docs/families.md, "Latent bottlenecks");
 * wherever the older one ends, with every table of kernels and by any number of threads. The rows
 * whose sums are there are not read in the first layer.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/file/model.h"
#include "engine/inference/encode.h"
#include "models.h"
#include "tap.h"

#define ROWS 1200
#define QUERIES 4
#define DRAWS 3
#define LARGEST 64				/* doubles of one answer */

static const char *title,
		   *kernels_name;
static TestEnv env,
			plain_env;
static TnpKernels counting,
			plain_kernels;		/* which sums cannot go on with, so that none are kept */
static TnpModel *model,
		   *plain;				/* the same */
static TestRows rows;
static int	n_threads;

static void (*linear) (const TnpLinear *layer, int n, const float *x, TnpActivation activation,
					   bool add, float *y);
static int64_t linear_rows;		/* with one thread */

static void
count_linear(const TnpLinear *layer, int n, const float *x, TnpActivation activation, bool add,
			 float *y)
{
	if (n_threads == 1)
		linear_rows += n;
	linear(layer, n, x, activation, add, y);
}

static int
threads(void *arg)
{
	(void) arg;
	return -n_threads;
}

static bool
holds(bool condition, const char *what)
{
	return ok(condition, "%s, %s: %s", title, kernels_name, what);
}

/* ---- encodings ------------------------------------------------------------------------------- */

static TnpEncoding *
build(const TnpModel *by, int64_t n)
{
	TnpRows		context = test_slice(&rows, 0, (int) n);
	TnpEncoding *e;
	TnpError	error = {0};

	test_must(tnp_build(by, &context, tnp_whole_prefix(by, n), &e, &error), &error);
	return e;
}

/* An encoding of the first n rows made of another one, or NULL. */
static TnpEncoding *
revise(const TnpEncoding *from, int64_t n)
{
	TnpRows		context = test_slice(&rows, 0, (int) n);
	TnpEncoding *e;
	TnpError	error = {0};

	test_must(tnp_revise(from, &context, tnp_whole_prefix(model, n), &e, &error), &error);
	return e;
}

/* Rows in whole blocks. */
static int64_t
blocks(int64_t n)
{
	return n / TNP_BLOCK * TNP_BLOCK;
}

/* Whether both keep the same keys and values. */
static bool
same_keys(const TnpEncoding *a, const TnpEncoding *b)
{
	const TnpCacheShape *s = &a->cache.shape;
	size_t		bytes = (size_t) tnp_encoding_slots(a) * s->heads * s->key_width * s->number;
	bool		same = tnp_encoding_slots(a) == tnp_encoding_slots(b);

	/* in whole blocks these would be the bytes; some slots lie further behind */
	bytes = tnp_blocks(tnp_encoding_slots(a), TNP_BLOCK) * (bytes / tnp_encoding_slots(a));
	for (int l = 0; same && l < s->layers; l++)
		same = memcmp(a->cache.k[l], b->cache.k[l], bytes) == 0
			&& memcmp(a->cache.v[l], b->cache.v[l], bytes) == 0;
	return same;
}

/* Whether both answer alike: predictions, draws and densities, whose chains become context rows. */
static bool
same_answers(const TnpEncoding *a, const TnpEncoding *b)
{
	const TnpEncoding *e[2] = {a, b};
	static double answers[2][QUERIES * LARGEST + DRAWS * QUERIES + 1];
	TnpRows		asked = test_slice(&rows, ROWS, QUERIES);
	TnpError	error = {0};

	memset(answers, 0, sizeof(answers));
	for (int i = 0; i < 2; i++)
	{
		double	   *at = answers[i];

		test_must(tnp_predict(e[i], &asked, at, &error), &error);
		at += QUERIES * LARGEST;
		test_must(tnp_sample(e[i], &asked, 5, 0, DRAWS, at, &error), &error);
		at += DRAWS * QUERIES;
		test_must(tnp_score(e[i], &asked, 0, 0, at, NULL, &error), &error);
	}
	return memcmp(answers[0], answers[1], sizeof(answers[0])) == 0;
}

/* Whether few cases are tried: without sums all are alike, and valgrind takes its time. */
static bool
tries_few(void)
{
	return counting.attend_more == NULL || getenv("TNP_QUICK") != NULL;
}

/* ---- rows that come one by one --------------------------------------------------------------- */

static void
test_growth(void)
{
	int			last = tries_few() ? 140 : ROWS;
	TnpEncoding *e = build(model, 1);
	bool		same = true;
	TnpError	error = {0};

	for (int n = 2; n <= last; n++)
	{
		TnpRows		one = test_slice(&rows, n - 1, 1);
		TnpEncoding *fresh;
		TnpRows		all = test_slice(&rows, 0, n);

		test_must(tnp_grow(e, &one, &error), &error);
		/* every number with one model, with the others those at the ends of blocks and some more */
		if (strcmp(title, "latent") != 0 && (n + 1) % TNP_BLOCK > 2 && n % 97 != 0)
			continue;
		test_must(tnp_build(plain, &all, tnp_canonical_prefix(plain, n), &fresh, &error), &error);
		same = same && same_keys(e, fresh);
		if (n % 97 == 0)
			same = same && same_answers(e, fresh);
		tnp_encoding_free(fresh);
	}
	holds(same, "rows appended one by one are those that were there at once");
	tnp_encoding_free(e);
}

/* ---- every end ------------------------------------------------------------------------------- */

static const int ends[] = {1, 2, 31, 63, 64, 65, 66, 127, 128, 129, 200, 447, 448, 449, 510, 511,
	512, 513, 514, 575, 576, 577, 640, 700, 1023, 1024, 1025, 1087, 1088, 1089, 1151, 1152, 1199,
	ROWS};
#define ENDS ((int) (sizeof(ends) / sizeof(ends[0])))

static void
test_ends(void)
{
	TnpEncoding *old[ENDS],
			   *fresh[ENDS];
	bool		same = true,
				spared = true;
	int64_t		cost[ENDS];
	int			step = tries_few() ? 9 : 1;

	n_threads = 1;
	for (int i = 0; i < ENDS; i += step)
	{
		linear_rows = 0;
		old[i] = build(model, ends[i]);
		cost[i] = linear_rows;
		fresh[i] = build(plain, ends[i]);
		same = same && same_keys(old[i], fresh[i]) && same_answers(old[i], fresh[i]);
	}
	holds(same, "sums that are kept change nothing");
	for (int i = 0; i < ENDS; i += step)
		for (int j = 0; j < ENDS; j += step)
		{
			TnpEncoding *e;
			int64_t		kept = blocks(ends[i]);

			linear_rows = 0;
			e = revise(old[i], ends[j]);
			if (counting.attend_more == NULL || kept == 0 || kept > ends[j])
			{
				spared = spared && e == NULL;
				continue;
			}
			/* a row that is read makes a key and a value */
			spared = spared && cost[j] - linear_rows == 2 * kept;
			same = same && same_keys(e, fresh[j]);
			tnp_encoding_free(e);
			if ((i + 2 * j) % 5 > 0)
				continue;
			n_threads = 2 + (i + j) % 4;
			e = revise(old[i], ends[j]);
			same = same && same_keys(e, fresh[j]);
			if (i % 5 == 0)
				same = same && same_answers(e, fresh[j]);
			tnp_encoding_free(e);
			n_threads = 1;
		}
	holds(same, "wherever the older encoding ends, the later one is as if made anew");
	holds(spared, "rows in whole blocks of the older one are not read in the first layer");
	for (int i = 0; i < ENDS; i += step)
	{
		tnp_encoding_free(old[i]);
		tnp_encoding_free(fresh[i]);
	}
}

/* Copies and views have the sums of what they are made of; rows that differ end what is common. */
static void
test_older(void)
{
	int64_t		n = 600;
	TnpEncoding *e = build(model, n),
			   *fresh = build(plain, n + 5),
			   *made[3];
	TnpRows		changed = test_slice(&rows, 0, (int) n + 5);
	int			targets = tnp_rows_targets(&changed);
	double	   *y = (double *) changed.y;
	TnpError	error = {0};
	bool		same = true;

	test_must(tnp_encoding_copy(e, n, n, false, &made[0], &error), &error);
	test_must(tnp_encoding_copy(e, n, n + 70, true, &made[1], &error), &error);
	test_must(tnp_encoding_first(e, n, &made[2], &error), &error);
	for (int i = 0; i < 3; i++)
	{
		TnpEncoding *next = revise(made[i], n + 5);

		same = same && (next != NULL ? same_keys(next, fresh) : counting.attend_more == NULL);
		tnp_encoding_free(next);
		tnp_encoding_free(made[i]);
	}
	holds(same, "copies and views are gone on with");
	tnp_encoding_free(fresh);
	/* in the last whole block, and behind it */
	for (int place = 575; same && place <= 576; place++)
	{
		double		was = y[place * targets];
		TnpEncoding *next;

		y[place * targets] = was + 1;
		next = revise(e, n + 5);
		same = (next != NULL) == (place == 576 && counting.attend_more != NULL);
		fresh = build(plain, n + 5);
		same = same && (next == NULL || same_keys(next, fresh));
		tnp_encoding_free(fresh);
		tnp_encoding_free(next);
		y[place * targets] = was;
	}
	holds(same, "rows that have changed are read, or end all");
	tnp_encoding_free(e);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What is kept does not grow with rows, beside the rows themselves; no memory leaves nothing. */
static void
test_memory(void)
{
	TnpEncoding *e = build(model, 576),
			   *large = build(model, 1100),
			   *next = NULL;
	TnpRows		context = test_slice(&rows, 0, 700);
	TnpError	error = {0};
	size_t		row = (size_t) (e->n_features + tnp_rows_targets(&context)) * sizeof(double);
	long		live = env.live,
				fail = 0;
	TnpStatus	status;

	holds(tnp_encoding_bytes(large) - tnp_encoding_bytes(e) == row * (1100 - 576),
		  "an encoding keeps of a row its cells alone");
	do
	{
		env.calls = 0;
		env.fail_at = ++fail;
		status = tnp_revise(e, &context, tnp_whole_prefix(model, 700), &next, &error);
	}
	while (status == TNP_NO_MEMORY && next == NULL && env.live == live);
	env.fail_at = 0;
	holds(status == TNP_OK && (next != NULL) == (counting.attend_more != NULL)
		  && (fail > 5 || next == NULL), "memory that runs out leaves nothing");
	tnp_encoding_free(next);
	tnp_encoding_free(large);
	tnp_encoding_free(e);
}

/*
 * More rows than are embedded at once are read part by part, bitwise as at once, also by an
 * encoding that goes on; and what is asked for at once does not grow with them as their embeddings
 * do.
 */
static void
test_many(const TestModel *file)
{
	enum {MANY = 32 * TNP_SPAN + 700};
	TestRows	few = rows;
	TnpKernels	at_once = plain_kernels;
	TestEnv		own;
	TnpModel   *whole;
	TnpEncoding *e,
			   *begun,
			   *next,
			   *other;
	TnpError	error = {0};
	long		largest;

	at_once.attend_span = NULL;
	test_env_init(&own, &at_once);
	test_must(tnp_model_open(&own.env, file->bytes, file->length, &whole, &error), &error);
	test_rows_make(&rows, tnp_model_info(model), 2 * MANY, 9);
	env.largest = 0;
	e = build(model, MANY);
	largest = env.largest;
	other = build(whole, MANY);
	holds(same_keys(e, other), "many rows are read part by part as at once");
	n_threads = 3;
	begun = build(model, MANY);
	holds(same_keys(e, begun), "by whatever threads");
	tnp_encoding_free(begun);
	n_threads = 1;
	begun = build(model, 9000);
	next = revise(begun, MANY);
	holds(next != NULL && same_keys(e, next), "and by an encoding that goes on");
	tnp_encoding_free(begun);
	tnp_encoding_free(next);
	tnp_encoding_free(other);
	tnp_encoding_free(e);
	env.largest = 0;
	tnp_encoding_free(build(model, 2 * MANY));
	holds(env.largest - largest < (long) (MANY * model->config.width * sizeof(float)),
		  "their embeddings are not there at once");
	test_rows_free(&rows);
	rows = few;
	tnp_model_close(whole);
}

/* ---- scaling by the prefix ------------------------------------------------------------------- */

/* Put a text into a file in the place of another one of the same length. */
static bool
replace(TestModel *m, const char *old, const char *new)
{
	size_t		n = strlen(old);

	for (size_t i = 0; i + n < m->length && n == strlen(new); i++)
		if (memcmp(m->bytes + i, old, n) == 0)
		{
			memcpy(m->bytes + i, new, n);
			return true;
		}
	return false;
}

/* The same file whose inputs are scaled by the prefix. */
static bool
scale_by_prefix(TestModel *m)
{
	return replace(m, "\\\"min_rows\\\": 1", "\\\"min_rows\\\": 2")
		&& replace(m, "\\\"features\\\": 2, \\\"scaling\\\": \\\"none\\\"",
				   "\\\"features\\\": 2,\\\"scaling\\\":\\\"prefix\\\"");
}

/* Rows of a chain have the scaling of the context, appended ones another. */
static void
test_scaled(void)
{
	TnpEncoding *e = build(model, 600),
			   *fresh = build(plain, 600),
			   *next;

	holds(same_answers(e, fresh), "scaled by the prefix, chains go on");
	holds(e->own != NULL || counting.attend_more == NULL, "with sums that are kept");
	next = revise(e, 601);
	holds(next == NULL && !tnp_model_info(model)->goes_on, "and other encodings do not");
	tnp_encoding_free(e);
	tnp_encoding_free(fresh);
}

/* ---- models ---------------------------------------------------------------------------------- */

static bool
begin(const TestModel *file, const TnpKernels *kernels)
{
	TnpError	error = {0};

	title = file->name;
	kernels_name = kernels->name;
	counting = plain_kernels = *kernels;
	linear = kernels->linear;
	counting.linear = count_linear;
	plain_kernels.attend_more = NULL;
	n_threads = 1;
	test_env_init(&env, &counting);
	test_env_init(&plain_env, &plain_kernels);
	env.env.threads = threads;
	test_must(tnp_model_open(&env.env, file->bytes, file->length, &model, &error), &error);
	test_must(tnp_model_open(&plain_env.env, file->bytes, file->length, &plain, &error), &error);
	test_rows_make(&rows, tnp_model_info(model), ROWS + QUERIES, 5);
	return strcmp(tnp_model_info(model)->architecture, "latent") == 0;
}

static void
end(void)
{
	test_rows_free(&rows);
	tnp_model_close(model);
	tnp_model_close(plain);
	if (env.live != 0 || plain_env.live != 0)
		holds(false, "everything is freed");
}

static void
test_model(const TestModel *file, const TnpKernels *kernels)
{
	if (begin(file, kernels) && tnp_model_info(model)->n_classes == 0)
	{
		test_growth();
		test_ends();
		test_older();
		if (tnp_model_info(model)->buffer > 0)
			test_memory();
		if (strcmp(title, "latent") == 0 && !tries_few())
			test_many(file);
	}
	end();
	if (strcmp(file->name, "latent") == 0)
	{
		TestModel	scaled = *file;

		scaled.bytes = malloc(file->length);
		memcpy(scaled.bytes, file->bytes, file->length);
		if (!scale_by_prefix(&scaled))
			exit(3);
		if (begin(&scaled, kernels))
			test_scaled();
		end();
		free(scaled.bytes);
	}
}

int
main(void)
{
	test_everywhere(test_model);
	return done_testing();
}
