/*
 * tables.c: see tables.h.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "tables.h"

#include <string.h>

#if defined(__x86_64__)
#define ARCHITECTURE "x86-64"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#else
#define ARCHITECTURE "other"
#endif

static const KnownTable known[] = {
	{"cpu-avx512", "x86-64"}, {"cpu-avx2", "x86-64"}, {"cpu-baseline", "x86-64"},
	{"cpu-baseline", "aarch64"},
	{"cpu-avx512-half", "x86-64"}, {"cpu-avx2-half", "x86-64"}, {"cpu-baseline-half", "aarch64"},
};

const KnownTable *
known_table(int i)
{
	return i < (int) (sizeof(known) / sizeof(known[0])) ? &known[i] : NULL;
}

const TnpKernels *
known_kernels(const KnownTable *table, const char **why)
{
	const TnpKernels *tables[TNP_CPU_TABLES];
	int			n = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES);

	*why = strcmp(table->architecture, ARCHITECTURE) == 0 ? "this processor lacks its instructions"
		: "it is for another architecture";
	for (int i = 0; strcmp(table->architecture, ARCHITECTURE) == 0 && i < n; i++)
		if (strcmp(tables[i]->name, table->name) == 0)
			return tables[i];
	return NULL;
}
