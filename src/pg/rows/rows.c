/*
 * rows.c: rows gathered from SQL, and their canonical order.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/rows/rows.h"

#include <math.h>

#include "miscadmin.h"
#include "nodes/plannodes.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"

PosteriorRows *
posterior_rows_of_kinds(MemoryContext context, int n_features, const uint8 *kinds)
{
	PosteriorRows *rows = MemoryContextAllocZero(context, sizeof(PosteriorRows));

	rows->context = context;
	rows->n_features = n_features;
	rows->n_targets = 1;
	rows->kinds = MemoryContextAlloc(context, Max(n_features, 1));
	rows->engine_kinds = MemoryContextAlloc(context, Max(n_features, 1) * sizeof(TnpColumnKind));
	for (int f = 0; f < n_features; f++)
	{
		rows->kinds[f] = kinds[f];
		rows->engine_kinds[f] = kinds[f] == POSTERIOR_CATEGORY ? TNP_CATEGORICAL : TNP_NUMERIC;
	}
	return rows;
}

PosteriorRows *
posterior_rows_make(MemoryContext context, int n_features, const Oid *types)
{
	PosteriorFeature *features;
	PosteriorRows *rows;
	uint8	   *kinds = palloc(Max(n_features, 1));

	if (n_features < 1)
		ereport(
			ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("at least one feature is needed"),
			 errhint("Give the features after the target: posterior.context(y, x1, x2, ...).")));
	features = MemoryContextAlloc(context, n_features * sizeof(PosteriorFeature));
	for (int f = 0; f < n_features; f++)
	{
		posterior_feature_init(&features[f], types[f], f + 1, context);
		kinds[f] = features[f].kind;
	}
	rows = posterior_rows_of_kinds(context, n_features, kinds);
	rows->features = features;
	pfree(kinds);
	return rows;
}

/* Room for at least `n` rows. */
static void
rows_reserve(PosteriorRows *rows, int64 n)
{
	Size		width = (Size) rows->n_features * sizeof(double),
				target = (Size) rows->n_targets * sizeof(double);
	int64		room = Max(Max(n, 2 * rows->room), 16);

	if (n <= rows->room)
		return;
	if (n > INT32_MAX / 4 || (Size) room > MaxAllocHugeSize / 2 / Max(width, target))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many rows for one context"),
				 errdetail("%lld rows of %d features.", (long long) n, rows->n_features)));
	if (rows->x == NULL)
	{
		rows->x = MemoryContextAllocHuge(rows->context, room * width);
		rows->y = MemoryContextAllocHuge(rows->context, room * target);
	}
	else
	{
		rows->x = repalloc_huge(rows->x, room * width);
		rows->y = repalloc_huge(rows->y, room * target);
	}
	rows->room = room;
}

double *
posterior_rows_next(PosteriorRows *rows)
{
	rows_reserve(rows, rows->n + 1);
	return rows->x + rows->n * rows->n_features;
}

void
posterior_rows_append(PosteriorRows *rows, int64 n, const double *x, const double *y)
{
	if (n == 0)
		return;
	rows_reserve(rows, rows->n + n);
	memcpy(rows->x + rows->n * rows->n_features, x, n * rows->n_features * sizeof(double));
	memcpy(rows->y + rows->n * rows->n_targets, y, n * rows->n_targets * sizeof(double));
	rows->n += n;
}

/* One double in bytes whose memcmp order is fixed: big-endian, the one NaN (missing) canonical. */
static void
canonical_bytes(double v, unsigned char *bytes)
{
	uint64		bits;

	if (isnan(v))
		bits = UINT64CONST(0x7ff8000000000000);
	else
		memcpy(&bits, &v, sizeof(bits));
	bits = pg_hton64(bits);
	memcpy(bytes, &bits, sizeof(bits));
}

/* A cancel does not wait for the end of the sort, which has nothing of its own to free. */
static int
compare_keys(const void *a, const void *b, void *length)
{
	CHECK_FOR_INTERRUPTS();
	return memcmp(*(unsigned char *const *) a, *(unsigned char *const *) b, *(Size *) length);
}

void
posterior_rows_sort(PosteriorRows *rows)
{
	int			targets = rows->n_targets,
				width = rows->n_features + targets;
	Size		length = (Size) width * 8;
	unsigned char *bytes,
			  **keys;
	double	   *x,
			   *y;

	if (rows->n < 2)
		return;
	bytes = MemoryContextAllocHuge(CurrentMemoryContext, rows->n * (length + 8));
	keys = MemoryContextAllocHuge(CurrentMemoryContext, rows->n * sizeof(*keys));
	for (int64 i = 0; i < rows->n; i++)
	{
		unsigned char *key = bytes + i * (length + 8);

		CHECK_FOR_INTERRUPTS();
		for (int f = 0; f < rows->n_features; f++)
			canonical_bytes(rows->x[i * rows->n_features + f], key + 8 * f);
		for (int t = 0; t < targets; t++)
			canonical_bytes(rows->y[i * targets + t], key + 8 * (rows->n_features + t));
		memcpy(key + length, &i, 8);	/* the row's place rides along, unsorted */
		keys[i] = key;
	}
	qsort_arg(keys, rows->n, sizeof(*keys), compare_keys, &length);
	CHECK_FOR_INTERRUPTS();
	x = MemoryContextAllocHuge(rows->context, rows->room * rows->n_features * sizeof(double));
	y = MemoryContextAllocHuge(rows->context, rows->room * targets * sizeof(double));
	for (int64 i = 0; i < rows->n; i++)
	{
		int64		from;

		CHECK_FOR_INTERRUPTS();
		memcpy(&from, keys[i] + length, 8);
		memcpy(x + i * rows->n_features, rows->x + from * rows->n_features,
			   rows->n_features * sizeof(double));
		memcpy(y + i * targets, rows->y + from * targets, targets * sizeof(double));
	}
	pfree(rows->x);
	pfree(rows->y);
	pfree(keys);
	pfree(bytes);
	rows->x = x;
	rows->y = y;
}

double *
posterior_rows_classes(const PosteriorRows *rows, int64 from, PosteriorLabelList *list)
{
	int			class[POSTERIOR_MOST_LABELS];
	double *y =
		MemoryContextAllocHuge(CurrentMemoryContext, Max(rows->n - from, 1) * sizeof(double));

	*list = posterior_labels_order(rows->labels, class);
	for (int64 i = from; i < rows->n; i++)
		y[i - from] = class[(int) rows->y[i]];
	return y;
}

void
posterior_rows_settle(PosteriorRows *rows)
{
	MemoryContext before = MemoryContextSwitchTo(rows->context);
	double	   *y;

	if (rows->labels != NULL)
	{
		y = posterior_rows_classes(rows, 0, &rows->list);
		if (rows->n > 0)
			memcpy(rows->y, y, rows->n * sizeof(double));
		pfree(y);
	}
	MemoryContextSwitchTo(before);
}

PosteriorRows *
posterior_rows_settled(PosteriorRows *rows)
{
	PosteriorRows *copy;
	Size		bytes = (Size) rows->n * rows->n_features * sizeof(double);

	if (rows->labels == NULL)
		return rows;
	copy = palloc(sizeof(PosteriorRows));
	*copy = *rows;
	copy->context = CurrentMemoryContext;
	copy->room = Max(rows->n, 1);
	copy->x = MemoryContextAllocHuge(CurrentMemoryContext, Max(bytes, 1));
	if (bytes > 0)
		memcpy(copy->x, rows->x, bytes);
	copy->y = posterior_rows_classes(rows, 0, &copy->list);
	return copy;
}

bool
posterior_aggregate_ordered(FunctionCallInfo fcinfo)
{
	Aggref	   *aggref = AggGetAggref(fcinfo);

	if (aggref != NULL)
		return aggref->aggorder != NIL;
	return fcinfo->context != NULL && IsA(fcinfo->context, WindowAggState)
		&& ((WindowAgg *) ((WindowAggState *) fcinfo->context)->ss.ps.plan)->ordNumCols > 0;
}

TnpRows
posterior_rows_view(const PosteriorRows *rows, bool with_y)
{
	return (TnpRows){
		rows->n, rows->n_features, rows->engine_kinds, rows->x, with_y ? rows->y : NULL,
		rows->list.n, 0, rows->n_targets};
}

int
posterior_argument_types(FunctionCallInfo fcinfo, int first, Oid *types)
{
	int			n = PG_NARGS() - first;

	if (get_fn_expr_variadic(fcinfo->flinfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("features cannot be given as a VARIADIC array"),
				 errhint("Give them one by one.")));
	for (int i = 0; i < n; i++)
	{
		types[i] = get_fn_expr_argtype(fcinfo->flinfo, first + i);
		if (!OidIsValid(types[i]))
			ereport(ERROR,
					(errcode(ERRCODE_INDETERMINATE_DATATYPE),
					 errmsg("could not determine the type of feature %d", i + 1)));
	}
	return n;
}
