/*
 * match.c: rows for a named context: their columns are matched with its features by name. Columns
 * that are no features are not looked at. A row may be JSON, and the value of a context's only
 * feature.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/sql/call_site.h"

#include "pg/rows/json_cells.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

/* Where rows of one type have the features. */
typedef struct PosteriorMatch
{
	MemoryContext memory;		/* its own */
	Oid			type;
	int32		typmod;
	TupleDesc	desc;
	int		   *places;			/* [n_features] */
	PosteriorFeature *features; /* [n_features] */
	Datum	   *values;			/* [desc->natts] */
	bool	   *nulls;
} PosteriorMatch;

/* The place of a column, or -1. The row of a subquery can have several of a name. */
static int
find_place(TupleDesc desc, const char *name)
{
	int			place = -1;

	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped
			|| strcmp(NameStr(TupleDescAttr(desc, i)->attname), name) != 0)
			continue;
		if (place >= 0)
			ereport(ERROR,
					(errcode(ERRCODE_AMBIGUOUS_COLUMN),
					 errmsg("the row has more than one column \"%s\"", name),
					 errhint("Give the columns of the subquery different names.")));
		place = i;
	}
	return place;
}

static PosteriorMatch *
make_match(const PosteriorNamed *named, Oid type, int32 typmod)
{
	MemoryContext memory =
		AllocSetContextCreate(named->memory, "posterior match", ALLOCSET_SMALL_SIZES);
	MemoryContext before = MemoryContextSwitchTo(memory);
	PosteriorMatch *m = palloc0(sizeof(PosteriorMatch));

	m->memory = memory;
	m->type = type;
	m->typmod = typmod;
	m->desc = lookup_rowtype_tupdesc_copy(type, typmod);
	m->places = palloc(named->n_features * sizeof(int));
	m->features = palloc(named->n_features * sizeof(PosteriorFeature));
	m->values = palloc(Max(m->desc->natts, 1) * sizeof(Datum));
	m->nulls = palloc(Max(m->desc->natts, 1) * sizeof(bool));
	for (int f = 0; f < named->n_features; f++)
	{
		int			place = find_place(m->desc, named->names[f]);

		if (place < 0)
			ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
							errmsg("the row has no column \"%s\"", named->names[f]),
							errdetail("It is a feature of context \"%s\".", named->name),
							errhint("Give a row whose columns have the names of the features; a "
									"column may be NULL.")));
		m->places[f] = place;
		posterior_feature_init(&m->features[f], TupleDescAttr(m->desc, place)->atttypid, f + 1,
							   memory);
		m->features[f].name = named->names[f];
		if (m->features[f].base == UNKNOWNOID)
			m->features[f].kind = named->kinds[f];
		if (!posterior_kind_takes(named->kinds[f], m->features[f].kind))
			ereport(
				ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" is of kind \"%s\", in context \"%s\" it is of kind \"%s\"",
						named->names[f], posterior_column_kind_name(m->features[f].kind),
						named->name, posterior_column_kind_name(named->kinds[f])),
				 posterior_kind_hint(named->kinds[f], m->features[f].kind)));
	}
	MemoryContextSwitchTo(before);
	return m;
}

static void
match_row(PosteriorCall *call, Datum row, double *x)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(row);
	Oid			type = HeapTupleHeaderGetTypeId(header);
	int32		typmod = HeapTupleHeaderGetTypMod(header);
	PosteriorMatch *m = call->match;
	HeapTupleData tuple;

	if (m == NULL || m->type != type || m->typmod != typmod)
	{
		/* rows of many types may come by in turn */
		call->match = NULL;
		if (m != NULL)
			MemoryContextDelete(m->memory);
		m = call->match = make_match(call->named, type, typmod);
	}
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = header;
	heap_deform_tuple(&tuple, m->desc, m->values, m->nulls);
	for (int f = 0; f < call->named->n_features; f++)
		x[f] = posterior_feature_cell(&m->features[f], m->values[m->places[f]],
									  m->nulls[m->places[f]], f + 1);
}

/* A value that is no row is the feature of a context that has one only. */
static void
match_scalar(const PosteriorNamed *named, Oid type, Datum value, bool isnull, double *x)
{
	PosteriorFeature feature;

	if (named->n_features != 1)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("a row is needed, not %s", format_type_be(type)),
				 errdetail("Context \"%s\" has %d features.", named->name, named->n_features),
				 errhint("Give a row of a table or of a subquery. A function that returns values "
						 "instead of rows "
						 "needs one around it: SELECT r FROM (SELECT ... FROM unnest(...) x) r.")));
	posterior_feature_init(&feature, type, 1, CurrentMemoryContext);
	feature.name = named->names[0];
	if (feature.base == UNKNOWNOID)
		feature.kind = named->kinds[0];
	if (!posterior_kind_takes(named->kinds[0], feature.kind))
		ereport(
			ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg(
				 "the value is of kind \"%s\", feature \"%s\" of context \"%s\" is of kind \"%s\"",
				 posterior_column_kind_name(feature.kind), named->names[0], named->name,
				 posterior_column_kind_name(named->kinds[0])),
			 posterior_kind_hint(named->kinds[0], feature.kind)));
	*x = posterior_feature_cell(&feature, value, isnull, 1);
}

void
posterior_match_value(PosteriorCall *call, Oid type, Datum value, bool isnull, double *x)
{
	const PosteriorNamed *named = call->named;

	if (type_is_rowtype(type))
		match_row(call, value, x);
	else if (getBaseType(type) == JSONBOID)
		posterior_json_cells(DatumGetJsonbP(value), named->n_features, named->kinds, named->names,
							 x);
	else
		match_scalar(named, type, value, isnull, x);
}

PosteriorRows *
posterior_match_rows(PosteriorCall *call, ArrayType *array)
{
	PosteriorRows *rows = posterior_rows_of_kinds(CurrentMemoryContext, call->named->n_features,
												  call->named->kinds);
	Oid			type = ARR_ELEMTYPE(array);
	int16		length;
	bool		byval;
	char		align;
	Datum	   *elements;
	bool	   *nulls,
				whole;
	int			n;

	get_typlenbyvalalign(type, &length, &byval, &align);
	deconstruct_array(array, type, length, byval, align, &elements, &nulls, &n);
	whole = type_is_rowtype(type) || getBaseType(type) == JSONBOID;
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (nulls[i] && whole)
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("row %d of the array is NULL", i + 1),
							errhint("A row may have NULL columns, which are missing features, but "
									"must itself be there.")));
		posterior_match_value(call, type, elements[i], nulls[i], posterior_rows_next(rows));
		rows->n++;
	}
	return rows;
}
