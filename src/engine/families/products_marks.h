/*
 * products_marks.h: attention without softmax over rows of which a reader may see the first only
 * (docs/families.md, "Running sums").
 *
 * Of rows that are met one by one a cache keeps features and values, and marks: sums over all rows
 * up to every so many, in double precision, which continue what there is before these rows. A
 * query that sees the first n reads the mark before, and the rest one after the other. So a mark
 * is one sum in the order of the rows, whatever was appended when, and what a query reads depends
 * on nothing but how many rows it sees.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PRODUCTS_MARKS_H
#define TNP_PRODUCTS_MARKS_H

#include "engine/network/kv_cache.h"
#include "engine/network/walk.h"

/* What the heads of a layer read, in a cache of floats. */
typedef struct TnpProducts
{
	int			heads,
				planes,			/* of values */
				features,		/* of a head */
				width;			/* of a value */
	int64_t		base,			/* slots that hold sums, whole blocks, before those of rows */
				rows;			/* that these sums are of */
	/* what a head divides by that saw so many rows, with weights of this sum */
	double		(*divisor) (int64_t seen, double weights);
} TnpProducts;

/* Numbers of the sums of one head and plane: [features, width + 1]. */
static inline size_t
tnp_products_sums(const TnpProducts *p)
{
	return (size_t) p->features * (p->width + 1);
}

/*
 * Such a cache's marks: one takes about the room of the rows from it to the next. Then to read the
 * rest one by one takes about as long as reading a mark, too.
 */
void		tnp_products_shape_marks(TnpCacheShape *shape);

/* Bytes of one slot in all layers, with its share of a mark. */
size_t		tnp_products_slot_bytes(const TnpCacheShape *shape);

/* Multiplications of a head's slots for a token that sees `slots` of them. */
double		tnp_products_slots_cost(const TnpCacheShape *shape, double slots);

/* Tokens [0, end) have stored in cache layer walk->at: set the marks that this completes. */
TnpStatus	tnp_products_mark(TnpWalk *walk, const TnpProducts *products, int64_t end,
							  TnpError *error);

/* What n tokens read, to a->out [n, planes, heads, width]. */
void		tnp_products_attend(const TnpWalk *walk, const TnpProducts *products, int n,
								const TnpView *view, const TnpAttention *a);

#endif							/* TNP_PRODUCTS_MARKS_H */
