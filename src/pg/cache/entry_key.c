/*
 * entry_key.c: hashes of keys and of rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/entry_key.h"

#include "common/hashfn.h"

/* A hash of bytes of any length, of which hash_bytes_extended() takes an int. */
static uint64
hash_more(uint64 hash, const void *bytes, Size length)
{
	while (length > 0)
	{
		int			chunk = (int) Min(length, (Size) 1 << 30);

		hash = hash_bytes_extended(bytes, chunk, hash);
		bytes = (const char *) bytes + chunk;
		length -= chunk;
	}
	return hash;
}

void
posterior_entry_key_head(PosteriorEntryKey *key, const uint8 *kinds, const TnpRows *rows,
						 int64 n_base)
{
	uint64		hash = hash_more(0, kinds, rows->n_features);

	n_base = Min(n_base, rows->n);
	hash = hash_more(hash, rows->x, (Size) n_base * rows->n_features * sizeof(double));
	key->head = hash_more(hash, rows->y,
						  (Size) n_base * tnp_rows_targets(rows) * sizeof(double));
}

uint32
posterior_entry_key_hash(const PosteriorEntryKey *key)
{
	return hash_bytes((const unsigned char *) key, sizeof(*key));
}
