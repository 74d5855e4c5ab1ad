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

char	   *posterior_model_name = NULL;
char	   *posterior_class_model_name = NULL;

static PosteriorModel *models = NULL;	/* most recently used first */

static void
model_free(PosteriorModel *model)
{
	if (model->weights != NULL)
	{
		posterior_lock(LW_EXCLUSIVE);
		model->weights->pins--;
		posterior_unlock();
	}
	else
	{
		tnp_model_close(model->model);
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

/* Free weights that are in no list and have no pin. */
static void
weights_free(PosteriorWeights *weights)
{
	tnp_model_close(weights->model);
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
	Size		bytes = tnp_model_info(w->model)->n_parameters * sizeof(float);

	dlist_delete(&w->node);
	weights_free(w);
	return bytes;
}

static void
weights_forget(uint32 incarnation)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, all_weights)
	{
		PosteriorWeights *w = dlist_container(PosteriorWeights, node, iter.cur);

		if (w->incarnation == incarnation && w->pins == 0)
		{
			dlist_delete(&w->node);
			weights_free(w);
		}
	}
}

PosteriorSharedPart posterior_weights_part = {
	.place = (void **) &all_weights,.size = weights_size,.initialize = weights_initialize,
	.forget = weights_forget,.oldest = weights_oldest,.evict = weights_evict
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
model_find(const char *name, const pg_uuid_t *version)
{
	for (PosteriorModel **link = &models; *link != NULL; link = &(*link)->next)
	{
		PosteriorModel *m = *link;

		if (m->kernels == posterior_kernels && strcmp(m->name, name) == 0
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

/* Put a session's handle in front of the list. */
static PosteriorModel *
model_make(const char *name, const pg_uuid_t *version)
{
	PosteriorModel *m = MemoryContextAllocZero(TopMemoryContext, sizeof(PosteriorModel));

	strlcpy(m->name, name, sizeof(m->name));
	m->version = *version;
	m->kernels = posterior_kernels;
	m->next = models;
	models = m;
	return m;
}

/* The shared model of this version, pinned, or NULL. */
static PosteriorWeights *
weights_pin(const pg_uuid_t *version)
{
	PosteriorWeights *found = NULL;
	dlist_iter	iter;

	posterior_lock(LW_EXCLUSIVE);
	dlist_foreach(iter, all_weights)
	{
		PosteriorWeights *w = dlist_container(PosteriorWeights, node, iter.cur);

		if (w->incarnation == posterior_incarnation() && w->kernels == posterior_kernels
			&& memcmp(&w->version, version, sizeof(pg_uuid_t)) == 0)
		{
			w->pins++;
			w->used = posterior_tick();
			found = w;
			break;
		}
	}
	posterior_unlock();
	return found;
}

/* Parse a file into the arena; the model is pinned. NULL if it does not fit there. */
static PosteriorWeights *
weights_share(const char *name, const pg_uuid_t *version, bytea *file)
{
	TnpEnv		env = posterior_shared_env();
	PosteriorWeights *w,
			   *other;
	TnpModel   *model;
	TnpError	error;
	TnpStatus status =
		tnp_model_open(&env, VARDATA_ANY(file), VARSIZE_ANY_EXHDR(file), &model, &error);
	bool		room;

	/*
	 * weights of 16 bits are there as floats, as packed floats and as packed halves: five times the
	 * file
	 */
	room = status == TNP_NO_MEMORY && posterior_make_room(5 * VARSIZE_ANY(file));
	for (int i = 1; room; i++)
	{
		status = tnp_model_open(&env, VARDATA_ANY(file), VARSIZE_ANY_EXHDR(file), &model, &error);
		room = status == TNP_NO_MEMORY && i < POSTERIOR_EVICTIONS
			&& posterior_evict(VARSIZE_ANY(file) << i);
	}
	if (status == TNP_NO_MEMORY)
		return NULL;
	if (status != TNP_OK)
		posterior_raise(&error, name);
	w = posterior_arena_alloc(sizeof(PosteriorWeights));
	if (w == NULL)
	{
		tnp_model_close(model);
		return NULL;
	}
	memset(w, 0, sizeof(*w));
	w->incarnation = posterior_incarnation();
	w->version = *version;
	w->kernels = posterior_kernels;
	w->model = model;
	w->pins = 1;
	w->used = posterior_tick();
	/* another session may have shared it meanwhile */
	other = weights_pin(version);
	if (other != NULL)
	{
		weights_free(w);
		return other;
	}
	posterior_lock(LW_EXCLUSIVE);
	dlist_push_head(all_weights, &w->node);
	posterior_unlock();
	return w;
}

static PosteriorModel *
model_of_weights(const char *name, const pg_uuid_t *version, PosteriorWeights *weights)
{
	PosteriorModel *m = model_make(name, version);

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
	MemoryContextSetParent(memory, TopMemoryContext);
	m = model_make(name, version);
	m->model = model;
	m->memory = memory;
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

PosteriorModel *
posterior_model_pin(const char *name, MemoryContext owner)
{
	static SPIPlanPtr version_plan = NULL,
				file_plan = NULL;
	MemoryContextCallback *callback;
	PosteriorWeights *weights = NULL;
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
	m = model_find(name, &version);
	if (m == NULL && posterior_is_shared && (weights = weights_pin(&version)) != NULL)
		m = model_of_weights(name, &version, weights);
	if (m == NULL)
	{
		bytea *file = DatumGetByteaPP(select_value(
			&file_plan,
			"SELECT file FROM posterior.model_file WHERE name OPERATOR(pg_catalog.=) $1", name));

		if (posterior_is_shared && (weights = weights_share(name, &version, file)) != NULL)
			m = model_of_weights(name, &version, weights);
		else
			m = model_open(name, &version, file);
	}
	SPI_finish();
	posterior_model_acquire(m);
	callback->func = release_callback;
	callback->arg = m;
	MemoryContextRegisterResetCallback(owner, callback);
	return m;
}
