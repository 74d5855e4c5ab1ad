/*
 * families.h: the families of models: one file and one line here each.
 *
 * X(family) stands for the table tnp_FAMILY_family that the family's file defines.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_FAMILIES_H
#define TNP_FAMILIES_H

#include "engine/file/family.h"

#define TNP_FAMILIES(X) \
	X(packed) \
	X(two_stream) \
	X(mean) \
	X(latent) \
	X(buffered) \
	X(decoupled) \
	X(columns) \
	X(sums)

#define TNP_DECLARE_FAMILY(family) extern const TnpFamily tnp_##family##_family;
TNP_FAMILIES(TNP_DECLARE_FAMILY)

#endif							/* TNP_FAMILIES_H */
