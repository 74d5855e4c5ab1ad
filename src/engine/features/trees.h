/*
 * trees.h: boosted trees of the prefix, of which the head takes a share (docs/model-format.md
 * section 8, "Trees").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_TREES_H
#define TNP_TREES_H

#include "engine/features/statistics.h"

/*
 * Grow them where there are rows and classes enough; needs the slots and the regressions of stats,
 * or its process. On failure what was made is freed by tnp_trees_free.
 */
TnpStatus	tnp_trees_grow(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
						   TnpTrees *trees, TnpError *error);

/* A copy that shares nothing; false when memory ran out: `to` can be freed. */
bool		tnp_trees_copy(const TnpEnv *env, const TnpTrees *from, TnpTrees *to);
void		tnp_trees_free(const TnpEnv *env, TnpTrees *trees);
size_t		tnp_trees_bytes(const TnpTrees *trees);

/*
 * Memory for `rounds` trees of every fold, without splits. False when memory ran out: trees can be
 * freed.
 */
bool		tnp_trees_make(const TnpEnv *env, int n_slots, int classes, int rounds,
						   TnpTrees *trees);

/* Bins of a row x [F], one for every slot. */
void		tnp_trees_bins(const TnpStats *stats, const TnpTrees *trees, const double *x,
						   unsigned char *bin);

/* The leaf of a tree that a row with these bins falls in; split [TNP_TREE_SPLITS]. */
int			tnp_tree_leaf(const TnpTreeSplit *split, const unsigned char *bin, size_t stride);

/*
 * What trees of a number say of a row x [F], in units of the scaled target; NaN of a row that they
 * may not speak of, and 0 where none are.
 */
double		tnp_trees_number(const TnpStats *stats, const double *x);

/*
 * How much of a row's logits is what the trees say, 0 … 1; 0 for models whose head takes none, and
 * for those of numbers.
 */
double		tnp_trees_blend_weight(const TnpModel *model, const TnpStats *stats);

/* The logits [K] of a row x [F] that trees of classes may speak of, of equal classes 0. */
void		tnp_trees_logits(const TnpStats *stats, const double *x, double *logits);

#endif							/* TNP_TREES_H */
