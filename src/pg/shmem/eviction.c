/*
 * eviction.c: the least recently used piece of all parts gives way.
 *
 * What a piece is and whether anything uses it is for the part to say that owns it (segment.h). All
 * of it happens under the lock of the directory, held exclusively: no piece can be pinned between
 * being chosen and being freed.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/shmem/eviction.h"

#include "pg/shmem/segment.h"

/* Bytes in use that count against the cache's size. */
static uint64
bytes_in_use(void)
{
	return pg_atomic_read_u64(&posterior_shared->used);
}

/* Evict the least recently used piece; *freed grows by its bytes. False if there is none. */
static bool
evict_one(Size *freed)
{
	const PosteriorSharedPart *owner = NULL;
	void	   *oldest = NULL;
	uint64		oldest_used = 0;
	int			n;
	PosteriorSharedPart *const *parts = posterior_segment_parts(&n);

	for (int i = 0; i < n; i++)
	{
		uint64		used;
		void	   *piece = parts[i]->oldest != NULL ? parts[i]->oldest(&used) : NULL;

		if (piece != NULL && (oldest == NULL || used < oldest_used))
		{
			owner = parts[i];
			oldest = piece;
			oldest_used = used;
		}
	}
	if (oldest == NULL)
		return false;
	*freed += owner->evict(oldest);
	return true;
}

bool
posterior_make_room(Size bytes)
{
	uint64		limit = (uint64) posterior_cache_size * 1024;
	Size		freed = 0;
	bool		room;

	if (bytes > limit)
		return false;
	posterior_lock(LW_EXCLUSIVE);
	while (bytes_in_use() + bytes > limit && evict_one(&freed))
		;
	room = bytes_in_use() + bytes <= limit;
	posterior_unlock();
	return room;
}

bool
posterior_evict(Size bytes)
{
	Size		freed = 0;
	bool		any = false;

	posterior_lock(LW_EXCLUSIVE);
	while ((!any || freed < bytes) && evict_one(&freed))
		any = true;
	posterior_unlock();
	return any;
}
