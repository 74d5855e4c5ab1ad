/*
 * kernel_functions.c: which arithmetic this machine has, and which is used.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/materialize.h"

#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "pg/models/engine_env.h"
#include "cpu/cpu.h"

/*
 * posterior.kernels(): one row for each table of kernels that runs on this machine, the best first
 */
PG_FUNCTION_INFO_V1(posterior_kernels_list);
Datum
posterior_kernels_list(PG_FUNCTION_ARGS)
{
	const TnpKernels *tables[TNP_CPU_TABLES + 1];
	int			n = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES);
	ReturnSetInfo *result = posterior_materialize(fcinfo);
	const TnpKernels *used = posterior_env(CurrentMemoryContext).kernels;

	tables[n++] = &tnp_reference_kernels;
	for (int i = 0; i < n; i++)
	{
		Datum values[2] = {CStringGetTextDatum(tables[i]->name), BoolGetDatum(tables[i] == used)};
		bool		nulls[2] = {false, false};

		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
