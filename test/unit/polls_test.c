/*
 * polls_test.c: memory that grows with the context is cleared and copied in pieces with a poll
 * before each, so that a cancel waits for a piece and not for a hundred megabytes; an interrupt at
 * any of the polls leaves nothing behind.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "engine/network/kv_cache.h"
#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define LAYERS 2
#define WIDTH 64
#define SLOTS (32 * 1024)		/* 32 megabytes */
#define NUMBER sizeof(float)

static TestEnv env;

static TnpStatus
make(TnpKvCache *cache, int64_t slots, TnpError *error)
{
	env.polls = 0;
	return tnp_cache_make(&env.env, &(TnpCacheShape) {LAYERS, 1, WIDTH, WIDTH, NUMBER, .planes = 1},
						  TNP_BLOCK,
						  slots, cache, error);
}

/* No piece is larger than what may lie between two polls. */
static bool
often_enough(size_t bytes)
{
	return env.polls >= (long) (bytes / TNP_POLL_BYTES);
}

static void
test_make(void)
{
	TnpKvCache	cache;
	TnpError	error;
	TnpStatus	status = make(&cache, SLOTS, &error);
	bool		clean = true;
	long		polls = env.polls;

	ok(status == TNP_OK && often_enough(tnp_cache_bytes(&cache)),
	   "clearing a cache polls before each piece");
	tnp_cache_free(&env.env, &cache);
	for (env.stop_at = 1; env.stop_at <= polls; env.stop_at++)
		clean = clean && make(&cache, SLOTS, &error) == TNP_INTERRUPTED
			&& error.status == TNP_INTERRUPTED && cache.memory == NULL && env.live == 0;
	env.stop_at = 0;
	ok(clean, "an interrupt at any poll of them frees the cache");
}

static void
test_copy(void)
{
	TnpKvCache	from,
				to;
	TnpError	error;
	size_t		bytes;

	test_must(make(&from, SLOTS, &error), &error);
	test_must(make(&to, SLOTS, &error), &error);
	bytes = tnp_cache_bytes(&from);
	memset(from.k[1], 1, bytes / LAYERS / 2);
	env.polls = 0;
	test_must(tnp_cache_copy(&env.env, &from, SLOTS, &to, &error), &error);
	ok(often_enough(bytes), "copying a cache polls before each piece");
	ok(memcmp(from.k[0], to.k[0], bytes) == 0, "and copies all of it");
	env.polls = 0;
	env.stop_at = 3;
	ok(tnp_cache_copy(&env.env, &from, SLOTS, &to, &error) == TNP_INTERRUPTED && env.polls == 3,
	   "an interrupt ends the copy at its poll");
	tnp_cache_free(&env.env, &to);
	ok(tnp_cache_reserve(&env.env, SLOTS, SLOTS + 1, &from, &error) == TNP_INTERRUPTED
	   && from.capacity == SLOTS, "growing that is interrupted changes nothing");
	env.stop_at = 0;
	ok(tnp_cache_reserve(&env.env, SLOTS, SLOTS + 1, &from, &error) == TNP_OK
	   && from.capacity > SLOTS, "and succeeds afterwards");
	tnp_cache_free(&env.env, &from);
	ok(env.live == 0, "everything is freed");
}

int
main(void)
{
	test_env_init(&env, test_kernels());
	test_make();
	test_copy();
	return done_testing();
}
