/*
 * families.c: the table of families, which the key "architecture" of a model file chooses from.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/families.h"

#define FAMILY_OF_TABLE(family) &tnp_##family##_family,

const TnpFamily *const tnp_families[] = {TNP_FAMILIES(FAMILY_OF_TABLE) NULL};
