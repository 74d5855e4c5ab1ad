/*
 * kernels.h: what a CPU-class provider implements, and the layouts that it shares with the engine.
 *
 * The engine walks the layers (walk.c) and calls these few operations on tiles of rows. Every
 * output element is a fixed sequence of operations on its own row's inputs, whatever the number of
 * rows in the call: that is what makes an answer independent of its batch mates, bitwise. A
 * provider may block over rows, but may not change the order of a sum with the size of the tile.
 *
 * Key cache layout, one per layer: blocks of slots, TNP_BLOCK where many rows read them and
 * TNP_PANEL in the small caches of chains. In a block, one head after the other; a head's keys in
 * panels of TNP_PANEL slots, feature-major inside a panel (a kernel reads TNP_PANEL keys of one
 * feature with one load), its values slot by slot. So what one head needs of a block is two runs of
 * memory. A key may have values of several planes, each weighted by itself: then those of a head
 * are plane by plane, as if they were so many heads. Layers are aligned to 64 bytes and every slot
 * of a started block is readable. The numbers are floats or, where a provider says so, halves.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_KERNELS_H
#define TNP_KERNELS_H

#include "engine/kernels/moments.h"
#include "engine/tnp.h"

typedef enum TnpNormKind { TNP_LAYER_NORM, TNP_RMS_NORM } TnpNormKind;
typedef enum TnpActivation { TNP_IDENTITY, TNP_RELU, TNP_GELU, TNP_GELU_TANH } TnpActivation;

#define TNP_MAX_WIDTH 4096		/* largest width of a stack */
#define TNP_KERNELS_API 11
#define TNP_PANEL 16
#define TNP_BLOCK 64
#define TNP_TILE 96				/* rows per call at most */
/* shared keys that are summed up by themselves before the sums are added, whole panels */
#define TNP_SPAN 512

/*
 * What attention can be trusted with. Products of queries and keys within LARGEST_KEY stay finite
 * in float32 for every width; a row and head whose largest score, in units of log 2, is beyond
 * LARGEST_SCORE has weights that rounding may have made, and gets NaN. NaN then stays with the row,
 * through every kernel, to where it is refused.
 */
#define TNP_LARGEST_KEY 1e16f
#define TNP_LARGEST_SCORE 131072.0f
#define TNP_LARGEST_HALF 65504.0f

/* Number of slots rounded up to whole blocks. */
static inline int64_t
tnp_blocks(int64_t n, int block)
{
	return (n + block - 1) / block * block;
}

/*
 * Where the key of a slot has feature f of a head of a width in a cache of d features per slot; the
 * next slot's is one further, feature f + 1 is TNP_PANEL further.
 */
static inline size_t
tnp_key_at(int64_t slot, int block, int d, int head, int head_width, int f)
{
	int			in_block = (int) (slot % block);

	return (size_t) (slot / block) * block * d + (size_t) head * block * head_width
		+ (size_t) (in_block / TNP_PANEL * head_width + f) * TNP_PANEL + in_block % TNP_PANEL;
}

/* Where the value of a slot has a head's features. */
static inline size_t
tnp_value_at(int64_t slot, int block, int d, int head, int head_width)
{
	return (size_t) (slot / block) * block * d + ((size_t) head * block + (size_t) (slot % block))
		* head_width;
}

/*
 * y = W x + b with W [out, in]; stride is the row length of W in memory, at least in (only the row
 * tokeniser has in < stride).
 */
typedef struct TnpLinear
{
	int			in,
				out,
				stride;
	const float *weight;		/* [out, stride] */
	const float *bias;			/* [out] or NULL */
	const float *packed;		/* as the provider's pack laid it out, or NULL */
	/* the same in binary16, where that loses nothing and the provider has a use for it, or NULL */
	const uint16_t *halves;
} TnpLinear;

typedef struct TnpNorm
{
	TnpNormKind kind;
	int			width;
	float		eps;
	const float *weight;		/* [width] */
	const float *bias;			/* [width], layer norm only */
} TnpNorm;

/* Keys and values of n slots. */
typedef struct TnpKeys
{
	const void *k,				/* numbers of the provider's size */
			   *v;
	int64_t		n;
} TnpKeys;

/*
 * One tile of attention: row i reads the first context[i] slots of the shared keys and then the
 * keys own[i] of its chain. Shared keys are taken in spans of TNP_SPAN; the sums of the spans and
 * that of the own keys are added in this order, so that spans may be worked on apart.
 */
typedef struct TnpAttention
{
	int			heads,
				head_width;		/* heads * head_width = d */
	int			n;				/* rows, at most TNP_TILE */
	/*
	 * 1 … n: the rows from this on have the query, scale and context of the one before; its sums of
	 * the shared keys are theirs
	 */
	int			distinct;
	const float *q;				/* [n, d] */
	const float *scale;			/* [n, heads], multiplies q.k */
	const void *k,				/* shared keys and values, in blocks of TNP_BLOCK */
			   *v;
	const int64_t *context;		/* [n] */
	const TnpKeys *own;			/* [n] in blocks of TNP_PANEL */
	float	   *scratch;		/* attend_floats of n rows, 64-byte aligned */
	float	   *out;			/* [n, planes, d]; must not overlap q */
	/*
	 * values of a key and head, which have the same weight; 0: 1. What comes of each is what would
	 * come of it alone, bitwise
	 */
	int			planes;
} TnpAttention;

static inline int
tnp_attention_planes(const TnpAttention *a)
{
	return a->planes > 0 ? a->planes : 1;
}

/*
 * Attention of one row whose scores have bumps of distances beside q.k (scan attention): in units
 * of log 2, the score of a slot with head h is
 *     q_h.k_h + Σ_g Σ_b height[g,h,b] 2^(rate[g,h,b] (distance_g - center[g,h,b])^2),
 * added from left to right. Keys and values are floats, also where a provider keeps halves.
 */
typedef struct TnpBumps
{
	int			heads,
				key_width,		/* of a head */
				value_width,
				components,		/* g; 0: none */
				basis;			/* b */
	const float *height,		/* [components, heads, basis] each */
			   *rate,			/* at most 0 */
			   *center;
	const float *q;				/* [heads, key_width] in units of log 2 */
	float	   *sums;			/* bump_floats, 64-byte aligned */
} TnpBumps;

struct TnpKernels
{
	int			api;			/* TNP_KERNELS_API */
	size_t		size;			/* sizeof(TnpKernels) */
	const char *name;
	/* bytes of a number of keys and values: 4, a float, or 2, IEEE 754's binary16 */
	size_t		number;

	/*
	 * n numbers from floats; NULL if they are floats. Those beyond the largest become the largest.
	 */
	void		(*narrow) (int n, const float *x, void *y);

	/* Floats that pack writes for a weight matrix, 0 if the provider reads `weight` as it is. */
	size_t		(*packed_floats) (int out, int stride);
	void		(*pack) (const float *weight, int out, int stride, float *packed);

	/*
	 * The same for weights that are all binary16, as many of them; NULL if the provider has no use
	 * for that.
	 */
	void		(*pack_halves) (const float *weight, int out, int stride, uint16_t *packed);

	/*
	 * y [n, out] = activation(W x + b), or y += W x + b when accumulate (activation is then
	 * TNP_IDENTITY). x [n, in]. NaN of x is NaN of y.
	 */
	void		(*linear) (const TnpLinear *w, int n, const float *x, TnpActivation activation,
						   bool accumulate, float *y);

	/*
	 * y [n, width] = norm(x [n, width]); y may be x. Right for every finite x, also where its
	 * squares are not finite.
	 */
	void		(*norm) (const TnpNorm *norm, int n, const float *x, float *y);

	/* Floats of scratch for a tile of n rows, and of the sum of one span: n times one row's. */
	size_t		(*attend_floats) (int heads, int head_width, int planes, int n);
	size_t		(*sum_floats) (int heads, int head_width, int planes, int n);

	/*
	 * Softmax attention of one tile; a row with no visible key gives zeros, one whose scores cannot
	 * be trusted NaN.
	 */
	void		(*attend) (const TnpAttention *a);

	/*
	 * The same in parts, bitwise: begin, then of each span number 0 … n - 1 that any row sees the
	 * sums of heads first … end - 1, each part by whichever thread, and then the rest, which adds
	 * the spans, to the first one's sum. Parts of a span share its sum; scratch is attend_floats of
	 * n rows, a thread's own or a's. `more` goes on with the sum of the slots of a span that come
	 * before `from`, which is a multiple of TNP_BLOCK. NULL where a provider cannot.
	 */
	void		(*attend_begin) (const TnpAttention *a);
	void		(*attend_span) (const TnpAttention *a, int64_t span, int first, int end, float *sum,
								float *scratch);
	void		(*attend_more) (const TnpAttention *a, int64_t from, int first, int end, float *sum,
								float *scratch);
	void		(*attend_rest) (const TnpAttention *a, int64_t spans, float *sums);

	/*
	 * Begin with nothing; take the first n of the `block` slots, TNP_BLOCK or TNP_PANEL, whose keys
	 * and values are k and v, but for those hidden [TNP_BLOCK], if not NULL; distance [components,
	 * TNP_BLOCK], finite also after the first n; then write the means out [heads, value_width]:
	 * zeros where no slot was seen, NaN where scores cannot be trusted. A row's sums are in the
	 * order of its slots, whatever is taken together.
	 */
	size_t		(*bump_floats) (int heads, int value_width);
	void		(*bump_begin) (const TnpBumps *b);
	void		(*bump_take) (const TnpBumps *b, const float *k, const float *v, int block, int n,
							  const float *distance, const bool *hidden);
	void		(*bump_end) (const TnpBumps *b, float *out);

	/*
	 * What a layer of a recurrence says from its gates: s [d] is tanh of gates [d], or with cells,
	 * those of an LSTM, from gates [4, d] (in, keep, new, out) and the cells before [d], 0 if NULL;
	 * behind s the cells [d] then. NaN of a gate is NaN of s.
	 */
	void		(*gate) (bool cells, int d, const float *gates, const float *before, float *s);

	/* operations for contexts that are sums */
	const TnpMoments *(*moments) (void);
};

#endif							/* TNP_KERNELS_H */
