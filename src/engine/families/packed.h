/*
 * packed.h: keys of the packed stack's attention, from which its variants follow.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PACKED_H
#define TNP_PACKED_H

#include "engine/file/config.h"

#define TNP_MAX_BASIS 64		/* functions of a kernel */
#define TNP_MAX_COMPONENTS 8
#define TNP_MAX_PLACES 64		/* columns of all components together */

/* A kernel of the distance between rows (docs/families.md); basis 0: none. */
typedef struct TnpKernelConfig
{
	int			basis;
	int			components;
	int			end[TNP_MAX_COMPONENTS];	/* of each component's columns */
	uint16_t	column[TNP_MAX_PLACES];
	int			causal;			/* 1 + the column, or 0 */
} TnpKernelConfig;

/* The packed stack's own configuration. Widths of 0 are the trunk's. */
typedef struct TnpPackedConfig
{
	int			kind;			/* softmax, the only one that is computed */
	int			query_width,
				value_width;
	TnpHidden	value_hidden;
	int			value_activation;	/* TNP_IDENTITY: the trunk's */
	TnpKernelConfig kernel;
} TnpPackedConfig;

_Static_assert(sizeof(TnpPackedConfig) <= TNP_OWN_CONFIG, "a family's own configuration is small");

static inline const TnpPackedConfig *
tnp_packed_config(const TnpConfig *c)
{
	return TNP_OWN(c, TnpPackedConfig);
}

/* The variant with widths of its own and a kernel (scan.c). */
extern const TnpFamily tnp_scan_family;

#endif							/* TNP_PACKED_H */
