/*
 * set_encoder.h: packed models whose tokens are made of whole tables (docs/families.md, "The set
 * encoder").
 *
 * A context keeps, of each column and layer of the column stage, keys and values of the states of
 * its inducing points. All rows and queries read these alone, so a row's token is its own.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SET_ENCODER_H
#define TNP_SET_ENCODER_H

#include "engine/file/bind.h"
#include "engine/network/block.h"
#include "engine/network/encoding.h"
#include "engine/network/scratch.h"

#define SET_ROWS 8				/* rows that go through the stages together */

/* A layer of the column stage. */
typedef struct SetInduced
{
	const float *points;		/* [inducing, c] */
	TnpLayer	read,			/* the points read the prefix's cells */
				write;			/* all cells read the points */
} SetInduced;

typedef struct SetWeights
{
	TnpLinear	cell;			/* [c, 1] */
	SetInduced *columns;
	TnpLinear	affine[2];		/* weights and shifts of cells */
	TnpNorm		affine_norm[2];
	const float *readouts;		/* [readouts, c] */
	TnpLayer   *rows;
	TnpNorm		rows_norm;
	float	   *cosine,			/* [readouts + max_features, head width / 2] */
			   *sine;
} SetWeights;

static inline const SetWeights *
set_weights(const TnpModel *model)
{
	return model->own;
}

/* Tokens of a row in the row stage, of the widest table. */
static inline int
set_tokens(const TnpConfig *c)
{
	return c->set.readouts + c->max_features;
}

/* ---- set_bind.c ------------------------------------------------------------------------------ */

TnpStatus	set_check(const TnpConfig *config, TnpError *error);
void		set_bind(TnpBinder *b);

/* ---- set_stages.c: arithmetic of tiles ------------------------------------------------------- */

/* Scratch for tiles of rows, and its parts in work->scratch. */
TnpStatus	set_work_make(const TnpModel *model, int rows, TnpTokenWork *work, TnpError *error);

/* n <= TNP_TILE states h [n, c] through a block that reads m keys. */
void		set_block(const TnpModel *model, const TnpLayer *layer, int heads, int n, float *h,
					  const void *k, const void *v, int64_t m, TnpBlockWork *work);

/*
 * Features E_x [n, d] of n <= SET_ROWS rows with scaled cells [max_features] each, in a context;
 * what is too large for attention becomes NaN.
 */
void		set_features(const TnpEncoding *e, TnpTokenWork *work, int n, const float *const *cells,
						 float *out);

/* ---- set_columns.c: what a context keeps ----------------------------------------------------- */

/* Bytes of the keys of one column and layer; the values are as many and follow. */
size_t		set_column_bytes(const TnpModel *model);
char	   *set_column_keys(const TnpEncoding *e, int column, int layer);

TnpStatus	set_begin(TnpEncoding *e, TnpTeam *team, TnpError *error);

#endif							/* TNP_SET_ENCODER_H */
