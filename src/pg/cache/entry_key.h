/*
 * entry_key.h: what all rows of a cache entry depend on.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ENTRY_KEY_H
#define POSTERIOR_ENTRY_KEY_H

#include "pg/base/compat.h"

#include "engine/tnp.h"

#include "utils/uuid.h"

/* Zeroed before it is filled: it is compared and hashed as bytes. */
typedef struct PosteriorEntryKey
{
	uint32		incarnation;	/* of the database */
	Oid			role;			/* to which the entry belongs, or InvalidOid */
	pg_uuid_t	context;		/* version of a named context, or zeros */
	pg_uuid_t	model;
	int32		kernels;
	int32		n_features;
	int32		n_classes;		/* 0: targets are numbers */
	int32		n_targets;		/* per row */
	/* what comes before this is that of all entries of a named context under one model */
	int64		prefix;
	uint64		head;			/* hash of the columns' kinds and of the base rows */
} PosteriorEntryKey;

/*
 * Fill key->head from the columns' kinds and the first `n_base` rows, which all others depend on.
 */
void		posterior_entry_key_head(PosteriorEntryKey *key, const uint8 *kinds,
									 const TnpRows *rows, int64 n_base);

/* A hash of the key's bytes. */
uint32		posterior_entry_key_hash(const PosteriorEntryKey *key);

#endif							/* POSTERIOR_ENTRY_KEY_H */
