/*
 * context_value.h: type posterior.context: rows as a value.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CONTEXT_VALUE_H
#define POSTERIOR_CONTEXT_VALUE_H

#include "pg/rows/rows.h"

#include "lib/stringinfo.h"

#define POSTERIOR_CONTEXT_SEVERAL 0	/* several targets per row */
#define POSTERIOR_CONTEXT_VERSION 1
#define POSTERIOR_CONTEXT_LABELLED 2	/* version with labels */
#define POSTERIOR_CONTEXT_SUMS 3	/* sums of rows instead of rows: context_sums.h */
#define POSTERIOR_CONTEXT_KIND 3	/* bits of the version byte that say which; above: estimators */

/*
 * ALIGNMENT = double. After the head: the columns' kinds [n_features], padded to 8 bytes with
 * zeros; cells x [n, n_features], NaN = missing; targets y [n, D]; where these are classes, their
 * labels in order, each ending with a NUL. Equal contexts have equal bytes.
 */
typedef struct PosteriorContext
{
	int32		vl_len_;
	uint8		version;		/* plus 4 times the estimators; 0: posterior.estimators */
	/*
	 * with the version for them; 0 where there is no row; with several targets, in rows or sums,
	 * their number
	 */
	uint8		n_labels;
	uint16		n_features;
	int64		n;
	uint8		kinds[FLEXIBLE_ARRAY_MEMBER];
} PosteriorContext;

#define PG_GETARG_CONTEXT(n) ((PosteriorContext *) PG_DETOAST_DATUM(PG_GETARG_DATUM(n)))

static inline const double *
posterior_context_x(const PosteriorContext *c)
{
	return (const double *) (c->kinds + MAXALIGN64(c->n_features));
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
	return (c->version & POSTERIOR_CONTEXT_KIND) == POSTERIOR_CONTEXT_LABELLED;
}

/* Numbers that a row's target consists of. */
static inline int
posterior_context_targets(const PosteriorContext *c)
{
	return posterior_context_labelled(c) || c->n_labels == 0 ? 1 : c->n_labels;
}

/* Its number of estimators; 0: as posterior.estimators says when it is asked. */
static inline int
posterior_context_estimators(const PosteriorContext *c)
{
	return c->version >> 2;
}

/* Whether it has sums of rows, and no rows. */
static inline bool
posterior_context_is_sums(const PosteriorContext *c)
{
	return c->version == POSTERIOR_CONTEXT_SUMS;
}

/* Its labels, in the value's own memory. */
static inline PosteriorLabelList
posterior_context_labels(const PosteriorContext *c)
{
	const char *text;

	if (c->n_labels == 0 || !posterior_context_labelled(c))
		return (PosteriorLabelList){0, 0, NULL};
	text = (const char *) (posterior_context_y(c) + c->n);
	return (PosteriorLabelList){
		c->n_labels, (int) ((const char *) c + VARSIZE(c) - text), text};
}

/* A number of estimators as users give it, checked; 0: as posterior.estimators says. */
int			posterior_check_estimators(int estimators);

/* A value with these rows, settled and as they stand, in the current memory context. */
PosteriorContext *posterior_make_context(const PosteriorRows *rows);

/* Append a value's binary form to a message; of a value with rows. */
void		posterior_send_context(StringInfo buffer, const PosteriorContext *c);

/*
 * The rows of a value in binary form, which are all that is left of a message, in the current
 * memory context. The bytes may be anything: raises 22P03 when they are not what
 * posterior_send_context writes.
 */
PosteriorRows *posterior_receive_rows(StringInfo buffer);

/* Raise 22P03: the bytes of a value are not what posterior.context writes. */
pg_noreturn extern void posterior_bad_context(const char *detail);

/*
 * Columns of query rows must be those of a context: as many, of equal kinds. Raises otherwise.
 * Columns of literals without a type become what they are in the context: they may be NULL, or
 * labels where labels are expected.
 */
void		posterior_adopt_columns(int n_features, const uint8 *kinds, PosteriorRows *rows);

#endif							/* POSTERIOR_CONTEXT_VALUE_H */
