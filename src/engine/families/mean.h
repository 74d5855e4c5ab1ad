/*
 * mean.h: exact sums of rows' vectors (docs/families.md, "The mean process").
 *
 * A number of a vector is rounded to a multiple of 1 / MEAN_UNIT; one of MEAN_LARGEST or more is
 * refused. The sum of MEAN_MOST_ROWS such integers and as many again, of a chain, is at most
 * 2^(95 + 31) and fits 128 bits. Sums of integers depend on which rows are in them and on nothing
 * else: neither on their order, nor on what was added and taken away in between.
 *
 * A sum of d numbers is [d] pairs of words, the low one first.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_MEAN_H
#define TNP_MEAN_H

#include "engine/file/family.h"
#include "engine/network/encode_rows.h"
#include "engine/network/scratch.h"

#define MEAN_UNIT 0x1p55		/* of a number that is 1 */
#define MEAN_LARGEST 0x1p40
#define MEAN_MOST_ROWS ((int64_t) 1 << 30)

static inline size_t
mean_bytes(int d)
{
	return (size_t) d * 2 * sizeof(int64_t);
}

/* Add a vector e [d] to sum. False where a number is too large or none: then sum is spoilt. */
bool		mean_add(int d, const float *e, int64_t *sum);

/* Add a sum, or with sign -1 take it away. */
void		mean_add_sum(int d, const int64_t *more, int sign, int64_t *sum);

/* mean [d] of a sum of n vectors; zeros for none. */
void		mean_divide(int d, const int64_t *sum, int64_t n, float *mean);

/* The error for row number i, counted from 0, whose vector mean_add refuses. */
TnpStatus	mean_refuse_row(int64_t i, TnpError *error);

/* ---- what an encoding has -------------------------------------------------------------------- */

/* Slot number `slot` of a cache: the sum of a chain, or of a mark, behind its number of rows. */
int64_t    *mean_slot(const TnpKvCache *cache, int64_t slot);

/*
 * Marks of a cache are sums of its first rows, in ascending order of their number, the first of no
 * rows. From one to the next, and from the last to the end, there are MEAN_ROWS rows at most.
 * Between the first and the third of three there are more. Readers of the first n rows look at
 * marks of these alone: another process may set marks beyond them meanwhile.
 */
#define MEAN_ROWS 32

/* Rows of mark number k, and the number of the last mark of at most n rows. */
int64_t		mean_mark_rows(const TnpKvCache *cache, int64_t k);
int64_t		mean_mark_before(const TnpKvCache *cache, int64_t n);

/* Sets the marks after those of the first rows, as sums of more and more rows pass by. */
typedef struct MeanMarker
{
	TnpKvCache *cache;
	int64_t		k,				/* the last mark, and its rows */
				rows;
} MeanMarker;

MeanMarker	mean_marker_at(TnpKvCache *cache, int64_t n);
void		mean_marker_set(MeanMarker *marker, int64_t rows, const int64_t *sum);

/* To be called for one row after the other. */
static inline void
mean_marker_pass(MeanMarker *marker, int64_t rows, const int64_t *sum)
{
	if (rows - marker->rows == MEAN_ROWS)
		mean_marker_set(marker, rows, sum);
}

/*
 * The sum of rows [first, first + n) of an encoding, counted or not; states has room for `tile`
 * states, and work for as many rows.
 */
TnpStatus	mean_add_from(const TnpEncoding *e, TnpScratch *work, int tile, float *states,
						  int64_t first, int64_t n, int64_t *sum, TnpError *error);

/* The sum of the first n rows of an encoding, from its total or the mark before. */
TnpStatus	mean_sum_of(const TnpEncoding *e, TnpScratch *work, int tile, float *states,
						int64_t n, int64_t *sum, TnpError *error);

/* The mean [d] of all rows of an encoding; state has room for one. */
TnpStatus	mean_of_rows(const TnpEncoding *e, TnpScratch *work, float *state, float *mean,
						 TnpError *error);

/* An encoding keeps the sum of its first n rows at hand, and their mean; or of all it has. */
TnpStatus	mean_set_total(TnpEncoding *e, int64_t n, const int64_t *sum, TnpError *error);
TnpStatus	mean_settle(TnpEncoding *e, TnpError *error);

/* Contexts that are sums (mean_merge.h). */
extern const struct TnpSumsOps mean_sums_ops;

/* As TnpFamily's; bind finds the number of a model's bases: of all that vectors depend on. */
void		mean_bind_number(struct TnpBinder *b);
TnpStatus	mean_take_over(TnpEncoding *e, const TnpStretch *stretches, int64_t n, TnpError *error);

#endif							/* TNP_MEAN_H */
