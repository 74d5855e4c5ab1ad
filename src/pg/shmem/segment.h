/*
 * segment.h: the memory that all sessions share, in parts that rooms own; without preloading, the
 * session's own.
 *
 * Each part is described once, by a PosteriorSharedPart in the file that owns it; module.c lists
 * them. Without preloading the same structures and functions serve one session: locks are then not
 * taken.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_SEGMENT_H
#define POSTERIOR_SEGMENT_H

#include "pg/base/compat.h"

#include "port/atomics.h"
#include "storage/lwlock.h"

/*
 * A part of the segment. Members after `initialize` are NULL or 0 where a part does not need them.
 */
typedef struct PosteriorSharedPart
{
	void	  **place;			/* becomes the part's address */
	Size		(*size) (void);
	void		(*initialize) (void *part);	/* the memory is zeroed */
	int			n_locks;		/* besides the lock of the directory */
	int			first_lock;		/* filled in */
	uint32		number;			/* filled in: 1 … */

	/* Of the part that has the shared memory behind all parts (arena.c), which is not zeroed. */
	void		(*behind) (void *memory, Size size);

	/* Take from the arena what the part has for good: while the server starts it is all free. */
	void		(*stock) (void);

	/* Free what is keyed by a life of a database. The lock of the directory is held exclusively. */
	void		(*forget) (uint32 incarnation);

	/*
	 * For eviction (eviction.h). The piece that was used least recently, or nearly so, of those
	 * that nothing uses, or NULL, and the tick at which it was used; free that piece: the bytes
	 * that it had; or pass it over, so that `oldest` says another one if there is any. The lock of
	 * the directory is held exclusively around all of these.
	 */
	void	   *(*oldest) (uint64 *used);
	Size		(*evict) (void *piece);
	void		(*pass) (void *piece);

	/*
	 * The same for windows (blocks.h), of which neighbours give way together. Whether nothing uses
	 * a piece, and the tick at which it was used; and whether pieces of this part stay so long that
	 * they lie at the low end of the arena.
	 */
	bool		(*may_go) (const void *piece, uint64 *used);
	bool		lasting;

	/*
	 * Of a part whose pieces others hold, or NULL: whether nothing uses a piece but such as may go
	 * themselves, and the tick at which it or one of them was used. `evict` evicts these as well.
	 */
	bool		(*may_go_with) (const void *piece, uint64 *used);
	/* some memory of a piece that does not lie among its memory itself; or NULL */
	void	   *(*memory) (const void *piece);
} PosteriorSharedPart;

/* What the segment itself holds. */
typedef struct PosteriorShared
{
	pg_atomic_uint64 clock;		/* a tick per use, for least recently used */
	pg_atomic_uint64 used;		/* bytes of the arena that are in use */
	uint64		epoch;			/* random: no other shared memory has had it */
} PosteriorShared;

extern int	posterior_cache_size;	/* posterior.cache_size, kB */

extern PosteriorShared *posterior_shared;	/* NULL before this process has attached */
extern bool posterior_is_shared;	/* it lies in the server's memory */

/* Called by _PG_init: all parts there are, in the order in which `forget` is called. */
void		posterior_segment_declare(PosteriorSharedPart *const *parts, int n_parts);

/* Called by _PG_init while the postmaster preloads libraries: request the segment. */
void		posterior_segment_request(void);

/* Attach this process to the segment and its arena, or make the session's own. */
void		posterior_segment_attach(void);

/* The parts, for eviction and for forgetting. */
PosteriorSharedPart *const *posterior_segment_parts(int *n);

/* The lock of the directory. Held for microseconds, never while anything is computed. */
void		posterior_lock(LWLockMode mode);
void		posterior_unlock(void);

/* Lock `number` of a part's own, in shared memory only. */
LWLock	   *posterior_part_lock(const PosteriorSharedPart *part, int number);

/* A tick of the clock. */
uint64		posterior_tick(void);

#endif							/* POSTERIOR_SEGMENT_H */
