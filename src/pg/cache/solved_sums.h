/*
 * solved_sums.h: encodings of sums in the arena, found again by all that they depend on.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_SOLVED_SUMS_H
#define POSTERIOR_SOLVED_SUMS_H

#include "pg/cache/cached_context.h"
#include "pg/shmem/recency.h"

#include "utils/uuid.h"

/* Zeroed before it is filled: it is compared as bytes. */
typedef struct PosteriorSolvedKey
{
	uint32		incarnation;	/* of the database */
	int32		kernels;
	pg_uuid_t	model;
	/* of a named context; zeros of a value: */
	pg_uuid_t	kept,			/* what its rows are noted under */
				definition,		/* its version, */
				sums;			/* and that of the stored sums */
	Oid			role;			/* that the solution belongs to, of a value; else 0 */
	uint32		hash;			/* of the content */
} PosteriorSolvedKey;

/* What else the sums depend on: a value, or the notes of rows that are in them. */
typedef struct PosteriorSolvedContent
{
	const void *bytes;
	Size		length;
} PosteriorSolvedContent;

typedef struct PosteriorSolvedSums
{
	dlist_node	node;
	PosteriorSolvedKey key;
	PosteriorSolvedContent content; /* a copy in the arena */
	PosteriorCachedContext *cached;
	PosteriorWeights *weights;	/* held; NULL in a session's own memory, then: */
	PosteriorHolder holder;
	PosteriorModel *model;		/* acquired */
	Size		bytes;
	int			pins;
	PosteriorUse use;
} PosteriorSolvedSums;

extern PosteriorSharedPart posterior_solved_part;

/* Fill in the hash; false for a content that is too long to be kept. */
bool		posterior_solved_key_hash(PosteriorSolvedKey *key, PosteriorSolvedContent content);

/* The sums of this key and content, pinned, or NULL. */
PosteriorSolvedSums *posterior_solved_find(const PosteriorSolvedKey *key,
										   PosteriorSolvedContent content);

/*
 * Encode sums (tnp_sums_encode_fitted) and list the encoding, pinned. TNP_NO_MEMORY where it cannot
 * be kept, so that the caller keeps it: the arena has no room, or not the model.
 */
TnpStatus	posterior_solved_make(const PosteriorSolvedKey *key, PosteriorSolvedContent content,
								  PosteriorModel *model, const TnpColumnKind *kinds, TnpSums *sums,
								  Size words, const int64 *fit, PosteriorSolvedSums **solved,
								  TnpError *error);

void		posterior_solved_unpin(PosteriorSolvedSums *solved);

#endif							/* POSTERIOR_SOLVED_SUMS_H */
