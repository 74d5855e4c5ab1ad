/*
 * labels.c: targets that are labels: the classes of a context and their order.
 *
 * A context's classes are the labels of its rows and nothing else, in an order that is a function
 * of these labels: so the same rows give the same classes, however they were read. No session
 * setting may influence a label or the order: labels are compared as bytes.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/rows/labels.h"

#include <ctype.h>

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

static bool
is_integer(Oid base)
{
	return base == INT2OID || base == INT4OID || base == INT8OID;
}

bool
posterior_can_be_label(Oid type)
{
	Oid			base = getBaseType(type);

	switch (base)
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NAMEOID:
		case UNKNOWNOID:
		case BOOLOID:
			return true;
		default:
			return is_integer(base) || type_is_enum(base);
	}
}

void
posterior_label_type_init(PosteriorLabelType *label, Oid type, MemoryContext context)
{
	Oid			function;
	bool		varlena;

	if (!posterior_can_be_label(type))
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("type %s cannot be a label", format_type_be(type)),
						errhint("Labels may be text, enums, booleans and integers; "
								"posterior.regress and posterior.context take numbers.")));
	memset(label, 0, sizeof(*label));
	label->base = getBaseType(type);
	if (!is_integer(label->base) && !type_is_enum(label->base))
		return;
	getTypeOutputInfo(label->base, &function, &varlena);
	fmgr_info_cxt(function, &label->out, context);
}

char *
posterior_label_text(PosteriorLabelType *label, Datum value)
{
	switch (label->base)
	{
		case BOOLOID:
			return pstrdup(DatumGetBool(value) ? "true" : "false");
		case NAMEOID:
			return pstrdup(NameStr(*DatumGetName(value)));
		case UNKNOWNOID:
			return pstrdup(DatumGetCString(value));
		case BPCHAROID:
			{
				char	   *padded = TextDatumGetCString(value);

				/* the padding is not part of the value */
				for (Size n = strlen(padded); n > 0 && padded[n - 1] == ' '; n--)
					padded[n - 1] = '\0';
				return padded;
			}
		case TEXTOID:
		case VARCHAROID:
			return TextDatumGetCString(value);
		default:
			return OutputFunctionCall(&label->out, value);
	}
}

char *
posterior_label_argument(FunctionCallInfo fcinfo, int argument)
{
	PosteriorLabelType *type = fcinfo->flinfo->fn_extra;

	if (type == NULL)
	{
		type = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(PosteriorLabelType));
		posterior_label_type_init(type, get_fn_expr_argtype(fcinfo->flinfo, argument),
								  fcinfo->flinfo->fn_mcxt);
		fcinfo->flinfo->fn_extra = type;
	}
	return posterior_label_text(type, PG_GETARG_DATUM(argument));
}

PosteriorLabels *
posterior_labels_make(MemoryContext context, Oid base, int most)
{
	PosteriorLabels *labels = MemoryContextAllocZero(context, sizeof(PosteriorLabels));

	labels->context = context;
	labels->base = base;
	labels->most = Min(most, POSTERIOR_MOST_LABELS);
	return labels;
}

void
posterior_labels_reset(PosteriorLabels *labels)
{
	for (int i = 0; i < labels->n; i++)
		pfree(labels->text[i]);
	labels->n = 0;
}

void
posterior_labels_adopt(PosteriorLabels *labels, const PosteriorLabelList *list)
{
	const char *text = list->text;

	for (int i = 0; i < list->n; i++, text += strlen(text) + 1)
		posterior_labels_add(labels, text);
}

int
posterior_labels_find(const PosteriorLabels *labels, const char *text)
{
	for (int i = 0; i < labels->n; i++)
		if (strcmp(labels->text[i], text) == 0)
			return i;
	return -1;
}

int
posterior_labels_add(PosteriorLabels *labels, const char *text)
{
	int			found = posterior_labels_find(labels, text);

	if (found >= 0)
		return found;
	if (labels->n >= labels->most)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("more than %d different labels", labels->most),
						errdetail("The first one too many is \"%s\".", text),
						errhint("Give rare labels one name, for example by CASE, until the model "
								"tells them apart (classes in posterior.models); a quantity is "
								"better predicted as a number.")));
	labels->text[labels->n] = MemoryContextStrdup(labels->context, text);
	return labels->n++;
}

pg_noreturn static void
no_labels(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the context has no labels"),
			 errhint("Give it rows whose label is not NULL.")));
}

/* ---- the order of the classes ---------------------------------------------------------------- */

/*
 * A label with its place in the order of its type; equal places, as all of text, are told apart by
 * bytes.
 */
typedef struct Ranked
{
	double		place;
	int64		integer;
	const char *text;
	int			number;
} Ranked;

static int
label_compare(const void *a, const void *b)
{
	const Ranked *x = a,
			   *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->integer != y->integer)
		return x->integer < y->integer ? -1 : 1;
	return strcmp(x->text, y->text);
}

/* Where a label stands in its enum; one that was renamed meanwhile comes last. */
static double
enum_place(Oid type, const char *text)
{
	HeapTuple tuple =
		SearchSysCache2(ENUMTYPOIDNAME, ObjectIdGetDatum(type), CStringGetDatum(text));
	double		place = get_float8_infinity();

	if (HeapTupleIsValid(tuple))
	{
		place = ((Form_pg_enum) GETSTRUCT(tuple))->enumsortorder;
		ReleaseSysCache(tuple);
	}
	return place;
}

PosteriorLabelList
posterior_labels_order(const PosteriorLabels *labels, int *class)
{
	Ranked		ranked[POSTERIOR_MOST_LABELS];
	bool		is_enum = type_is_enum(labels->base);
	StringInfoData text;

	for (int i = 0; i < labels->n; i++)
	{
		ranked[i] = (Ranked) {0, 0, labels->text[i], i};
		if (is_enum)
			ranked[i].place = strlen(labels->text[i]) < NAMEDATALEN
								? enum_place(labels->base, labels->text[i])
								: get_float8_infinity();
		else if (is_integer(labels->base))
			ranked[i].integer = (int64) strtoll(labels->text[i], NULL, 10);
	}
	qsort(ranked, labels->n, sizeof(Ranked), label_compare);
	initStringInfo(&text);
	for (int i = 0; i < labels->n; i++)
	{
		class[ranked[i].number] = i;
		appendBinaryStringInfo(&text, ranked[i].text, strlen(ranked[i].text) + 1);
	}
	return (PosteriorLabelList) {labels->n, text.len, text.data};
}

ArrayType *
posterior_label_array(const PosteriorLabelList *list)
{
	Datum	   *elements = palloc(Max(list->n, 1) * sizeof(Datum));
	const char *text = list->text;

	for (int i = 0; i < list->n; i++, text += strlen(text) + 1)
		elements[i] = CStringGetTextDatum(text);
	return construct_array(elements, list->n, TEXTOID, -1, false, TYPALIGN_INT);
}

/* ---- finding a label ------------------------------------------------------------------------- */

/* The class of exactly this label; -1 where there is none. */
static int
exact_class(const PosteriorLabelList *list, const char *text)
{
	const char *label = list->text;

	for (int i = 0; i < list->n; i++, label += strlen(label) + 1)
		if (strcmp(label, text) == 0)
			return i;
	return -1;
}

/* A text as boolean's input reads it, white space around it left out. */
static bool
read_boolean(const char *text, bool *value)
{
	size_t		length;

	while (isspace((unsigned char) *text))
		text++;
	for (length = strlen(text); length > 0 && isspace((unsigned char) text[length - 1]);)
		length--;
	return parse_bool_with_len(text, length, value);
}

/* A text as bigint's input reads decimal digits, white space around them left out. */
static bool
read_integer(const char *text, int64 *value)
{
	char	   *end;

	errno = 0;
	*value = (int64) strtoll(text, &end, 10);
	if (end == text || errno != 0)
		return false;
	while (isspace((unsigned char) *end))
		end++;
	return *end == '\0';
}

/* Whether a label is what a boolean, or an integer, is written as. */
static bool
is_written_as(const char *label, bool boolean)
{
	int64		value;

	if (boolean)
		return strcmp(label, "true") == 0 || strcmp(label, "false") == 0;
	return read_integer(label, &value) && strcmp(label, psprintf(INT64_FORMAT, value)) == 0;
}

static bool
all_written_as(const PosteriorLabelList *list, bool boolean)
{
	const char *label = list->text;

	for (int i = 0; i < list->n; i++, label += strlen(label) + 1)
		if (!is_written_as(label, boolean))
			return false;
	return list->n > 0;
}

/*
 * Labels do not say which type they come from, so their form does: where all are written as
 * booleans, or as integers are, other spellings of a value mean that label.
 */
int
posterior_label_find(const PosteriorLabelList *list, const char *text)
{
	int			class = exact_class(list, text);
	bool		truth;
	int64		integer;

	if (class < 0 && read_boolean(text, &truth) && all_written_as(list, true))
		class = exact_class(list, truth ? "true" : "false");
	if (class < 0 && read_integer(text, &integer) && all_written_as(list, false))
		class = exact_class(list, psprintf(INT64_FORMAT, integer));
	return class;
}

int
posterior_label_class(const PosteriorLabelList *list, const char *text)
{
	const char *label;
	StringInfoData known;
	int			class = posterior_label_find(list, text);

	if (class >= 0)
		return class;
	if (list->n == 0)
		no_labels();
	initStringInfo(&known);
	label = list->text;
	for (int i = 0; i < list->n; i++, label += strlen(label) + 1)
		appendStringInfo(&known, "%s\"%s\"", i > 0 ? ", " : "", label);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("label \"%s\" is not in the context", text),
			 errdetail("The context has %s.", known.data),
			 errhint("A label that no row of the context has cannot be predicted.")));
}

/* ---- models ---------------------------------------------------------------------------------- */

void
posterior_check_model_labels(const TnpModel *model, const char *name, bool labels)
{
	bool		predicts_labels = tnp_model_info(model)->n_classes > 0;

	if (labels && !predicts_labels)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("model \"%s\" predicts numbers, not labels", name),
				 errhint("Choose a model with classes, by posterior.class_model or for a named "
						 "context by its model; the view posterior.models shows them.")));
	if (!labels && predicts_labels)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("model \"%s\" predicts labels, not numbers", name),
						errhint("Use posterior.classify or posterior.class_context, or choose a "
								"model without classes; the view posterior.models shows them.")));
}

void
posterior_check_model_room(const TnpModel *model, const char *name, int n)
{
	int			room = tnp_model_info(model)->n_classes;

	if (n == 0)
		no_labels();
	if (n > room)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the context has more labels than model \"%s\" can tell apart", name),
				 errdetail("It has %d, the model has room for %d.", n, room),
				 errhint("Give rare labels one name, for example by CASE.")));
}
