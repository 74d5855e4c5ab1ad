/*
 * row_limit.c: how many rows a prediction is made from at most, and what more of them would cost;
 * and what a joint question may cost.
 *
 * Each row of a context reads the others, so a table of a million rows, asked by mistake, would
 * take hours and gigabytes. The check depends on rows and settings alone, never on what the cache
 * holds: the same statement fails or succeeds whatever other sessions have encoded.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/models/row_limit.h"

#include <math.h>

#include "pg/base/bridge.h"
#include "pg/models/engine_env.h"

int			posterior_row_limit = -1;
int			posterior_joint_notice = 1000;
int			posterior_joint_limit = 600000;

/* multiplications a second that the estimate of time is stated for */
#define RATE 1e10

int64
posterior_row_limit_of(const PosteriorModel *model)
{
	int64 limit =
		posterior_row_limit >= 0 ? posterior_row_limit : tnp_model_info(model->model)->row_limit;

	return limit > 0 ? limit : PG_INT64_MAX;
}

/* A quantity in the largest of its units of which there are two or more. */
static const char *
in_units(double amount, int n, const char *const *units, const double *sizes)
{
	int			i = n - 1;

	while (i > 0 && amount < 2 * sizes[i])
		i--;
	return psprintf("%.0f %s", ceil(amount / sizes[i]), units[i]);
}

static const char *
memory_in_words(double bytes)
{
	static const char *const units[] = {"kB", "MB", "GB"};
	static const double sizes[] = {1024, 1024.0 * 1024, 1024.0 * 1024 * 1024};

	return in_units(bytes, lengthof(units), units, sizes);
}

static const char *
time_in_words(double seconds)
{
	static const char *const units[] = {"seconds", "minutes", "hours", "days"};
	static const double sizes[] = {1, 60, 3600, 86400};

	if (seconds <= 1)
		return "less than a second";
	return in_units(seconds, lengthof(units), units, sizes);
}

/* What encoding n rows takes: a DETAIL. */
static int
limit_detail(const PosteriorModel *model, int64 n, int n_features)
{
	double row =
		tnp_model_info(model->model)->encoding_bytes_per_row + (n_features + 1) * sizeof(double);

	return errdetail("Encoding %lld rows by model \"%s\" takes %s of memory and, at 10 billion "
					 "multiplications a second, %s%s.",
					 (long long) n, model->name, memory_in_words(n * row),
					 time_in_words(tnp_encoding_cost(model->model, n) / RATE),
					 tnp_keeps_sums(model->model) ? ""
					 : "; time grows with the square of the rows");
}

/* The ways out: a HINT. */
static int
limit_hint(const PosteriorModel *model)
{
	if (tnp_keeps_sums(model->model))
		return errhint("Sums take any number of rows: posterior.basis of some of them, and "
					   "posterior.context(basis, ...) of all, or a named context with maintain => "
					   "'sums'; or raise posterior.row_limit.");
	return errhint("Take fewer rows: max_rows of a named context, those nearest to the query, "
				   "or a sample; or a model of a higher limit; or raise posterior.row_limit.");
}

void
posterior_check_row_limit(const PosteriorModel *model, const char *whose, int64 n, int n_features)
{
	int64		limit = posterior_row_limit_of(model);

	if (n > limit)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("%s has %lld rows, the limit is %lld", whose, (long long) n,
							   (long long) limit),
						limit_detail(model, n, n_features), limit_hint(model)));
}

void
posterior_beyond_row_limit(const PosteriorModel *model, const char *whose, int n_features)
{
	int64		limit = posterior_row_limit_of(model);

	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("%s has more than %lld rows, which are the limit", whose, (long long) limit),
			 limit_detail(model, limit, n_features),
			 limit_hint(model)));
}

void
posterior_warn_row_limit(const PosteriorModel *model, const char *whose, int n_features)
{
	int64		limit = posterior_row_limit_of(model);

	ereport(
		WARNING,
		(errmsg(
			 "%s has more than %lld rows, which are the limit: predictions from it will be refused",
			 whose, (long long) limit),
		 limit_detail(model, limit, n_features), limit_hint(model)));
}

void
posterior_check_joint_cost(const PosteriorModel *model, const char *what, int64 context, int views,
						   int64 n, int64 chains)
{
	const TnpModelInfo *info = tnp_model_info(model->model);
	double		encodings,
				each,
				seconds;

	if (info->appendable || info->buffer == 0 || n < 2)
		return;
	encodings = (double) ((n - 1) / info->buffer) * chains;
	each = tnp_encoding_cost(model->model, context + n)
		* (!info->has_views ? 1 : views > 0 ? views : posterior_estimators);
	seconds = encodings * each / RATE;
	if (encodings == 0)
		return;
	if (posterior_joint_limit >= 0 && seconds * 1000 > posterior_joint_limit)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("%s takes %.0f encodings of up to %lld rows", what, encodings,
						(long long) (context + n)),
				 errdetail("Model \"%s\" encodes all rows again after each %s of a draw or an "
						   "order: at 10 billion multiplications a second, %s.", model->name,
						   info->buffer == 1 ? "row" : psprintf("%d rows", info->buffer),
						   time_in_words(seconds)),
				 errhint("Ask about fewer rows, with fewer draws or orders, or from a smaller "
						 "context; use a model that appends rows; or raise "
						 "posterior.joint_limit.")));
	if (posterior_joint_notice >= 0 && seconds * 1000 >= posterior_joint_notice)
		ereport(NOTICE,
				(errmsg("%s takes %.0f encodings of up to %lld rows", what, encodings,
						(long long) (context + n)),
				 errdetail("At 10 billion multiplications a second, %s.", time_in_words(seconds)),
				 errhint("SET posterior.joint_notice = -1 turns this message off.")));
}
