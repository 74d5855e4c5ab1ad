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

void
posterior_set_target(PosteriorColumns *d, const char *name)
{
	d->target = find_column(d->relation, name);
	if (!posterior_can_be_target(get_atttype(d->relation, d->target)))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" cannot be a target", name),
				 errdetail("Its type is %s.", format_type_be(get_atttype(d->relation, d->target))),
				 errhint("A target is a number, or a label: text, an enum or a boolean.")));
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
			if (column == d->target)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("column \"%s\" is the target and cannot be a feature", name),
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
			if (!TupleDescAttr(desc, i)->attisdropped && i + 1 != d->target
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
				(errmsg("the rows of context \"%s\" are ordered by all their columns", context),
				 errdetail("A row that is inserted in the middle of the order makes the rows after "
						   "it be encoded again."),
				 errhint("Give order_by a column that grows.")));
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
