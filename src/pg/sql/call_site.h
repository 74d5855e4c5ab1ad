/*
 * call_site.h: what a call site of predict, sample or log_density remembers between rows: model,
 * encoding, how to read its arguments.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CALL_SITE_H
#define POSTERIOR_CALL_SITE_H

#include "pg/named/acquire.h"

#include "utils/array.h"

typedef struct PosteriorCall
{
	MemoryContext memory;		/* lasts as long as the call site */
	bool		lasting;		/* which may be longer than a statement */
	/*
	 * it ends with a statement, and is used within its triggers only: what subtransactions write
	 * meanwhile the statement's snapshot does not show
	 */
	bool		within;
	PosteriorModel *model;
	/* posterior.model and posterior.kernels when the model was found */
	char		name[NAMEDATALEN];
	int			kernels;
	int			estimators;		/* posterior.estimators then */
	TransactionId xmin,			/* and the snapshot it was found under */
				xmax;
	uint32		running;
	Oid			user;
	CommandId	command;
	SubTransactionId subtransaction;
	int			cache_mode;
	int			row_limit;
	PosteriorContextHandle *encoding;
	struct varlena *raw;		/* the context argument as it came, toasted or not */
	Size		raw_size,
				raw_room;
	bool		labelled;		/* its targets are labels */
	bool		sums;			/* it has sums instead of rows */
	bool		several;		/* set by callers that answer about several targets per row */
	int			targets;		/* per row of the context value */
	PosteriorRows *rows;		/* argument rows, reused; its features say how to read them */
	PosteriorNamed *named;		/* of a named context, or NULL */
	MemoryContext named_memory; /* what belongs to it and ends with it */
	struct PosteriorMatch *match;	/* where rows have its features, or NULL */
} PosteriorCall;

/* The call site's memory, made at its first row. */
PosteriorCall *posterior_call(FunctionCallInfo fcinfo);

/* One that ends with `owner`. */
PosteriorCall *posterior_call_make(MemoryContext owner);

/* Have it find its encoding anew. */
void		posterior_call_forget(PosteriorCall *call);

/*
 * Make call->model and call->encoding those of this context argument (a posterior.context, toasted
 * or not).
 */
void		posterior_call_context(PosteriorCall *call, Datum context);

/* Whether posterior_call_context would change nothing. */
bool		posterior_call_has_context(const PosteriorCall *call, Datum context);

/*
 * Make call->model and call->encoding those of this named context, as the active snapshot shows it.
 */
void		posterior_call_named(PosteriorCall *call, const char *name);

/*
 * posterior_call_named in two steps, for a request that can be answered along with the second.
 * First call->named and call->model; true if the encoding is there already, or has been made
 * because the last request was answered without keeping one. Then the encoding.
 */
bool		posterior_call_definition(PosteriorCall *call, const char *name);
void		posterior_call_acquire(PosteriorCall *call, PosteriorPendingRequest *pending);

/* Whether posterior_call_definition would change nothing. */
bool		posterior_call_has_named(const PosteriorCall *call, const char *name);

/*
 * The cells x [n_features] of a value: a row or a jsonb, which are not NULL, matched by name with
 * the features of call->named; or of another type, where there is one feature only.
 */
void		posterior_match_value(PosteriorCall *call, Oid type, Datum value, bool isnull,
								  double *x);

/* Rows of an array of composites, matched by name. */
PosteriorRows *posterior_match_rows(PosteriorCall *call, ArrayType *array);

/*
 * What call->encoding holds, made from scratch: for posterior.cache = verify. Released by the
 * caller.
 */
PosteriorContextHandle *posterior_call_build_uncached(PosteriorCall *call);

/*
 * Show in posterior.stat_progress that requests of this kind about `total` rows are answered
 * (posterior_show_question); true: the caller calls posterior_show_end.
 */
bool		posterior_call_show(const PosteriorCall *call, const struct TnpRequest *request,
								int64 total);

/*
 * Answer a request, of `size` numbers, about call->encoding; in verify mode compare the answer with
 * that of a fresh encoding. `what` names an answer for the error.
 */
void		posterior_call_execute(PosteriorCall *call, struct TnpRequest *request, int64 size,
								   const char *what);

/* The second half of that, for what has been answered already. */
void		posterior_call_check(PosteriorCall *call, struct TnpRequest *request, int64 size,
								 const char *what);

/* The answers about a row, params [D, size], as an array of elements of this type. */
Datum		posterior_call_answers(const PosteriorCall *call, Oid type, const double *params);

/*
 * Raise if the context and the n rows of a joint request, each given those before it, are too many,
 * or if so many chains of them take too long; say so if they take long.
 */
void		posterior_call_check_joint(const PosteriorCall *call, int64 n, int64 chains);

/*
 * Rows of an array: of composites, one feature per column; of scalars, one feature each. Checked
 * against the call's context.
 */
PosteriorRows *posterior_rows_of_array(PosteriorCall *call, ArrayType *array);

/*
 * Raise XX000 when two answers of n numbers differ in any bit, or if they need not be exact by more
 * than a device may: what posterior.cache = verify is for.
 */
void		posterior_verify(const char *what, int64 n, const double *cached, const double *fresh,
							 bool exact);

#endif							/* POSTERIOR_CALL_SITE_H */
