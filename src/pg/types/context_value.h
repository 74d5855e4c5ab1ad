/*
 * context_value.h: type posterior.context: rows as a value.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CONTEXT_VALUE_H
#define POSTERIOR_CONTEXT_VALUE_H

#include "pg/rows/rows.h"

#include "lib/stringinfo.h"

#define POSTERIOR_CONTEXT_VERSION 1
#define POSTERIOR_CONTEXT_LABELLED 2	/* version with labels */

/*
 * ALIGNMENT = double. After the head: the columns' classes [n_features], padded to 8 bytes with
 * zeros; cells x [n, n_features], NaN = missing; targets y [n]; where these are classes, their
 * labels in order, each ending with a NUL. Equal contexts have equal bytes.
 */
typedef struct PosteriorContext
{
	int32		vl_len_;
	uint8		version;
	uint8		n_labels;		/* with the version for them; 0 where there is no row */
	uint16		n_features;
	int64		n;
	uint8		classes[FLEXIBLE_ARRAY_MEMBER];
} PosteriorContext;

#define PG_GETARG_CONTEXT(n) ((PosteriorContext *) PG_DETOAST_DATUM(PG_GETARG_DATUM(n)))

static inline const double *
posterior_context_x(const PosteriorContext *c)
{
	return (const double *) (c->classes + MAXALIGN64(c->n_features));
}

static inline const double *
posterior_context_y(const PosteriorContext *c)
{
	return posterior_context_x(c) + c->n * c->n_features;
}

/* Whether its targets are labels. */
static inline bool
posterior_context_labelled(const PosteriorContext *c)
{
	return c->version == POSTERIOR_CONTEXT_LABELLED;
}

/* Its labels, in the value's own memory. */
static inline PosteriorLabelList
posterior_context_labels(const PosteriorContext *c)
{
	const char *text = (const char *) (posterior_context_y(c) + c->n);

	return (PosteriorLabelList){
		c->n_labels, c->n_labels == 0 ? 0 : (int) ((const char *) c + VARSIZE(c) - text), text};
}

/* A value with these rows, settled and as they stand, in the current memory context. */
PosteriorContext *posterior_make_context(const PosteriorRows *rows);

/* Append a value's binary form to a message. */
void		posterior_send_context(StringInfo buffer, const PosteriorContext *c);

/*
 * The rows of a value in binary form, which are all that is left of a message, in the current
 * memory context. The bytes may be anything: raises 22P03 when they are not what
 * posterior_send_context writes.
 */
PosteriorRows *posterior_receive_rows(StringInfo buffer);

/*
 * Columns of query rows must be those of a context: as many, of equal kinds. Raises otherwise.
 * Columns of literals without a type become what they are in the context: they may be NULL, or
 * labels where labels are expected.
 */
void		posterior_adopt_columns(int n_features, const uint8 *classes, PosteriorRows *rows);

#endif							/* POSTERIOR_CONTEXT_VALUE_H */
