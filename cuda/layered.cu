/*
 * layered.cu: the kernels of models that are computed layer by layer, compiled: once per precision,
 * named by STEPS_OF (HALF, FLOAT), which also names the function that finds one.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "kernels.h"
#include "layered.h"

static_assert(sizeof(CudaStep) <= 4096, "the parameters of a launch have room for no more");

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define FIND JOIN(cuda_step_, STEPS_OF)
#define TYPE JOIN(STEPS_TYPE_, STEPS_OF)
#define STEPS_TYPE_HALF half16
#define STEPS_TYPE_FLOAT float

/* Answers are in 32 bits in either precision. */
extern "C" const void *cuda_step_answers(void);

#define STEPS_HALF 1
#define STEPS_FLOAT 2
#if JOIN(STEPS_, STEPS_OF) == STEPS_FLOAT
extern "C" const void *
cuda_step_answers(void)
{
	return (const void *) cuda_answers<float>;
}
#endif

extern "C" const void *
FIND(int kernel, int head_tiles)
{
	if (kernel == STEP_ROW_WISE)
		return (const void *) cuda_row_wise<TYPE>;
	if (kernel == STEP_ANSWERS)
		return cuda_step_answers();
#define ENTRY(type, wide) \
	if (head_tiles == wide) \
		return (const void *) cuda_attend<type, wide>;
	JOIN(CUDA_ATTENTION_, STEPS_OF)(ENTRY)
	return nullptr;
}
