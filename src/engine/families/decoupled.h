/*
 * decoupled.h: what the backbones of decoupled values share (docs/families.md, "Decoupled values";
 * Sharma et al. 2025).
 *
 * The state of a token begins with [h, e]: what the head reads, which begins as the target's
 * encoding, and the encoding of the features. What follows is the backbone's.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_DECOUPLED_H
#define TNP_DECOUPLED_H

#include "engine/families/stack.h"

typedef enum TnpDecoupledKind
{
	TNP_DECOUPLED_SOFTMAX, TNP_DECOUPLED_DISTANCE, TNP_DECOUPLED_LINEAR
} TnpDecoupledKind;

typedef enum TnpBackbone
{
	TNP_BACKBONE_ATTENTION, TNP_BACKBONE_CONVOLUTION, TNP_BACKBONE_RNN, TNP_BACKBONE_LSTM
} TnpBackbone;

typedef struct TnpDecoupledConfig
{
	int			kind;			/* TnpDecoupledKind */
	int			backbone;		/* TnpBackbone */
	bool		tied;
} TnpDecoupledConfig;

static inline const TnpDecoupledConfig *
tnp_decoupled_config(const TnpConfig *c)
{
	return TNP_OWN(c, TnpDecoupledConfig);
}

typedef struct TnpDecoupledAttention
{
	TnpLinear	q,
				k,				/* q again if tied */
				v,
				o;
} TnpDecoupledAttention;

/* The backbones that are not attention. */
extern const TnpFamily tnp_convolution_family;
extern const TnpFamily tnp_recurrence_family;

/* What all backbones demand of a configuration. */
TnpStatus	tnp_decoupled_check(const TnpConfig *c, TnpError *error);

/* Tensors name.q, k, v and o, all [d, d]. */
TnpDecoupledAttention tnp_decoupled_bind_attention(TnpBinder *b, const char *name);

/* States begin with the targets' encodings, zeros of queries, and those of the features. */
void		tnp_decoupled_embed(const TnpModel *model, int n, const float *const *row,
								const float *y, TnpRole role, const int *position, float *scratch,
								float *states);
int			tnp_decoupled_embed_scratch(const TnpModel *model);

/*
 * The d numbers from `states` on of n states, `stride` floats from one to the next, side by side;
 * and back. The first returns `to`.
 */
float	   *tnp_decoupled_gather(int n, int d, int stride, const float *states, float *to);
void		tnp_decoupled_scatter(int n, int d, int stride, const float *from, float *states);

/* Softmax attention of the queries in work->q, in heads of width / heads. */
TnpAttention tnp_decoupled_softmax(const TnpConfig *c, int n, float scale, const TnpView *view,
								   TnpBlockWork *work);

#endif							/* TNP_DECOUPLED_H */
