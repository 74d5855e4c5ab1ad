/*
 * encode.h: the encoding of a context, and the parts of it that the questions share.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_ENCODE_H
#define TNP_ENCODE_H

#include "engine/features/scale.h"
#include "engine/features/stats.h"
#include "engine/network/embed.h"
#include "engine/network/encode_rows.h"
#include "engine/network/encoding.h"
#include "engine/network/head.h"
#include "engine/network/walk.h"

/*
 * An encoding of the same rows and further `more` rows, all in the prefix, with the statistics of
 * `e`: how a finished block of a chain is merged. more->kinds is ignored.
 */
TnpStatus	tnp_merge(const TnpEncoding *e, const TnpRows *more, TnpEncoding **merged,
					  TnpError *error);

/* tnp_build_views of rows, some of them in stretches [n] that it takes over (family.h). */
TnpStatus	tnp_build_from(const TnpModel *model, const TnpRows *rows, int64_t prefix, int views,
						   const TnpStretch *stretches, int64_t n, TnpEncoding **encoding,
						   TnpError *error);

/*
 * Whether an encoding under this prefix may take over what another one has: whether both have the
 * same statistics. rows: those of the first, or NULL where they begin with all of the other one.
 */
bool		tnp_takes_over(const TnpEncoding *from, const TnpRows *rows, int64_t prefix);

/* To be called when the number of rows has changed: the family makes ready what it keeps of them.
 */
TnpStatus	tnp_encoding_settle(TnpEncoding *e, TnpError *error);

/* Query rows fit the encoding: same columns, acceptable cells. */
TnpStatus	tnp_queries_check(const TnpEncoding *e, const TnpRows *rows, bool need_y,
							  TnpError *error);

/*
 * What appending begins with: the rows are as they must be, and lie behind those that are there,
 * not yet counted.
 */
TnpStatus	tnp_append_begin(TnpEncoding *e, const TnpRows *rows, TnpError *error);

#endif							/* TNP_ENCODE_H */
