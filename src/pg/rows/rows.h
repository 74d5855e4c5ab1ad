/*
 * rows.h: rows gathered from SQL: a growing table of cells and targets.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ROWS_H
#define POSTERIOR_ROWS_H

#include "pg/rows/feature_cells.h"
#include "pg/rows/labels.h"

#include "engine/tnp.h"

/* Rows in one memory context. x and y are plain arrays, so that the engine reads them in place. */
typedef struct PosteriorRows
{
	MemoryContext context;
	int			n_features;
	PosteriorFeature *features; /* [n_features], NULL when the kinds came from a stored value */
	uint8	   *kinds;		/* [n_features] PosteriorColumnKind */
	TnpColumnKind *engine_kinds;	/* [n_features], the same for the engine */
	int64		n,
				room;
	double	   *x;				/* [n, n_features] */
	int			n_targets;		/* D, 1 unless the targets are arrays of numbers */
	double	   *y;				/* [n, D] targets; where they are labels, their numbers in: */
	PosteriorLabels *labels;	/* or NULL */
	PosteriorLabelList list;	/* once settled: y are classes of it */
	int			estimators;		/* of a context value; 0: posterior.estimators */
} PosteriorRows;

/* Empty rows whose columns have these types. */
PosteriorRows *posterior_rows_make(MemoryContext context, int n_features, const Oid *types);

/* Empty rows whose columns are of these kinds. */
PosteriorRows *posterior_rows_of_kinds(MemoryContext context, int n_features, const uint8 *kinds);

/*
 * Make room for one more row and return the place of its cells; the caller fills cells and
 * posterior_rows_y, then counts it.
 */
double	   *posterior_rows_next(PosteriorRows *rows);

/* Append rows whose columns are of the same kinds, with as many targets. */
void		posterior_rows_append(PosteriorRows *rows, int64 n, const double *x, const double *y);

/*
 * Put the rows in canonical order: by the bytes of features, then targets; equal rows are
 * interchangeable.
 */
void		posterior_rows_sort(PosteriorRows *rows);

/*
 * The classes of the labels of rows from `from` on, in the current memory context, and the list
 * that they are classes of.
 */
double	   *posterior_rows_classes(const PosteriorRows *rows, int64 from, PosteriorLabelList *list);

/* Turn numbers of labels into classes, after the last row; nothing where targets are numbers. */
void		posterior_rows_settle(PosteriorRows *rows);

/*
 * The rows with classes instead of numbers of labels, for a final function: the state itself stays
 * able to take more rows. Where targets are numbers it is returned as it is; else a copy in the
 * current memory context.
 */
PosteriorRows *posterior_rows_settled(PosteriorRows *rows);

/* Whether the aggregate, or the window that it runs over, has an ORDER BY. */
bool		posterior_aggregate_ordered(FunctionCallInfo fcinfo);

/* The engine's view; y is NULL for queries. Labels are settled. */
TnpRows		posterior_rows_view(const PosteriorRows *rows, bool with_y);

/* Types of the arguments of this call from `first` on; the number of them. */
int			posterior_argument_types(FunctionCallInfo fcinfo, int first, Oid *types);

#endif							/* POSTERIOR_ROWS_H */
