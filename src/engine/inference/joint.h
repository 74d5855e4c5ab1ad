/*
 * joint.h: the joint Gaussian of the queries of one question, of models with a joint head
 * (docs/families.md, "The joint Gaussian head"; Nguyen and Grover 2022).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_JOINT_H
#define TNP_JOINT_H

#include "engine/inference/encode.h"

/* tnp_joint is in tnp.h. tnp_sample and tnp_score of such models; what these check is checked. */
TnpStatus	tnp_joint_sample(const TnpEncoding *e, const TnpRows *queries, uint64_t seed,
							 uint64_t first_draw, int64_t draws, double *y, TnpError *error);
TnpStatus	tnp_joint_score(const TnpEncoding *e, const TnpRows *rows, int64_t orders,
							uint64_t seed, double *log_density, double *per_row, TnpError *error);

#endif							/* TNP_JOINT_H */
