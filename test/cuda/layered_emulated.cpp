/*
 * layered_emulated.cpp: cuda/layered.cu for the emulator: runs a kernel of one precision, named by
 * STEPS_OF.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "kernels.h"
#include "layered.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define RUN JOIN(emulated_step_, STEPS_OF)
#define TYPE JOIN(STEPS_TYPE_, STEPS_OF)
#define STEPS_TYPE_HALF half16
#define STEPS_TYPE_FLOAT float

/* EMULATOR_TILES: only attention of heads of so many tiles is compiled. */
#ifndef EMULATOR_TILES
#define EMULATOR_TILES 0
#endif

template <bool wanted> struct Attend
{
	template <class T, int NV> static bool
	kernel(const CudaStep &step)
	{
		cuda_attend<T, NV>(step);
		return true;
	}
};

template <> struct Attend<false>
{
	template <class T, int NV> static bool
	kernel(const CudaStep &)
	{
		emulator_stop("attention that was not compiled");
	}
};

static void
one_thread(const CudaStep &step)
{
	if (step.kernel == STEP_ROW_WISE)
		cuda_row_wise<TYPE>(step);
	else if (step.kernel == STEP_ANSWERS)
		cuda_answers<float>(step);
#define ENTRY(type, wide) \
	else if (step.walk.model.head_tiles == wide) \
		Attend<EMULATOR_TILES == 0 || EMULATOR_TILES == wide>::kernel<type, wide>(step);
	JOIN(CUDA_ATTENTION_, STEPS_OF)(ENTRY)
	else
		emulator_stop("a launch of a kernel that does not exist");
}

extern "C" void RUN(const CudaStep *step);

void
RUN(const CudaStep *step)
{
	emulator_run(step->blocks, 1, cuda_step_threads(step), (size_t) cuda_step_shared(step), false,
				 [&]() { one_thread(*step); });
}
