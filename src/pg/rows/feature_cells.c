/*
 * feature_cells.c: the one place that turns an SQL value into a cell of a row.
 *
 * No session setting may influence a cell: times are seconds in UTC, intervals are seconds with
 * months of 30 days and days of 24 hours, labels are bytes in the server's encoding. Labels become
 * identities by hashing, so contexts need no dictionary.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/rows/feature_cells.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

const char *
posterior_column_kind_name(PosteriorColumnKind kind)
{
	static const char *const names[] = {
		"",         "number",            "boolean",                 "date or timestamp", "interval",
		"category", "date or timestamp", "timestamp with time zone"};

	return kind >= POSTERIOR_NUMBER && kind <= POSTERIOR_LAST_KIND ? names[kind] : "unknown";
}

/* A moment and what a clock shows are the same in one time zone only, which is not known here. */
bool
posterior_kind_takes(PosteriorColumnKind kind, PosteriorColumnKind given)
{
	return given == kind
		|| (kind == POSTERIOR_TIME
			&& (given == POSTERIOR_LOCAL_TIME || given == POSTERIOR_INSTANT));
}

int
posterior_kind_hint(PosteriorColumnKind kind, PosteriorColumnKind given)
{
	if (kind == POSTERIOR_INSTANT && given == POSTERIOR_LOCAL_TIME)
		return errhint("Say of which time zone it is, as in x::timestamp AT TIME ZONE 'UTC'; "
					   "x::timestamptz takes the session's.");
	if (kind == POSTERIOR_LOCAL_TIME && given == POSTERIOR_INSTANT)
		return errhint("Say what a clock shows then, as in x AT TIME ZONE 'UTC'; x::timestamp "
					   "takes the session's time zone.");
	return errhint("Cast it to the type that it has in the context.");
}

void
posterior_feature_init(PosteriorFeature *feature, Oid type, int ordinal, MemoryContext context)
{
	feature->type = type;
	feature->base = getBaseType(type);
	feature->out = NULL;
	feature->name = NULL;
	switch (feature->base)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
			feature->kind = POSTERIOR_NUMBER;
			return;
		case BOOLOID:
			feature->kind = POSTERIOR_BOOLEAN;
			return;
		case DATEOID:
		case TIMESTAMPOID:
			feature->kind = POSTERIOR_LOCAL_TIME;
			return;
		case TIMESTAMPTZOID:
			feature->kind = POSTERIOR_INSTANT;
			return;
		case INTERVALOID:
			feature->kind = POSTERIOR_INTERVAL;
			return;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NAMEOID:
		case UNKNOWNOID:
			feature->kind = POSTERIOR_CATEGORY;
			return;
		default:
			break;
	}
	if (type_is_enum(feature->base))
	{
		Oid			function;
		bool		varlena;

		getTypeOutputInfo(feature->base, &function, &varlena);
		feature->out = MemoryContextAlloc(context, sizeof(FmgrInfo));
		fmgr_info_cxt(function, feature->out, context);
		feature->kind = POSTERIOR_CATEGORY;
		return;
	}
	ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
					errmsg("type %s cannot be a feature", format_type_be(type)),
					errdetail("It is the type of feature %d.", ordinal),
					errhint("Features may be numbers, booleans, text, enums, dates, timestamps and "
							"intervals; cast the value to one of these.")));
}

double
posterior_label_identity(const char *bytes, int length)
{
	uint64		hash = UINT64CONST(0xcbf29ce484222325);	/* FNV-1a */

	for (int i = 0; i < length; i++)
		hash = (hash ^ (unsigned char) bytes[i]) * UINT64CONST(0x100000001b3);
	/* fold, so that the upper bits count as well */
	return (double) ((hash ^ (hash >> 52)) & ((UINT64CONST(1) << 52) - 1));
}

/* A time in seconds; dates and timestamps at infinity give an infinity. */
static double
time_cell(Oid type, Datum value)
{
	if (type == DATEOID)
	{
		DateADT		date = DatumGetDateADT(value);

		return DATE_NOT_FINITE(date) ? INFINITY : (double) date * SECS_PER_DAY;
	}
	else
	{
		Timestamp	t = DatumGetTimestamp(value);

		return TIMESTAMP_NOT_FINITE(t) ? INFINITY : (double) t / USECS_PER_SEC;
	}
}

/*
 * An interval in seconds. Rows are ordered by intervals, so those that are equal, as a day and 24
 * hours, must be the same number to the last bit.
 */
static double
interval_cell(Datum value)
{
	Interval   *i = DatumGetIntervalP(value);
	int64 seconds =
			  i->time / USECS_PER_SEC + ((int64) i->month * DAYS_PER_MONTH + i->day) * SECS_PER_DAY,
		  rest = i->time % USECS_PER_SEC;

#ifdef INTERVAL_NOT_FINITE
	if (INTERVAL_NOT_FINITE(i))
		return INFINITY;
#endif
	/* of one sign, however it was written */
	if (seconds > 0 && rest < 0)
	{
		seconds--;
		rest += USECS_PER_SEC;
	}
	else if (seconds < 0 && rest > 0)
	{
		seconds++;
		rest -= USECS_PER_SEC;
	}
	return (double) seconds + (double) rest / USECS_PER_SEC;
}

static double
category_cell(const PosteriorFeature *feature, Datum value)
{
	const char *label;

	if (feature->out != NULL)
		label = OutputFunctionCall(feature->out, value);
	else if (feature->base == NAMEOID)
		label = NameStr(*DatumGetName(value));
	else if (feature->base == UNKNOWNOID)
		label = DatumGetCString(value);
	else
	{
		text	   *t = DatumGetTextPP(value);
		int			length = VARSIZE_ANY_EXHDR(t);

		/* character(n) is padded; the padding is not part of the value */
		while (feature->base == BPCHAROID && length > 0 && VARDATA_ANY(t)[length - 1] == ' ')
			length--;
		return posterior_label_identity(VARDATA_ANY(t), length);
	}
	return posterior_label_identity(label, strlen(label));
}

double
posterior_feature_value(const PosteriorFeature *feature, Datum value, bool isnull)
{
	if (isnull)
		return NAN;
	switch (feature->base)
	{
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
			return DatumGetInt32(value);
		case INT8OID:
			return (double) DatumGetInt64(value);
		case BOOLOID:
			return DatumGetBool(value) ? 1 : 0;
		/* -0 becomes 0 */
		case FLOAT4OID:
			return DatumGetFloat4(value) + 0.0;
		case FLOAT8OID:
			return DatumGetFloat8(value) + 0.0;
		case NUMERICOID:
			return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value)) + 0.0;
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return time_cell(feature->base, value) + 0.0;
		case INTERVALOID:
			return interval_cell(value) + 0.0;
		default:
			return category_cell(feature, value);
	}
}

double
posterior_feature_cell(const PosteriorFeature *feature, Datum value, bool isnull, int ordinal)
{
	double		cell;

	if (isnull)
		return NAN;
	if (feature->base == UNKNOWNOID && feature->kind != POSTERIOR_CATEGORY)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("feature %d is a literal without a type, in the context it "
							   "is of kind \"%s\"",
							   ordinal, posterior_column_kind_name(feature->kind)),
						errhint("Cast it to the type that it has in the context.")));
	cell = posterior_feature_value(feature, value, false);
	if (!isfinite(cell))
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
						feature->name != NULL
							? errmsg("feature \"%s\" is %s", feature->name,
									 isnan(cell) ? "NaN" : "infinite")
							: errmsg("feature %d is %s", ordinal, isnan(cell) ? "NaN" : "infinite"),
						errhint("Use NULL for a missing value.")));
	return cell;
}

double
posterior_check_target(double y)
{
	if (!isfinite(y))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("a target is %s", isnan(y) ? "NaN" : "infinite"),
				 errhint("Use NULL for rows whose target is unknown, or leave them out.")));
	return y + 0.0;
}
