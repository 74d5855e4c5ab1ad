/*
 * kernels.h: what a CPU-class provider implements, and the layouts that it shares with the engine.
 *
 * The engine walks the layers (trunk.c) and calls these few operations on tiles of rows. Every output element is a fixed sequence of
 * operations on its own row's inputs, whatever the number of rows in the call: that is what makes an answer independent of its batch mates,
 * bitwise. A provider may block over rows, but may not change the order of a sum with the size of the tile.
 *
 * Key cache layout, one per layer: keys in panels of TNP_PANEL slots, feature-major inside a panel (a kernel reads
 * TNP_PANEL keys of one feature with one load); values row-major. Slot s, feature f: k[((s / P) * d + f) * P + s % P], v[s * d + f].
 * Blocks are aligned to 64 bytes and every slot of a started panel is readable memory.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_KERNELS_H
#define TNP_KERNELS_H

#include "config.h"

#define TNP_KERNELS_API 1
#define TNP_PANEL 16
#define TNP_TILE 64				/* rows per call at most */
#define TNP_ATTEND_ROWS 4		/* rows whose scores are held at once by attend */

/* Number of slots rounded up to whole panels. */
static inline int64_t
tnp_panels(int64_t n)
{
	return (n + TNP_PANEL - 1) / TNP_PANEL * TNP_PANEL;
}

/* y = W x + b with W [out, in]; stride is the row length of W in memory, at least in (only the row tokeniser has in < stride). */
typedef struct TnpLinear
{
	int			in,
				out,
				stride;
	const float *weight;		/* [out, stride] */
	const float *bias;			/* [out] or NULL */
	const float *packed;		/* as the provider's pack laid it out, or NULL */
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
	const float *k,
			   *v;
	int64_t		n;
} TnpKeys;

/* One tile of attention: row i reads the first context[i] slots of the shared keys and then the keys own[i] of its chain. */
typedef struct TnpAttention
{
	int			heads,
				head_width;		/* heads * head_width = d */
	int			n;				/* rows, at most TNP_TILE */
	const float *q;				/* [n, d] */
	const float *scale;			/* [n, heads], multiplies q.k */
	const float *k,				/* shared keys and values */
			   *v;
	const int64_t *context;		/* [n] */
	const TnpKeys *own;			/* [n] */
	float	   *scratch;		/* TNP_ATTEND_ROWS * scratch_row floats, 64-byte aligned */
	int64_t		scratch_row;	/* at least panels(context) + panels(own), the same for all rows */
	float	   *out;			/* [n, d]; must not overlap q */
} TnpAttention;

struct TnpKernels
{
	int			api;			/* TNP_KERNELS_API */
	size_t		size;			/* sizeof(TnpKernels) */
	const char *name;

	/* Floats that pack writes for a weight matrix, 0 if the provider reads `weight` as it is. */
	size_t		(*packed_floats) (int out, int stride);
	void		(*pack) (const float *weight, int out, int stride, float *packed);

	/* y [n, out] = activation(W x + b), or y += W x + b when accumulate (activation is then TNP_IDENTITY). x [n, in]. */
	void		(*linear) (const TnpLinear *w, int n, const float *x, TnpActivation activation, bool accumulate, float *y);

	/* y [n, width] = norm(x [n, width]); y may be x. */
	void		(*norm) (const TnpNorm *norm, int n, const float *x, float *y);

	/* Softmax attention of one tile; a row with no visible key gives zeros. */
	void		(*attend) (const TnpAttention *a);
};

#endif							/* TNP_KERNELS_H */
