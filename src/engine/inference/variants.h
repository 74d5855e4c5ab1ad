/*
 * variants.h: queries that lack cells, once with the cells of each donor, and the one answer that
 * follows from those to the variants (docs/model-format.md section 5, "Donors").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_VARIANTS_H
#define TNP_VARIANTS_H

#include "engine/distribution/join.h"
#include "engine/features/donors.h"

typedef struct TnpVariants
{
	TnpRows		rows;			/* the variants of all queries; the queries where x is NULL */
	double	   *x;				/* [rows.n, F], NULL where each query is its own variant */
	int64_t    *first;			/* [queries + 1] of each query's variants */
	double	   *weight;			/* [rows.n] of their answers */
	int		   *sample;			/* [queries] how many, the first ones, are a sample */
	TnpNewLabel *label;			/* [queries, TNP_MOST_NEW] that are new, and */
	int		   *labels;			/* [queries] how many of these there are */
	TnpShift   *shift;			/* [queries, TNP_MOST_SHIFTS] of what follows from them, or NULL */
	int		   *shifts;			/* [queries] how many of these there are */
	int			most;			/* of one query */
	int			n_classes;		/* 0 in a regression model */
	double		share[TNP_MAX_CLASS_ROOM];	/* equal ones of those that the prefix has */
} TnpVariants;

/* The variants of queries that were checked; freed by the caller also after a failure. */
TnpStatus	tnp_variants_make(const TnpModel *model, const TnpStats *stats, const TnpRows *queries,
							  TnpVariants *v, TnpError *error);
void		tnp_variants_free(const TnpEnv *env, TnpVariants *v);

/* Whether tnp_variants_make() would find a query that has several. */
bool		tnp_variants_wanted(const TnpStats *stats, const TnpRows *queries);

static inline int64_t
tnp_variants_first(const TnpVariants *v, int64_t query)
{
	return v->first != NULL ? v->first[query] : query;
}

static inline int
tnp_variants_count(const TnpVariants *v, int64_t query)
{
	return v->first != NULL ? (int) (v->first[query + 1] - v->first[query]) : 1;
}

/* Doubles of scratch that tnp_variants_join() takes. */
size_t		tnp_variants_work(const TnpModel *model, const TnpVariants *v);

/*
 * The answer to a query from those to its variants, `step` doubles apart from params on, into
 * joined [tnp_answer_size].
 */
void		tnp_variants_join(const TnpModel *model, const TnpVariants *v, int64_t query,
							  const double *params, size_t step, double *work, double *joined);

#endif							/* TNP_VARIANTS_H */
