/*
 * column.h: what the statistics say of one column or of the target.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_COLUMN_H
#define TNP_COLUMN_H

#include "engine/features/statistics.h"

/* z, or beyond the knee sign(z) (knee + ln(1 + |z| - knee)); knee 0 = off. */
double		tnp_soft_clip(double z, double knee);

/* Rank of a category identity among the column's levels, or -1. */
int64_t		tnp_find_level(const TnpColumn *column, double identity);

/* Whether a raw cell is missing, or a number that counts as that. */
bool		tnp_column_lacks(const TnpColumn *column, double x);

/*
 * The number behind a cell: itself, or its negative in a column that is turned; the code of a
 * category; NaN when missing or unknown.
 */
double		tnp_column_value(const TnpColumn *column, double x);

/*
 * How much a column says about the target by itself, 0 … 1, in steps of 2^-20: what is equal up to
 * rounding is equal.
 */
double		tnp_column_relevance(const TnpColumn *column);

/*
 * What tells columns of equal relevance apart, as those that say no more than chance: the larger
 * comes first, whatever the order of the columns.
 */
double		tnp_column_tie(const TnpColumn *column);

/* Whether n numbers, every `stride`th, are all equal. */
bool		tnp_all_equal(const double *v, int64_t n, int stride);

/* The bin of a raw cell. */
int			tnp_column_bin(const TnpColumn *column, double x);

/* A number (after tnp_column_value) in the unit of a column that is not constant. */
double		tnp_column_standardise(const TnpColumn *column, double value);

/* The same, clipped, of any column. */
double		tnp_column_scale(const TnpModel *model, const TnpColumn *column, double value);

/* The first target in the network's unit, not clipped. */
double		tnp_scaled_target(const TnpStats *stats, double y);

/* Scaled and clipped value of target number `target`. */
double		tnp_clipped_value(const TnpModel *model, const TnpStats *stats, int target, double y);

/* The same of a model with one target. */
double		tnp_clipped_target(const TnpModel *model, const TnpStats *stats, double y);

/*
 * What codes and orientations compare of a prefix row, while statistics are built: its target as a
 * network reads it, of a classifier the negative of its class's place.
 */
double		tnp_compared_target(const TnpModel *model, const TnpStats *stats, double y);

#endif							/* TNP_COLUMN_H */
