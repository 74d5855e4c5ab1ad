/*
 * filter_rules.c: what may be in a row filter: immutable functions and operators of pg_catalog, and
 * values of the server's own types.
 *
 * A filter is evaluated with the rights of the predicting user, so nothing that its author could
 * have defined may run: neither a function or operator, nor the input function of a type, nor a
 * domain's constraint, nor an operator that would be found when the text is parsed again. And its
 * value may depend on the row alone, not on settings of the session.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/filter_rules.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

void
posterior_filter_refuse(const char *condition, const char *detail)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("invalid filter: %s", condition), errdetail("%s", detail),
					errhint("A filter is a boolean expression over the columns of the relation, "
							"with immutable functions and operators of pg_catalog.")));
}

static bool
foreign_function(Oid function, void *context)
{
	return function >= FirstNormalObjectId;
}

/*
 * Whether a function that the server calls immutable asks the session's settings: numbers as text
 * extra_float_digits, bytes as text bytea_output, quote_ident quote_all_identifiers, the months
 * between two points in time TimeZone.
 */
static bool
function_asks_settings(Oid function, void *context)
{
	switch (function)
	{
		case F_FLOAT4OUT:
		case F_FLOAT8OUT:
		case F_POINT_OUT:
		case F_LSEG_OUT:
		case F_PATH_OUT:
		case F_BOX_OUT:
		case F_POLY_OUT:
		case F_LINE_OUT:
		case F_CIRCLE_OUT:
		case F_BYTEAOUT:
		case F_QUOTE_IDENT:
		case F_AGE_TIMESTAMPTZ_TIMESTAMPTZ:
			return true;
		default:
			return false;
	}
}

/*
 * Whether a time is moved to a zone whose name may be an abbreviation, of which the session's
 * timezone_abbreviations say what it is.
 */
static bool
function_asks_abbreviations(Node *node)
{
	FuncExpr   *call = (FuncExpr *) node;
	Const	   *zone;
	char	   *name;

	if (!IsA(node, FuncExpr)
		|| (call->funcid != F_TIMEZONE_TEXT_TIMESTAMPTZ
			&& call->funcid != F_TIMEZONE_TEXT_TIMESTAMP))
		return false;
	zone = linitial(call->args);
	if (!IsA(zone, Const))
		return true;
	if (zone->constisnull)
		return false;
	name = TextDatumGetCString(zone->constvalue);
	return strchr(name, '/') == NULL && strcmp(name, "UTC") != 0;
}

/*
 * Whether a value is a text search configuration or dictionary that users can change: one that is
 * not the server's, or that a row names.
 */
static bool
search_is_foreign(Node *node)
{
	Oid			type = IsA(node, List) || IsA(node, CaseWhen) ? InvalidOid : exprType(node);

	if (type != REGCONFIGOID && type != REGDICTIONARYOID)
		return false;
	return !IsA(node, Const)
		|| (!((Const *) node)->constisnull
			&& DatumGetObjectId(((Const *) node)->constvalue) >= FirstNormalObjectId);
}

/* Whether the values of a type are read, written and checked by built-in functions alone. */
static bool
type_is_own(Oid type)
{
	Oid			element = get_element_type(type);

	if (OidIsValid(element))
		return type_is_own(element);
	switch (get_typtype(type))
	{
		case TYPTYPE_ENUM:
			return true;
		case TYPTYPE_DOMAIN:
		case TYPTYPE_COMPOSITE:
		case '\0':				/* it is gone */
			return false;
		default:
			return type < FirstNormalObjectId;
	}
}

/*
 * The type of the value that a node makes, if it is none of the server's own; else 0. Those of a
 * column have been made already, of whatever type.
 */
Oid
posterior_type_is_foreign(Node *node)
{
	Oid			type;

	if (IsA(node, List) || IsA(node, CaseWhen) || IsA(node, Var))
		return InvalidOid;
	type = exprType(node);
	return OidIsValid(type) && !type_is_own(type) ? type : InvalidOid;
}

/*
 * Whether a column is a range of a type of users: the planner's estimates call the function that
 * takes the difference of two bounds, which any role can write.
 */
static bool
column_is_foreign_range(Node *node)
{
	Oid			type;

	if (!IsA(node, Var))
		return false;
	type = getBaseType(exprType(node));
	return type >= FirstNormalObjectId && (type_is_range(type) || type_is_multirange(type));
}

static void
type_refuse(Oid type, const char *shown)
{
	posterior_filter_refuse(shown,
				  psprintf("It has a value of type %s, and may have values of PostgreSQL's own "
						   "types, of enums, and of arrays of these.",
						   format_type_be(type)));
}

/*
 * Raise if a type that is named is none of the server's own: the analysis of an expression already
 * reads its constants.
 */
bool
posterior_filter_check_types(Node *node, void *shown)
{
	if (node == NULL)
		return false;
	if (IsA(node, TypeName))
	{
		Oid			type = LookupTypeNameOid(NULL, (TypeName *) node, true);

		if (OidIsValid(type) && !type_is_own(type))
			type_refuse(type, shown);
	}
	return raw_expression_tree_walker(node, posterior_filter_check_types, shown);
}

/* The operator of a node, or 0. */
static Oid
node_operator(Node *node)
{
	if (IsA(node, OpExpr) || IsA(node, DistinctExpr) || IsA(node, NullIfExpr))
		return ((OpExpr *) node)->opno;
	return IsA(node, ScalarArrayOpExpr) ? ((ScalarArrayOpExpr *) node)->opno : InvalidOid;
}

/* Whether an operator is for just the types of these operands. */
static bool
operator_is_exact(Oid operator, Node *left, Node *right)
{
	Oid			left_type,
				right_type;

	op_input_types(operator, &left_type, &right_type);
	return left_type == exprType(left) && right_type == exprType(right);
}

/*
 * Whether a node is printed without its operator, and an operator that a user defines for its types
 * would be found instead when the condition is parsed again. One of pg_catalog that is for just
 * these types always comes first.
 */
static bool
node_is_replaceable(Node *node)
{
	if (IsA(node, DistinctExpr) || IsA(node, NullIfExpr))
		return !operator_is_exact(node_operator(node), linitial(((OpExpr *) node)->args),
								  lsecond(((OpExpr *) node)->args));
	if (IsA(node, RowCompareExpr))
	{
		RowCompareExpr *rows = (RowCompareExpr *) node;

		for (int i = 0; i < list_length(rows->opnos); i++)
			if (!operator_is_exact(list_nth_oid(rows->opnos, i), list_nth(rows->largs, i),
								   list_nth(rows->rargs, i)))
				return true;
	}
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg != NULL)
	{
		CaseExpr   *c = (CaseExpr *) node;
		ListCell   *cell;

		foreach(cell, c->args)
		{
			OpExpr	   *when = (OpExpr *) lfirst_node(CaseWhen, cell)->expr;

			/* implicit casts are not printed here */
			if (!IsA(when, OpExpr)
				|| !operator_is_exact(when->opno, strip_implicit_coercions((Node *) c->arg),
									  strip_implicit_coercions(lsecond(when->args))))
				return true;
		}
	}
	return false;
}

/* Raise unless the expression is made of the row and of what is built in. */
bool
posterior_filter_check_parts(Node *node, void *shown)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
		posterior_filter_refuse(shown, "It has a subquery.");
	if (IsA(node, Var) && ((Var *) node)->varattno <= 0)
		posterior_filter_refuse(shown, "It uses a system column or the whole row.");
	/* a domain's constraints may call anything */
	if (check_functions_in_node(node, foreign_function, NULL) || IsA(node, CoerceToDomain)
		|| node_operator(node) >= FirstNormalObjectId)
		posterior_filter_refuse(shown, "It calls something that is not part of PostgreSQL.");
	if (search_is_foreign(node))
		posterior_filter_refuse(shown,
								"It uses a text search configuration that is not part of "
								"PostgreSQL.");
	/* XML asks xmlbinary and TimeZone */
	if (check_functions_in_node(node, function_asks_settings, NULL) || IsA(node, XmlExpr))
		posterior_filter_refuse(shown, "Its value depends on more than the row.");
	if (function_asks_abbreviations(node))
		posterior_filter_refuse(shown,
					  "It has a time zone that may be an abbreviation, which depends on more "
					  "than the row; UTC and names like Europe/Paris do not.");
	if (OidIsValid(posterior_type_is_foreign(node)))
		type_refuse(posterior_type_is_foreign(node), shown);
	if (column_is_foreign_range(node))
		posterior_filter_refuse(shown,
								psprintf("It uses a column of type %s, a range that is not part "
										 "of PostgreSQL and may call anything.",
										 format_type_be(exprType(node))));
	if (node_is_replaceable(node))
		posterior_filter_refuse(shown,
					  "It compares by IS DISTINCT FROM, NULLIF, CASE or as rows, which name no "
					  "operator, and others may define one for these types.");
	return expression_tree_walker(node, posterior_filter_check_parts, shown);
}
