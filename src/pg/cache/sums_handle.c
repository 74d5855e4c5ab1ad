/*
 * sums_handle.c: contexts with sums: checked against their model, and encoded: for all sessions
 * (solved_sums.c), or for a call site alone.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/sums_handle.h"

#include "pg/base/bridge.h"
#include "pg/shmem/shared.h"

#include "miscadmin.h"
#include "utils/memutils.h"

static TnpColumnKind *
engine_kinds_of(const PosteriorContext *context)
{
	TnpColumnKind *engine_kinds = palloc(context->n_features * sizeof(TnpColumnKind));

	for (int f = 0; f < context->n_features; f++)
		engine_kinds[f] = context->kinds[f] == POSTERIOR_CATEGORY ? TNP_CATEGORICAL : TNP_NUMERIC;
	return engine_kinds;
}

/* Raise unless rows of the context have as many targets as the model takes. */
static void
check_targets(const PosteriorModel *model, const PosteriorContext *context)
{
	int			taken = tnp_model_info(model->model)->n_targets,
				targets = posterior_context_targets(context);

	if (taken != targets)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the basis was made with another model"),
				 errdetail("Its rows have %d target%s, and model \"%s\" takes %d.", targets,
						   targets == 1 ? "" : "s", model->name, taken),
				 errhint("SET posterior.model to the model that the basis was made with.")));
}

static void
check_basis(const PosteriorModel *model, const PosteriorContext *context)
{
	TnpColumnKind *engine_kinds = engine_kinds_of(context);
	TnpError	error;
	TnpStatus	status = tnp_basis_check(model->model, context->n_features, engine_kinds,
										 posterior_basis_words(context), posterior_basis(context),
										 &error);

	if (status == TNP_BAD_ARGUMENT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", error.message),
				 errdetail("Model \"%s\" has another configuration, or other weights.",
						   model->name),
				 errhint("SET posterior.model to the model that the basis was made with.")));
	if (status != TNP_OK)
		posterior_raise(&error, model->name);
	pfree(engine_kinds);
}

static void
check_model(const PosteriorModel *model, const PosteriorContext *context)
{

	if (!posterior_context_is_sums(context))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("the context has rows, and sums are needed"),
				 errhint("posterior.basis(y, x1, ...) makes a basis, and posterior.context(basis, "
						 "y, x1, ...) sums.")));
	if (!tnp_keeps_sums(model->model))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("model \"%s\" has no contexts that are sums", model->name),
				 errhint("SET posterior.model to the model that the context was made with.")));
	check_targets(model, context);
	check_basis(model, context);
}

TnpSums *
posterior_sums_open(const PosteriorModel *model, const PosteriorContext *context, bool with_rows,
					MemoryContext memory)
{
	const int64 *basis;
	TnpSums    *sums;
	TnpError	error;

	check_model(model, context);
	basis = posterior_basis(context);
	sums = MemoryContextAllocHuge(memory, tnp_sums_bytes(model->model, basis));
	tnp_sums_begin(model->model, basis, sums);
	if (!with_rows || context->n == 0)
		return sums;
	if (posterior_sums_words(context) != tnp_sums_words(model->model, basis))
		posterior_bad_context("The number of sums is not that of the basis.");
	if (tnp_sums_read(model->model, sums, posterior_sums(context), &error) != TNP_OK)
		posterior_raise(&error, model->name);
	return sums;
}

PosteriorContext *
posterior_sums_value(const PosteriorModel *model, const PosteriorContext *like, TnpSums *sums)
{
	int64		n = tnp_sums_rows(sums);
	const int64 *basis = posterior_basis(like);
	PosteriorContext *value =
		posterior_make_sums(posterior_context_targets(like), like->n_features, like->kinds,
							posterior_basis_words(like), basis,
							n == 0 ? 0 : tnp_sums_words(model->model, basis), n);

	if (n > 0)
		tnp_sums_write(model->model, sums, (int64 *) posterior_sums(value));
	return value;
}

bool
posterior_same_basis(const PosteriorContext *a, const PosteriorContext *b)
{
	return a->n_features == b->n_features
		&& posterior_context_targets(a) == posterior_context_targets(b)
		&& memcmp(a->kinds, b->kinds, a->n_features) == 0
		&& posterior_basis_words(a) == posterior_basis_words(b)
		&& memcmp(posterior_basis(a), posterior_basis(b),
				  posterior_basis_words(a) * sizeof(int64)) == 0;
}

/* The words of a fit, allocated; NULL without one. */
static int64 *
words_of_fit(const bytea *fit, Size *words)
{
	int64	   *numbers;

	*words = fit == NULL ? 0 : (VARSIZE(fit) - VARHDRSZ) / sizeof(int64);
	if (fit == NULL)
		return NULL;
	/* a varlena's content need not begin where numbers may */
	numbers = palloc(Max(*words, 1) * sizeof(int64));
	memcpy(numbers, VARDATA(fit), *words * sizeof(int64));
	return numbers;
}

/* A handle without an encoding. */
static PosteriorContextHandle *
handle_begin(PosteriorModel *model, const PosteriorContext *like)
{
	PosteriorLabelList none = {0, 0, NULL};
	PosteriorContextHandle *e = posterior_handle_make(model, like->n_features, like->kinds, &none);

	if (e == NULL)
		posterior_raise_no_memory();
	e->only = POSTERIOR_BY_CPU;
	return e;
}

PosteriorContextHandle *
posterior_handle_of_open_sums(PosteriorModel *model, const PosteriorContext *like, TnpSums *sums,
							  const bytea *fit)
{
	TnpColumnKind *engine_kinds = engine_kinds_of(like);
	Size		words;
	int64	   *numbers = words_of_fit(fit, &words);
	PosteriorContextHandle *e = handle_begin(model, like);
	TnpError	error;

	if (posterior_cached_of_sums(model, engine_kinds, sums, words, numbers, false, &e->cached,
								 &error) != TNP_OK)
		return posterior_handle_fail(e, &error);
	pfree(engine_kinds);
	if (numbers != NULL)
		pfree(numbers);
	return e;
}

PosteriorContextHandle *
posterior_handle_of_sums(PosteriorModel *model, const PosteriorContext *context, const bytea *fit)
{
	TnpSums    *sums = posterior_sums_open(model, context, true, CurrentMemoryContext);
	PosteriorContextHandle *e = posterior_handle_of_open_sums(model, context, sums, fit);

	pfree(sums);
	return e;
}

/* ---- shared ---------------------------------------------------------------------------------- */

/* A view of a solution, whose pin the handle takes over. */
static PosteriorContextHandle *
handle_of_solved(PosteriorContextHandle *e, PosteriorSolvedSums *solved)
{
	TnpError	error;

	e->solved = solved;
	if (posterior_cached_first(e->model, solved->cached, posterior_cached_rows(solved->cached),
							   &e->cached, &error) != TNP_OK)
		return posterior_handle_fail(e, &error);
	return e;
}

PosteriorContextHandle *
posterior_handle_find_solved(PosteriorModel *model, const PosteriorContext *like,
							 const PosteriorSolvedKey *key, PosteriorSolvedContent content)
{
	/* made first: without memory no pin is lost */
	PosteriorContextHandle *e = handle_begin(model, like);
	PosteriorSolvedSums *solved = posterior_solved_find(key, content);

	if (solved != NULL)
		return handle_of_solved(e, solved);
	posterior_handle_release(e);
	return NULL;
}

PosteriorContextHandle *
posterior_handle_make_solved(PosteriorModel *model, const PosteriorContext *like, TnpSums *sums,
							 const bytea *fit, const PosteriorSolvedKey *key,
							 PosteriorSolvedContent content)
{
	TnpColumnKind *engine_kinds = engine_kinds_of(like);
	Size		words;
	int64	   *numbers = words_of_fit(fit, &words);
	PosteriorContextHandle *e = handle_begin(model, like);
	PosteriorSolvedSums *solved;
	TnpError	error;
	TnpStatus	status = posterior_solved_make(key, content, model, engine_kinds, sums, words,
											   numbers, &solved, &error);

	if (status == TNP_OK)
		return handle_of_solved(e, solved);
	if (status != TNP_NO_MEMORY)
		return posterior_handle_fail(e, &error);
	posterior_handle_release(e);
	return NULL;
}

PosteriorContextHandle *
posterior_handle_of_value(PosteriorModel *model, const PosteriorContext *context, bool keep)
{
	PosteriorSolvedContent content = {context, VARSIZE(context)};
	PosteriorSolvedKey key;
	PosteriorContextHandle *e = NULL;
	TnpSums    *sums;
	bool		kept;

	memset(&key, 0, sizeof(key));
	key.incarnation = posterior_incarnation();
	key.kernels = model->kernels;
	key.model = model->version;
	key.role = GetUserId();
	kept = keep && posterior_solved_key_hash(&key, content);
	if (kept)
		e = posterior_handle_find_solved(model, context, &key, content);
	if (e != NULL)
		return e;
	sums = posterior_sums_open(model, context, true, CurrentMemoryContext);
	if (kept)
		e = posterior_handle_make_solved(model, context, sums, NULL, &key, content);
	if (e == NULL)
		e = posterior_handle_of_open_sums(model, context, sums, NULL);
	pfree(sums);
	return e;
}

PosteriorContextHandle *
posterior_handle_share(PosteriorContextHandle *e)
{
	PosteriorContextHandle *view = posterior_handle_make(e->model, e->n_features, e->kinds,
														 &e->labels);
	TnpError	error;

	if (view == NULL)
		posterior_raise_no_memory();
	view->only = e->only;
	if (posterior_cached_first(e->model, e->cached, posterior_cached_rows(e->cached),
							   &view->cached, &error) != TNP_OK)
		return posterior_handle_fail(view, &error);
	view->maker = e;
	e->views++;
	return view;
}
