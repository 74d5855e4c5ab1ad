/*
 * error.h: how the engine reports a failure, and small allocation helpers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_ERROR_H
#define TNP_ERROR_H

#include "engine/tnp.h"

/*
 * Fill *error (which may be NULL) and return status, so that callers write: return tnp_fail(error,
 * TNP_BAD_FILE, "…").
 */
TnpStatus	tnp_fail(TnpError *error, TnpStatus status, const char *format,...) TNP_PRINTF(3, 4);

/* The same with a detail line; set the message first. */
void		tnp_detail(TnpError *error, const char *format,...) TNP_PRINTF(2, 3);

/* tnp_fail(TNP_NO_MEMORY) with the one message that this has. */
TnpStatus	tnp_no_memory(TnpError *error);

/*
 * count * size bytes, NULL if that overflows or there is none; never returns NULL for success, even
 * for 0 bytes.
 */
void	   *tnp_alloc(const TnpEnv *env, size_t count, size_t size);
void	   *tnp_alloc_zero(const TnpEnv *env, size_t count, size_t size);
void		tnp_free(const TnpEnv *env, void *pointer);	/* NULL is fine */

/* The same for lasting memory. */
void	   *tnp_keep(const TnpEnv *env, size_t count, size_t size);
void	   *tnp_keep_zero(const TnpEnv *env, size_t count, size_t size);
void		tnp_drop(const TnpEnv *env, void *pointer);

/* The same environment with lasting memory as its only memory. */
TnpEnv		tnp_lasting(const TnpEnv *env);
bool		tnp_interrupted(const TnpEnv *env);

/* Tell the caller that so many rows more are answered. */
void		tnp_answered(const TnpEnv *env, int64_t rows);

/* Views that a context which is encoded now is to have: 1 … TNP_MAX_VIEWS. */
int			tnp_estimators(const TnpEnv *env);

/*
 * memset to zero and memcpy for memory that grows with the context. They poll before each piece,
 * because the first write to a page costs the system more than the write itself: a hundred
 * megabytes take as long as a cancel may.
 */
#define TNP_POLL_BYTES ((size_t) 4 << 20)
TnpStatus	tnp_clear(const TnpEnv *env, void *to, size_t bytes, TnpError *error);
TnpStatus	tnp_copy(const TnpEnv *env, void *to, const void *from, size_t bytes, TnpError *error);

#endif							/* TNP_ERROR_H */
