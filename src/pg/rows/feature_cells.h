/*
 * feature_cells.h: SQL values as cells of a row.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_FEATURE_CELLS_H
#define POSTERIOR_FEATURE_CELLS_H

#include "pg/base/compat.h"

/*
 * What a column's values mean; kept in context values, so the numbers are part of the binary
 * format.
 */
typedef enum PosteriorColumnKind
{
	POSTERIOR_NUMBER = 1,
	POSTERIOR_BOOLEAN = 2,
	/* seconds since 2000-01-01, UTC; values of 1.0 do not tell of which of the two kinds below */
	POSTERIOR_TIME = 3,
	POSTERIOR_INTERVAL = 4,		/* seconds */
	POSTERIOR_CATEGORY = 5,		/* identity of a label */
	POSTERIOR_LOCAL_TIME = 6,	/* date or timestamp: seconds as if it were UTC */
	POSTERIOR_INSTANT = 7,		/* timestamp with time zone */
	POSTERIOR_LAST_KIND = POSTERIOR_INSTANT
} PosteriorColumnKind;

/* How to read values of one SQL type. */
typedef struct PosteriorFeature
{
	Oid			type;			/* as declared */
	Oid			base;			/* without domains */
	PosteriorColumnKind kind;
	FmgrInfo   *out;			/* enum: its output function */
	const char *name;			/* for errors: of a column of a named context, else NULL */
} PosteriorFeature;

/*
 * Find out how to read a type; ordinal (from 1) is for the message when it cannot be a feature.
 * Memory comes from context.
 */
void		posterior_feature_init(PosteriorFeature *feature, Oid type, int ordinal,
								   MemoryContext context);

/*
 * The cell of a value; NaN for NULL. A value that is NaN or infinite is an error that names the
 * ordinal.
 */
double		posterior_feature_cell(const PosteriorFeature *feature, Datum value, bool isnull,
								   int ordinal);

/* The same; a value that is NaN or infinite is a cell that is not finite, NULL is NaN. */
double		posterior_feature_value(const PosteriorFeature *feature, Datum value, bool isnull);

/* The identity of a label: 52 bits of a hash of its bytes, the same on every machine. */
double		posterior_label_identity(const char *bytes, int length);

/* Whether a context whose column is of a kind takes cells of another. */
bool		posterior_kind_takes(PosteriorColumnKind kind, PosteriorColumnKind given);

/* How to make a value of a kind one that the context takes, as a hint of an error. */
int			posterior_kind_hint(PosteriorColumnKind kind, PosteriorColumnKind given);

/* Name of a kind for messages: "number", "boolean", … */
const char *posterior_column_kind_name(PosteriorColumnKind kind);

/* A target: finite, or an error. */
double		posterior_check_target(double y);

#endif							/* POSTERIOR_FEATURE_CELLS_H */
