/*
 * tnp.c: the engine on the command line, for tests and benchmarks.
 *
 *     tnp kernels         the tables of the CPU provider, one JSON object per line, the best first:
 *                         which this machine runs, and why not the others
 *     tnp info MODEL      what the model file says, as one JSON object
 *     tnp run MODEL       answers requests, one JSON object per line of standard input, one per
 *                         line of standard output
 *
 * A request names a context and any number of queries about it; see docs/model-format.md for the
 * meaning of each:
 *
 *     {"kernels": "reference" | "cpu" (the best table) | a table's name,
 *      "kinds": ["numeric" | "categorical", ...],
 *      "context": {"x": [[...], ...], "y": [...]}, "prefix": number | "whole" | "canonical",
 *      "append": [rows, ...], "grow": [rows, ...], "queries": [[...], ...],
 *      "estimators": number of views that a model with estimators averages over (1),
 *      "classes": number, "score": {"x", "y", "orders", "seed"},
 *      "sample": {"x", "draws", "seed", "first"}, "joint": {"x"}, "evidence": {"x", "y"}}
 *
 * A cell that is null is missing. Answers carry 17 digits; values that JSON cannot say (NaN,
 * infinities) are null, "inf" and "-inf". A request that fails answers {"error": {"status",
 * "message", "detail"}} and makes the exit status 1; the requests after it are still answered.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "tables.h"
#include "engine/tnp.h"

/* The model under the kernels that a request names; each is opened when first asked for. */
typedef struct Tool
{
	int			estimators;		/* of this request */
	void	   *bytes;
	size_t		length;
	struct
	{
		const TnpKernels *kernels;
		TnpModel   *model;
	}			open[TNP_CPU_TABLES + 1];
	int			n_open;
} Tool;

/* Rows as the engine wants them, and the memory behind them. */
typedef struct Rows
{
	TnpRows		rows;
	double	   *x;
	double	   *y;
	TnpColumnKind *kinds;
} Rows;

static const char *const status_names[]
	= {"ok",		"no memory", "bad file",	 "bad config",	 "bad tensor",
	   "bad shape", "bad value", "too few rows", "bad argument", "interrupted",
	   "not here"};

static TnpStatus
fail(TnpError *error, const char *message)
{
	error->status = TNP_BAD_ARGUMENT;
	snprintf(error->message, sizeof(error->message), "%s", message);
	error->detail[0] = '\0';
	return TNP_BAD_ARGUMENT;
}

/* Memory for a test tool: there is some, or the program ends. */
static void *
allocate(size_t n, size_t size)
{
	void	   *p = calloc(n > 0 ? n : 1, size);

	if (p == NULL)
	{
		fprintf(stderr, "tnp: out of memory\n");
		exit(2);
	}
	return p;
}

/* ---- JSON to rows ---------------------------------------------------------------------------- */

static int64_t
read_integer(const json_t *object, const char *key, int64_t otherwise)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? (int64_t) json_integer_value(value) : otherwise;
}

static bool
read_number(const json_t *value, double *number)
{
	*number = json_is_null(value) ? NAN : json_number_value(value);
	if (json_is_string(value))
		*number = strtod(json_string_value(value), NULL);
	return json_is_number(value) || json_is_null(value) || json_is_string(value);
}

static void
rows_free(Rows *rows)
{
	free(rows->x);
	free(rows->y);
	free(rows->kinds);
}

/* The kinds of the request's columns, or NULL for all numeric. */
static TnpStatus
read_kinds(const json_t *request, int n_features, TnpColumnKind **kinds, TnpError *error)
{
	const json_t *names = json_object_get(request, "kinds");

	*kinds = NULL;
	if (names == NULL)
		return TNP_OK;
	if ((int) json_array_size(names) != n_features)
		return fail(error, "\"kinds\" must name the kind of every column");
	*kinds = allocate(n_features, sizeof(TnpColumnKind));
	for (int f = 0; f < n_features; f++)
	{
		const char *name = json_string_value(json_array_get(names, f));

		if (name == NULL || (strcmp(name, "numeric") != 0 && strcmp(name, "categorical") != 0))
			return fail(error, "a kind must be \"numeric\" or \"categorical\"");
		(*kinds)[f] = name[0] == 'c' ? TNP_CATEGORICAL : TNP_NUMERIC;
	}
	return TNP_OK;
}

/*
 * x [[...], ...] and y [...] (NULL for queries), of several targets [[...], ...]. Without rows, the
 * number of columns is the request's kinds' or the model's.
 */
static TnpStatus
read_rows(const TnpModel *model, const json_t *request, const json_t *x, const json_t *y,
		  Rows *rows, TnpError *error)
{
	size_t		n = json_array_size(x);
	size_t		n_features = json_array_size(json_array_get(x, 0));
	size_t		targets = y != NULL && json_is_array(json_array_get(y, 0))
		? json_array_size(json_array_get(y, 0)) : 1;

	memset(rows, 0, sizeof(*rows));
	if (!json_is_array(x))
		return fail(error, "\"x\" must be an array of rows");
	if (y != NULL && json_array_size(y) != n)
		return fail(error, "\"x\" and \"y\" must have as many rows");
	if (n == 0)
		n_features = json_object_get(request, "kinds")
						 ? json_array_size(json_object_get(request, "kinds"))
						 : (size_t) tnp_model_info(model)->max_features;
	rows->x = allocate(n * n_features, sizeof(double));
	rows->y = y != NULL ? allocate(n * targets, sizeof(double)) : NULL;
	for (size_t i = 0; i < n; i++)
	{
		const json_t *row = json_array_get(x, i);

		if (json_array_size(row) != n_features)
			return fail(error, "all rows must have as many columns");
		for (size_t f = 0; f < n_features; f++)
			if (!read_number(json_array_get(row, f), &rows->x[i * n_features + f]))
				return fail(error, "a cell must be a number or null");
		for (size_t t = 0; y != NULL && t < targets; t++)
		{
			const json_t *target = json_array_get(y, i);

			if (json_is_array(target) ? json_array_size(target) != targets : targets > 1)
				return fail(error, "all rows must have as many targets");
			if (!read_number(json_is_array(target) ? json_array_get(target, t) : target,
							 &rows->y[i * targets + t]))
				return fail(error, "a target must be a number or null");
		}
	}
	rows->rows = (TnpRows){.n = (int64_t) n,
						   .n_features = (int) n_features,
						   .x = rows->x,
						   .y = rows->y,
						   .n_classes = (int) read_integer(request, "classes", 0),
						   .n_targets = (int) targets};
	return TNP_OK;
}

/* The rows of {"x": ..., "y": ...}; `targets` says whether y is wanted. */
static TnpStatus
read_table(const TnpModel *model, const json_t *request, const json_t *table, bool targets,
		   Rows *rows, TnpError *error)
{
	const json_t *y = targets ? json_object_get(table, "y") : NULL;
	TnpStatus	status;

	memset(rows, 0, sizeof(*rows));
	if (targets && !json_is_array(y))
		return fail(error, "\"y\" must be an array");
	status = read_rows(model, request, json_object_get(table, "x"), y, rows, error);
	if (status == TNP_OK)
		status = read_kinds(request, rows->rows.n_features, &rows->kinds, error);
	rows->rows.kinds = rows->kinds;
	return status;
}

/* ---- answers to JSON ------------------------------------------------------------------------- */

static json_t *
number(double x)
{
	if (isnan(x))
		return json_null();
	if (isinf(x))
		return json_string(x > 0 ? "inf" : "-inf");
	return json_real(x);
}

static json_t *
numbers(const double *x, int64_t n)
{
	json_t	   *array = json_array();

	for (int64_t i = 0; i < n; i++)
		json_array_append_new(array, number(x[i]));
	return array;
}

static json_t *
matrix(const double *x, int64_t n, int64_t columns)
{
	json_t	   *array = json_array();

	for (int64_t i = 0; i < n; i++)
		json_array_append_new(array, numbers(x + i * columns, columns));
	return array;
}

static json_t *
failure(const TnpError *error)
{
	return json_pack("{s:{s:s, s:s, s:s}}", "error", "status", status_names[error->status],
					 "message", error->message, "detail", error->detail);
}

/* ---- the questions --------------------------------------------------------------------------- */

static TnpStatus
answer_queries(const TnpModel *model, const TnpEncoding *encoding, const json_t *request,
			   json_t *answer, TnpError *error)
{
	Rows		queries;
	TnpDistributionKind kind;
	int			targets = tnp_model_info(model)->n_targets,
				n,
				size;
	TnpStatus	status;
	json_t	   *means = json_array(),
			   *sds = json_array();
	double	   *params = NULL;
	json_t	   *table = json_pack("{s:O}", "x", json_object_get(request, "queries"));

	tnp_answer_shape(model, &kind, &n);
	size = tnp_distribution_size(kind, n);
	if ((status = read_table(model, request, table, false, &queries, error)) == TNP_OK)
	{
		params = allocate(queries.rows.n * targets * size, sizeof(double));
		status = tnp_predict(encoding, &queries.rows, params, error);
	}
	for (int64_t i = 0; status == TNP_OK && i < queries.rows.n * targets; i++)
	{
		TnpDistribution d = {kind, n, params + i * size};

		status = tnp_distribution_check(&d, error);
		json_array_append_new(means, number(tnp_mean(&d)));
		json_array_append_new(sds, number(sqrt(tnp_variance(&d))));
	}
	if (status == TNP_OK)
		json_object_set_new(answer, "params", matrix(params, queries.rows.n, targets * size));
	json_object_set_new(answer, "mean", means);
	json_object_set_new(answer, "sd", sds);
	json_decref(table);
	free(params);
	rows_free(&queries);
	return status;
}

static TnpStatus
answer_score(const TnpModel *model, const TnpEncoding *encoding, const json_t *request,
			 json_t *answer, TnpError *error)
{
	const json_t *question = json_object_get(request, "score");
	int64_t		orders = read_integer(question, "orders", 0);
	Rows		rows;
	double	   *per_row = NULL;
	double		log_density;
	TnpStatus	status = read_table(model, request, question, true, &rows, error);

	if (status == TNP_OK)
	{
		per_row = allocate(rows.rows.n, sizeof(double));
		status
			= tnp_score(encoding, &rows.rows, orders, (uint64_t) read_integer(question, "seed", 0),
						&log_density, orders == 0 ? per_row : NULL, error);
	}
	if (status == TNP_OK)
	{
		json_object_set_new(answer, "log_density", number(log_density));
		if (orders == 0)
			json_object_set_new(answer, "per_row", numbers(per_row, rows.rows.n));
	}
	free(per_row);
	rows_free(&rows);
	return status;
}

static TnpStatus
answer_sample(const TnpModel *model, const TnpEncoding *encoding, const json_t *request,
			  json_t *answer, TnpError *error)
{
	const json_t *question = json_object_get(request, "sample");
	int64_t		draws = read_integer(question, "draws", 1),
				targets = tnp_model_info(model)->n_targets;
	Rows		rows;
	double	   *y = NULL;
	TnpStatus	status = read_table(model, request, question, false, &rows, error);

	if (status == TNP_OK)
	{
		y = allocate(draws > 0 ? draws * rows.rows.n * targets : 0, sizeof(double));
		status = tnp_sample(encoding, &rows.rows, (uint64_t) read_integer(question, "seed", 0),
							(uint64_t) read_integer(question, "first", 0), draws, y, error);
	}
	if (status == TNP_OK)
		json_object_set_new(answer, "draws", matrix(y, draws, rows.rows.n * targets));
	free(y);
	rows_free(&rows);
	return status;
}

static TnpStatus
answer_joint(const TnpModel *model, const TnpEncoding *encoding, const json_t *request,
			 json_t *answer, TnpError *error)
{
	Rows		rows;
	double	   *moments = NULL;
	int64_t		n;
	TnpStatus status
		= read_table(model, request, json_object_get(request, "joint"), false, &rows, error);

	if (status == TNP_OK)
	{
		n = rows.rows.n * tnp_model_info(model)->n_targets;
		moments = allocate(n * (n + 1), sizeof(double));
		status = tnp_joint(encoding, &rows.rows, moments, moments + n, error);
	}
	if (status == TNP_OK)
	{
		json_object_set_new(answer, "joint_mean", numbers(moments, n));
		json_object_set_new(answer, "covariance", matrix(moments + n, n, n));
	}
	free(moments);
	rows_free(&rows);
	return status;
}

static TnpStatus
answer_evidence(const TnpModel *model, const json_t *request, json_t *answer, TnpError *error)
{
	Rows		rows;
	double	   *per_row = NULL;
	double		log_evidence;
	int64_t		conditioned;
	TnpStatus status
		= read_table(model, request, json_object_get(request, "evidence"), true, &rows, error);

	if (status == TNP_OK)
	{
		per_row = allocate(rows.rows.n, sizeof(double));
		status = tnp_evidence(model, &rows.rows, &log_evidence, &conditioned, per_row, error);
	}
	if (status == TNP_OK)
	{
		json_object_set_new(answer, "evidence", number(log_evidence));
		json_object_set_new(answer, "conditioned", json_integer(conditioned));
		json_object_set_new(answer, "evidence_per_row", numbers(per_row, rows.rows.n));
	}
	free(per_row);
	rows_free(&rows);
	return status;
}

/* Append every table of the request's list `key` by one of the two verbs. */
static TnpStatus
extend(const TnpModel *model, TnpEncoding *encoding, const json_t *request, const char *key,
	   TnpStatus (*verb) (TnpEncoding *, const TnpRows *, TnpError *), TnpError *error)
{
	const json_t *tables = json_object_get(request, key);
	TnpStatus	status = TNP_OK;

	for (size_t i = 0; status == TNP_OK && i < json_array_size(tables); i++)
	{
		Rows		rows;

		if ((status = read_table(model, request, json_array_get(tables, i), true, &rows, error))
			== TNP_OK)
			status = verb(encoding, &rows.rows, error);
		rows_free(&rows);
	}
	return status;
}

/* The encoding of the request's context. */
static TnpStatus
encode(const TnpModel *model, const json_t *request, TnpEncoding **encoding, TnpError *error)
{
	const json_t *where = json_object_get(request, "prefix");
	const char *rule = json_string_value(where);
	Rows		rows;
	int64_t		prefix;
	TnpStatus status
		= read_table(model, request, json_object_get(request, "context"), true, &rows, error);

	if (status == TNP_OK)
	{
		if (json_is_integer(where))
			prefix = json_integer_value(where);
		else if (rule != NULL && strcmp(rule, "canonical") == 0)
			prefix = tnp_canonical_prefix(model, rows.rows.n);
		else
			prefix = tnp_whole_prefix(model, rows.rows.n);
		status = tnp_build(model, &rows.rows, prefix, encoding, error);
	}
	rows_free(&rows);
	if (status == TNP_OK)
		status = extend(model, *encoding, request, "append", tnp_append, error);
	if (status == TNP_OK)
		status = extend(model, *encoding, request, "grow", tnp_grow, error);
	return status;
}

static TnpStatus
answer_request(const TnpModel *model, const json_t *request, json_t *answer, TnpError *error)
{
	TnpEncoding *encoding = NULL;
	TnpStatus	status = TNP_OK;

	if (json_object_get(request, "evidence") != NULL)
		status = answer_evidence(model, request, answer, error);
	if (status == TNP_OK && json_object_get(request, "context") != NULL)
		status = encode(model, request, &encoding, error);
	if (status == TNP_OK && encoding != NULL)
	{
		json_object_set_new(answer, "rows", json_integer(tnp_encoding_rows(encoding)));
		json_object_set_new(answer, "prefix", json_integer(tnp_encoding_prefix(encoding)));
		if (json_object_get(request, "queries") != NULL)
			status = answer_queries(model, encoding, request, answer, error);
		if (status == TNP_OK && json_object_get(request, "score") != NULL)
			status = answer_score(model, encoding, request, answer, error);
		if (status == TNP_OK && json_object_get(request, "sample") != NULL)
			status = answer_sample(model, encoding, request, answer, error);
		if (status == TNP_OK && json_object_get(request, "joint") != NULL)
			status = answer_joint(model, encoding, request, answer, error);
	}
	tnp_encoding_free(encoding);
	return status;
}

/* ---- the commands ---------------------------------------------------------------------------- */

/* The kernels of this name (NULL: reference), or NULL. */
static const TnpKernels *
find_kernels(const char *name)
{
	const TnpKernels *tables[TNP_CPU_TABLES];
	int			n = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES);

	if (name == NULL || strcmp(name, "reference") == 0)
		return &tnp_reference_kernels;
	if (strcmp(name, "cpu") == 0)
		return tnp_cpu_kernels();
	for (int i = 0; i < n; i++)
		if (strcmp(tables[i]->name, name) == 0)
			return tables[i];
	return NULL;
}

static int
wanted_estimators(void *arg)
{
	return ((Tool *) arg)->estimators;
}

/* The model under the kernels of this name, opened once. */
static TnpStatus
find_model(Tool *tool, const char *name, TnpModel **model, TnpError *error)
{
	const TnpKernels *kernels = find_kernels(name);
	TnpEnv		env = tnp_default_env;
	TnpStatus	status;

	if (kernels == NULL)
		return fail(error, "\"kernels\" must be \"reference\", \"cpu\" or the name of a table that "
						   "this machine runs");
	for (int i = 0; i < tool->n_open; i++)
		if (tool->open[i].kernels == kernels)
		{
			*model = tool->open[i].model;
			return TNP_OK;
		}
	env.kernels = kernels;
	env.arg = tool;
	env.estimators = wanted_estimators;
	status = tnp_model_open(&env, tool->bytes, tool->length, model, error);
	if (status == TNP_OK)
	{
		tool->open[tool->n_open].kernels = kernels;
		tool->open[tool->n_open++].model = *model;
	}
	return status;
}

static bool
print_answer(json_t *answer)
{
	bool		good = json_object_get(answer, "error") == NULL;

	json_dumpf(answer, stdout, JSON_REAL_PRECISION(17) | JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(answer);
	return good;
}

/* Answer as a model of as many targets as the rows of the request have, where there is one. */
static TnpStatus
answer_targets(const TnpModel *model, const json_t *request, json_t *answer, TnpError *error)
{
	const json_t *y = json_object_get(json_object_get(request, "context"), "y");
	size_t		targets = json_array_size(json_array_get(y, 0));
	TnpModel   *several;
	TnpStatus	status;

	if (targets == 0 || !tnp_model_info(model)->each_target)
		return answer_request(model, request, answer, error);
	status = tnp_model_several(model, (int) targets, &several, error);
	if (status == TNP_OK)
		status = answer_request(several, request, answer, error);
	tnp_model_close(several);
	return status;
}

static bool
run_line(Tool *tool, const char *line)
{
	TnpError	error = {0};
	TnpModel   *model;
	json_t	   *request = json_loads(line, 0, NULL);
	json_t	   *answer = json_object();
	TnpStatus	status;

	if (!json_is_object(request))
		status = fail(&error, "a request must be a JSON object on one line");
	else
	{
		tool->estimators = (int) read_integer(request, "estimators", 1);
		status = find_model(tool, json_string_value(json_object_get(request, "kernels")), &model,
							&error);
	}
	if (status == TNP_OK)
		status = answer_targets(model, request, answer, &error);
	if (status != TNP_OK)
	{
		json_decref(answer);
		answer = failure(&error);
	}
	json_decref(request);
	return print_answer(answer);
}

static bool
run(Tool *tool)
{
	char	   *line = NULL;
	size_t		size = 0;
	bool		good = true;

	while (getline(&line, &size, stdin) > 0)
		good &= run_line(tool, line);
	free(line);
	return good;
}

static bool
info(Tool *tool)
{
	TnpError	error = {0};
	TnpModel   *model;
	const TnpModelInfo *i;
	TnpDistributionKind kind;
	int			n;

	if (find_model(tool, NULL, &model, &error) != TNP_OK)
		return print_answer(failure(&error));
	i = tnp_model_info(model);
	tnp_answer_shape(model, &kind, &n);
	return print_answer(json_pack(
		"{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:b, s:b, s:b, s:b, s:I, s:I, s:i, s:i, s:i}",
		"architecture", i->architecture, "context", i->context, "description", i->description,
		"head", i->head, "features", i->n_features, "max_features", i->max_features, "min_rows",
		i->min_rows, "buffer", i->buffer, "appendable", i->appendable, "takes_missing",
		i->takes_missing, "takes_categories", i->takes_categories, "scales_by_prefix",
		i->scales_by_prefix, "parameters", (json_int_t) i->n_parameters, "encoding_bytes_per_row",
		(json_int_t) i->encoding_bytes_per_row, "kind", (int) kind, "components", n, "targets",
		i->n_targets));
}

static void
list_kernels(void)
{
	const KnownTable *known;

	for (int i = 0; (known = known_table(i)) != NULL; i++)
	{
		const char *why;
		const TnpKernels *kernels = known_kernels(known, &why);
		json_t *line = json_pack("{s:s, s:s, s:b}", "name", known->name, "architecture",
								 known->architecture, "runs", kernels != NULL);

		if (kernels != NULL)
			json_object_set_new(line, "bits", json_integer((json_int_t) (8 * kernels->number)));
		else
			json_object_set_new(line, "why", json_string(why));
		print_answer(line);
	}
}

/* The bytes of a file; the program ends where it cannot be read. */
static void
read_file(const char *path, Tool *tool)
{
	FILE	   *file = fopen(path, "rb");
	long		length = -1;

	if (file != NULL && fseek(file, 0, SEEK_END) == 0)
		length = ftell(file);
	if (length >= 0)
	{
		rewind(file);
		tool->length = (size_t) length;
		tool->bytes = allocate(tool->length, 1);
	}
	if (length < 0 || fread(tool->bytes, 1, tool->length, file) != tool->length)
	{
		perror(path);
		exit(2);
	}
	fclose(file);
}

int
main(int argc, char **argv)
{
	Tool		tool = {0};
	bool		good;

	if (argc == 2 && strcmp(argv[1], "kernels") == 0)
	{
		list_kernels();
		return 0;
	}
	if (argc != 3 || (strcmp(argv[1], "info") != 0 && strcmp(argv[1], "run") != 0))
	{
		fprintf(stderr, "usage: tnp kernels | tnp info|run MODEL\n");
		return 2;
	}
	read_file(argv[2], &tool);
	good = strcmp(argv[1], "info") == 0 ? info(&tool) : run(&tool);
	for (int i = 0; i < tool.n_open; i++)
		tnp_model_close(tool.open[i].model);
	free(tool.bytes);
	return good ? 0 : 1;
}
