/*
 * moments_tables.h: the CPU provider's operations for contexts that are sums, by vector size; each
 * is in the kernel tables of that size.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CPU_MOMENTS_TABLES_H
#define TNP_CPU_MOMENTS_TABLES_H

#include "engine/kernels/moments.h"

extern const TnpMoments tnp_cpu_moments_16;	/* bytes of a vector */
extern const TnpMoments tnp_cpu_moments_32;
extern const TnpMoments tnp_cpu_moments_64;
extern const TnpMoments tnp_cpu_moments_vnni;	/* of 64 bytes, and more instructions */

#endif							/* TNP_CPU_MOMENTS_TABLES_H */
