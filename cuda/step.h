/*
 * step.h: the parameters of the kernels that models take layer by layer (layered.h): what lies
 * between two matrix products of the library. C and C++.
 *
 * Rows of a launch are those of a CudaWalk from number `first` on. Their states and queries lie in
 * device memory for all rows of the walk, operands and outputs of a product for those of a launch.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_STEP_H
#define CUDA_STEP_H

#include "layout.h"

#define STEP_ROWS 16			/* of a block, in all kernels but attention */
#define ATTEND_WARPS 4			/* of a block of attention, each with 16 or 32 rows */
/* whose keys and values come through shared memory, so that there are registers for 32 rows */
#define ATTEND_HAS_RING(precision, head_tiles) ((precision) == 0 && (head_tiles) <= 8)

/* A kernel. */
typedef enum StepKernel
{
	STEP_ROW_WISE,				/* one operation on rows */
	STEP_ATTENTION,				/* of one head, a block for each and so many rows */
	STEP_ANSWERS
} StepKernel;

/* What STEP_ROW_WISE does. */
typedef enum StepOperation
{
	STEP_TOKENS,				/* state = what tokens are made of beside their encoders */
	STEP_NUMBERS,				/* operand = what an encoder reads */
	STEP_DIRECT,				/* an encoder's first linear, of few numbers, in 32 bits */
	STEP_NORM,					/* operand = norm of the state */
	STEP_OPERAND,				/* operand = activation of the outputs */
	STEP_STATE,					/* outputs are added to the state */
	STEP_KEEP					/* outputs are queries, keys and values */
} StepOperation;

typedef struct CudaStep
{
	CudaWalk	walk;			/* row lengths in device memory: row_x, row_q, row_h */
	int64_t		first;			/* row of the walk, a multiple of all rows of a block */
	int64_t		n;				/* rows */
	int			blocks;
	int			kernel,			/* StepKernel */
				operation;		/* StepOperation */
	int			encoder;		/* NUMBERS, DIRECT: CUDA_MLP_X or CUDA_MLP_Y */
	int			activation;		/* OPERAND, DIRECT */
	int			keep;			/* NORM, STATE, and rows whose outputs OPERAND adds to the state */
	int			to_state;		/* DIRECT: outputs are added to the state, and no operand */
	int			at;				/* KEEP, attention: layer of the cache */
	int			asks,			/* KEEP: whether there are queries, */
				stores;			/* keys and values */
	int			row_wide;
	CudaLinear	linear;			/* NUMBERS, DIRECT; what has written the outputs: OPERAND, STATE */
	CudaNorm	norm;
	const float *log_scale;		/* KEEP: of the layer, or NULL */
	void	   *operand;		/* [n, row_x] */
	float	   *wide;			/* [n, row_wide] outputs */
} CudaStep;

/* Rows of a block of attention. */
CUDA_SHARED int
cuda_attend_rows(int precision, int head_tiles)
{
	return ATTEND_WARPS * (ATTEND_HAS_RING(precision, head_tiles) ? 32 : 16);
}

/* Words of shared memory through which a warp of attention reads a block of keys and values. */
CUDA_SHARED int
cuda_attend_ring(int precision, int head_tiles)
{
	return ATTEND_HAS_RING(precision, head_tiles)
		? CUDA_BLOCK / CUDA_PANEL * (cuda_key_words(precision, head_tiles) +
									 cuda_value_words(precision, head_tiles)) : 0;
}

/*
 * Words of shared memory in which a warp of attention, of 16 rows, keeps its queries, or 0: it has
 * registers for them.
 */
#define ATTEND_KEPT(precision, head_tiles) ((precision) == 1 && (head_tiles) > 8 \
	? (head_tiles) * 128 : 0)

/* Where raw numbers lie in shared memory, behind the descriptions of rows. */
CUDA_SHARED int
cuda_step_input(void)
{
	return ((TILE_ROW_ARRAYS * STEP_ROWS + 4 * (STEP_ROWS / 16)) * 4 + 127) / 128 * 128;
}

/* Bytes of shared memory of a block. */
CUDA_SHARED int
cuda_step_shared(const CudaStep *s)
{
	if (s->kernel == STEP_ATTENTION)
		return ATTEND_WARPS * (cuda_attend_ring(s->walk.model.precision,
												s->walk.model.head_tiles) +
							   ATTEND_KEPT(s->walk.model.precision,
										   s->walk.model.head_tiles)) * 4;
	return cuda_step_input() + STEP_ROWS * CUDA_DIRECT * 4;
}

CUDA_SHARED int
cuda_step_threads(const CudaStep *s)
{
	return s->kernel == STEP_ATTENTION ? ATTEND_WARPS * 32 : CUDA_THREADS;
}

/* Columns of an operand that a product reads: whole steps. */
CUDA_SHARED int
cuda_columns(int precision, int in)
{
	return cuda_k_steps(precision, in) * 2 * cuda_k_tile(precision);
}

/* Columns of a head's queries in device memory. */
CUDA_SHARED int
cuda_query_columns(int precision, int head_tiles)
{
	return cuda_k_tiles(precision, head_tiles) * cuda_k_tile(precision);
}

#endif							/* CUDA_STEP_H */
