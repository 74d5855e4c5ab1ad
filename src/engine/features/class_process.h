/*
 * class_process.h: what a Gaussian process of the prefix says about a row's class
 * (docs/model-format.md section 8, "Process of classes").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CLASS_PROCESS_H
#define TNP_CLASS_PROCESS_H

#include "engine/features/statistics.h"

/*
 * Fit it where there are classes and columns enough; needs the slots of stats, and rows whose
 * classes are in the network's order. On failure what was made is freed by tnp_class_process_free.
 */
TnpStatus	tnp_class_process_build(const TnpModel *model, const TnpRows *rows,
									const TnpStats *stats, TnpClassProcess *process,
									TnpError *error);

/* A copy that shares nothing; false when memory ran out: `to` can be freed. */
bool		tnp_class_process_copy(const TnpEnv *env, const TnpClassProcess *from,
								   TnpClassProcess *to);
void		tnp_class_process_free(const TnpEnv *env, TnpClassProcess *process);
size_t		tnp_class_process_bytes(const TnpClassProcess *process);

/*
 * How much of a row's logits it says, 0 … 1: in proportion to the share of the best regression's
 * loss that it does away with, or of the trees', if they lose less.
 */
double		tnp_class_process_share(const TnpModel *model, const TnpStats *stats);

/* The logits [K] of a row x [F], of equal classes 0. */
void		tnp_class_process_logits(const TnpModel *model, const TnpStats *stats, const double *x,
									 double *logits);

#endif							/* TNP_CLASS_PROCESS_H */
