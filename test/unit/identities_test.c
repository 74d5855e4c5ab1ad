/*
 * identities_test.c: what must be equal within one implementation, for every test model and every
 * table of kernels: appended = built at once, one pass = step by step, a batch = each alone, draws
 * do not depend on the batch, merged blocks = contexts. Models of one target that take several,
 * each by itself, are asked about several, too.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cpu/cpu.h"
#include "engine/inference/request.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 21
#define QUERIES 9
#define LARGEST 160			/* doubles of one answer: the largest head, for all its targets */
#define MOST_TARGETS 4
#define MOST_JOINT (2 * MOST_TARGETS)

static const TestModel *file;	/* under test */
static const char *kernels_name;
static double tolerance;		/* of what is computed in two ways that differ in rounding */
static TnpModel *model;
static const TnpModelInfo *info;
static TestRows rows;			/* CONTEXT + QUERIES rows */
static int	size,				/* of the answers to a query */
			one_size;			/* of one of them */
static TnpDistributionKind kind;
static int	components;

static bool
holds(bool condition, const char *what)
{
	return ok(condition, "%s, %s: %s", file->name, kernels_name, what);
}

/* A call that must succeed. */
static void
must(TnpStatus status, const TnpError *error, const char *what)
{
	if (status != TNP_OK)
	{
		holds(false, what);
		diag("%s | %s", error->message, error->detail);
		exit(1);
	}
}

static TnpEncoding *
build(int n, int64_t prefix)
{
	TnpRows		context = test_slice(&rows, 0, n);
	TnpEncoding *e = NULL;
	TnpError	error = {0};

	must(tnp_build(model, &context, prefix, &e, &error), &error, "build");
	return e;
}

static void
predict(const TnpEncoding *e, int first, int n, double *params)
{
	TnpRows		queries = test_slice(&rows, first, n);
	TnpError	error = {0};

	queries.y = NULL;
	must(tnp_predict(e, &queries, params, &error), &error, "predict");
}

static void
append(TnpEncoding *e, int first, int n)
{
	TnpRows		more = test_slice(&rows, first, n);
	TnpError	error = {0};

	must(tnp_append(e, &more, &error), &error, "append");
}

/* Whether the queries of one question have one distribution, and not one after the other. */
static bool
is_joint(void)
{
	return strcmp(info->head, "joint-gaussian") == 0;
}

/* Log density of row i under an encoding: of all its targets, which only a joint head relates. */
static double
log_density(const TnpEncoding *e, int i)
{
	double		params[LARGEST],
				sum = 0;
	TnpDistribution d = {kind, components, params};

	if (is_joint() && info->n_targets > 1)
	{
		TnpRows		one = test_slice(&rows, i, 1);
		TnpError	error = {0};

		must(tnp_score(e, &one, 0, 0, &sum, NULL, &error), &error, "score of a row");
		return sum;
	}
	predict(e, i, 1, params);
	for (int t = 0; t < info->n_targets; t++, d.params += one_size)
		sum += tnp_log_pdf(&d, rows.y[i * info->n_targets + t]);
	return sum;
}

static bool
close_to(double a, double b)
{
	/* a target beyond bars that end has no density in either */
	return a == b || fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

static void
test_batch(void)
{
	TnpEncoding *e = build(CONTEXT, tnp_whole_prefix(model, CONTEXT));
	double		all[QUERIES * LARGEST],
				one[LARGEST];
	bool		same = true;

	predict(e, CONTEXT, QUERIES, all);
	for (int i = 0; i < QUERIES; i++)
	{
		predict(e, CONTEXT + i, 1, one);
		same = same && memcmp(all + i * size, one, size * sizeof(double)) == 0;
	}
	holds(same, "a batch of queries is each alone, bitwise");
	tnp_encoding_free(e);
}

/* Rows that all see each other may come in any order. */
static void
test_permutation(void)
{
	int64_t		prefix = tnp_whole_prefix(model, CONTEXT);
	TnpEncoding *e,
			   *turned = NULL;
	TnpRows		context = test_slice(&rows, 0, CONTEXT);
	TnpError	error = {0};
	int			features = context.n_features,
				targets = info->n_targets;
	double	   *x,
			   *y,
				one[QUERIES * LARGEST],
				other[QUERIES * LARGEST];
	bool		same = true;

	/* a convolution reads rows in their order */
	if (prefix < CONTEXT || strcmp(file->name, "decoupled_convolution") == 0)
		return;
	e = build(CONTEXT, prefix);
	x = malloc((size_t) CONTEXT * features * sizeof(double));
	y = malloc((size_t) CONTEXT * targets * sizeof(double));
	for (int i = 0; i < CONTEXT; i++)
	{
		int			from = CONTEXT - 1 - i;

		memcpy(x + (size_t) i * features, context.x + (size_t) from * features,
			   features * sizeof(double));
		memcpy(y + (size_t) i * targets, context.y + (size_t) from * targets,
			   targets * sizeof(double));
	}
	context.x = x;
	context.y = y;
	must(tnp_build(model, &context, prefix, &turned, &error), &error, "build");
	predict(e, CONTEXT, QUERIES, one);
	predict(turned, CONTEXT, QUERIES, other);
	for (int i = 0; i < QUERIES * size; i++)
		same = same && close_to(one[i], other[i]);
	holds(same, "rows that see each other, in another order");
	tnp_encoding_free(e);
	tnp_encoding_free(turned);
	free(x);
	free(y);
}

static void
test_append(void)
{
	double		once[QUERIES * LARGEST],
				parts[QUERIES * LARGEST];
	int64_t		prefix = tnp_whole_prefix(model, 12);
	TnpEncoding *e;

	if (!info->appendable)
		return;
	e = build(CONTEXT, prefix);
	predict(e, CONTEXT, QUERIES, once);
	tnp_encoding_free(e);
	e = build(12, prefix);
	append(e, 12, 1);
	append(e, 13, 5);
	append(e, 18, 0);
	append(e, 18, CONTEXT - 18);
	predict(e, CONTEXT, QUERIES, parts);
	tnp_encoding_free(e);
	holds(memcmp(once, parts, QUERIES * size * sizeof(double)) == 0,
		  "appended is built at once, bitwise");
}

/*
 * Rows that are appended with the question walk with it, and are what they are when appended before
 * it: few rows and queries, and more than a tile has.
 */
static void
test_append_predict(void)
{
	static const int shapes[][2] = {{1, 1}, {1, 4}, {3, 1}, {5, QUERIES}, {0, 2}, {2, 0}};
	TestRows	many;
	TnpError	error = {0};
	int64_t		prefix = tnp_whole_prefix(model, 12);
	double		apart[QUERIES * LARGEST],
				together[QUERIES * LARGEST],
			   *params[2];
	bool		same = true,
				after = true,
				forgotten = true;

	if (!info->appendable)
		return;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
	{
		int			n = shapes[i][0],
					m = shapes[i][1];
		TnpRows		more = test_slice(&rows, 12, n),
					queries = test_slice(&rows, CONTEXT, m);
		TnpEncoding *a = build(12, prefix),
				   *b = build(12, prefix);

		queries.y = NULL;
		append(a, 12, n);
		predict(a, CONTEXT, m, apart);
		must(tnp_append_predict(b, &more, &queries, together, &error), &error,
			 "append and predict");
		same = same && tnp_encoding_rows(b) == 12 + n &&
			memcmp(apart, together, (size_t) m * size * sizeof(double)) == 0;
		/* what was stored is what later rows and questions find */
		append(a, 12 + n, CONTEXT - 12 - n);
		append(b, 12 + n, CONTEXT - 12 - n);
		predict(a, CONTEXT, QUERIES, apart);
		predict(b, CONTEXT, QUERIES, together);
		after = after && memcmp(apart, together, QUERIES * size * sizeof(double)) == 0;
		tnp_encoding_free(b);
		/* other rows, for one question only */
		b = build(12, prefix);
		more = test_slice(&rows, 15, n);
		must(tnp_append_predict(b, &more, &queries, together, &error), &error,
			 "append and predict");
		tnp_encoding_forget(b, 12);
		append(b, 12, CONTEXT - 12);
		predict(b, CONTEXT, QUERIES, together);
		forgotten = forgotten && memcmp(apart, together, QUERIES * size * sizeof(double)) == 0;
		tnp_encoding_free(a);
		tnp_encoding_free(b);
	}
	holds(same, "rows appended with the question are those appended before it, bitwise");
	holds(after, "and so is what they leave");
	holds(forgotten, "rows that are forgotten leave nothing");

	test_rows_make(&many, info, 150, 11);
	for (int together = 0; together < 2; together++)
	{
		TnpRows		more = test_slice(&many, 0, 60),
					queries = test_slice(&many, 60, 90);
		TnpEncoding *e = build(12, prefix);

		queries.y = NULL;
		params[together] = malloc((size_t) queries.n * size * sizeof(double));
		if (together)
			must(tnp_append_predict(e, &more, &queries, params[together], &error), &error,
				 "append and predict");
		else
		{
			must(tnp_append(e, &more, &error), &error, "append");
			must(tnp_predict(e, &queries, params[together], &error), &error, "predict");
		}
		tnp_encoding_free(e);
	}
	holds(memcmp(params[0], params[1], (size_t) 90 * size * sizeof(double)) == 0,
		  "and more than a tile has");
	free(params[0]);
	free(params[1]);
	test_rows_free(&many);

	/* what cannot be asked or appended leaves the encoding as it was */
	{
		TnpRows		more = test_slice(&rows, 12, 2),
					queries = test_slice(&rows, CONTEXT, 1);
		TnpEncoding *e = build(12, prefix);
		double		bad[8] = {0};

		for (int f = 0; f < queries.n_features; f++)
			bad[f] = INFINITY;
		predict(e, CONTEXT, QUERIES, apart);
		queries.y = NULL;
		queries.x = bad;
		holds(tnp_append_predict(e, &more, &queries, together, &error) == TNP_BAD_VALUE &&
			  tnp_encoding_rows(e) == 12, "an impossible question appends nothing");
		queries.x = test_slice(&rows, CONTEXT, 1).x;
		more.y = bad;
		bad[0] = NAN;
		holds(tnp_append_predict(e, &more, &queries, together, &error) == TNP_BAD_VALUE &&
			  tnp_encoding_rows(e) == 12, "nor does an impossible row");
		predict(e, CONTEXT, QUERIES, together);
		holds(memcmp(apart, together, QUERIES * size * sizeof(double)) == 0,
			  "and the encoding answers as before");
		tnp_encoding_free(e);
	}
}

/* Views of the first rows and copies answer as encodings built from these rows. */
static void
test_copy(void)
{
	double		once[QUERIES * LARGEST],
				parts[QUERIES * LARGEST];
	int64_t		prefix = tnp_whole_prefix(model, 12);
	int			n = info->appendable ? 14 : 12,
				total = info->appendable ? CONTEXT : 12;
	TnpRows		more = test_slice(&rows, total, 1);
	TnpEncoding *e = build(total, prefix),
			   *first = NULL,
			   *copy = NULL;
	TnpError	error = {0};

	must(tnp_encoding_first(e, n, &first, &error), &error, "first");
	must(tnp_encoding_copy(e, n, n + 5, true, &copy, &error), &error, "copy");
	if (prefix > 0)
	{
		TnpEncoding *part;

		holds(tnp_encoding_first(e, prefix - 1, &part, &error) == TNP_BAD_ARGUMENT && part == NULL,
			  "part of a prefix is not an encoding");
	}
	holds(tnp_append(first, &more, &error) == TNP_BAD_ARGUMENT, "a view takes no rows");
	predict(first, CONTEXT, QUERIES, parts);
	tnp_encoding_free(first);
	tnp_encoding_free(e);
	e = build(n, prefix);
	predict(e, CONTEXT, QUERIES, once);
	holds(memcmp(once, parts, QUERIES * size * sizeof(double)) == 0,
		  "a view of the first rows is built from them, bitwise");
	predict(copy, CONTEXT, QUERIES, parts);
	holds(memcmp(once, parts, QUERIES * size * sizeof(double)) == 0,
		  "a copy of the first rows is built from them, bitwise");
	if (info->appendable)
	{
		append(e, n, 5);
		append(copy, n, 5);
		predict(e, CONTEXT, QUERIES, once);
		predict(copy, CONTEXT, QUERIES, parts);
		holds(memcmp(once, parts, QUERIES * size * sizeof(double)) == 0,
			  "appended to a copy is appended, bitwise");
		more = test_slice(&rows, n + 5, 1);
		holds(tnp_append(copy, &more, &error) == TNP_BAD_ARGUMENT &&
			  tnp_encoding_rows(copy) == n + 5, "a kept copy grows to its room only");
	}
	tnp_encoding_free(copy);
	tnp_encoding_free(e);
}

static void
test_grow(void)
{
	TnpEncoding *grown = NULL;
	TnpError	error = {0};
	bool		same = true;

	for (int n = info->min_rows; n <= CONTEXT; n++)
	{
		TnpEncoding *fresh = build(n, tnp_canonical_prefix(model, n));
		TnpRows		next = test_slice(&rows, n - 1, 1);
		double		a[LARGEST],
					b[LARGEST];

		if (grown == NULL)
			grown = build(n, tnp_canonical_prefix(model, n));
		else
			must(tnp_grow(grown, &next, &error), &error, "grow");
		predict(fresh, CONTEXT, 1, a);
		predict(grown, CONTEXT, 1, b);
		same = same && memcmp(a, b, size * sizeof(double)) == 0 && tnp_encoding_rows(grown) == n;
		tnp_encoding_free(fresh);
	}
	tnp_encoding_free(grown);
	holds(same, "grown is built under the canonical prefix, bitwise");
}

/* Rows of a block that fit one chain on a context whose rows are all in the prefix. */
static int
chain_length(void)
{
	return info->buffer > 0 && info->buffer < QUERIES ? info->buffer : QUERIES;
}

static void
test_score(void)
{
	int			n = chain_length();
	TnpEncoding *e = build(CONTEXT, tnp_whole_prefix(model, CONTEXT)),
			   *step = build(CONTEXT, tnp_whole_prefix(model, CONTEXT));
	TnpRows		asked = test_slice(&rows, CONTEXT, n);
	TnpError	error = {0};
	double		joint,
				conditional[QUERIES],
				chained[QUERIES],
				sum = 0;
	bool		same = true;

	must(tnp_score(e, &asked, TNP_AS_APPENDED, 0, &joint, conditional, &error), &error, "score");
	for (int j = 0; j < n; j++)
	{
		same = same && close_to(conditional[j], log_density(step, CONTEXT + j));
		sum += conditional[j];
		if (j + 1 < n)
			append(step, CONTEXT + j, 1);
	}
	if (!is_joint())
		holds(same, "the one-pass density is the product of step-by-step conditionals");
	else
	{
		TnpRows		one = test_slice(&rows, CONTEXT, 1);

		must(tnp_score(e, &one, 0, 0, &sum, NULL, &error), &error, "score of a row");
		/* the targets of a row depend on each other */
		if (info->n_targets == 1)
			holds(close_to(sum, log_density(e, CONTEXT)),
				  "the density of a row alone is that of its prediction");
		sum = 0;
		for (int j = 0; j < n; j++)
			sum += conditional[j];
	}
	holds(close_to(joint, sum), "the joint is the sum of its conditionals");
	must(tnp_score(e, &asked, 0, 0, &joint, chained, &error), &error, "score");
	same = chained[0] == conditional[0];
	for (int j = 1; j < n; j++)
		same = same && chained[j] == conditional[j];
	holds(same == !info->learns_in_chains && chained[0] == conditional[0],
		  info->learns_in_chains ? "a chain's rows tell more than appended ones"
		  : "a chain's rows tell what appended ones do");
	tnp_encoding_free(e);
	tnp_encoding_free(step);
}

/* The log density of a Gaussian of n variables, by elimination; c [n, n] is used up. */
static double
gaussian_density(int n, const double *y, const double *mean, double *c)
{
	double		rest[MOST_JOINT],
				sum = 0;

	for (int i = 0; i < n; i++)
		rest[i] = y[i] - mean[i];
	for (int i = 0; i < n; i++)
	{
		double		pivot = c[i * n + i];

		sum -= 0.5 * (rest[i] * rest[i] / pivot + log(2 * 3.14159265358979323 * pivot));
		for (int k = i + 1; k < n; k++)
		{
			double		factor = c[k * n + i] / pivot;

			rest[k] -= factor * rest[i];
			for (int l = i; l < n; l++)
				c[k * n + l] -= factor * c[i * n + l];
		}
	}
	return sum;
}

/* Means and covariances of a question are those that its density and its draws have. */
static void
test_joint(void)
{
	TnpEncoding *e = build(CONTEXT, tnp_whole_prefix(model, CONTEXT));
	TnpRows		asked = test_slice(&rows, CONTEXT, 2),
				none = test_slice(&rows, CONTEXT, 0),
				one = test_slice(&rows, CONTEXT, 1);
	const double *y = asked.y;
	TnpError	error = {0};
	int			n = 2 * info->n_targets;
	double		mean[MOST_JOINT],
				c[MOST_JOINT * MOST_JOINT],
				density,
				params[LARGEST];
	bool		symmetric = true,
				alone = true;
	TnpStatus	status;

	asked.y = one.y = NULL;
	status = tnp_joint(e, &asked, mean, c, &error);
	if (!is_joint())
		holds(status == TNP_BAD_ARGUMENT, "there is no joint distribution in closed form");
	else
	{
		must(status, &error, "joint");
		for (int i = 0; i < n; i++)
			for (int k = 0; k < n; k++)
				symmetric = symmetric && c[i * n + k] == c[k * n + i] && c[i * n + i] > 0;
		holds(symmetric, "a covariance is symmetric and has positive variances");
		asked.y = y;
		must(tnp_score(e, &asked, 0, 0, &density, NULL, &error), &error, "score");
		holds(close_to(density, gaussian_density(n, y, mean, c)),
			  "the density is that of means and covariances");
		must(tnp_predict(e, &one, params, &error), &error, "predict");
		must(tnp_joint(e, &one, mean, c, &error), &error, "joint");
		for (int t = 0; t < info->n_targets; t++)
			alone = alone && close_to(mean[t], params[2 * t])
				&& close_to(sqrt(c[t * (info->n_targets + 1)]), params[2 * t + 1]);
		holds(alone, "a row alone has the moments of its prediction");
		holds(tnp_joint(e, &none, mean, c, &error) == TNP_OK, "no rows have no covariances");
	}
	tnp_encoding_free(e);
}

/*
 * What the model says of a row's memory is what an encoding takes, a block of cache slots apart;
 * rows are whole blocks, and as many as there are between marks of sums, 96 at most.
 */
static void
test_row_bytes(void)
{
	TnpEncoding *e = build(CONTEXT, tnp_whole_prefix(model, CONTEXT)),
			   *small,
			   *large;
	TnpError	error = {0};
	double		bytes;

	must(tnp_encoding_copy(e, CONTEXT, 1024, false, &small, &error), &error, "copy");
	must(tnp_encoding_copy(e, CONTEXT, 4096, false, &large, &error), &error, "copy");
	bytes = (double) (tnp_encoding_bytes(large) - tnp_encoding_bytes(small)) / 3072
		- (double) (rows.view.n_features + info->n_targets) * sizeof(double);
	/* what a regression says of a row is not copied ahead of it */
	holds(bytes >= (double) info->encoding_bytes_per_row - info->n_classes * (double) sizeof(float)
		  && bytes <= 1.02 * (double) info->encoding_bytes_per_row + 64,
		  "a row takes the bytes that the model says");
	tnp_encoding_free(small);
	tnp_encoding_free(large);
	tnp_encoding_free(e);
}

/* More rows than the buffer holds: every finished block becomes context. */
static void
test_merge(void)
{
	TnpEncoding *e;
	TnpRows		asked = test_slice(&rows, CONTEXT, QUERIES);
	TnpError	error = {0};
	double		joint,
				conditional[QUERIES],
				manual[QUERIES];
	bool		same = true;

	if (info->buffer == 0 || info->buffer >= QUERIES || info->scales_by_prefix || is_joint())
		return;
	e = build(CONTEXT, CONTEXT);
	must(tnp_score(e, &asked, 0, 0, &joint, conditional, &error), &error, "score");
	tnp_encoding_free(e);
	for (int done = 0; done < QUERIES; done += info->buffer)
	{
		int			n = info->buffer < QUERIES - done ? info->buffer : QUERIES - done;
		TnpRows		block = test_slice(&rows, CONTEXT + done, n);

		e = build(CONTEXT + done, CONTEXT + done);
		must(tnp_score(e, &block, 0, 0, &joint, manual + done, &error), &error, "score of a block");
		tnp_encoding_free(e);
	}
	for (int j = 0; j < QUERIES; j++)
		same = same && close_to(conditional[j], manual[j]);
	holds(same, info->buffer == 1 ? "a buffer of one is autoregression by re-encoding"
		  : "a full buffer is merged into the context");
}

static void
test_sample(void)
{
	TnpEncoding *e = build(CONTEXT, tnp_whole_prefix(model, CONTEXT));
	TnpRows		asked = test_slice(&rows, CONTEXT, QUERIES);
	TnpError	error = {0};
	double		all[7 * QUERIES * MOST_TARGETS],
				one[QUERIES * MOST_TARGETS],
				other[QUERIES * MOST_TARGETS];
	size_t		draw = (size_t) QUERIES * info->n_targets;
	bool		same = true;

	asked.y = NULL;
	must(tnp_sample(e, &asked, 42, 0, 7, all, &error), &error, "sample");
	for (int b = 0; b < 7; b++)
	{
		must(tnp_sample(e, &asked, 42, b, 1, one, &error), &error, "sample");
		same = same && memcmp(one, all + b * draw, draw * sizeof(double)) == 0;
	}
	holds(same, "a draw does not depend on the batch, bitwise");
	must(tnp_sample(e, &asked, 43, 0, 1, other, &error), &error, "sample");
	holds(memcmp(other, all, draw * sizeof(double)) != 0, "another seed draws something else");
	tnp_encoding_free(e);
}

/*
 * The first step's draws are draws of the marginal: Kolmogorov-Smirnov with fixed seeds, far in the
 * tail of chance.
 */
static void
test_sample_marginal(void)
{
	enum {DRAWS = 400};
	TnpEncoding *e = build(CONTEXT, tnp_whole_prefix(model, CONTEXT));
	TnpRows		asked = test_slice(&rows, CONTEXT, 1);
	TnpError	error = {0};
	double		y[DRAWS * MOST_TARGETS],
				params[LARGEST],
				distance = 0;
	TnpDistribution d = {kind, components, params};
	int			targets = info->n_targets;

	asked.y = NULL;
	must(tnp_sample(e, &asked, 7, 0, DRAWS, y, &error), &error, "sample");
	predict(e, CONTEXT, 1, params);
	for (int i = 0; i < DRAWS * targets; i++)
	{
		int			below = 0;

		d.params = params + i % targets * one_size;
		for (int j = i % targets; j < DRAWS * targets; j += targets)
			below += y[j] <= y[i];
		distance = fmax(distance, fabs((double) below / DRAWS - tnp_cdf(&d, y[i])));
	}
	holds(distance < 0.11, "draws of the first step follow the marginal");
	tnp_encoding_free(e);
}

static void
test_evidence(void)
{
	TnpRows		all = test_slice(&rows, 0, CONTEXT);
	TnpError	error = {0};
	double		evidence,
				per_row[CONTEXT],
				sum = 0;
	int64_t		conditioned;
	bool		same = true;

	must(tnp_evidence(model, &all, &evidence, &conditioned, per_row, &error), &error, "evidence");
	for (int n = (int) conditioned; n < CONTEXT; n++)
	{
		TnpEncoding *e = build(n, tnp_canonical_prefix(model, n));

		same = same && close_to(per_row[n], log_density(e, n));
		sum += per_row[n];
		tnp_encoding_free(e);
	}
	holds(conditioned == info->min_rows && same && close_to(evidence, sum),
		  "evidence is the sum over a growing context");
}

/* A reduced answer about the first rows is made of the predictions from an encoding of these. */
static void
test_execute(void)
{
	int64_t		prefix = tnp_whole_prefix(model, 12);
	int			total = info->appendable ? CONTEXT : 12;
	TnpEncoding *e = build(total, prefix),
			   *first = build(12, prefix);
	TnpRequest	r = {.kind = TNP_REQUEST_REDUCE, .rows = 12,
					 .queries = test_slice(&rows, CONTEXT, QUERIES),
					 .reductions = TNP_REDUCE_MEAN | TNP_REDUCE_QUANTILES | TNP_REDUCE_LOG_DENSITY,
					 .n_levels = 2, .levels = (double[]) {0.1, 0.5}};
	double		answer[4 * QUERIES * MOST_TARGETS],
				params[QUERIES * LARGEST];
	bool		same = true;
	TnpError	error = {0};

	r.answer = answer;
	must(tnp_execute(e, &r, &error), &error, "execute");
	predict(first, CONTEXT, QUERIES, params);
	for (int i = 0; i < QUERIES * info->n_targets; i++)
	{
		TnpDistribution d = {kind, components, params + i * one_size};
		double		wanted[4] = {tnp_mean(&d), tnp_quantile(&d, 0.1), tnp_quantile(&d, 0.5),
								 tnp_log_pdf(&d, r.queries.y[i])};

		for (int c = 0; c < 4; c++)
			same = same && (answer[4 * i + c] == wanted[c]
							|| (isnan(answer[4 * i + c]) && isnan(wanted[c])));
	}
	holds(same, "a reduced answer is made of predictions, bitwise");
	r.queries.y = NULL;
	holds(tnp_execute(e, &r, &error) == TNP_BAD_ARGUMENT,
		  "log densities without targets are refused");
	r.rows = total + 1;
	r.reductions = TNP_REDUCE_MEAN;
	holds(tnp_execute(e, &r, &error) == TNP_BAD_ARGUMENT, "more rows than there are are refused");
	tnp_encoding_free(first);
	tnp_encoding_free(e);
}

static void
test_refusals(void)
{
	TnpRows		context = test_slice(&rows, 0, CONTEXT),
				bad;
	TnpEncoding *e = NULL;
	TnpError	error = {0};
	double		keep,
				params[LARGEST],
				again[LARGEST];

	bad = context;
	bad.n = info->min_rows - 1;
	if (info->min_rows > 0)
		holds(tnp_build(model, &bad, tnp_whole_prefix(model, bad.n), &e, &error) ==
			  TNP_TOO_FEW_ROWS && e == NULL, "too few rows are refused");
	else
	{
		bad.n = 0;
		holds(tnp_build(model, &bad, 0, &e, &error) == TNP_OK &&
			  tnp_predict(e, &(TnpRows) {1, rows.view.n_features, rows.kinds, rows.x, NULL, 0, 0,
										 1}, params, &error) == TNP_OK,
			  "an empty context has a prior prediction");
		tnp_encoding_free(e);
	}
	bad = context;
	bad.n_features = info->n_features + 1;
	if (info->n_features > 0)
		holds(tnp_build(model, &bad, 0, &e, &error) == TNP_BAD_SHAPE,
			  "a wrong number of features is refused");
	bad = context;
	bad.n_targets = info->n_targets + 1;
	holds(tnp_build(model, &bad, 0, &e, &error) == TNP_BAD_SHAPE,
		  "a wrong number of targets is refused");
	keep = rows.y[3];
	rows.y[3] = NAN;
	holds(tnp_build(model, &context, tnp_whole_prefix(model, CONTEXT), &e, &error) == TNP_BAD_VALUE,
		  "a NaN target is refused");
	rows.y[3] = keep;
	keep = rows.x[3];
	rows.x[3] = INFINITY;
	holds(tnp_build(model, &context, tnp_whole_prefix(model, CONTEXT), &e, &error) == TNP_BAD_VALUE,
		  "an infinite feature is refused");
	rows.x[3] = keep;

	/* a failed append changes nothing */
	e = build(CONTEXT, tnp_whole_prefix(model, CONTEXT));
	predict(e, CONTEXT, 1, params);
	bad = test_slice(&rows, CONTEXT, 1);
	bad.y = (double[MOST_TARGETS]) {INFINITY};
	holds(tnp_append(e, &bad, &error) == TNP_BAD_VALUE,
		  "an append of an infinite target is refused");
	predict(e, CONTEXT, 1, again);
	holds(tnp_encoding_rows(e) == CONTEXT && memcmp(params, again, size * sizeof(double)) == 0,
		  "a refused append changes nothing");
	tnp_encoding_free(e);
}

static void
test_identities(void)
{
	info = tnp_model_info(model);
	tnp_answer_shape(model, &kind, &components);
	one_size = tnp_distribution_size(kind, components);
	size = tnp_answer_size(model);
	if (size != one_size * info->n_targets || info->n_targets > MOST_TARGETS)
		exit(2);
	if (size > LARGEST)
		exit(2);
	test_rows_make(&rows, info, CONTEXT + QUERIES, 5);
	test_batch();
	test_permutation();
	test_append();
	test_append_predict();
	test_copy();
	test_grow();
	test_score();
	test_joint();
	test_row_bytes();
	test_merge();
	test_sample();
	/* how draws are spread needs many, which are made as those above are */
	if (getenv("TNP_QUICK") == NULL)
		test_sample_marginal();
	test_evidence();
	test_execute();
	test_refusals();
	test_rows_free(&rows);
}

static void
test_model(const TestModel *m, const TnpKernels *kernels)
{
	TestEnv		env;
	TnpModel   *opened;
	TnpError	error = {0};

	file = m;
	kernels_name = kernels->name;
	/* the last bit of a state may decide how its key is rounded, and halves have 11 bits */
	tolerance = kernels->number == sizeof(float) ? 1e-5 : 5e-3;
	test_env_init(&env, kernels);
	must(tnp_model_open(&env.env, m->bytes, m->length, &opened, &error), &error, "open");
	model = opened;
	test_identities();
	if (tnp_model_info(opened)->each_target)
	{
		must(tnp_model_several(opened, MOST_TARGETS, &model, &error), &error, "several targets");
		test_identities();
		tnp_model_close(model);
	}
	tnp_model_close(opened);
	holds(env.live == 0, "everything allocated is freed");
}

int
main(void)
{
	test_everywhere(test_model);
	return done_testing();
}
