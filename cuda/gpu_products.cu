/*
 * gpu_products.cu: the matrix products of gpu.h by cuBLASLt, which is opened when the first model
 * needs it, and never linked: it takes half a gigabyte of disk and some hundred megabytes of
 * memory.
 *
 * Bits must not depend on how many rows a call has, or on where a row stands among them. So every
 * call is a batch of products of GPU_PRODUCT_ROWS rows, a shape has one algorithm whatever the
 * length of the batch, and none that divides a sum and joins the parts. The library promises the
 * same bits for equal calls alone: the caller looks at what it gets (layers.c).
 *
 * Numbers of 32 bits are multiplied in 32 bits: products of tf32 numbers are a thousandth off, and
 * the library makes three of one on some devices only. Activations are ours: the library has the
 * other form of GELU, and makes zero of what is no number.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "gpu_cuda.h"

#if defined(__has_include)
#if __has_include(<cublasLt.h>)
#define HAVE_LIBRARY
#endif
#endif

#ifndef HAVE_LIBRARY

static const char absent[] = "this build knows no library of matrix products";

GpuResult
gpu_prepare_product(const GpuProduct *)
{
	return gpu_say(GPU_REFUSED, absent);
}

GpuResult
gpu_multiply(int, const GpuProduct *)
{
	return gpu_say(GPU_REFUSED, absent);
}

void
gpu_close_products(void)
{
}

#else

#include <cublasLt.h>
#include <dlfcn.h>

#include <cstdio>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* as the header says it: names and types of functions are those of this version */
#define LIBRARY "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR)

/* What is used of it. */
#define FUNCTIONS(F) \
	F(Create) F(Destroy) F(GetStatusString) F(Matmul) F(MatmulAlgoGetHeuristic) \
	F(MatmulAlgoConfigGetAttribute) F(MatmulDescCreate) F(MatmulDescDestroy) \
	F(MatmulDescSetAttribute) F(MatrixLayoutCreate) F(MatrixLayoutDestroy) \
	F(MatrixLayoutSetAttribute) F(MatmulPreferenceCreate) F(MatmulPreferenceDestroy) \
	F(MatmulPreferenceSetAttribute)

#define POINTER(name) static decltype(&cublasLt##name) lt##name = nullptr;
FUNCTIONS(POINTER)

static cublasLtHandle_t handle = nullptr;

/* A shape, and how it is computed. What is a row here is a column of the library's. */
struct Shape
{
	GpuProduct	of;				/* pointers and rows are those of the first */
	cublasLtMatmulDesc_t product;
	cublasLtMatrixLayout_t w,
				x,
				y;
	cublasLtMatmulAlgo_t algorithm;
};

#define MOST_SHAPES 256
static Shape shapes[MOST_SHAPES];
static int	n_shapes = 0;

/* Blocks of a call for which algorithms are chosen. */
#define USUAL_BLOCKS 32
#define CANDIDATES 16

/* How the places of outputs, and all other places, are aligned at least. */
#define Y_ALIGNED 32
#define ALIGNED 256

static GpuResult
result_of(cublasStatus_t status)
{
	char		reason[200];

	if (status == CUBLAS_STATUS_SUCCESS)
		return GPU_OK;
	if (status == CUBLAS_STATUS_ALLOC_FAILED)
		return GPU_NO_MEMORY;
	snprintf(reason, sizeof(reason), "matrix products: %s", ltGetStatusString(status));
	switch (status)
	{
		case CUBLAS_STATUS_NOT_INITIALIZED:
		case CUBLAS_STATUS_INVALID_VALUE:
		case CUBLAS_STATUS_ARCH_MISMATCH:
		case CUBLAS_STATUS_NOT_SUPPORTED:
			return gpu_say(GPU_REFUSED, reason);
		default:
			/* the device's own error says more, if there is one */
			if (cudaPeekAtLastError() != cudaSuccess)
				return gpu_result(cudaPeekAtLastError());
			return gpu_say(GPU_FAILED, reason);
	}
}

/* Opens the library, once. */
static GpuResult
open_library(void)
{
	static void *library = nullptr;
	bool		complete = true;
	char		reason[200];

	if (handle != nullptr)
		return GPU_OK;
	if (library == nullptr)
		library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library == nullptr)
	{
		snprintf(reason, sizeof(reason), "no library of matrix products: %.150s", dlerror());
		return gpu_say(GPU_REFUSED, reason);
	}
#define LOAD(name) \
	lt##name = (decltype(lt##name)) dlsym(library, "cublasLt" #name); \
	complete = complete && lt##name != nullptr;
	FUNCTIONS(LOAD)
	if (!complete)
		return gpu_say(GPU_REFUSED, LIBRARY " lacks a function");
	return result_of(ltCreate(&handle));
}

static bool
same_shape(const GpuProduct &a, const GpuProduct &b)
{
	return a.precision == b.precision && a.in == b.in && a.out == b.out && a.row_x == b.row_x
		&& a.row_y == b.row_y && a.add == b.add && (a.bias == nullptr) == (b.bias == nullptr);
}

static Shape *
find(const GpuProduct &p)
{
	for (int i = 0; i < n_shapes; i++)
		if (same_shape(shapes[i].of, p))
			return &shapes[i];
	return nullptr;
}

static void
destroy(Shape *s)
{
	if (s->product != nullptr)
		(void) ltMatmulDescDestroy(s->product);
	for (cublasLtMatrixLayout_t layout : {s->w, s->x, s->y})
		if (layout != nullptr)
			(void) ltMatrixLayoutDestroy(layout);
}

/* A matrix of a batch of so many, `stride` elements apart. */
static cublasStatus_t
set_batch(cublasLtMatrixLayout_t layout, int blocks, int64_t stride)
{
	cublasStatus_t status = ltMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
													   &blocks, sizeof(blocks));

	return status != CUBLAS_STATUS_SUCCESS ? status
		: ltMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
									 sizeof(stride));
}

static cublasStatus_t
set_blocks(const Shape &s, int blocks)
{
	cublasStatus_t status = set_batch(s.w, blocks, 0);

	if (status == CUBLAS_STATUS_SUCCESS)
		status = set_batch(s.x, blocks, (int64_t) GPU_PRODUCT_ROWS * s.of.row_x);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = set_batch(s.y, blocks, (int64_t) GPU_PRODUCT_ROWS * s.of.row_y);
	return status;
}

static cublasStatus_t
set_bias(const Shape &s, const float *bias)
{
	return bias == nullptr ? CUBLAS_STATUS_SUCCESS
		: ltMatmulDescSetAttribute(s.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
								   sizeof(bias));
}

/* What the library is to compute. */
static cublasStatus_t
describe(Shape *s)
{
	cudaDataType_t type = s->of.precision == 0 ? CUDA_R_16F : CUDA_R_32F;
	cublasOperation_t transposed = CUBLAS_OP_T;
	cublasLtEpilogue_t bias = CUBLASLT_EPILOGUE_BIAS;
	cublasStatus_t status = ltMatmulDescCreate(&s->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);

	if (status == CUBLAS_STATUS_SUCCESS)
		status = ltMatmulDescSetAttribute(s->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
										  sizeof(transposed));
	if (status == CUBLAS_STATUS_SUCCESS && s->of.bias != nullptr)
		status = ltMatmulDescSetAttribute(s->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &bias,
										  sizeof(bias));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = set_bias(*s, s->of.bias);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = ltMatrixLayoutCreate(&s->w, type, s->of.in, s->of.out, s->of.in);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = ltMatrixLayoutCreate(&s->x, type, s->of.in, GPU_PRODUCT_ROWS, s->of.row_x);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = ltMatrixLayoutCreate(&s->y, CUDA_R_32F, s->of.out, GPU_PRODUCT_ROWS, s->of.row_y);
	return status != CUBLAS_STATUS_SUCCESS ? status : set_blocks(*s, USUAL_BLOCKS);
}

/* Whether an algorithm makes every sum in one go. */
static bool
is_whole(const cublasLtMatmulAlgo_t &algorithm)
{
	int32_t		parts = 0;
	uint32_t	scheme = 1;
	size_t		written;

	return ltMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts,
										  sizeof(parts), &written) == CUBLAS_STATUS_SUCCESS
		&& ltMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
										  &scheme, sizeof(scheme),
										  &written) == CUBLAS_STATUS_SUCCESS
		&& parts <= 1 && scheme == CUBLASLT_REDUCTION_SCHEME_NONE;
}

/* What an algorithm may rely on. */
static cublasStatus_t
limit(cublasLtMatmulPreference_t wishes)
{
	const struct
	{
		cublasLtMatmulPreferenceAttributes_t what;
		uint32_t	value;
	}			numbers[] = {
		{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_NONE},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, ALIGNED},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, ALIGNED},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, Y_ALIGNED},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, Y_ALIGNED}
	};
	size_t		work = GPU_PRODUCT_WORK;
	cublasStatus_t status = ltMatmulPreferenceSetAttribute(
		wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &work, sizeof(work));

	for (const auto &number : numbers)
		if (status == CUBLAS_STATUS_SUCCESS)
			status = ltMatmulPreferenceSetAttribute(wishes, number.what, &number.value,
													sizeof(number.value));
	return status;
}

static cublasStatus_t
choose(Shape *s)
{
	cublasLtMatmulPreference_t wishes = nullptr;
	cublasLtMatmulHeuristicResult_t found[CANDIDATES];
	int			n = 0;
	cublasStatus_t status = ltMatmulPreferenceCreate(&wishes);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	status = limit(wishes);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = ltMatmulAlgoGetHeuristic(handle, s->product, s->w, s->x, s->y, s->y, wishes,
										  CANDIDATES, found, &n);
	(void) ltMatmulPreferenceDestroy(wishes);
	for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < n; i++)
		if (found[i].state == CUBLAS_STATUS_SUCCESS && is_whole(found[i].algo))
		{
			s->algorithm = found[i].algo;
			return CUBLAS_STATUS_SUCCESS;
		}
	return status == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : status;
}

GpuResult
gpu_prepare_product(const GpuProduct *product)
{
	Shape		s = {};
	GpuResult	result = open_library();
	cublasStatus_t status;

	if (result != GPU_OK || find(*product) != nullptr)
		return result;
	if (n_shapes == MOST_SHAPES)
		return gpu_say(GPU_REFUSED, "too many shapes of matrix products");
	s.of = *product;
	status = describe(&s);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = choose(&s);
	if (status != CUBLAS_STATUS_SUCCESS)
	{
		destroy(&s);
		return result_of(status);
	}
	shapes[n_shapes++] = s;
	return GPU_OK;
}

GpuResult
gpu_multiply(int queue, const GpuProduct *p)
{
	const Shape *s = find(*p);
	float		one = 1.0f,
				kept = p->add ? 1.0f : 0.0f;
	cublasStatus_t status;
	GpuResult	result;

	if (s == nullptr)
		return gpu_say(GPU_REFUSED, "a matrix product that nothing was prepared for");
	status = set_blocks(*s, (int) ((p->n + GPU_PRODUCT_ROWS - 1) / GPU_PRODUCT_ROWS));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = set_bias(*s, p->bias);
	if (status != CUBLAS_STATUS_SUCCESS)
		return result_of(status);
	result = gpu_measured(queue, [&] {
		status = ltMatmul(handle, s->product, &one, p->w, s->w, p->x, s->x, &kept, p->y, s->y, p->y,
						  s->y, &s->algorithm, p->work, GPU_PRODUCT_WORK, gpu_stream(queue));
		return cudaSuccess;
	});
	return result == GPU_OK ? result_of(status) : result;
}

void
gpu_close_products(void)
{
	while (n_shapes > 0)
		destroy(&shapes[--n_shapes]);
	if (handle != nullptr)
		(void) ltDestroy(handle);
	handle = nullptr;
}

#endif
