/*
 * models.c: test models, random rows, and a counting environment.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "models.h"
#include "tap.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/file/model.h"

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const TestModel *) a)->name, ((const TestModel *) b)->name);
}

static void
read_model(TestModel *m, const char *directory, const char *file)
{
	char		path[4096];
	FILE	   *f;
	long		length;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	snprintf(m->name, sizeof(m->name), "%.*s", (int) (strlen(file) - strlen(".safetensors")), file);
	f = fopen(path, "rb");
	if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (length = ftell(f)) < 0)
		exit(2);
	rewind(f);
	m->length = (size_t) length;
	m->bytes = malloc(m->length);
	if (m->bytes == NULL || fread(m->bytes, 1, m->length, f) != m->length)
		exit(2);
	fclose(f);
}

/* What distinguishes the paths that a model takes through the engine, as text. */
static void
kind_of_model(const TestModel *file, char *kind, size_t size)
{
	TnpModel   *model;
	TnpError	error;
	const TnpModelInfo *info;

	if (tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error) != TNP_OK)
	{
		snprintf(kind, size, "%s", file->name);
		return;
	}
	info = tnp_model_info(model);
	snprintf(kind, size, "%s %s %d", info->architecture,
			 model->config.family->variant != NULL ? model->config.family->variant : info->context,
			 info->n_classes > 0);
	tnp_model_close(model);
}

/* Keep the first model of each kind; returns how many. */
static int
keep_one_of_each_kind(TestModel *models, int n)
{
	char		(*kinds)[128] = calloc((size_t) n, sizeof(*kinds));
	int			kept = 0;

	for (int i = 0; i < n; i++)
	{
		bool		known = false;

		kind_of_model(&models[i], kinds[kept], sizeof(kinds[kept]));
		for (int j = 0; j < kept; j++)
			known = known || strcmp(kinds[j], kinds[kept]) == 0;
		if (known)
			free(models[i].bytes);
		else
			models[kept++] = models[i];
	}
	free(kinds);
	return kept;
}

TestModel *
test_models(int *n)
{
	const char *directory = getenv("POSTERIOR_TEST_MODELS");
	TestModel  *models = calloc(256, sizeof(TestModel));
	struct dirent *entry;
	DIR		   *dir;

	if (directory == NULL)
		directory = "build/models";
	dir = opendir(directory);
	*n = 0;
	while (dir != NULL && (entry = readdir(dir)) != NULL && *n < 256)
		if (strstr(entry->d_name, ".safetensors") != NULL)
			read_model(&models[(*n)++], directory, entry->d_name);
	if (dir != NULL)
		closedir(dir);
	if (*n == 0)
	{
		printf("Bail out! no models in %s: make test-models\n", directory);
		exit(2);
	}
	qsort(models, *n, sizeof(TestModel), by_name);
	if (getenv("TNP_QUICK") != NULL)
		*n = keep_one_of_each_kind(models, *n);
	return models;
}

void
test_models_free(TestModel *models, int n)
{
	for (int i = 0; i < n; i++)
		free(models[i].bytes);
	free(models);
}

const TnpKernels *
test_kernels(void)
{
	return getenv("TNP_QUICK") != NULL ? &tnp_cpu_baseline_kernels : tnp_cpu_kernels();
}

void
test_everywhere(void (*test) (const TestModel *model, const TnpKernels *kernels))
{
	const TnpKernels *tables[TNP_CPU_TABLES + 1];
	int			n_tables = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES),
				n;
	TestModel  *models = test_models(&n);
	bool		quick = getenv("TNP_QUICK") != NULL;

	tables[n_tables++] = &tnp_reference_kernels;
	for (int i = 0; i < n; i++)
		for (int t = 0; t < n_tables; t++)
			if (quick ? (i == 0 ? t == 0 : tables[t] == test_kernels())
				: (i + t) % TEST_EVERY == 0)
				test(&models[i], tables[t]);
	test_models_free(models, n);
}

double
test_uniform(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) / 16777216.0;
}

void
test_rows_make(TestRows *rows, const TnpModelInfo *info, int n, unsigned seed)
{
	int			features = info->n_features > 0 ? info->n_features : 4,
				/* fewer than there is room for */
				classes = info->n_classes > 3 ? info->n_classes - 2 : info->n_classes,
				targets = info->n_targets;
	unsigned	state = seed * 2654435761u + 1;

	rows->x = malloc((size_t) (n + 1) * features * sizeof(double));
	rows->y = malloc((size_t) (n + 1) * targets * sizeof(double));
	for (int f = 0; f < 8; f++)
		rows->kinds[f] = info->takes_categories && f == 1 ? TNP_CATEGORICAL : TNP_NUMERIC;
	for (int i = 0; i < n; i++)
	{
		double		sum = 0;

		for (int f = 0; f < features; f++)
		{
			double		v = 4 * test_uniform(&state) - 2;

			if (rows->kinds[f] == TNP_CATEGORICAL)
				v = floor(5 * test_uniform(&state)) * 1000003;
			if (info->takes_missing && test_uniform(&state) < 0.15)
				v = NAN;
			rows->x[i * features + f] = v;
			sum += isnan(v) ? 0 : sin(v);
		}
		for (int t = 0; t < targets; t++)
			rows->y[i * targets + t] = (1 + t) * sum + 0.3 * test_uniform(&state);
		/* by planes, roughly: a regression that knows nothing has no share in the answers */
		if (classes > 0)
			rows->y[i] = fmin(fmax(floor(rows->y[i] + classes / 2.0), 0), classes - 1);
	}
	rows->view = (TnpRows) {n, features, rows->kinds, rows->x, rows->y, classes, 0,
							targets};
}

void
test_rows_free(TestRows *rows)
{
	free(rows->x);
	free(rows->y);
}

TnpRows
test_slice(const TestRows *rows, int first, int n)
{
	TnpRows		slice = rows->view;

	slice.n = n;
	slice.x += (int64_t) first * slice.n_features;
	slice.y += (int64_t) first * tnp_rows_targets(&slice);
	return slice;
}

static void *
counting_alloc(void *arg, size_t size)
{
	TestEnv    *env = arg;

	if (++env->calls == env->fail_at)
		return NULL;
	env->live++;
	if ((long) size > env->largest)
		env->largest = (long) size;
	return malloc(size);
}

static void
counting_free(void *arg, void *pointer)
{
	((TestEnv *) arg)->live--;
	free(pointer);
}

/*
 * Lasting memory begins inside a block, so that freeing it as the other kind, or the other way
 * round, is seen.
 */
static void *
counting_keep(void *arg, size_t size)
{
	char	   *block = counting_alloc(arg, size + 64);

	return block == NULL ? NULL : block + 64;
}

static void
counting_drop(void *arg, void *pointer)
{
	counting_free(arg, (char *) pointer - 64);
}

static bool
counting_interrupted(void *arg)
{
	TestEnv    *env = arg;

	env->polls++;
	return env->stop_at > 0 && env->polls >= env->stop_at;
}

void
test_env_init(TestEnv *env, const TnpKernels *kernels)
{
	memset(env, 0, sizeof(*env));
	env->env = (TnpEnv) {.alloc = counting_alloc,.free = counting_free,
						 .interrupted = counting_interrupted,.arg = env,.kernels = kernels,
	.keep = counting_keep,.drop = counting_drop};
}

void
test_must(TnpStatus status, const TnpError *error)
{
	if (status == TNP_OK)
		return;
	ok(false, "a call that must succeed");
	diag("%s | %s", error->message, error->detail);
	exit(1);
}
