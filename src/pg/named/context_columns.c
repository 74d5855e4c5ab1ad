/*
 * context_columns.c: from the names that a user gives to the columns of a named context.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/context_columns.h"
#include "pg/rows/column_types.h"
#include "pg/rows/feature_cells.h"
#include "pg/types/filter_text.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/parsenodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/typcache.h"

static AttrNumber
find_column(Oid relation, const char *name)
{
	AttrNumber	column = get_attnum(relation, name);

	if (column <= 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
						errmsg("column \"%s\" of relation \"%s\" does not exist", name,
							   get_rel_name(relation))));
	return column;
}

bool
posterior_is_target(const PosteriorColumns *c, AttrNumber column)
{
	for (int t = 0; t < c->n_targets; t++)
		if (c->targets[t] == column)
			return true;
	return false;
}

/* The names in '{a,b}'. */
static Datum *
target_names(const char *text, int *n)
{
	Oid			input,
				parameter;
	ArrayType  *array;
	Datum	   *names;
	bool	   *nulls;

	getTypeInputInfo(TEXTARRAYOID, &input, &parameter);
	array = DatumGetArrayTypeP(OidInputFunctionCall(input, pstrdup(text), parameter, -1));
	if (ARR_NDIM(array) != 1 || ArrayGetNItems(1, ARR_DIMS(array)) > TNP_MAX_TARGETS)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("the targets of a context are a list of 1 to %d columns", TNP_MAX_TARGETS),
				 errdetail("It has %d dimensions and %d names.", ARR_NDIM(array),
						   ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array))),
				 errhint("Write names of columns, as in target => '{speed,force}'.")));
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &names, &nulls, n);
	for (int t = 0; t < *n; t++)
		if (nulls[t])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("the name of a target is NULL"),
					 errhint("The name of a column called NULL has quotes: '{\"NULL\"}'.")));
	return names;
}

/* One of several targets. */
static void
add_target(PosteriorColumns *c, const char *name)
{
	AttrNumber	column = find_column(c->relation, name);
	Oid			type = get_atttype(c->relation, column);

	if (posterior_is_target(c, column))
		ereport(ERROR, (errcode(ERRCODE_DUPLICATE_COLUMN),
						errmsg("target \"%s\" is given twice", name)));
	if (!posterior_is_number(type))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" cannot be one of several targets", name),
				 errdetail("Its type is %s.", format_type_be(type)),
				 errhint("Several targets are columns of numbers. A label, and an array of all "
						 "targets, is the only target of its context.")));
	c->targets[c->n_targets++] = column;
}

/* The only target. */
static void
set_one_target(PosteriorColumns *c, const char *name)
{
	AttrNumber	column = find_column(c->relation, name);
	Oid			type = get_atttype(c->relation, column);

	if (!posterior_can_be_target(type))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" cannot be a target", name),
				 errdetail("Its type is %s.", format_type_be(type)),
				 errhint("A target is a number, or a label: text, an enum or a boolean.")));
	c->targets[0] = column;
	c->n_targets = 1;
}

void
posterior_set_target(PosteriorColumns *c, const char *given)
{
	Datum	   *names;
	int			n;

	c->n_targets = 0;
	if (given[0] != '{' || get_attnum(c->relation, given) > 0)
	{
		set_one_target(c, given);
		return;
	}
	names = target_names(given, &n);
	if (n == 1)
		set_one_target(c, TextDatumGetCString(names[0]));
	for (int t = 0; n > 1 && t < n; t++)
		add_target(c, TextDatumGetCString(names[t]));
}

/* The named columns, or all that can be features. */
void
posterior_set_features(PosteriorColumns *d, ArrayType *names)
{
	d->n_features = 0;
	if (names != NULL)
	{
		Datum	   *elements;
		bool	   *nulls;
		int			n;

		deconstruct_array(names, TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, &n);
		for (int i = 0; i < n && i < MaxHeapAttributeNumber; i++)
		{
			char	   *name;
			PosteriorFeature feature;
			AttrNumber	column;

			if (nulls[i])
				ereport(ERROR,
						(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						 errmsg("the name of a feature is NULL")));
			name = TextDatumGetCString(elements[i]);
			column = find_column(d->relation, name);
			if (posterior_is_target(d, column))
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("column \"%s\" is %s target and cannot be a feature", name,
								d->n_targets > 1 ? "a" : "the"),
						 errdetail("A prediction that reads its own target is a leak."),
						 errhint("Leave it out of the features.")));
			for (int j = 0; j < d->n_features; j++)
				if (d->features[j] == column)
					ereport(ERROR,
							(errcode(ERRCODE_DUPLICATE_COLUMN),
							 errmsg("feature \"%s\" is given twice", name)));
			posterior_feature_init(&feature, get_atttype(d->relation, column), i + 1,
								   CurrentMemoryContext);
			d->features[d->n_features++] = column;
		}
	}
	else
	{
		Relation	rel = table_open(d->relation, AccessShareLock);
		TupleDesc	desc = RelationGetDescr(rel);

		for (int i = 0; i < desc->natts; i++)
			if (!TupleDescAttr(desc, i)->attisdropped && !posterior_is_target(d, i + 1)
				&& posterior_can_be_feature(TupleDescAttr(desc, i)->atttypid))
				d->features[d->n_features++] = i + 1;
		table_close(rel, NoLock);
	}
	if (d->n_features == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a context needs at least one feature"),
						errhint("Features may be numbers, booleans, text, enums, dates, timestamps "
								"and intervals.")));
}

/* "a, b DESC": column names with directions. */
static void
parse_order(PosteriorColumns *d, const char *text)
{
	List *statements = posterior_parse(psprintf("SELECT 1 ORDER BY %s", text), "order_by", text);
	SelectStmt *select = (SelectStmt *) linitial_node(RawStmt, statements)->stmt;
	ListCell   *cell;
	bool good = list_length(statements) == 1 && IsA(select, SelectStmt)
			 && select->limitCount == NULL && select->limitOffset == NULL
			 && select->lockingClause == NIL
			 && list_length(select->sortClause) < MaxHeapAttributeNumber;

	foreach(cell, select->sortClause)
	{
		SortBy	   *item = lfirst_node(SortBy, cell);
		ColumnRef  *column = (ColumnRef *) item->node;

		if (!good || !IsA(column, ColumnRef) || list_length(column->fields) != 1
			|| !IsA(linitial(column->fields), String) || item->sortby_dir == SORTBY_USING
			|| item->sortby_nulls != SORTBY_NULLS_DEFAULT)
		{
			good = false;
			break;
		}
		d->order[d->n_order] = find_column(d->relation, strVal(linitial(column->fields)));
		if (!OidIsValid(
				lookup_type_cache(get_atttype(d->relation, d->order[d->n_order]), TYPECACHE_LT_OPR)
					->lt_opr))
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("rows cannot be ordered by column \"%s\"",
							strVal(linitial(column->fields))),
					 errdetail("Values of type %s have no order.",
							   format_type_be(get_atttype(d->relation, d->order[d->n_order])))));
		d->descending[d->n_order++] = item->sortby_dir == SORTBY_DESC;
	}
	if (!good)
		ereport(
			ERROR,
			(errcode(ERRCODE_SYNTAX_ERROR), errmsg("invalid order_by: \"%s\"", text),
			 errhint(
				 "Write names of columns separated by commas, each with ASC or DESC if needed.")));
}

/* The primary key if it grows by itself: one column of an integer, date or timestamp type. */
static void
default_order(PosteriorColumns *d)
{
	Relation	rel = table_open(d->relation, AccessShareLock);
	Oid			key;

	list_free(RelationGetIndexList(rel));
	key = rel->rd_pkindex;
	if (OidIsValid(key))
	{
		Relation	index = index_open(key, AccessShareLock);

		if (IndexRelationGetNumberOfKeyAttributes(index) == 1)
			switch (get_atttype(d->relation, index->rd_index->indkey.values[0]))
			{
				case INT2OID:
				case INT4OID:
				case INT8OID:
				case DATEOID:
				case TIMESTAMPOID:
				case TIMESTAMPTZOID:
					d->order[0] = index->rd_index->indkey.values[0];
					d->descending[0] = false;
					d->n_order = 1;
					break;
				default:
					break;
			}
		index_close(index, AccessShareLock);
	}
	table_close(rel, NoLock);
}

void
posterior_note_order(const PosteriorColumns *d, const char *context)
{
	if (d->n_order == 0)
		ereport(NOTICE,
				(errmsg("the rows of context \"%s\" have no order of their own", context),
				 errdetail("A hash of each row orders them, so a new row is among the others, and "
						   "the rows after it are encoded again."),
				 errhint("Give order_by a column that grows, as a time or a number of the row.")));
}

void
posterior_set_order(PosteriorColumns *d, const char *order)
{
	d->n_order = 0;
	if (order != NULL)
		parse_order(d, order);
	else
		default_order(d);
}
