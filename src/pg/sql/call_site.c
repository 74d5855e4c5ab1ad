/*
 * call_site.c: the state of a call site. Looking a model up costs a query and finding an encoding
 * costs a hash of the context, so both are done when something may have changed, not for every row.
 * A call site can outlive its statement (a simple expression in PL/pgSQL), so the snapshot is part
 * of what is compared; and as different moments of a transaction can have equal ones, so is what
 * else rows depend on.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/sql/call_site.h"

#include "pg/cache/execute.h"
#include "pg/cache/near_rows.h"
#include "pg/cache/sums_handle.h"
#include "pg/base/bridge.h"
#include "pg/models/engine_env.h"
#include "pg/rows/json_cells.h"
#include "pg/models/row_limit.h"
#include "pg/rows/targets.h"
#include "pg/types/distribution_value.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include <math.h>

/* between two answers of a device that is not exact, relative to the largest number */
#define DEVICE_TOLERANCE 0.01

static void
forget_encoding(PosteriorCall *call)
{
	PosteriorContextHandle *e = call->encoding;

	call->encoding = NULL;
	if (e != NULL)
		posterior_handle_release(e);
}

void
posterior_call_forget(PosteriorCall *call)
{
	forget_encoding(call);
}

static void
forget_model(PosteriorCall *call)
{
	PosteriorModel *m = call->model;

	forget_encoding(call);
	call->model = NULL;
	if (m != NULL)
		posterior_model_release(m);
}

static void
end_call(void *call)
{
	forget_model(call);
}

/*
 * Whether the settings and the active snapshot are those that the model was found under. Two
 * snapshots of equal xmin, xmax and number of running transactions see the same transactions: the
 * end of any one would have moved one of the three. Subtransactions of this transaction that were
 * rolled back would not: they are compared by themselves.
 */
static bool
nothing_has_changed(const PosteriorCall *call)
{
	Snapshot	s = GetActiveSnapshot();

	return call->model != NULL && call->kernels == posterior_kernels
		&& call->estimators == posterior_estimators
		&& call->cache_mode == posterior_cache_mode && call->row_limit == posterior_row_limit
		&& call->xmin == s->xmin && call->xmax == s->xmax && call->command == s->curcid
		&& call->running == s->xcnt
		&& (call->within || call->subtransaction == GetCurrentSubTransactionId())
		&& call->user == GetUserId();
}

static void
remember_moment(PosteriorCall *call)
{
	Snapshot	s = GetActiveSnapshot();

	call->kernels = posterior_kernels;
	call->estimators = posterior_estimators;
	call->cache_mode = posterior_cache_mode;
	call->row_limit = posterior_row_limit;
	call->xmin = s->xmin;
	call->xmax = s->xmax;
	call->command = s->curcid;
	call->running = s->xcnt;
	call->subtransaction = GetCurrentSubTransactionId();
	call->user = GetUserId();
}

/* Make a model of this name, for rows of so many targets, the call's. */
static void
take_model(PosteriorCall *call, const char *name, int targets)
{
	MemoryContext temporary;

	forget_model(call);
	temporary =
		AllocSetContextCreate(CurrentMemoryContext, "posterior model lookup", ALLOCSET_SMALL_SIZES);
	call->model = posterior_model_pin_targets(name, targets, temporary);
	/* the call site's own; the lookup's goes with its memory */
	posterior_model_acquire(call->model);
	MemoryContextDelete(temporary);
	strlcpy(call->name, name, sizeof(call->name));
}

/*
 * Whether a call site of this memory can outlive the statement. A plan's call sites end with its
 * execution. PL/pgSQL keeps the simple expressions of functions for the transaction, and those of a
 * DO block as long as that.
 */
static bool
outlives_statement(MemoryContext owner)
{
	MemoryContext parent = MemoryContextGetParent(owner);

	return parent == NULL || parent == TopTransactionContext
		|| strcmp(parent->name, "SPI Proc") == 0;
}

PosteriorCall *
posterior_call_make(MemoryContext owner)
{
	PosteriorCall *call = MemoryContextAllocZero(owner, sizeof(PosteriorCall));
	MemoryContextCallback *callback = MemoryContextAlloc(owner, sizeof(MemoryContextCallback));

	call->memory = owner;
	call->lasting = outlives_statement(owner);
	callback->func = end_call;
	callback->arg = call;
	MemoryContextRegisterResetCallback(owner, callback);
	return call;
}

PosteriorCall *
posterior_call(FunctionCallInfo fcinfo)
{
	if (fcinfo->flinfo->fn_extra == NULL)
		fcinfo->flinfo->fn_extra = posterior_call_make(fcinfo->flinfo->fn_mcxt);
	return fcinfo->flinfo->fn_extra;
}

/*
 * Make call->model the one that the settings and the active snapshot say now, for a context of
 * labels or of numbers, so many targets per row.
 */
static void
refresh_model(PosteriorCall *call, bool labelled, int targets)
{
	const char *name = labelled ? posterior_class_model_name : posterior_model_name;

	if (nothing_has_changed(call) && call->targets == targets && strcmp(call->name, name) == 0)
		return;
	take_model(call, name, targets);
	call->targets = targets;
	remember_moment(call);
}

/* Raise if rows have several targets and the caller has answers for one. */
static void
check_targets(const PosteriorCall *call, int targets)
{
	if (call->several || targets == 1)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("the rows of the context have %d targets", targets),
			 errhint("Use posterior.predict_targets, posterior.sample_targets, or "
					 "posterior.log_density with an array.")));
}

bool
posterior_call_has_context(const PosteriorCall *call, Datum context)
{
	const struct varlena *raw = (const struct varlena *) DatumGetPointer(context);
	const char *name = call->labelled ? posterior_class_model_name : posterior_model_name;

	return call->encoding != NULL && posterior_cache_mode != POSTERIOR_CACHE_OFF
		&& nothing_has_changed(call) && strcmp(call->name, name) == 0
		&& !(VARATT_IS_EXTERNAL(raw) && !VARATT_IS_EXTERNAL_ONDISK(raw))
		&& call->raw_size == VARSIZE_ANY(raw) && memcmp(call->raw, raw, call->raw_size) == 0;
}

void
posterior_call_context(PosteriorCall *call, Datum context)
{
	struct varlena *raw = (struct varlena *) DatumGetPointer(context);
	Size		size = VARSIZE_ANY(raw);
	PosteriorContext *value = NULL;
	bool		same;
	int			targets;

	/*
	 * an expanded or indirect value's address says nothing about its content; this type has
	 * neither, but callers may
	 */
	if (VARATT_IS_EXTERNAL(raw) && !VARATT_IS_EXTERNAL_ONDISK(raw))
	{
		raw = (struct varlena *) PG_DETOAST_DATUM(context);
		size = VARSIZE_ANY(raw);
	}
	same = call->raw_size == size && memcmp(call->raw, raw, size) == 0;
	targets = call->targets;
	if (!same)
	{
		value = (PosteriorContext *) PG_DETOAST_DATUM(context);
		targets = posterior_context_targets(value);
		check_targets(call, targets);
		call->labelled = posterior_context_labelled(value);
		call->sums = posterior_context_is_sums(value);
		call->raw_size = 0;
	}
	refresh_model(call, call->labelled, targets);
	/* labels are one target each: of a model of numbers another error tells more */
	if (!call->several && !call->labelled)
		posterior_check_model_targets(call->model->model, call->model->name, 1);
	if (same && call->encoding != NULL && posterior_cache_mode != POSTERIOR_CACHE_OFF)
		return;
	if (value == NULL)
		value = (PosteriorContext *) PG_DETOAST_DATUM(context);
	forget_encoding(call);
	if (call->raw_room < size)
	{
		if (call->raw != NULL)
			pfree(call->raw);
		call->raw = NULL;
		call->raw_room = 0;
		call->raw = MemoryContextAllocHuge(call->memory, size);
		call->raw_room = size;
	}
	call->encoding = posterior_handle_acquire(call->model, value);
	memcpy(call->raw, raw, size);
	call->raw_size = size;
	if ((Pointer) value != DatumGetPointer(context))
		pfree(value);
}

/* Whether the encoding is that of the named context at this moment, for one request at least. */
static bool
has_named(const PosteriorCall *call, const char *name)
{
	return call->encoding != NULL && call->named != NULL
		&& call->cache_mode != POSTERIOR_CACHE_OFF && nothing_has_changed(call)
		&& !(call->lasting && posterior_named_may_change(call->named))
		&& strcmp(call->named->name, name) == 0;
}

bool
posterior_call_has_named(const PosteriorCall *call, const char *name)
{
	return has_named(call, name) && !call->encoding->transient;
}

bool
posterior_call_definition(PosteriorCall *call, const char *name)
{
	PosteriorNamed *named;

	if (has_named(call, name))
	{
		/* the second request of this moment: from now on it is worth having all rows */
		if (call->encoding->transient)
		{
			forget_encoding(call);
			posterior_call_acquire(call, NULL);
		}
		return true;
	}
	forget_encoding(call);
	call->named = NULL;
	call->match = NULL;
	if (call->named_memory == NULL)
		call->named_memory =
			AllocSetContextCreate(call->memory, "posterior named context", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(call->named_memory);
	named = posterior_named_find(name, call->named_memory);
	take_model(call, named->model, named->n_targets);
	check_targets(call, tnp_model_info(call->model->model)->n_targets);
	call->named = named;
	return false;
}

void
posterior_call_acquire(PosteriorCall *call, PosteriorPendingRequest *pending)
{
	call->encoding = posterior_named_acquire(call->model, call->named, pending);
	remember_moment(call);
}

void
posterior_call_named(PosteriorCall *call, const char *name)
{
	if (!posterior_call_definition(call, name))
		posterior_call_acquire(call, NULL);
}

PosteriorContextHandle *
posterior_call_build_uncached(PosteriorCall *call)
{
	if (call->named != NULL)
		return posterior_named_build_uncached(call->model, call->named);
	/* sums are no rows, and lie in the value alone */
	if (call->sums)
		return posterior_handle_of_sums(call->model,
										(PosteriorContext *)
										PG_DETOAST_DATUM(PointerGetDatum(call->raw)), NULL);
	return posterior_handle_rebuild(call->encoding);
}

void
posterior_call_check(PosteriorCall *call, TnpRequest *request, int64 size, const char *what)
{
	double	   *cached = request->answer;

	if (posterior_cache_mode != POSTERIOR_CACHE_VERIFY)
		return;
	request->answer = MemoryContextAllocHuge(CurrentMemoryContext, Max(size, 1) * sizeof(double));
	posterior_execute_uncached(posterior_call_build_uncached(call), call->encoding, request);
	posterior_verify(what, size, cached, request->answer,
					 posterior_executed_exactly(call->encoding));
	pfree(request->answer);
	request->answer = cached;
}

bool
posterior_call_show(const PosteriorCall *call, const TnpRequest *request, int64 total)
{
	return posterior_show_question(call->named != NULL ? &call->named->id : NULL, request->kind,
								   total);
}

void
posterior_call_execute(PosteriorCall *call, TnpRequest *request, int64 size, const char *what)
{
	bool		shown = posterior_call_show(call, request, posterior_request_rows(request));

	posterior_execute(call->encoding, request);
	posterior_call_check(call, request, size, what);
	if (shown)
		posterior_show_end();
}

Datum
posterior_call_answers(const PosteriorCall *call, Oid type, const double *params)
{
	TnpDistributionKind kind;
	Datum		answers[TNP_MAX_TARGETS];
	int			targets = tnp_model_info(call->model->model)->n_targets,
				n,
				size;

	tnp_answer_shape(call->model->model, &kind, &n);
	size = tnp_distribution_size(kind, n);
	for (int t = 0; t < targets; t++)
		answers[t] = PointerGetDatum(
			posterior_answer(kind, n, params + t * size, &call->encoding->labels));
	return PointerGetDatum(construct_array(answers, targets, type, -1, false, TYPALIGN_DOUBLE));
}

void
posterior_call_check_joint(const PosteriorCall *call, int64 n, int64 chains)
{
	const PosteriorCachedContext *cached = call->encoding->cached;
	bool		sums = call->named != NULL ? posterior_named_by_sums(call->named) : call->sums;
	int64		rows = posterior_cached_rows(cached);

	if (n == 0)
		return;
	if (call->encoding->delegate != NULL)
		rows = posterior_near_most(call->encoding, n);
	/* rows that are sums cost nothing, however many */
	posterior_check_row_limit(call->model, "the context with the rows of a joint request",
							  (sums ? 0 : rows) + n, call->encoding->n_features);
	posterior_check_joint_cost(call->model, "the joint request", rows,
							   posterior_cached_views(cached), n, chains);
}

/* ---- rows of an array ------------------------------------------------------------------------ */

/* Columns of a composite type that are not dropped: their places and types. */
static int
composite_columns(TupleDesc desc, int *places, Oid *types)
{
	int			n = 0;

	for (int i = 0; i < desc->natts; i++)
		if (!TupleDescAttr(desc, i)->attisdropped)
		{
			places[n] = i;
			types[n++] = TupleDescAttr(desc, i)->atttypid;
		}
	return n;
}

static void
null_row(int64 i)
{
	ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					errmsg("row %lld of the array is NULL", (long long) i + 1),
					errhint("A row may have NULL columns, which are missing features, but must "
							"itself be there.")));
}

static PosteriorRows *
rows_of_composites(PosteriorCall *call, Datum *elements, bool *nulls, int64 n)
{
	Oid			type = InvalidOid;
	int32		typmod = -1;
	TupleDesc	desc = NULL;
	int		   *places = NULL,
				n_features = 0;
	Datum	   *values = NULL;
	bool	   *missing = NULL;
	PosteriorRows *rows = NULL;

	for (int64 i = 0; i < n; i++)
	{
		HeapTupleHeader header;
		HeapTupleData tuple;
		double	   *x;

		CHECK_FOR_INTERRUPTS();
		if (nulls[i])
			null_row(i);
		header = DatumGetHeapTupleHeader(elements[i]);
		if (rows == NULL)
		{
			Oid		   *types;

			type = HeapTupleHeaderGetTypeId(header);
			typmod = HeapTupleHeaderGetTypMod(header);
			desc = lookup_rowtype_tupdesc_copy(type, typmod);
			places = palloc(Max(desc->natts, 1) * sizeof(int));
			types = palloc(Max(desc->natts, 1) * sizeof(Oid));
			values = palloc(Max(desc->natts, 1) * sizeof(Datum));
			missing = palloc(Max(desc->natts, 1) * sizeof(bool));
			n_features = composite_columns(desc, places, types);
			rows = posterior_rows_make(CurrentMemoryContext, n_features, types);
			posterior_adopt_columns(call->encoding->n_features, call->encoding->kinds, rows);
		}
		else if (HeapTupleHeaderGetTypeId(header) != type
				 || HeapTupleHeaderGetTypMod(header) != typmod)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("the rows of the array have different columns"),
					 errdetail("Row %lld differs from row 1.", (long long) i + 1),
					 errhint("Cast the columns to the same types in all rows.")));
		tuple.t_len = HeapTupleHeaderGetDatumLength(header);
		ItemPointerSetInvalid(&tuple.t_self);
		tuple.t_tableOid = InvalidOid;
		tuple.t_data = header;
		heap_deform_tuple(&tuple, desc, values, missing);
		x = posterior_rows_next(rows);
		for (int f = 0; f < n_features; f++)
			x[f] = posterior_feature_cell(&rows->features[f], values[places[f]], missing[places[f]],
										  f + 1);
		rows->n++;
	}
	return rows;
}

static PosteriorRows *
rows_of_json(PosteriorCall *call, Datum *elements, bool *nulls, int64 n)
{
	PosteriorRows *rows = posterior_rows_of_kinds(CurrentMemoryContext, call->encoding->n_features,
												  call->encoding->kinds);

	for (int64 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (nulls[i])
			null_row(i);
		posterior_json_cells(DatumGetJsonbP(elements[i]), rows->n_features, rows->kinds, NULL,
							 posterior_rows_next(rows));
		rows->n++;
	}
	return rows;
}

PosteriorRows *
posterior_rows_of_array(PosteriorCall *call, ArrayType *array)
{
	Oid			type = ARR_ELEMTYPE(array);
	int16		length;
	bool		byval;
	char		align;
	Datum	   *elements;
	bool	   *nulls;
	int			n;
	PosteriorRows *rows;

	get_typlenbyvalalign(type, &length, &byval, &align);
	deconstruct_array(array, type, length, byval, align, &elements, &nulls, &n);
	if (n > 0 && type_is_rowtype(type))
		return rows_of_composites(call, elements, nulls, n);
	if (n == 0)
		return posterior_rows_of_kinds(CurrentMemoryContext, call->encoding->n_features,
									   call->encoding->kinds);
	if (getBaseType(type) == JSONBOID)
		return rows_of_json(call, elements, nulls, n);
	rows = posterior_rows_make(CurrentMemoryContext, 1, &type);
	posterior_adopt_columns(call->encoding->n_features, call->encoding->kinds, rows);
	for (int i = 0; i < n; i++)
	{
		*posterior_rows_next(rows) =
			posterior_feature_cell(&rows->features[0], elements[i], nulls[i], 1);
		rows->n++;
	}
	return rows;
}

void
posterior_verify(const char *what, int64 n, const double *cached, const double *fresh, bool exact)
{
	double		largest = 0;

	/* quantiles and densities may be infinite, in both */
	for (int64 i = 0; i < n && !exact; i++)
		if (isfinite(fresh[i]))
			largest = Max(largest, fabs(fresh[i]));
	for (int64 i = 0; i < n; i++)
		if (exact ? memcmp(&cached[i], &fresh[i], sizeof(double)) != 0
				  : !(cached[i] == fresh[i]
					  || fabs(cached[i] - fresh[i]) <= DEVICE_TOLERANCE * largest))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("%s from the cache differs from the one computed from scratch", what),
					 errdetail("Number %lld of %lld: cached %.17g, fresh %.17g.", (long long) i + 1,
							   (long long) n, cached[i], fresh[i]),
					 errhint("This is a bug of pg_posterior; SET posterior.cache = off avoids the "
							 "cache.")));
}
