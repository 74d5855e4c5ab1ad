/*
 * eviction.c: pieces of all parts that were used least recently give way.
 *
 * What a piece is and whether anything uses it is for the part to say that owns it (segment.h). All
 * of it happens under the lock of the directory, held exclusively: no piece can be pinned between
 * being chosen and being freed.
 *
 * In shared memory a stretch of neighbours gives way, all of it or nothing: room for a large
 * encoding cannot be had by freeing as many bytes here and there, and others would lose theirs in
 * vain, at every statement anew. The least recently used pieces and what lies beside them are tried
 * first, one by one: to find the best stretch all blocks are walked some dozen times, 8 ms with
 * 3,000 encodings in 1 GB.
 *
 * A piece that others hold, as encodings hold their model, goes with all of these, and only where
 * there is no room without that: many may go that lie elsewhere.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/shmem/eviction.h"

#include "pg/shmem/segment.h"

#define TRIES 16				/* pieces around which a window is looked for before all are */

/* Bytes in use that count against the cache's size. */
static uint64
bytes_in_use(void)
{
	return pg_atomic_read_u64(&posterior_shared->used);
}

/* The least recently used piece, or NULL; its part, none of `without`, and the tick of its use. */
static void *
find_oldest(uint64 without, const PosteriorSharedPart **owner, uint64 *oldest_used)
{
	void	   *oldest = NULL;
	int			n;
	PosteriorSharedPart *const *parts = posterior_segment_parts(&n);

	for (int i = 0; i < n; i++)
	{
		uint64		used;
		void	   *piece = NULL;

		if (parts[i]->oldest != NULL && (without >> i & 1) == 0)
			piece = parts[i]->oldest(&used);
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
	void	   *oldest = find_oldest(0, &owner, &used);

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

/* A window of a piece alone, used at this tick, or else with neighbours of the older half. */
static PosteriorBlock *
window_around(const PosteriorBlocks *all, const PosteriorSharedPart *owner, void *piece,
			  uint64 used, Size size, Rule *rule)
{
	void	   *memory = owner->memory != NULL ? owner->memory(piece) : piece;
	uint64		now = pg_atomic_read_u64(&posterior_shared->clock);
	PosteriorBlock *block,
			   *window;

	if (memory == NULL)
		return NULL;
	block = posterior_block_of(memory);
	window = posterior_blocks_window_at(all, block, size, used, block_may_go, rule);
	if (window == NULL)
		window = posterior_blocks_window_at(all, block, size, used + (now - used) / 2,
											block_may_go, rule);
	return window;
}

/*
 * A window around the least recently used piece, or if there is none around one of the next.
 * Encodings are mostly of like sizes, so that this is nearly always all there is to do. A piece
 * that is too small by itself and lies between others that stay must not be met at every search.
 */
static PosteriorBlock *
window_of_oldest(const PosteriorBlocks *all, Size size, Rule *rule)
{
	PosteriorBlock *window = NULL;
	void	   *first = NULL;
	uint64		without = 0;

	for (int i = 0; i < TRIES && window == NULL; i++)
	{
		const PosteriorSharedPart *owner = NULL;
		uint64		used = 0;
		void	   *piece = find_oldest(without, &owner, &used);

		if (piece == NULL || piece == first)
			break;
		if (first == NULL)
			first = piece;
		window = window_around(all, owner, piece, used, size, rule);
		if (window == NULL && owner->pass != NULL)
			owner->pass(piece);
		else if (window == NULL)
			without |= (uint64) 1 << (owner->number - 1);
	}
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
