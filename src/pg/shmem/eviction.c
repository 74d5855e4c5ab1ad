/*
 * eviction.c: pieces of all parts that were used least recently give way.
 *
 * What a piece is and whether anything uses it is for the part to say that owns it (segment.h). All
 * of it happens under the lock of the directory, held exclusively: no piece can be pinned between
 * being chosen and being freed.
 *
 * In shared memory a stretch of neighbours gives way, all of it or nothing: room for a large
 * encoding cannot be had by freeing as many bytes here and there, and others would lose theirs in
 * vain, at every statement anew. The least recently used piece and what lies beside it are tried
 * first: to find the best stretch all blocks are walked some dozen times, 8 ms with 3,000 encodings
 * in 1 GB.
 *
 * A piece that others hold, as encodings hold their model, goes with all of these, and only where
 * there is no room without that: many may go that lie elsewhere.
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

/* The least recently used piece, or NULL; its part and the tick of its use. */
static void *
find_oldest(const PosteriorSharedPart **owner, uint64 *oldest_used)
{
	void	   *oldest = NULL;
	int			n;
	PosteriorSharedPart *const *parts = posterior_segment_parts(&n);

	for (int i = 0; i < n; i++)
	{
		uint64		used;
		void	   *piece = parts[i]->oldest != NULL ? parts[i]->oldest(&used) : NULL;

		if (piece != NULL && (oldest == NULL || used < *oldest_used))
		{
			*owner = parts[i];
			oldest = piece;
			*oldest_used = used;
		}
	}
	return oldest;
}

/* Evict the least recently used piece; *freed grows by its bytes. False if there is none. */
static bool
evict_one(Size *freed)
{
	const PosteriorSharedPart *owner = NULL;
	uint64		used = 0;
	void	   *oldest = find_oldest(&owner, &used);

	if (oldest == NULL)
		return false;
	*freed += owner->evict(oldest);
	return true;
}

/* Evict pieces until `bytes` fit below the cache's size. */
static bool
make_own_room(Size bytes)
{
	uint64		limit = (uint64) posterior_cache_size * 1024;
	Size		freed = 0;

	while (bytes_in_use() + bytes > limit && evict_one(&freed))
		;
	return bytes_in_use() + bytes <= limit;
}

bool
posterior_evict_own(Size bytes)
{
	Size		freed = 0;
	bool		any = false;

	if (posterior_is_shared)
		return false;
	while ((!any || freed < bytes) && evict_one(&freed))
		any = true;
	return any;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* What may go. */
typedef struct Rule
{
	PosteriorSharedPart *const *parts;
	int			n_parts;
	bool		lasting_stays;
	bool		holders_go;		/* pieces may go together with those that hold them */
} Rule;

static const PosteriorSharedPart *
block_part(const Rule *rule, const PosteriorBlock *block)
{
	return block->owner_kind == 0 || block->owner_kind > (uint32) rule->n_parts
		? NULL : rule->parts[block->owner_kind - 1];
}

static bool
block_may_go(const PosteriorBlock *block, void *argument, uint64_t *used)
{
	const Rule *rule = argument;
	const PosteriorSharedPart *part = block_part(rule, block);
	uint64		when = 0;

	if (part == NULL || part->may_go == NULL || (part->lasting && rule->lasting_stays))
		return false;
	if (!part->may_go(block->owner, &when)
		&& (!rule->holders_go || part->may_go_with == NULL
			|| !part->may_go_with(block->owner, &when)))
		return false;
	*used = when;
	return true;
}

/* Evict what lies in a window; the free block that it has become. */
static PosteriorBlock *
window_clear(PosteriorBlocks *all, PosteriorBlock *window, Size size, Rule *rule)
{
	all->cursor = window;
	while (all->cursor->in_use || all->cursor->size < size)
	{
		/* what is behind a free block is in use */
		PosteriorBlock *goes = all->cursor->in_use ? all->cursor
			: posterior_block_next(all, all->cursor);
		uint64_t	used;

		if (goes == NULL || !block_may_go(goes, rule, &used))
			return NULL;
		(void) block_part(rule, goes)->evict(goes->owner);
	}
	return all->cursor;
}

/*
 * A window around the least recently used piece: of it alone, or else with neighbours of the older
 * half. Encodings are mostly of like sizes, so that this is nearly always all there is to do.
 */
static PosteriorBlock *
window_of_oldest(const PosteriorBlocks *all, Size size, Rule *rule)
{
	const PosteriorSharedPart *owner = NULL;
	uint64		used = 0,
				now = pg_atomic_read_u64(&posterior_shared->clock);
	void	   *piece = find_oldest(&owner, &used);
	PosteriorBlock *block,
			   *window;

	if (piece != NULL && owner->memory != NULL)
		piece = owner->memory(piece);
	if (piece == NULL)
		return NULL;
	block = posterior_block_of(piece);
	window = posterior_blocks_window_at(all, block, size, used, block_may_go, rule);
	if (window == NULL)
		window = posterior_blocks_window_at(all, block, size, used + (now - used) / 2,
											block_may_go, rule);
	return window;
}

bool
posterior_reserve(Size bytes, PosteriorEnd end, bool evict)
{
	Size		size = posterior_block_size(bytes);
	bool		lasting = end == POSTERIOR_END_LOW;
	Rule		rule = {.lasting_stays = lasting};
	PosteriorBlocks *all;
	PosteriorBlock *window = NULL,
			   *block = NULL;

	if (bytes > (uint64) posterior_cache_size * 1024)
		return false;
	if (!posterior_is_shared)
		return make_own_room(bytes);
	rule.parts = posterior_segment_parts(&rule.n_parts);
	posterior_lock(LW_EXCLUSIVE);
	all = posterior_arena_hold();
	posterior_arena_done();
	if (!lasting)
		block = posterior_blocks_take(all, size, end);
	if (block == NULL && evict && !lasting)
		window = window_of_oldest(all, size, &rule);
	if (block == NULL && window == NULL)
		window = posterior_blocks_window(all, size, end, block_may_go, &rule);
	/* lasting pieces among each other go by their use, too */
	if (window == NULL && block == NULL && evict && lasting)
	{
		rule.lasting_stays = false;
		window = posterior_blocks_window(all, size, POSTERIOR_END_HIGH, block_may_go, &rule);
	}
	/* encodings that nothing uses must not keep their models where there is no other room */
	if (window == NULL && block == NULL && evict)
	{
		rule.holders_go = true;
		window = posterior_blocks_window(all, size, POSTERIOR_END_HIGH, block_may_go, &rule);
	}
	if (window != NULL && (evict || (!window->in_use && window->size >= size)))
		window = window_clear(all, window, size, &rule);
	else
		window = NULL;
	if (window != NULL)
		block = posterior_blocks_take_from(all, window, size, end);
	posterior_arena_reserve(block, end);
	posterior_arena_let_go();
	posterior_unlock();
	return block != NULL;
}
