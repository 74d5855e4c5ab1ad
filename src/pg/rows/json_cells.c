/*
 * json_cells.c: a row of features written as JSON.
 *
 * JSON has no dates and no intervals: these are strings. They are read with settings of their
 * own, because no setting of the session may influence a cell: a time without a zone is in UTC, as
 * a timestamp's is.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/rows/json_cells.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/* What an input function makes of a text, whatever the session's settings are. */
static Datum
read_text(PGFunction input, const char *text)
{
	pg_tz	   *zone = session_timezone;
	int			order = DateOrder,
				style = IntervalStyle;
	volatile Datum value = (Datum) 0;

	session_timezone = pg_tzset("GMT");
	DateOrder = DATEORDER_MDY;
	IntervalStyle = INTSTYLE_POSTGRES;
	PG_TRY();
	{
		value = DirectFunctionCall3(input, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid),
									Int32GetDatum(-1));
	}
	PG_FINALLY();
	{
		session_timezone = zone;
		DateOrder = order;
		IntervalStyle = style;
	}
	PG_END_TRY();
	return value;
}

static const char *
value_name(const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvString:
			return "string";
		case jbvNumeric:
			return "number";
		case jbvBool:
			return "boolean";
		default:
			break;
	}
	if (value->type == jbvBinary && JsonContainerIsObject(value->val.binary.data))
		return "object";
	return "array";
}

pg_noreturn static void
wrong_kind(const PosteriorFeature *feature, const JsonbValue *value, int ordinal)
{
	const char *is = value_name(value),
			   *kind = posterior_column_kind_name(feature->kind);

	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 feature->name != NULL
			 ? errmsg("feature \"%s\" is a JSON %s, in the context it is of kind \"%s\"",
					  feature->name, is, kind)
			 : errmsg("feature %d is a JSON %s, in the context it is of kind \"%s\"",
					  ordinal, is, kind),
			 errhint("Numbers are JSON numbers, booleans are true and false, times, intervals "
					 "and categories are strings.")));
}

/* The cell of a JSON value for a feature of a kind. */
static double
json_cell(PosteriorFeature *feature, const JsonbValue *value, int ordinal)
{
	Datum		datum = (Datum) 0;

	if (value->type == jbvNull)
		return NAN;
	if (feature->kind == POSTERIOR_NUMBER && value->type == jbvNumeric)
	{
		feature->base = NUMERICOID;
		datum = NumericGetDatum(value->val.numeric);
	}
	else if (feature->kind == POSTERIOR_BOOLEAN && value->type == jbvBool)
	{
		feature->base = BOOLOID;
		datum = BoolGetDatum(value->val.boolean);
	}
	else if (value->type == jbvString
			 && (feature->kind == POSTERIOR_TIME || feature->kind == POSTERIOR_LOCAL_TIME
				 || feature->kind == POSTERIOR_INSTANT))
	{
		feature->base = TIMESTAMPTZOID;
		datum = read_text(timestamptz_in, pnstrdup(value->val.string.val, value->val.string.len));
	}
	else if (feature->kind == POSTERIOR_INTERVAL && value->type == jbvString)
	{
		feature->base = INTERVALOID;
		datum = read_text(interval_in, pnstrdup(value->val.string.val, value->val.string.len));
	}
	else if (feature->kind == POSTERIOR_CATEGORY && value->type == jbvString)
		return posterior_label_identity(value->val.string.val, value->val.string.len);
	else
		wrong_kind(feature, value, ordinal);
	return posterior_feature_cell(feature, datum, false, ordinal);
}

/* The value of a feature: its element, or that of its name. */
static JsonbValue *
find_value(Jsonb *json, int f, const char *name)
{
	JsonbValue *value;

	if (JB_ROOT_IS_ARRAY(json))
		return getIthJsonbValueFromContainer(&json->root, f);
	value = getKeyJsonValueFromContainer(&json->root, name, strlen(name), NULL);
	if (value == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("the JSON object has no key \"%s\"", name),
				 errhint("Give an object whose keys have the names of the features; "
						 "a value may be null.")));
	return value;
}

void
posterior_json_cells(Jsonb *json, int n_features, const uint8 *kinds, char *const *names,
					 double *x)
{
	bool		array = JB_ROOT_IS_ARRAY(json) && !JB_ROOT_IS_SCALAR(json);

	if (!array && (names == NULL || !JB_ROOT_IS_OBJECT(json)))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 names == NULL ? errmsg("the features must be a JSON array")
				 : errmsg("the features must be a JSON object or a JSON array"),
				 names == NULL && JB_ROOT_IS_OBJECT(json)
				 ? errdetail("The features of a context value have no names.") : 0,
				 errhint("Give their values in the order of the context: "
						 "'[1.5, \"rain\", null]'.")));
	if (array && JB_ROOT_COUNT(json) != n_features)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("%d feature%s given, the context has %d", JB_ROOT_COUNT(json),
						JB_ROOT_COUNT(json) == 1 ? "" : "s", n_features),
				 errhint("Give the same features, in the same order, as to posterior.context, "
						 "without the target.")));
	for (int f = 0; f < n_features; f++)
	{
		PosteriorFeature feature = {.kind = (PosteriorColumnKind) kinds[f],
		.name = names != NULL ? names[f] : NULL};

		x[f] = json_cell(&feature, find_value(json, f, feature.name), f + 1);
	}
}
