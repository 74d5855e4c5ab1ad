/*
 * model_cache.c: the models that a session uses.
 *
 * A model is a row of posterior.model_file; the session keeps the parsed form of those it has used
 * lately, found again by name and the row's version, so that another file under an old name is
 * another model. The row is read under the active snapshot with the caller's rights (PUBLIC may
 * SELECT), so a prediction uses the model that its statement can see, on a standby as well.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/models/model_cache.h"

#include "pg/base/bridge.h"
#include "pg/models/engine_env.h"
#include "pg/shmem/eviction.h"
#include "pg/shmem/shared.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#define KEPT_MODELS 8			/* unused parsed models that are kept */
#define SLACK 65536				/* bytes for the small pieces of a model */

char	   *posterior_model_name = NULL;
char	   *posterior_class_model_name = NULL;

static PosteriorModel *models = NULL;	/* most recently used first */

static void
weights_unpin(PosteriorWeights *weights)
{
	posterior_lock(LW_EXCLUSIVE);
	weights->pins--;
	posterior_unlock();
}

static void
model_free(PosteriorModel *model)
{
	if (model->weights != NULL)
		weights_unpin(model->weights);
	else
	{
		tnp_model_close(model->model);
		if (model->base != NULL)
			posterior_model_release(model->base);
		else
			MemoryContextDelete(model->memory);
	}
	pfree(model);
}

/* ---- models in the arena --------------------------------------------------------------------- */

static dlist_head *all_weights = NULL;	/* in shared memory, under the lock of the directory */

static Size
weights_size(void)
{
	return sizeof(dlist_head);
}

static void
weights_initialize(void *part)
{
	dlist_init((dlist_head *) part);
}

void
posterior_weights_hold(PosteriorWeights *weights, PosteriorHolder *holder,
					   const PosteriorSharedPart *part, void *piece)
{
	holder->part = part->number;
	holder->piece = piece;
	dlist_push_tail(&weights->holders, &holder->node);
	weights->pins++;
}

void
posterior_weights_let_go(PosteriorWeights *weights, PosteriorHolder *holder)
{
	dlist_delete(&holder->node);
	weights->pins--;
}

static const PosteriorSharedPart *
holder_part(const PosteriorHolder *holder)
{
	int			n;

	return posterior_segment_parts(&n)[holder->part - 1];
}

/* Free weights without a pin, under the lock. */
static void
weights_free(PosteriorWeights *weights)
{
	dlist_delete(&weights->node);
	tnp_model_close(weights->model);
	if (weights->base != NULL)
		posterior_weights_let_go(weights->base, &weights->holder);
	posterior_arena_free(weights);
}

static void *
weights_oldest(uint64 *used)
{
	PosteriorWeights *oldest = NULL;
	dlist_iter	iter;

	dlist_foreach(iter, all_weights)
	{
		PosteriorWeights *w = dlist_container(PosteriorWeights, node, iter.cur);

		if (w->pins == 0 && (oldest == NULL || w->used < oldest->used))
			oldest = w;
	}
	if (oldest != NULL)
		*used = oldest->used;
	return oldest;
}

static Size
weights_evict(void *piece)
{
	PosteriorWeights *w = piece;
	Size bytes = w->base != NULL ? sizeof(PosteriorWeights)
								 : tnp_model_info(w->model)->n_parameters * sizeof(float);

	while (!dlist_is_empty(&w->holders))
	{
		PosteriorHolder *holder = dlist_head_element(PosteriorHolder, node, &w->holders);

		(void) holder_part(holder)->evict(holder->piece);
	}
	weights_free(w);
	return bytes;
}

static void
weights_forget(uint32 incarnation)
{
	dlist_mutable_iter iter;

	/* models that borrow weights come before these, which they pin */
	dlist_foreach_modify(iter, all_weights)
	{
		PosteriorWeights *w = dlist_container(PosteriorWeights, node, iter.cur);

		if (w->incarnation == incarnation && w->pins == 0)
			weights_free(w);
	}
}

static bool
weights_may_go(const void *piece, uint64 *used)
{
	const PosteriorWeights *w = piece;

	*used = w->used;
	return w->pins == 0;
}

static bool
weights_may_go_with(const void *piece, uint64 *used)
{
	const PosteriorWeights *w = piece;
	int			held = 0;
	dlist_iter	iter;

	*used = w->used;
	dlist_foreach(iter, (dlist_head *) &w->holders)
	{
		const PosteriorHolder *holder = dlist_container(PosteriorHolder, node, iter.cur);
		const PosteriorSharedPart *part = holder_part(holder);
		uint64		when;

		if (!part->may_go(holder->piece, &when)
			&& (part->may_go_with == NULL || !part->may_go_with(holder->piece, &when)))
			return false;
		*used = Max(*used, when);
		held++;
	}
	return held == w->pins;
}

PosteriorSharedPart posterior_weights_part = {
	.place = (void **) &all_weights,.size = weights_size,.initialize = weights_initialize,
	.forget = weights_forget,.oldest = weights_oldest,.evict = weights_evict,
	.may_go = weights_may_go,.lasting = true,.may_go_with = weights_may_go_with
};

/* ---- models of this session ------------------------------------------------------------------ */

/* Forget parsed models that are not in use, beyond the few most recent. */
static void
models_trim(void)
{
	PosteriorModel **link = &models;
	int			kept = 0;

	while (*link != NULL)
	{
		PosteriorModel *m = *link;

		if (m->pins > 0 || kept++ < KEPT_MODELS)
			link = &m->next;
		else
		{
			*link = m->next;
			model_free(m);
		}
	}
}

static PosteriorModel *
model_find(const char *name, const pg_uuid_t *version, int targets)
{
	for (PosteriorModel **link = &models; *link != NULL; link = &(*link)->next)
	{
		PosteriorModel *m = *link;

		if (m->kernels == posterior_kernels && m->targets == targets
			&& strcmp(m->name, name) == 0
			&& memcmp(&m->version, version, sizeof(pg_uuid_t)) == 0)
		{
			*link = m->next;
			m->next = models;
			models = m;
			return m;
		}
	}
	return NULL;
}

/* Put a session's handle in front of the list; NULL without memory. */
static PosteriorModel *
model_make(const char *name, const pg_uuid_t *version, int targets)
{
	PosteriorModel *m = posterior_alloc_or_null(TopMemoryContext, sizeof(PosteriorModel));

	if (m == NULL)
		return NULL;
	memset(m, 0, sizeof(*m));
	strlcpy(m->name, name, sizeof(m->name));
	m->version = *version;
	m->kernels = posterior_kernels;
	m->targets = targets;
	m->next = models;
	models = m;
	return m;
}

/* The shared model of this version and so many targets, pinned, or NULL; under the lock. */
static PosteriorWeights *
weights_find(const pg_uuid_t *version, int targets)
{
	dlist_iter	iter;

	dlist_foreach(iter, all_weights)
	{
		PosteriorWeights *w = dlist_container(PosteriorWeights, node, iter.cur);

		if (w->incarnation == posterior_incarnation() && w->kernels == posterior_kernels
			&& w->targets == targets && memcmp(&w->version, version, sizeof(pg_uuid_t)) == 0)
		{
			w->pins++;
			w->used = posterior_tick();
			return w;
		}
	}
	return NULL;
}

static PosteriorWeights *
weights_pin(const pg_uuid_t *version, int targets)
{
	PosteriorWeights *found;

	posterior_lock(LW_EXCLUSIVE);
	found = weights_find(version, targets);
	posterior_unlock();
	return found;
}

/* An empty model of the arena, which owns what is allocated from now on; NULL without memory. */
static PosteriorWeights *
weights_make(const pg_uuid_t *version, int targets, PosteriorWeights *base)
{
	PosteriorWeights *w = posterior_arena_alloc(sizeof(PosteriorWeights));

	if (w == NULL)
		return NULL;
	memset(w, 0, sizeof(*w));
	w->incarnation = posterior_incarnation();
	w->version = *version;
	w->kernels = posterior_kernels;
	w->targets = targets;
	w->base = base;
	w->pins = 1;
	dlist_init(&w->holders);
	w->used = posterior_tick();
	posterior_arena_own(&posterior_weights_part, w, true);
	return w;
}

/*
 * Put a model of the arena into the list, pinned; where another session was first, its model
 * instead, and this one is freed.
 */
static PosteriorWeights *
weights_publish(PosteriorWeights *w)
{
	PosteriorWeights *other;

	posterior_lock(LW_EXCLUSIVE);
	other = weights_find(&w->version, w->targets);
	if (other == NULL)
	{
		if (w->base != NULL)
			posterior_weights_hold(w->base, &w->holder, &posterior_weights_part, w);
		dlist_push_head(all_weights, &w->node);
	}
	posterior_unlock();
	if (other == NULL)
		return w;
	tnp_model_close(w->model);
	posterior_arena_free(w);
	return other;
}

/* Bytes of the arena that a file takes there; 0 if this session has no memory to find out. */
static Size
weights_bytes(const char *name, bytea *file)
{
	Size		bytes;
	TnpEnv		env = posterior_counting_env(&bytes);
	TnpModel   *model;
	TnpError	error;
	TnpStatus status =
		tnp_model_open(&env, VARDATA_ANY(file), VARSIZE_ANY_EXHDR(file), &model, &error);

	if (status == TNP_NO_MEMORY)
		return 0;
	if (status != TNP_OK)
		posterior_raise(&error, name);
	tnp_model_close(model);
	return bytes + posterior_block_size(sizeof(PosteriorWeights));
}

/*
 * Have room for a model in one stretch, so that it divides nothing. Weights of 16 bits are there as
 * floats, as packed floats and as packed halves: five times the file at most. Where so much is not
 * free, others give way to what it takes, which is found out first.
 */
static void
weights_reserve(const char *name, bytea *file)
{
	Size		bytes;

	if (posterior_reserve((Size) 5 * VARSIZE_ANY(file) + SLACK, POSTERIOR_END_LOW, false))
		return;
	bytes = weights_bytes(name, file);
	if (bytes > 0)
		(void) posterior_reserve(bytes, POSTERIOR_END_LOW, true);
}

/* Parse a file into the arena; the model is pinned. NULL if it does not fit there. */
static PosteriorWeights *
weights_share(const char *name, const pg_uuid_t *version, bytea *file)
{
	TnpEnv		env = posterior_shared_env();
	PosteriorWeights *w;
	TnpError	error;
	TnpStatus	status = TNP_NO_MEMORY;

	weights_reserve(name, file);
	w = weights_make(version, 0, NULL);
	if (w != NULL)
		status = tnp_model_open(&env, VARDATA_ANY(file), VARSIZE_ANY_EXHDR(file), &w->model,
								&error);
	posterior_arena_done();
	if (status == TNP_OK)
		return weights_publish(w);
	if (w != NULL)
		posterior_arena_free(w);
	if (status != TNP_NO_MEMORY)
		posterior_raise(&error, name);
	return NULL;
}

/* A shared model of several targets over shared weights, pinned. NULL if it does not fit there. */
static PosteriorWeights *
weights_share_several(const PosteriorModel *base, int targets)
{
	PosteriorWeights *w;
	TnpError	error;
	TnpStatus	status = TNP_NO_MEMORY;

	if (!posterior_reserve(SLACK, POSTERIOR_END_LOW, false))
		(void) posterior_reserve(SLACK, POSTERIOR_END_LOW, true);
	w = weights_make(&base->version, targets, base->weights);
	if (w != NULL)
		status = tnp_model_several(base->model, targets, &w->model, &error);
	posterior_arena_done();
	if (status == TNP_OK)
		return weights_publish(w);
	if (w != NULL)
		posterior_arena_free(w);
	return NULL;
}

/* The session's handle of weights, whose pin it takes over. */
static PosteriorModel *
model_of_weights(const char *name, PosteriorWeights *weights)
{
	PosteriorModel *m = model_make(name, &weights->version, weights->targets);

	if (m == NULL)
	{
		weights_unpin(weights);
		posterior_raise_no_memory();
	}
	m->weights = weights;
	m->model = weights->model;
	return m;
}

/* Parse a file into memory of this session. */
static PosteriorModel *
model_open(const char *name, const pg_uuid_t *version, bytea *file)
{
	MemoryContext memory =
		AllocSetContextCreate(CurrentMemoryContext, "posterior model", ALLOCSET_DEFAULT_SIZES);
	TnpEnv		env = posterior_env(memory);
	PosteriorModel *m;
	TnpModel   *model;
	TnpError	error;

	if (tnp_model_open(&env, VARDATA_ANY(file), VARSIZE_ANY_EXHDR(file), &model, &error) != TNP_OK)
	{
		MemoryContextDelete(memory);
		posterior_raise(&error, name);
	}
	m = model_make(name, version, 0);
	if (m == NULL)
	{
		MemoryContextDelete(memory);
		posterior_raise_no_memory();
	}
	MemoryContextSetParent(memory, TopMemoryContext);
	m->model = model;
	m->memory = memory;
	models_trim();
	return m;
}

/* A model of several targets over weights of this session, which it acquires. */
static PosteriorModel *
model_borrow(PosteriorModel *base, int targets)
{
	PosteriorModel *m;
	TnpModel   *model;
	TnpError	error;

	if (tnp_model_several(base->model, targets, &model, &error) != TNP_OK)
		posterior_raise(&error, base->name);
	m = model_make(base->name, &base->version, targets);
	if (m == NULL)
	{
		tnp_model_close(model);
		posterior_raise_no_memory();
	}
	posterior_model_acquire(base);
	m->model = model;
	m->base = base;
	models_trim();
	return m;
}

static void
no_such_model(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("model \"%s\" does not exist", name),
			 errhint("The view posterior.models lists the models; the settings posterior.model and "
					 "posterior.class_model choose; posterior.load_model loads another.")));
}

/*
 * One row of posterior.model_file: a single value by model name, or an error; the result lies in
 * the SPI context.
 */
static Datum
select_value(SPIPlanPtr *plan, const char *query, const char *name)
{
	Oid			type = TEXTOID;
	Datum		argument = CStringGetTextDatum(name),
				value;
	bool		isnull;

	if (*plan == NULL)
	{
		SPIPlanPtr	fresh = SPI_prepare(query, 1, &type);

		if (fresh == NULL || SPI_keepplan(fresh) != 0)
			elog(ERROR, "could not prepare \"%s\"", query);
		*plan = fresh;
	}
	if (SPI_execute_plan(*plan, &argument, NULL, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read posterior.model_file");
	if (SPI_processed == 0)
		no_such_model(name);
	value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	if (isnull)
		no_such_model(name);
	return value;
}

bytea *
posterior_model_file(const PosteriorModel *model)
{
	static SPIPlanPtr plan = NULL;
	MemoryContext caller = CurrentMemoryContext;
	Datum		version = UUIDPGetDatum(&model->version);
	Oid			type = UUIDOID;
	bytea	   *file = NULL;
	bool		push = !ActiveSnapshotSet();

	/* what is encoded ahead has let go of its snapshot */
	if (push)
		PushActiveSnapshot(GetTransactionSnapshot());
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (plan == NULL)
	{
		SPIPlanPtr fresh = SPI_prepare(
			"SELECT file FROM posterior.model_file WHERE version OPERATOR(pg_catalog.=) $1", 1,
			&type);

		if (fresh == NULL || SPI_keepplan(fresh) != 0)
			elog(ERROR, "could not prepare to read posterior.model_file");
		plan = fresh;
	}
	if (SPI_execute_plan(plan, &version, NULL, true, 1) == SPI_OK_SELECT && SPI_processed == 1)
	{
		bool		isnull;
		Datum		value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
		MemoryContext before = MemoryContextSwitchTo(caller);

		file = (bytea *) PG_DETOAST_DATUM_COPY(value);
		MemoryContextSwitchTo(before);
	}
	SPI_finish();
	if (push)
		PopActiveSnapshot();
	return file;
}

void
posterior_model_acquire(PosteriorModel *model)
{
	model->pins++;
}

void
posterior_model_release(PosteriorModel *model)
{
	Assert(model->pins > 0);
	if (--model->pins > 0 || model->weights == NULL)
		return;
	/* an idle session holds no shared model */
	for (PosteriorModel **link = &models; *link != NULL; link = &(*link)->next)
		if (*link == model)
		{
			*link = model->next;
			break;
		}
	model_free(model);
}

void
posterior_models_exit(void)
{
	for (PosteriorModel *m = models; m != NULL; m = m->next)
		if (m->weights != NULL)
		{
			posterior_lock(LW_EXCLUSIVE);
			m->weights->pins--;
			posterior_unlock();
			m->weights = NULL;
		}
}

static void
release_callback(void *model)
{
	posterior_model_release(model);
}

int32
posterior_model_arithmetic(const PosteriorModel *model, int views)
{
	if (views == 0)
		views = posterior_estimators;
	return model->kernels | (tnp_model_info(model->model)->has_views ? views << 8 : 0);
}

/* The row's file, in memory of the SPI context. */
static bytea *
select_file(const char *name)
{
	static SPIPlanPtr plan = NULL;

	return DatumGetByteaPP(select_value(
		&plan, "SELECT file FROM posterior.model_file WHERE name OPERATOR(pg_catalog.=) $1",
		name));
}

/* The model of a file, with as many targets as that says. */
static PosteriorModel *
model_get(const char *name, const pg_uuid_t *version)
{
	PosteriorModel *m = model_find(name, version, 0);
	PosteriorWeights *weights = NULL;
	bytea	   *file;

	if (m != NULL)
		return m;
	if (posterior_is_shared && (weights = weights_pin(version, 0)) != NULL)
		return model_of_weights(name, weights);
	file = select_file(name);
	if (posterior_is_shared && (weights = weights_share(name, version, file)) != NULL)
		return model_of_weights(name, weights);
	return model_open(name, version, file);
}

/* The model for rows of several targets, of one that takes them each by itself, or that one. */
static PosteriorModel *
model_get_several(const char *name, const pg_uuid_t *version, int targets)
{
	PosteriorModel *m = model_find(name, version, targets),
			   *base;
	PosteriorWeights *weights = NULL;

	if (m != NULL)
		return m;
	if (posterior_is_shared && (weights = weights_pin(version, targets)) != NULL)
		return model_of_weights(name, weights);
	base = model_get(name, version);
	if (!tnp_model_info(base->model)->each_target)
		return base;
	if (base->weights == NULL)
		return model_borrow(base, targets);
	/* the session's pin of the base ends when the shared model has one */
	posterior_model_acquire(base);
	weights = weights_share_several(base, targets);
	posterior_model_release(base);
	if (weights != NULL)
		return model_of_weights(name, weights);
	return model_borrow(model_open(name, version, select_file(name)), targets);
}

PosteriorModel *
posterior_model_pin_targets(const char *name, int targets, MemoryContext owner)
{
	static SPIPlanPtr version_plan = NULL;
	MemoryContextCallback *callback;
	PosteriorModel *m;
	pg_uuid_t	version;

	if (name == NULL || name[0] == '\0')
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("no model is chosen"),
						errhint("SET posterior.model, or for labels posterior.class_model, to one "
								"of the models in the view posterior.models.")));
	posterior_shared_attach();
	posterior_encode_event_init();
	callback = MemoryContextAlloc(owner, sizeof(MemoryContextCallback));
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	version = *DatumGetUUIDP(select_value(
		&version_plan,
		"SELECT version FROM posterior.model_file WHERE name OPERATOR(pg_catalog.=) $1", name));
	m = targets > 1 ? model_get_several(name, &version, targets) : model_get(name, &version);
	SPI_finish();
	posterior_model_acquire(m);
	callback->func = release_callback;
	callback->arg = m;
	MemoryContextRegisterResetCallback(owner, callback);
	return m;
}

PosteriorModel *
posterior_model_pin(const char *name, MemoryContext owner)
{
	return posterior_model_pin_targets(name, 1, owner);
}
