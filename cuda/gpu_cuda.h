/*
 * gpu_cuda.h: what the files that implement gpu.h on CUDA share.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_GPU_CUDA_H
#define CUDA_GPU_CUDA_H

#include "gpu.h"

#include <cuda_runtime.h>
#include <functional>

/* ---- gpu_cuda.cu ----------------------------------------------------------------------------- */

/* A queue's stream: one for all while kernels are measured. */
cudaStream_t gpu_stream(int queue);

/* What an error of the runtime means, whose text is kept for gpu_error(). */
GpuResult	gpu_result(cudaError_t error);

/* The same result, with a text. */
GpuResult	gpu_say(GpuResult result, const char *reason);

/* Launch something, and measure it while kernels are measured. */
GpuResult	gpu_measured(int queue, const std::function<cudaError_t ()> &launch);

/* ---- gpu_products.cu ------------------------------------------------------------------------- */

void		gpu_close_products(void);

#endif							/* CUDA_GPU_CUDA_H */
