/*
 * context_value.c: type posterior.context: values with rows, their binary form, accessors.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/context_value.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/memutils.h"

int
posterior_check_estimators(int estimators)
{
	if (estimators < 0 || estimators > TNP_MAX_VIEWS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("estimators must be between 0 and %d", TNP_MAX_VIEWS),
				 errdetail("They are %d.", estimators),
				 errhint("0 means as many as posterior.estimators says.")));
	return estimators;
}

PosteriorContext *
posterior_make_context(const PosteriorRows *rows)
{
	Size		head = offsetof(PosteriorContext, kinds) + MAXALIGN64(rows->n_features),
				numbers = (Size) rows->n * (rows->n_features + rows->n_targets) * sizeof(double),
				size = head + numbers + rows->list.bytes;
	PosteriorContext *c;

	if (size > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the context is too large for a value"),
				 errdetail("%lld rows of %d features need %zu bytes, a value holds at most %zu.",
						   (long long) rows->n, rows->n_features, size, (Size) MaxAllocSize),
				 errhint("Use fewer rows.")));
	c = palloc0(size);
	SET_VARSIZE(c, size);
	c->version = (rows->labels != NULL ? POSTERIOR_CONTEXT_LABELLED
				  : rows->n_targets > 1 ? POSTERIOR_CONTEXT_SEVERAL : POSTERIOR_CONTEXT_VERSION)
		| rows->estimators << 2;
	c->n_labels = rows->n_targets > 1 ? rows->n_targets : rows->list.n;
	c->n_features = rows->n_features;
	c->n = rows->n;
	memcpy(c->kinds, rows->kinds, rows->n_features);
	if (rows->n > 0)
	{
		memcpy((char *) c + head, rows->x, rows->n * rows->n_features * sizeof(double));
		memcpy((char *) c + head + rows->n * rows->n_features * sizeof(double), rows->y,
			   rows->n * rows->n_targets * sizeof(double));
	}
	if (rows->list.bytes > 0)
		memcpy((char *) c + head + numbers, rows->list.text, rows->list.bytes);
	return c;
}

void
posterior_adopt_columns(int n_features, const uint8 *kinds, PosteriorRows *rows)
{
	if (rows->n_features != n_features)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("%d feature%s given, the context has %d", rows->n_features,
							   rows->n_features == 1 ? "" : "s", n_features),
						errhint("Give the same features, in the same order, as to "
								"posterior.context, without the target.")));
	for (int f = 0; f < n_features; f++)
	{
		if (posterior_kind_takes(kinds[f], rows->features[f].kind))
			continue;
		if (rows->features[f].base != UNKNOWNOID)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("feature %d is of kind \"%s\", in the context it is of kind \"%s\"",
							f + 1, posterior_column_kind_name(rows->features[f].kind),
							posterior_column_kind_name(kinds[f])),
					 posterior_kind_hint(kinds[f], rows->features[f].kind)));
		rows->features[f].kind = kinds[f];
		rows->kinds[f] = kinds[f];
		rows->engine_kinds[f] = kinds[f] == POSTERIOR_CATEGORY ? TNP_CATEGORICAL : TNP_NUMERIC;
	}
}

/* ---- rows in binary form --------------------------------------------------------------------- */

void
posterior_send_context(StringInfo buffer, const PosteriorContext *c)
{
	const double *numbers = posterior_context_x(c);
	int			targets = posterior_context_targets(c);

	pq_sendint8(buffer, c->version);
	pq_sendint16(buffer, c->n_features);
	pq_sendint64(buffer, c->n);
	if (targets > 1)
		pq_sendint8(buffer, targets);
	pq_sendbytes(buffer, (const char *) c->kinds, c->n_features);
	for (int64 i = 0; i < c->n * (c->n_features + targets); i++)
	{
		CHECK_FOR_INTERRUPTS();
		pq_sendfloat8(buffer, numbers[i]);
	}
	if (posterior_context_labelled(c))
	{
		PosteriorLabelList list = posterior_context_labels(c);

		pq_sendint8(buffer, list.n);
		/* in the server's encoding, as the labels of features are */
		pq_sendbytes(buffer, list.text, list.bytes);
	}
}

void
posterior_bad_context(const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid posterior.context"),
			 errdetail("%s", detail),
			 errhint("Values of this type are made by the aggregate posterior.context. "
					 "A named context takes a row: posterior.predict('name', row).")));
}

/* Check one cell of untrusted bytes. */
static void
check_cell(double cell, int kind)
{
	if (isinf(cell))
		posterior_bad_context("A feature is infinite.");
	if (kind == POSTERIOR_CATEGORY && !isnan(cell)
		&& !(cell >= 0 && cell < 9007199254740992.0 && cell == floor(cell)))
		posterior_bad_context("A category is not an identity.");
}

/* The labels at the end of untrusted bytes: all that is left of them. */
static void
receive_labels(StringInfo buffer, PosteriorRows *rows)
{
	int			n = pq_getmsgbyte(buffer),
				bytes = buffer->len - buffer->cursor,
				found = 0;
	const char *text = pq_getmsgbytes(buffer, bytes);
	PosteriorLabels *labels =
		posterior_labels_make(CurrentMemoryContext, TEXTOID, POSTERIOR_MOST_LABELS);

	for (int i = 0; i < bytes; i++)
		found += text[i] == '\0';
	if (n > POSTERIOR_MOST_LABELS || found != n || (bytes > 0 && text[bytes - 1] != '\0'))
		posterior_bad_context(psprintf("%d labels are announced, %d are there.", n, found));
	for (const char *label = text; label < text + bytes; label += strlen(label) + 1)
	{
		pg_verifymbstr(label, strlen(label), false);
		if (posterior_labels_find(labels, label) >= 0)
			posterior_bad_context("A label is there twice.");
		posterior_labels_add(labels, label);
	}
	rows->labels = labels;
	rows->list = (PosteriorLabelList) {n, bytes, text};
}

PosteriorRows *
posterior_receive_rows(StringInfo buffer)
{
	int			first = pq_getmsgbyte(buffer),
				version = first & POSTERIOR_CONTEXT_KIND,
				estimators = first >> 2,
				n_features = (int) pq_getmsgint(buffer, 2),
				targets,
				row;
	int64		n = pq_getmsgint64(buffer);
	const char *kinds;
	PosteriorRows *rows;

	if (version == POSTERIOR_CONTEXT_SUMS)
		posterior_bad_context(psprintf("Version %d is unknown.", version));
	targets = version == POSTERIOR_CONTEXT_SEVERAL ? pq_getmsgbyte(buffer) : 1;
	if (version == POSTERIOR_CONTEXT_SEVERAL && (targets < 2 || targets > TNP_MAX_TARGETS))
		posterior_bad_context(psprintf("%d targets are not several.", targets));
	row = 8 * (n_features + targets);
	if (estimators > TNP_MAX_VIEWS)
		posterior_bad_context(
			psprintf("%d estimators are more than %d.", estimators, TNP_MAX_VIEWS));
	if (n_features < 1 || n < 0 || n > (buffer->len - buffer->cursor) / row
		|| (version != POSTERIOR_CONTEXT_LABELLED
				? buffer->len - buffer->cursor != n_features + n * row
				: buffer->len - buffer->cursor < n_features + n * row + 1))
		posterior_bad_context(psprintf("%lld rows of %d features do not fit %d bytes.",
									   (long long) n, n_features, buffer->len - buffer->cursor));
	kinds = pq_getmsgbytes(buffer, n_features);
	for (int f = 0; f < n_features; f++)
		if (kinds[f] < POSTERIOR_NUMBER || kinds[f] > POSTERIOR_LAST_KIND)
			posterior_bad_context(
				psprintf("Column %d has the unknown kind %d.", f + 1, kinds[f]));
	rows = posterior_rows_of_kinds(CurrentMemoryContext, n_features, (const uint8 *) kinds);
	rows->estimators = estimators;
	rows->n_targets = targets;
	for (int64 i = 0; i < n; i++)
	{
		double	   *x = posterior_rows_next(rows);

		CHECK_FOR_INTERRUPTS();
		rows->n++;
		for (int f = 0; f < n_features; f++)
		{
			x[f] = pq_getmsgfloat8(buffer);
			check_cell(x[f], kinds[f]);
			/* one NaN only, so that equal contexts have equal bytes */
			x[f] = isnan(x[f]) ? get_float8_nan() : x[f] + 0.0;
		}
	}
	for (int64 i = 0; i < n * targets; i++)
	{
		rows->y[i] = pq_getmsgfloat8(buffer) + 0.0;
		if (!isfinite(rows->y[i]))
			posterior_bad_context("A target is not finite.");
	}
	if (version == POSTERIOR_CONTEXT_LABELLED)
		receive_labels(buffer, rows);
	for (int64 i = 0; i < n && rows->labels != NULL; i++)
		if (!(rows->y[i] >= 0 && rows->y[i] < rows->list.n && rows->y[i] == floor(rows->y[i])))
			posterior_bad_context("A target is not the index of a label.");
	return rows;
}

/* ---- accessors ------------------------------------------------------------------------------- */

PG_FUNCTION_INFO_V1(posterior_context_rows);
Datum
posterior_context_rows(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(PG_GETARG_CONTEXT(0)->n);
}

PG_FUNCTION_INFO_V1(posterior_context_features);
Datum
posterior_context_features(PG_FUNCTION_ARGS)
{
	PosteriorContext *c = PG_GETARG_CONTEXT(0);
	Datum	   *names = palloc(c->n_features * sizeof(Datum));

	for (int f = 0; f < c->n_features; f++)
		names[f] = CStringGetTextDatum(posterior_column_kind_name(c->kinds[f]));
	PG_RETURN_ARRAYTYPE_P(construct_array(names, c->n_features, TEXTOID, -1, false, TYPALIGN_INT));
}

PG_FUNCTION_INFO_V1(posterior_context_label_array);
Datum
posterior_context_label_array(PG_FUNCTION_ARGS)
{
	PosteriorContext *c = PG_GETARG_CONTEXT(0);
	PosteriorLabelList list = posterior_context_labels(c);

	if (!posterior_context_labelled(c))
		PG_RETURN_NULL();
	PG_RETURN_ARRAYTYPE_P(posterior_label_array(&list));
}

/* with_estimators(context, integer): the same rows, asked with so many views; 0: the setting's. */
PG_FUNCTION_INFO_V1(posterior_context_with_estimators);
Datum
posterior_context_with_estimators(PG_FUNCTION_ARGS)
{
	PosteriorContext *c = (PosteriorContext *) PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(0));

	if (posterior_context_is_sums(c))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a context of sums has no estimators"),
				 errhint("Make it of rows, by the aggregate posterior.context.")));
	c->version = (c->version & POSTERIOR_CONTEXT_KIND)
		| posterior_check_estimators(PG_GETARG_INT32(1)) << 2;
	PG_RETURN_POINTER(c);
}

/* targets(context) */
PG_FUNCTION_INFO_V1(posterior_context_target_count);
Datum
posterior_context_target_count(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(posterior_context_targets(PG_GETARG_CONTEXT(0)));
}

/* estimators(context): NULL where the setting decides */
PG_FUNCTION_INFO_V1(posterior_context_estimator_count);
Datum
posterior_context_estimator_count(PG_FUNCTION_ARGS)
{
	int			n = posterior_context_estimators(PG_GETARG_CONTEXT(0));

	if (n == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT32(n);
}
