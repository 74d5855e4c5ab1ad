/*
 * layout.h: what host and kernels share: how weights, keys and values lie in device memory, and the
 * parameters of a launch. C and C++.
 *
 * Matrices are stored in the order in which the lanes of a warp read the b operand of their
 * products (portable.h), sixteen bytes a lane, so that a read is one coalesced 512-byte access and
 * no shared memory is needed for it. Weights: [n_tiles of 8 outputs][k_steps][32 lanes][4 words], a
 * k_step being 32 inputs of 16 bits or 16 of 32 bits. Keys and values: panels of 16 slots per layer
 * and head.
 *
 * A precision is 0 for 16-bit inputs and 1 for 32-bit inputs (split into two tf32 numbers each when
 * they are multiplied).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_LAYOUT_H
#define CUDA_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define CUDA_WARPS 8
#define CUDA_THREADS (CUDA_WARPS * 32)
/* kernels with registers to spare: what they have in advance, others fetch when they need it */
#define CUDA_HAS_ROOM(precision, head_tiles) ((precision) == 0 && (head_tiles) <= 4)
#define CUDA_PANEL 16			/* slots of a panel */
/* slots that the softmax takes at once; caches end on a whole block */
#define CUDA_BLOCK 32
/*
 * slots whose softmax is closed before the next: fixed, so that the way work is split changes no
 * bit
 */
#define CUDA_CHUNK 128
/* inputs up to which a linear is computed in 32 bits on the plain units */
#define CUDA_DIRECT 32
#define CUDA_MAX_HIDDEN 9
#define CUDA_MAX_HEAD 128		/* widest head */
#define CUDA_BELLS 2			/* of a block: portable.h */
#define TILE_ROW_ARRAYS 11		/* numbers kept about each row of a tile: TileRows in tile.h */
/* What a row of a launch is. */
#define ROW_ACTIVE 1
#define ROW_X 2					/* takes E_x */
#define ROW_Y 4					/* takes E_y: has a target */
#define ROW_STORES 8
#define ROW_ASKS 16
#define ROW_SINK 32

/* As TNP_LARGEST_KEY and TNP_LARGEST_SCORE, which kernels.h of the engine explains. */
#define CUDA_LARGEST_KEY 1e16f
#define CUDA_LARGEST_SCORE 131072.0f

#define CUDA_LOG2E 1.44269504088896340736

#if defined(__CUDACC__)
#define CUDA_SHARED static __host__ __device__ __forceinline__
#else
#define CUDA_SHARED static inline
#endif

/* Tiles of 8 features of a head, as compiled: the sizes for which there are kernels (kernels.h). */
CUDA_SHARED int
cuda_head_tiles(int precision, int head_width)
{
	int			tiles = (head_width + 7) / 8;

	if (tiles == 3 && precision == 0)
		return 3;
	return tiles <= 2 ? 2 : tiles <= 4 ? 4 : tiles <= 8 ? 8 : 16;
}

/*
 * Blocks of a kernel that run beside each other on a multiprocessor, if shared memory has room for
 * them: what one of them waits for the other one hides.
 */
#define CUDA_BESIDE(precision, rows, head_tiles) \
	(CUDA_HAS_ROOM(precision, head_tiles) && (rows) == 32 ? 2 : 1)

/* Tiles of 16 rows whose softmax fits a warp's registers: keys are read once for all of them. */
#define CUDA_TOGETHER(precision, rows, head_tiles) \
	((precision) == 0 && (head_tiles) <= 8 && (rows) >= 32 \
	 && CUDA_BESIDE(precision, rows, head_tiles) == 1 ? 2 : 1)

/*
 * Words of the ring through which a warp reads keys and values, or 0: kernels of 32 rows and more,
 * whose registers have no room for the next block, have one, where heads are of up to 32 features
 * of 16 bits. It holds a block's keys and values.
 */
#define CUDA_RING_WORDS(precision, rows, head_tiles) \
	((precision) == 0 && (rows) >= 32 && (head_tiles) <= 4 \
	 ? CUDA_BLOCK / CUDA_PANEL * 2 * (((head_tiles) + 1) / 2) * 128 : 0)

/*
 * Words of the place in shared memory to which a warp's first chunk of keys and values of a layer
 * comes early, while the layer before is computed: in kernels of 16 rows that have room.
 */
#define CUDA_EARLY_WORDS(head_tiles) \
	(CUDA_CHUNK / CUDA_PANEL * 2 * (((head_tiles) + 1) / 2) * 128)

/* Inputs per product and per step of two products. */
CUDA_SHARED int
cuda_k_tile(int precision)
{
	return precision == 0 ? 16 : 8;
}

CUDA_SHARED int
cuda_k_tiles(int precision, int head_tiles)
{
	return precision == 0 ? (head_tiles + 1) / 2 : head_tiles;
}

CUDA_SHARED int
cuda_k_steps(int precision, int in)
{
	int			step = 2 * cuda_k_tile(precision);

	return (in + step - 1) / step;
}

/*
 * Row length of an operand of `width` columns in shared memory: whole steps, and rows that fall on
 * different banks.
 */
CUDA_SHARED int
cuda_row(int precision, int width)
{
	return cuda_k_steps(precision, width) * 2 * cuda_k_tile(precision) + (precision == 0 ? 8 : 4);
}

/* Words of one panel of keys, and of values, of one head. */
CUDA_SHARED int
cuda_key_words(int precision, int head_tiles)
{
	return cuda_k_tiles(precision, head_tiles) * 128;
}

CUDA_SHARED int
cuda_value_words(int precision, int head_tiles)
{
	return (precision == 0 ? 1 : 2) * ((head_tiles + 1) / 2) * 128;
}

/* Where feature f of slot s of a head lies within the head's keys, in elements of the precision. */
CUDA_SHARED size_t
cuda_key_at(int precision, int head_tiles, int64_t s, int f)
{
	size_t		panel = (size_t) (s / 16) * (size_t) cuda_key_words(precision, head_tiles);
	int			key = (int) (s % 8),
				second = (int) (s % 16) / 8;

	if (precision == 0)
	{
		int			within = f % 16,
					lane = key * 4 + within % 8 / 2;

		return (panel + (size_t) (f / 16 * 32 + lane) * 4 + second * 2 + within / 8) * 2 +
			within % 2;
	}
	return panel + (size_t) (f / 8 * 32 + key * 4 + f % 4) * 4 + second * 2 + f % 8 / 4;
}

CUDA_SHARED size_t
cuda_value_at(int precision, int head_tiles, int64_t s, int f)
{
	size_t		panel = (size_t) (s / 16) * (size_t) cuda_value_words(precision, head_tiles);
	int			tile = f / 8,
				k = (int) (s % 16),
				pairs = (head_tiles + 1) / 2;

	if (precision == 0)
	{
		int			lane = f % 8 * 4 + k % 8 / 2;

		return (panel + (size_t) (tile / 2 * 32 + lane) * 4 + tile % 2 * 2 + k / 8) * 2 + k % 2;
	}
	return panel + (size_t) ((k / 8 * pairs + tile / 2) * 32 + f % 8 * 4 + k % 8 / 2) * 4 +
		tile % 2 * 2 + k % 2;
}

/* Where weight [out, in] lies, in elements. */
CUDA_SHARED size_t
cuda_weight_at(int precision, int k_steps, int out, int in)
{
	int			k_tile = cuda_k_tile(precision),
				step = in / (2 * k_tile),
				tile = in / k_tile % 2,
				within = in % k_tile,
				lane = out % 8 * 4;
	size_t		words = ((size_t) (out / 8) * k_steps + step) * 128;

	if (precision == 0)
		return (words + (size_t) (lane + within % 8 / 2) * 4 + tile * 2 + within / 8) * 2 +
			within % 2;
	return words + (size_t) (lane + within % 4) * 4 + tile * 2 + within / 4;
}

/* ---- the model in device memory -------------------------------------------------------------- */

/* y = W x + b. Outputs beyond `out` up to n_tiles * 8 have zero weights and biases. */
typedef struct CudaLinear
{
	const uint32_t *packed;
	const float *bias;			/* [n_tiles * 8] or NULL */
	/* [in, out], when in <= CUDA_DIRECT and the linear reads raw numbers; else NULL */
	const float *direct;
	int			in,
				out,
				n_tiles,
				k_steps;
} CudaLinear;

typedef struct CudaNorm
{
	const float *weight,
			   *bias;			/* layer norm only, else NULL */
	float		eps;
	int			centred;		/* layer norm */
} CudaNorm;

/* q, k and v have their outputs head by head, each head padded to head_tiles * 8. */
typedef struct CudaLayer
{
	CudaLinear	q,
				k,
				v,
				o,
				ff0,
				ff1;
	CudaNorm	norm1,
				norm2;
	const float *log_scale;		/* [heads, 2] or NULL */
} CudaLayer;

typedef struct CudaMlp
{
	int			n;
	int			activation;
	CudaLinear	linear[CUDA_MAX_HIDDEN];
} CudaMlp;

/* E_x, E_y, or the head. */
typedef struct CudaEncoder
{
	int			skip;			/* first, then u + mlp(u) */
	CudaLinear	first;
	CudaMlp		mlp;
} CudaEncoder;

#define CUDA_PROCESS_NUMBERS 4	/* as TNP_PROCESS_NUMBERS */
#define CUDA_GATE_NUMBERS 10		/* as TNP_GATE_NUMBERS */
#define CUDA_GATE_HEAD 4
#define CUDA_CLASSES 64			/* the largest room of a classifier */
#define CUDA_GATED_TILES 4		/* of a head, in kernels that can ask a gate */
#define CUDA_TARGET_LEVELS 64	/* as TNP_TARGET_LEVELS */
#define CUDA_RECORD_NUMBERS 7	/* as TNP_RECORD_NUMBERS */
#define CUDA_GATE_BEHIND 512	/* as TNP_GATE_BEHIND */
/* the last three: of the rows behind the prefix, the bias, and of the output */
#define CUDA_GATE_ROW (CUDA_GATE_NUMBERS + CUDA_RECORD_NUMBERS + 3)

#define CUDA_MLP_X 0
#define CUDA_MLP_Y 1
#define CUDA_MLP_HEAD 2

typedef struct CudaModel
{
	int			precision;
	int			two_stream,
				post_norm,
				has_final_norm,
				strict;
	int			width,
				layers,
				heads,
				head_width,
				head_tiles,
				feedforward,
				sinks;
	float		logit_scale;	/* log2(e) over the root of a head's width */
	int			activation;		/* as TnpActivation */
	int			concat,			/* embedder: one MLP over [x, y, flag], else a sum of encoders */
				features;		/* concat: numbers of x */
	int			operand;		/* widest operand of any linear */
	CudaEncoder mlps[3];		/* CUDA_MLP_X: concat's one MLP, too; CUDA_MLP_Y, CUDA_MLP_HEAD */
	const float *y_table;		/* classifier: E_y of every class, [components, d]; else NULL */
	const float *role,			/* [3, d] or NULL */
			   *position,		/* [positions, d] or NULL */
			   *sink;			/* [sinks, d] */
	const CudaLayer *layer,
			   *cross;
	CudaNorm	final_norm;
	int			outputs;		/* of the head */
	int			head_kind;		/* as TnpHeadKind */
	int			components;		/* that of a process included */
	int			std_map;		/* as TnpStdMap */
	int			half_normal;
	int			params;			/* doubles of an answer */
	double		std_floor;
	const float *borders;		/* bars: [components + 1] */
	/*
	 * the gate to a process's answer: CUDA_GATE_HEAD numbers, which are how many hidden units there
	 * are, their activation and the bias of the output, then [hidden, CUDA_GATE_ROW]: a unit's
	 * weights, those of the process's record and of the rows behind the prefix among them, which
	 * may be 0, its bias, and what the output takes of it; NULL: there is none
	 */
	const float *gate;
} CudaModel;

/* ---- a launch -------------------------------------------------------------------------------- */

typedef enum CudaMode
{
	CUDA_HALVES,				/* rows to E_x alone */
	CUDA_QUERY,					/* queries walk all layers to their answers */
	CUDA_CHAIN,					/* pairs of a chain row and a query, step after step */
	CUDA_APPEND,				/* a few rows walk all layers and leave keys and values */
	CUDA_ENCODE					/* many rows: one layer per launch */
} CudaMode;

/*
 * Keys and values: [cache layers][heads][panels][words]. A panel's words are key words, or value
 * words.
 */
typedef struct CudaCache
{
	uint32_t   *k,
			   *v;
	int64_t		panels;			/* of a layer and head */
} CudaCache;

/* Classes of a context, and their order (engine/features/class_order.h). */
typedef struct CudaClasses
{
	int			n;
	int			ordered;		/* whether the network sees them in another order than they have */
	unsigned char place[CUDA_CLASSES],	/* where the network sees a class */
				given[CUDA_CLASSES];	/* the class that is seen there */
} CudaClasses;

/* Where targets count as nearer than they are (engine/features/far.c). */
typedef struct CudaBound
{
	int			is_set;
	double		middle,
				farthest,
				limit;
} CudaBound;

/* Components that stand for rare targets, in original units (engine/features/statistics.h). */
typedef struct CudaRare
{
	int			n;				/* at most 2 */
	double		weight[2],
				mean[2],
				sd[2];
} CudaRare;

/* The values that targets have, ascending, in original units; none where they are many. */
typedef struct CudaLevels
{
	int			n;
	double		narrow,			/* of their distance: a component's deviation below is narrow */
				value[CUDA_TARGET_LEVELS];
} CudaLevels;

/* What is wanted of the queries [first, first + n) of a launch. */
typedef struct CudaAnswer
{
	int			reductions;		/* a set of TnpReduction; 0: all parameters */
	int			n_levels;
	int			level;			/* first of them in levels */
	int			width;			/* doubles per row */
	int64_t		first;
	int64_t		out;			/* first double in out */
} CudaAnswer;

typedef struct CudaWalk
{
	CudaModel	model;			/* by value: a launch's parameters are read like constants */
	int			mode;			/* CudaMode */
	int			team;			/* blocks per tile */
	int			split;			/* whether the chunks of keys are tasks of their own */
	int			layer;			/* CUDA_ENCODE: which launch */
	int			tiles;


	/* shared memory, in bytes from its beginning */
	int			at_x0,
				at_x1,
				at_q,
				at_h,
				at_rows,
				at_input,
				at_part;		/* partial softmaxes, or -1: in `part` */
	int			row_x,			/* row lengths in elements */
				row_q,
				row_h;

	/* rows */
	int64_t		n;				/* rows, or streams of a chain */
	int64_t		first_slot;		/* APPEND, ENCODE: slot of row 0 */
	int			with_sinks;		/* ENCODE: the first rows are the sinks */
	/* visible shared slots of queries and chain rows; of the prefix's rows for APPEND, ENCODE */
	int64_t		shared;
	/*
	 * rows of x_width numbers: halves, which are d numbers, if x_is_half, else what the embedder
	 * reads
	 */
	const float *x;
	int			x_is_half,
				x_width;
	/*
	 * what the head takes a share of, or a gate reads of a process, and behind it what the mean
	 * moves to, for row i at i * said_step
	 */
	const float *prior_logits;
	int			said_step;
	CudaRare	rare;			/* of a gated model */
	CudaLevels	target_levels;	/* of a gated model */
	double		share,			/* of a classifier's logits, or 0 */
				share_alone,	/* where trees are silent, as the number behind the logits says */
				pull;			/* of the way from a mixture's mean to what it moves to, or 0 */
	float		gate_rows,		/* what a gate reads of the number of the prefix's rows */
				certain,		/* what a line that is certain weighs */
				record[CUDA_RECORD_NUMBERS];	/* of the process, or 0 */
	int64_t		behind;			/* visible shared rows that the statistics do not know */
	const float *target;		/* network's units [.], or NULL */
	float	   *halves;			/* CUDA_HALVES: [n, d] */
	int64_t		prefix_slots;	/* APPEND, ENCODE: slots below have the prefix's role */
	int			position;		/* row of the position table of chain row 0, or -1 */

	CudaCache	cache;			/* the context's */
	float	   *state;			/* ENCODE: [n, d] */
	uint32_t   *query;			/* ENCODE: [n, row_q] elements */

	/* chains */
	CudaCache	own;			/* of one group of streams; groups follow each other */
	int64_t		own_words_k,	/* words of one group */
				own_words_v;
	int			group,			/* streams of a group of 8 pairs */
				steps,			/* queries per stream: M */
				first_step,		/* of 8 / group pairs each */
				last_step;
	const int  *order;			/* [n, steps] or NULL */
	int64_t		draw_step;		/* number of step 0 in the random numbers */
	uint64_t	seed,
				first_draw;
	int			score;			/* log densities of given targets, else draws */
	/* score: raw targets [steps]; QUERY: of the queries, for log densities [n] */
	const double *y;
	double	   *chain_out;		/* [n, steps] */

	/* answers */
	double		y_center,
				y_scale,
				y_clip;
	CudaBound	y_bound;
	CudaClasses classes;		/* classifier: of the context */
	float	   *raw;			/* [teams, R, outputs] */
	double	   *params;			/* [teams, R, params] */
	float	   *part;			/* [blocks, part_floats] when not in shared memory */
	int64_t		part_floats;	/* of a team, or of teams that compute the same tile */
	const CudaAnswer *answers;
	const int  *answer_of;		/* [n] */
	const double *levels;
	double	   *out;
	/*
	 * [answers]: 1 when an answer is not finite; [0] for chains, and for rows that are encoded,
	 * where a key or value is not
	 */
	int		   *flags;
	/*
	 * teams that compute the same tile, each a part of its attention: they wait for each other,
	 * so all of them must run at once
	 */
	int			copies;
	unsigned   *arrived;		/* copies: [cache layers], zeros: blocks that came to a barrier */
	int			at_ring;		/* shared memory: rings of all warps, where the kernel has them */
	/*
	 * whether results of the layers are pushed to bells of the team's blocks; else they are
	 * stored, and barriers of the team order them
	 */
	int			pushes;
	int			at_bells;		/* shared memory */
	int			team_bits;		/* team is 2 to the power of it */
	int			at_early;		/* shared memory: early keys and values of all warps, or -1 */
} CudaWalk;

/* How many partial softmaxes a head of one block makes at most, private keys included. */
CUDA_SHARED int64_t
cuda_chunks(int64_t slots)
{
	return (slots + CUDA_CHUNK - 1) / CUDA_CHUNK + 1;
}

#endif							/* CUDA_LAYOUT_H */
