/*
 * encode_rows.h: rows of a context become tokens, which the family's walk stores.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_ENCODE_ROWS_H
#define TNP_ENCODE_ROWS_H

#include "engine/network/embed.h"
#include "engine/network/encoding.h"

/*
 * Tokens h [n, state width] of rows [start, start + n) of the encoding, counted or not; n is at
 * most the scratch's rows.
 */
TnpStatus	tnp_embed_rows(const TnpEncoding *e, TnpScratch *work, int64_t start, int n, float *h,
						   TnpError *error);

/*
 * Tokens h [n, state width] of rows [first, first + n) by a team.
 */
TnpStatus	tnp_embed_all_rows(TnpEncoding *e, TnpTeam *team, int64_t first, int64_t n, float *h,
							   TnpError *error);

/*
 * Encode rows [first, first + n), and before the first of all the sinks: as tokens that see and
 * store what the family's row_token says. The cache has room.
 */
TnpStatus	tnp_encode_rows(TnpEncoding *e, int64_t first, int64_t n, bool anew, TnpError *error);

#endif							/* TNP_ENCODE_ROWS_H */
