/*
 * kept_signature.h: all that could change which rows a table shows, or what they say, without a
 * trigger noting it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_KEPT_SIGNATURE_H
#define POSTERIOR_KEPT_SIGNATURE_H

#include "pg/named/definition.h"

#include "nodes/bitmapset.h"

/*
 * The relations of a context with their files, the triggers that note rows for it, and the types of
 * the columns that it uses, as the catalogs say now: allocated. NULL where rows cannot all be
 * noted, with *why as the end of a sentence. A signature that has changed never comes back.
 *
 * Sums with this signature, made under a snapshot that is later than the signature, are those of
 * the rows, together with the notes that the snapshot shows.
 */
bytea	   *posterior_kept_signature(const PosteriorNamed *named, const char **why);

/* Whether triggers can note all that changes a relation's rows: a table, or a partitioned one. */
bool		posterior_can_keep(Oid relation);

/*
 * Whether a statement of this session is in the middle of using the context's relations: rows that
 * it has written may not be noted yet.
 */
bool		posterior_kept_in_use(const PosteriorNamed *named);

#endif							/* POSTERIOR_KEPT_SIGNATURE_H */
