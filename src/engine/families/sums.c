/*
 * sums.c: contexts that are sums over rows: their place among the families (docs/sums.md).
 *
 * The rows that statistics are of make the basis and, by the evidence, the precisions; both stay.
 * Rows after them are added to the sums. An encoding of its own rows keeps these, as every other
 * does; one that was made of sums alone has none.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums.h"

#include <math.h>
#include <string.h>

#include "engine/families/families.h"
#include "engine/file/bind.h"

const SumsFacts *
sums_facts(const TnpEncoding *e)
{
	return tnp_encoding_own(e);
}

/* Sums and solution of more rows than the facts are of lie one behind the other. */
const SumsState *
sums_now(const TnpEncoding *e)
{
	return e->n > sums_facts(e)->n ? (const SumsState *) (const void *) e->total
		: sums_of(sums_facts(e));
}

static SumsSolution *
sums_total_solution(const TnpEncoding *e)
{
	return (SumsSolution *) (void *) ((char *) e->total + (sums_facts(e)->sums_bytes + 7) / 8 * 8);
}

const SumsSolution *
sums_solution_now(const TnpEncoding *e)
{
	return e->n > sums_facts(e)->n ? sums_total_solution(e) : sums_first_solution(sums_facts(e));
}

TnpStatus
sums_check_settled(const TnpEncoding *e, TnpError *error)
{
	if (e->n <= sums_facts(e)->n || e->totalled == e->n)
		return TNP_OK;
	return tnp_fail(error, TNP_BAD_ARGUMENT, "the sums are of other rows than the encoding has");
}

/* ---- encodings ------------------------------------------------------------------------------- */

/* Room for facts under this basis, whose sums are still to be written. */
static TnpStatus
sums_make_facts(TnpEncoding *e, const int64_t *basis, SumsFacts **facts, TnpError *error)
{
	const TnpModel *model = e->model;
	const SumsConfig *c = sums_config(model);
	TnpEnv		env = e->kept ? tnp_lasting(&model->env) : model->env;
	size_t		bytes = sums_state_bytes(model, basis);
	int			width = sums_width(c, basis);

	e->own_size = sums_facts_bytes(c, bytes, width, e->n_features);
	e->own = tnp_alloc(&env, e->own_size + TNP_OWN_SLACK, 1);
	if (e->own == NULL)
		return tnp_no_memory(error);
	*facts = tnp_encoding_own(e);
	sums_facts_lay_out(c, bytes, width, e->n_features, *facts);
	return TNP_OK;
}

/* Rows [first, first + n) of an encoding. */
static TnpRows
sums_rows_of(const TnpEncoding *e, int64_t first, int64_t n)
{
	return (TnpRows) {n, e->n_features, e->kinds, e->x + first * e->n_features, e->y + first, 0,
		first, 1};
}

#define ADD_ROWS SUMS_WAITING		/* between two polls */

/* Tell that `done` of n rows are encoded. */
static void
sums_tell(const TnpModel *model, int64_t done, int64_t n)
{
	if (model->env.progress != NULL)
		model->env.progress(model->env.arg, done, n);
}

static TnpStatus
sums_add_rows(const TnpEncoding *e, int64_t first, int64_t end, SumsState *sums, TnpError *error)
{
	TnpStatus	status = TNP_OK;

	for (int64_t i = first; status == TNP_OK && i < end; i += ADD_ROWS)
	{
		TnpRows		some = sums_rows_of(e, i, end - i < ADD_ROWS ? end - i : ADD_ROWS);

		if (tnp_interrupted(&e->model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		status = sums_add(e->model, &sums->common, &some, 1, error);
	}
	if (status == TNP_OK)
		sums_flush(e->model, sums);
	return status;
}

/*
 * The basis of the first n of `all` rows, their sums, and what these say, which is half of the
 * work.
 */
static TnpStatus
sums_found(TnpEncoding *e, int64_t n, int64_t all, TnpError *error)
{
	const TnpModel *model = e->model;
	TnpRows		rows = sums_rows_of(e, 0, n);
	int64_t    *basis = tnp_alloc(&model->env, sums_basis_words(model, e->n_features),
								  sizeof(int64_t));
	SumsFacts  *facts;
	TnpStatus	status = basis == NULL ? tnp_no_memory(error)
		: sums_basis_make(model, &rows, basis, error);

	if (status == TNP_OK)
		status = sums_make_facts(e, basis, &facts, error);
	if (status == TNP_OK)
		sums_begin(model, basis, &sums_of(facts)->common);
	tnp_free(&model->env, basis);
	for (int64_t i = 0; status == TNP_OK && i < n; i += ADD_ROWS)
	{
		status = sums_add_rows(e, i, n - i < ADD_ROWS ? n : i + ADD_ROWS, sums_of(facts), error);
		sums_tell(model, i / 2, all);
	}
	return status == TNP_OK ? sums_fit(model, facts, error) : status;
}

static TnpStatus
sums_encode(TnpEncoding *e, int64_t first, int64_t n, bool anew, TnpError *error)
{
	TnpStatus	status = anew ? sums_found(e, e->stats.n0, n, error) : TNP_OK;

	/* later rows are added when they are counted; that shall not fail by what they hold */
	for (int64_t i = first; status == TNP_OK && i < first + n; i++)
	{
		int64_t		fixed;

		if (!sums_target(sums_basis(sums_of(sums_facts(e))), e->y[i], &fixed))
		{
			tnp_fail(error, TNP_BAD_VALUE,
					 "a target is too far from those that the statistics are of");
			tnp_detail(error, "row %lld has %g", (long long) (i + 1), e->y[i]);
			status = TNP_BAD_VALUE;
		}
	}
	if (status == TNP_OK && !anew)
		sums_tell(e->model, n / 2, n);
	if (status == TNP_OK)
		sums_tell(e->model, n, n);
	return status;
}

/* Bring sums and solution to exactly the encoding's rows. */
static TnpStatus
sums_settle(TnpEncoding *e, TnpError *error)
{
	const SumsFacts *f = sums_facts(e);
	TnpEnv		env = e->kept ? tnp_lasting(&e->model->env) : e->model->env;
	TnpStatus	status;

	if (e->n <= f->n || (e->total != NULL && e->totalled == e->n))
		return TNP_OK;
	if (e->total == NULL)
	{
		e->total_size = (f->sums_bytes + 7) / 8 * 8 + f->solution_bytes;
		e->total = tnp_alloc(&env, 1, e->total_size);
		e->totalled = -1;
		if (e->total == NULL)
			return tnp_no_memory(error);
	}
	if (e->totalled < f->n || e->totalled > e->n)
	{
		memcpy(e->total, sums_of(f), f->sums_bytes);
		e->totalled = f->n;
	}
	status = sums_add_rows(e, e->totalled, e->n, (SumsState *) (void *) e->total, error);
	e->totalled = -1;
	if (status == TNP_OK)
		status = sums_solve(e->model, f, (SumsState *) (void *) e->total, sums_total_solution(e),
							error);
	if (status == TNP_OK)
		e->totalled = e->n;
	return status;
}

/* Facts by a fit of other rows than their sums are of. */
static TnpStatus
sums_take(const TnpModel *model, SumsFacts *f, size_t words, const int64_t *fit, TnpError *error)
{
	TnpStatus	status = sums_fit_read(f, words, fit, error);

	f->n = sums_of(f)->common.n;
	return status == TNP_OK ? sums_solve(model, f, sums_of(f), sums_first_solution(f), error)
		: status;
}

static size_t
sums_encoding_bytes(const TnpModel *model, const TnpSums *sums)
{
	const SumsState *s = (const SumsState *) sums;

	return sizeof(TnpEncoding) + TNP_OWN_SLACK
		+ sums_facts_bytes(sums_config(model), sums_state_bytes(model, sums_basis(s)),
						   s->width, sums->columns);
}

static TnpStatus
sums_encode_sums(const TnpModel *model, const TnpColumnKind *kinds, TnpSums *sums, size_t words,
				 const int64_t *fit, bool keep, TnpEncoding **encoding, TnpError *error)
{
	SumsState  *s = (SumsState *) sums;
	TnpEnv		env = keep ? tnp_lasting(&model->env) : model->env;
	TnpEncoding *e;
	SumsFacts  *facts;
	TnpStatus	status = tnp_sums_check_rows(model, sums->n, error);

	*encoding = NULL;
	sums_flush(model, s);
	if (status != TNP_OK)
		return status;
	e = tnp_alloc_zero(&env, 1, sizeof(TnpEncoding));
	if (e == NULL)
		return tnp_no_memory(error);
	e->model = model;
	e->kept = keep;
	e->n = e->prefix = e->stats.n0 = sums->n;
	e->stats.y_scale = 1;
	e->n_features = sums->columns;
	e->kinds = tnp_alloc_zero(&env, sums->columns, sizeof(TnpColumnKind));
	status = e->kinds == NULL ? tnp_no_memory(error)
		: sums_make_facts(e, sums_basis(s), &facts, error);
	if (status == TNP_OK)
	{
		if (kinds != NULL)
			memcpy(e->kinds, kinds, sums->columns * sizeof(TnpColumnKind));
		memcpy(sums_of(facts), sums, facts->sums_bytes);
		status = fit == NULL ? sums_fit(model, facts, error)
			: sums_take(model, facts, words, fit, error);
	}
	if (status != TNP_OK)
	{
		tnp_encoding_free(e);
		return status;
	}
	*encoding = e;
	return TNP_OK;
}

static size_t
sums_fit_words_of(const TnpModel *model, const int64_t *basis)
{
	const SumsConfig *c = sums_config(model);

	return sums_fit_words(c, sums_width(c, basis), (int) basis[SUMS_COLUMNS]);
}

static void
sums_fit_write_of(const TnpEncoding *encoding, int64_t *words)
{
	sums_fit_write(sums_facts(encoding), words);
}

static int64_t
sums_fit_rows(const TnpEncoding *encoding)
{
	return sums_facts(encoding)->measured;
}

static double
sums_drift_of(const TnpEncoding *encoding)
{
	const SumsFacts *f = sums_facts(encoding);

	return sums_drift(sums_now(encoding), f->measured, sums_facts_marks(f));
}

static double
sums_log_evidence(const TnpEncoding *e)
{
	const SumsFacts *f = sums_facts(e);
	double		most = -INFINITY,
				sum = 0;

	for (int s = 0; s < f->settings; s++)
		most = fmax(most, f->density[s]);
	for (int s = 0; s < f->settings; s++)
		sum += exp(f->density[s] - most);
	return most + log(sum / f->settings)
		- (double) f->n * log(sums_number(sums_basis(sums_of(f))[SUMS_SCALE]));
}

/* ---- the family ------------------------------------------------------------------------------ */

static void
sums_bind(TnpBinder *b)
{
	(void) b;
}

static int
sums_head_width(const TnpConfig *config)
{
	(void) config;
	return 1;
}

static bool
sums_appendable(const TnpConfig *config)
{
	(void) config;
	return true;
}

/* The common cache has nothing in it; it cannot be without a number. */
static void
sums_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	(void) model;
	*shape = (TnpCacheShape) {.layers = 1, .heads = 1, .key_width = 1, .value_width = 1,
		.number = sizeof(float)};
}

static int64_t
sums_slots(const TnpModel *model, int64_t prefix, int64_t rows)
{
	(void) model;
	(void) prefix;
	(void) rows;
	return 0;
}

static size_t
sums_row_bytes(const TnpModel *model)
{
	(void) model;
	return 0;
}

#define TYPICAL_COLUMNS 8

/* A row of a typical table becomes this many numbers. */
static double
typical_width(const SumsConfig *c)
{
	return 1 + TYPICAL_COLUMNS * (2.0 + c->waves)
		+ c->pairs * (c->pair_waves + 1.0) * (c->pair_waves + 1);
}

static double
sums_cost(const TnpModel *model, double rows, double keys)
{
	double		width = typical_width(sums_config(model));

	(void) keys;
	return rows * width * width / 2 * sums_config(model)->n_lengths;
}

static double
sums_encoding_cost(const TnpModel *model, int64_t rows)
{
	const SumsConfig *c = sums_config(model);
	double		width = typical_width(c);

	return width * width * ((double) rows / 2
							+ width * c->n_lengths * (1 + (double) c->steps) / 3);
}

static const TnpSumsOps sums_ops = {
	.basis_words = sums_basis_words,
	.basis_make = sums_basis_make,
	.basis_check = sums_basis_check,
	.bytes = sums_state_bytes,
	.words = sums_state_words,
	.begin = sums_begin,
	.takes = sums_takes,
	.add = sums_add,
	.merge = sums_merge,
	.write = sums_write,
	.read = sums_read,
	.fit_words = sums_fit_words_of,
	.fit_write = sums_fit_write_of,
	.encoding_bytes = sums_encoding_bytes,
	.encode = sums_encode_sums,
	.fit_rows = sums_fit_rows,
	.drift = sums_drift_of,
	.log_evidence = sums_log_evidence,
};

const TnpFamily tnp_sums_family = {
	.name = "sums",
	.complete = sums_complete,
	.bare = true,
	.keys = sums_keys,
	.check = sums_check,
	.bind = sums_bind,
	.head_width = sums_head_width,
	.appendable = sums_appendable,
	.sums = &sums_ops,
	.takes_any_cells = true,
	.cache_shape = sums_cache_shape,
	.slots = sums_slots,
	.row_bytes = sums_row_bytes,
	.settle = sums_settle,
	.encode = sums_encode,
	.predict = sums_predict,
	.sample = sums_sample,
	.score = sums_score,
	.cost = sums_cost,
	.encoding_cost = sums_encoding_cost,
};
