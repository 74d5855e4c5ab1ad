/*
 * tables.h: the tables of kernels that this machine does not run, so that a test can say which ones
 * it has left out.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TEST_TABLES_H
#define TEST_TABLES_H

#include "cpu/cpu.h"

/* A table of the CPU provider, by the name it has where it runs. */
typedef struct KnownTable
{
	const char *name,
			   /* what it is compiled for; a name may be that of one table on each */
			   *architecture;
} KnownTable;

/* Known tables one by one, from number 0 on; NULL after the last. */
const KnownTable *known_table(int i);

/* The table itself; if this machine does not run it, NULL and why. */
const TnpKernels *known_kernels(const KnownTable *table, const char **why);

#endif							/* TEST_TABLES_H */
