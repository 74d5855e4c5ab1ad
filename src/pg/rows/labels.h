/*
 * labels.h: targets that are labels: the classes of a context and their order.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_LABELS_H
#define POSTERIOR_LABELS_H

#include "pg/base/compat.h"

#include "engine/tnp.h"

#include "utils/array.h"

#define POSTERIOR_MOST_LABELS 64	/* of a context, whatever the model */

/* How to read labels of one SQL type. */
typedef struct PosteriorLabelType
{
	Oid			base;			/* without domains */
	FmgrInfo	out;			/* integers and enums: the output function */
} PosteriorLabelType;

/* Labels in the order of their classes: n strings, each ending with a NUL. */
typedef struct PosteriorLabelList
{
	int			n;				/* 0: targets are numbers */
	int			bytes;
	const char *text;
} PosteriorLabelList;

/* The labels of rows while these are gathered: numbered as they appear. */
typedef struct PosteriorLabels
{
	MemoryContext context;
	Oid			base;			/* decides the order of the classes */
	int			most;			/* more are an error */
	int			n;
	char	   *text[POSTERIOR_MOST_LABELS];
} PosteriorLabels;

/* Whether values of a type can be labels: text, booleans, integers and enums. */
bool		posterior_can_be_label(Oid type);

/*
 * Find out how to read labels of a type; raises if they cannot be read. Memory comes from context.
 */
void		posterior_label_type_init(PosteriorLabelType *label, Oid type, MemoryContext context);

/* The label of a value that is not NULL, as its cast to text. */
char	   *posterior_label_text(PosteriorLabelType *label, Datum value);

/* The label in argument number `argument` of a call, of any type that labels have. */
char	   *posterior_label_argument(FunctionCallInfo fcinfo, int argument);

/* No labels yet of a base type, at most `most`. */
PosteriorLabels *posterior_labels_make(MemoryContext context, Oid base, int most);

/* Forget them all. */
void		posterior_labels_reset(PosteriorLabels *labels);

/* Take over the labels of a list, in its order. */
void		posterior_labels_adopt(PosteriorLabels *labels, const PosteriorLabelList *list);

/* The number of a label, or -1 where it is none of them. */
int			posterior_labels_find(const PosteriorLabels *labels, const char *text);

/* The number of a label, which is one of them from now on. Raises where there are too many. */
int			posterior_labels_add(PosteriorLabels *labels, const char *text);

/*
 * Classes in their order: integers and enums in that of their type, false before true, text by its
 * bytes. class [n] receives the class of every number; the list is made in the current memory
 * context.
 */
PosteriorLabelList posterior_labels_order(const PosteriorLabels *labels, int *class);

/* A text[] of them. */
ArrayType  *posterior_label_array(const PosteriorLabelList *list);

/*
 * The class of a label in a list, or -1. Where the labels are written as booleans or as integers,
 * whatever boolean's or bigint's input reads as one of them finds it.
 */
int			posterior_label_find(const PosteriorLabelList *list, const char *text);

/* The class of a label in a list; raises, naming the labels that are there, if it is not in it. */
int			posterior_label_class(const PosteriorLabelList *list, const char *text);

/* Raise unless the model predicts labels (or, where `labels` is false, numbers). */
void		posterior_check_model_labels(const TnpModel *model, const char *name, bool labels);

/* Raise unless there are labels, and no more than a model has room for. */
void		posterior_check_model_room(const TnpModel *model, const char *name, int n);

#endif							/* POSTERIOR_LABELS_H */
