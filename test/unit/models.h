/*
 * models.h: every model of the test-model directory, and random rows that it takes.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TEST_MODELS_H
#define TEST_MODELS_H

#include "engine/tnp.h"

#if defined(__has_feature)
#define TEST_SANITIZED __has_feature(address_sanitizer)
#endif

/*
 * With sanitizers a test takes a third of its cases, others for the next model: each takes ten
 * times as long.
 */
#if defined(__SANITIZE_ADDRESS__) || TEST_SANITIZED
#define TEST_EVERY 3
#else
#define TEST_EVERY 1
#endif

/*
 * A call that is stopped at its k-th poll does all that comes before it: with sanitizers it is
 * stopped at every sixteenth.
 */
#define TEST_STOPS (TEST_EVERY > 1 ? 16 : 1)

/* A model file in memory. */
typedef struct TestModel
{
	char		name[64];
	unsigned char *bytes;
	size_t		length;
} TestModel;

/*
 * All files of $POSTERIOR_TEST_MODELS (default build/models), sorted by name; *n of them. With
 * TNP_QUICK the first of each kind: architecture, its variant or the context, and whether it is a
 * classifier. Exits when there are none.
 */
TestModel  *test_models(int *n);
void		test_models_free(TestModel *models, int n);

/*
 * The kernels of this machine; with TNP_QUICK those of every machine: valgrind imitates each fused
 * multiplication and addition by a hundred instructions.
 */
const TnpKernels *test_kernels(void);

/*
 * A test of every model with every table of kernels, the reference included: with sanitizers a
 * third of these pairs, with TNP_QUICK the first model with the best table, the others with those
 * of every machine.
 */
void		test_everywhere(void (*test) (const TestModel *model, const TnpKernels *kernels));

/*
 * Rows of random cells, the same for the same seed: with missing and categorical cells where the
 * model takes them.
 */
typedef struct TestRows
{
	TnpRows		view;			/* of all rows, with targets */
	double	   *x,
			   *y;
	TnpColumnKind kinds[8];
} TestRows;

void		test_rows_make(TestRows *rows, const TnpModelInfo *info, int n, unsigned seed);
void		test_rows_free(TestRows *rows);

/* Rows [first, first + n). */
TnpRows		test_slice(const TestRows *rows, int first, int n);

/* Uniform in [0, 1) from a small generator with the given state. */
double		test_uniform(unsigned *state);

/* Ends the test program, with a failure and the error, unless a call that must succeed has. */
void		test_must(TnpStatus status, const TnpError *error);

/* An environment that counts what is allocated, fails on demand and interrupts on demand. */
typedef struct TestEnv
{
	TnpEnv		env;
	long		live,			/* allocations not yet freed */
				calls,			/* allocations asked for */
				largest,		/* bytes of one of these */
				fail_at,		/* this call returns NULL (0: none) */
				polls,			/* interrupt polls */
				stop_at;		/* from this poll on they say stop (0: none) */
} TestEnv;

void		test_env_init(TestEnv *env, const TnpKernels *kernels);

#endif							/* TEST_MODELS_H */
