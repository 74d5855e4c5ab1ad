/*
 * body.h: what a run or a call site holds of a context: the engine's encoding, or the rows alone, of which a device has the keys and values.
 *
 * Both are appended to, copied and looked at in the same way, so that whoever finds and extends encodings (encoding.c) need not know which provider
 * will be asked.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_BODY_H
#define POSTERIOR_BODY_H

#include "models.h"

/* A device or its server has failed, not the question. Beyond the engine's own statuses. */
#define POSTERIOR_FAULT ((TnpStatus) 100)

typedef struct PosteriorBody
{
	TnpEncoding *encoding;		/* NULL: the rows alone */
	bool		kept;			/* in the arena: room is fixed, other processes may read it */
	bool		borrowed;		/* rows belong to another body */
	int			n_features,
				n_classes;		/* of the targets, as in TnpRows */
	int64		n,
				capacity,
				prefix;
	TnpColumnKind *kinds;		/* [n_features] */
	double	   *x;				/* [capacity, n_features] */
	double	   *y;				/* [capacity] */
	uint64		serial;			/* under which the server knows the rows: never used for others */
	int64		mirrored;		/* rows that the server has, as far as is known here */
} PosteriorBody;

static inline bool
posterior_body_on_device(const PosteriorBody *b)
{
	return b->encoding == NULL;
}

/* tnp_build, or the rows alone: then nothing is asked of the device yet, nor checked. */
TnpStatus	posterior_body_build(PosteriorModel *model, bool device, const TnpRows *rows, int64 prefix, PosteriorBody **body, TnpError *error);

/* tnp_append. Rows of a kept body are on the device when this returns. On failure nothing has changed. */
TnpStatus	posterior_body_append(PosteriorModel *model, PosteriorBody *body, const TnpRows *rows, TnpError *error);

/* tnp_grow. */
TnpStatus	posterior_body_grow(PosteriorModel *model, PosteriorBody *body, const TnpRows *rows, TnpError *error);

/* Have the device hold all rows; nothing to do for an encoding of the engine's. */
TnpStatus	posterior_body_settle(PosteriorModel *model, PosteriorBody *body, TnpError *error);

/*
 * tnp_encoding_copy. A copy of all rows that are there takes over what the device has of them: the server goes on appending to it. `from` must not be appended to by others
 * meanwhile.
 */
TnpStatus	posterior_body_copy(PosteriorModel *model, PosteriorBody *from, int64 n, int64 capacity, bool keep, PosteriorBody **copy, TnpError *error);

/* tnp_encoding_first. */
TnpStatus	posterior_body_first(PosteriorModel *model, const PosteriorBody *from, int64 n, PosteriorBody **view, TnpError *error);

int64		posterior_body_rows(const PosteriorBody *body);
int64		posterior_body_prefix(const PosteriorBody *body);
int64		posterior_body_capacity(const PosteriorBody *body);
size_t		posterior_body_bytes(const PosteriorBody *body);
TnpRows		posterior_body_view(const PosteriorBody *body);
void		posterior_body_free(PosteriorBody *body);

#endif							/* POSTERIOR_BODY_H */
