/*
 * gpu_real.c: lets the suites that ask nothing special of the emulated GPU run on a real one.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "gpu_emulated.h"

GpuEmulated gpu_emulated;

/* A GPU has no order of warps to choose. */
void
gpu_emulated_order(int order)
{
	(void) order;
}
