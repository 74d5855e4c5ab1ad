/*
 * bind.h: binds tensors of a file by name and shape.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_BIND_H
#define TNP_BIND_H

#include "engine/file/model.h"
#include "engine/file/safetensors.h"

/* What a binding step needs; the first failure sticks and later steps do nothing. */
typedef struct TnpBinder
{
	TnpModel   *model;
	const TnpFile *file;
	TnpError   *error;
	TnpStatus	status;
	int			bound;			/* tensors asked for so far */
} TnpBinder;

/* Zeroed memory, and floats aligned to 64 bytes, that live as long as the model; NULL: failed. */
void	   *tnp_bind_memory(TnpBinder *b, size_t size);
float	   *tnp_bind_floats(TnpBinder *b, size_t n);

/* The tensor `name` of the shape [d0, d1, d2][:rank], widened to float32, or NULL. */
const float *tnp_bind_tensor(TnpBinder *b, const char *name, int rank, int64_t d0, int64_t d1,
							 int64_t d2);

/* Let the provider lay the weights out its way. */
void		tnp_bind_pack(TnpBinder *b, TnpLinear *w);

/* name.weight [out, in] and, with bias, name.bias [out]. */
TnpLinear	tnp_bind_linear(TnpBinder *b, const char *name, int in, int out, bool bias);

/* name.weight [width], and name.bias of a layer norm. */
TnpNorm		tnp_bind_norm(TnpBinder *b, const char *name, int width);

/* Linears name.0, name.1, … with biases. */
TnpMlp		tnp_bind_mlp(TnpBinder *b, const char *name, int in, const TnpHidden *hidden, int out,
						 TnpActivation activation);

/* Blocks name.0 … name.n-1 of width d in one array, NULL after a failure. */
TnpLayer   *tnp_bind_layers(TnpBinder *b, const char *name, int n, int d, int feedforward,
							bool log_scale);

/* Embedder (bind_embedder.c). */
void		tnp_bind_embedder(TnpBinder *b);

/* The first tensor that cannot be is the failure. */
void		tnp_bind_fail(TnpBinder *b, const char *message, const char *name);

#endif							/* TNP_BIND_H */
