/*
 * packed.h: keys of the packed stack's attention, from which its variants follow.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PACKED_H
#define TNP_PACKED_H

#include "engine/file/bind.h"
#include "engine/network/embed.h"
#include "engine/network/scratch.h"

#define TNP_MAX_BASIS 64		/* functions of a kernel */
#define TNP_MAX_COMPONENTS 8
#define TNP_MAX_PLACES 64		/* columns of all components together */

/* A kernel of the distance between rows (docs/families.md); basis 0: none. */
typedef struct TnpKernelConfig
{
	int			basis;
	int			components;
	int			end[TNP_MAX_COMPONENTS];	/* of each component's columns */
	uint16_t	column[TNP_MAX_PLACES];
	int			causal;			/* 1 + the column, or 0 */
} TnpKernelConfig;

typedef enum TnpPackedKind { TNP_SOFTMAX, TNP_DEEP_KERNEL, TNP_RANDOM_FEATURES } TnpPackedKind;

/* The packed stack's own configuration. Widths of 0 are the trunk's. */
typedef struct TnpPackedConfig
{
	int			kind;			/* TnpPackedKind */
	int			query_width,
				value_width;
	TnpHidden	value_hidden;
	int			value_activation;	/* TNP_IDENTITY: the trunk's */
	TnpKernelConfig kernel;
	int			features;		/* of a head's keys: not of kind softmax */
	TnpHidden	hidden;			/* of a deep kernel */
	bool		no_position;	/* a deep kernel of states alone */
} TnpPackedConfig;

_Static_assert(sizeof(TnpPackedConfig) <= TNP_OWN_CONFIG, "a family's own configuration is small");

static inline const TnpPackedConfig *
tnp_packed_config(const TnpConfig *c)
{
	return TNP_OWN(c, TnpPackedConfig);
}

/*
 * The variants: widths of its own and a kernel (scan.c); products of features (products.c); tokens
 * from whole tables (set_encoder.c).
 */
extern const TnpFamily tnp_scan_family;
extern const TnpFamily tnp_products_family;
extern const TnpFamily tnp_set_family;

/* ---- what the variants share (packed_layer.c) ------------------------------------------------ */

/* Of every layer; o is not there in a deep kernel, nor are q and k. */
typedef struct TnpPackedLayer
{
	TnpLinear	q,
				k,
				o,
				ff0,
				ff1;
	TnpMlp		v;
	TnpNorm		norm1,
				norm2;
} TnpPackedLayer;

/* Widths of all heads' queries and keys, and of their values. */
int			tnp_packed_query_width(const TnpConfig *c);
int			tnp_packed_value_width(const TnpConfig *c);

/* Widest of hidden sizes; 1 where there are none. */
int			tnp_widest_hidden(const TnpHidden *hidden);

/* What files may not say together with these kinds of attention. */
TnpStatus	tnp_packed_check(const TnpConfig *c, TnpError *error);

/* Bind what all layers have, but for q, k and o if not `projected`. */
void		tnp_packed_bind_layer(TnpBinder *b, const char *name, bool projected,
								  TnpPackedLayer *layer);

/* The state is the trunk's vector, and behind it the family's place (family.h). */
int			tnp_packed_state_width(const TnpModel *model);
int			tnp_packed_embed_scratch(const TnpModel *model);
void		tnp_packed_embed(const TnpModel *model, int n, const float *const *row, const float *y,
							 TnpRole role, const int *position, float *scratch, float *states);

/* The vectors of n states h [n, state width] side by side: to [n, width]. */
float	   *tnp_packed_gather(const TnpModel *model, int n, const float *h, float *to);

/* What attention reads of n states, normed if pre-norm; the first [n, width] of work->more go. */
const float *tnp_packed_input(const TnpModel *model, const TnpPackedLayer *l, int n,
							  const float *h, TnpBlockWork *work);

/* The rest of the block after attention was added to `state` [n, width], which goes back to h. */
void		tnp_packed_finish(const TnpModel *model, const TnpPackedLayer *l, int n, float *state,
							  float *h, TnpBlockWork *work);

#endif							/* TNP_PACKED_H */
