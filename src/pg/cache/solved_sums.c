/*
 * solved_sums.c: encodings of sums in the arena, for all sessions.
 *
 * Such an encoding is factors of matrices, some megabytes that take milliseconds to make and more
 * to touch for the first time, so a session's first prediction is as fast as another's hundredth.
 * They are found by versions, which are never used twice, and by the bytes of what is no version:
 * the notes of rows that are in the sums, or the whole value. So nothing has to be invalidated.
 * They are complete when they are listed, and never change.
 *
 * Lock. posterior_lock(), exclusively, guards the list and pins; it is held while a content is
 * compared, a megabyte at most, whose hash is equal.
 *
 * Pins keep an encoding from eviction: handles have them (handle.c). The encoding has one of the
 * model's weights.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/solved_sums.h"

#include "pg/base/bridge.h"
#include "pg/shmem/eviction.h"
#include "pg/shmem/shared.h"

#include "common/hashfn.h"

#define MOST_CONTENT (1 << 20)	/* bytes */
#define SLACK 4096				/* bytes of the small pieces of an encoding */
#define PER_CONTEXT 4			/* that are kept of a named context, or of all values of a role */

typedef struct SolvedList
{
	dlist_head	all;
	PosteriorRecency recency;	/* the same, in the order of use */
} SolvedList;

static SolvedList *solved_list = NULL;	/* in shared memory */

static Size
solved_size(void)
{
	return sizeof(SolvedList);
}

static void
solved_initialize(void *part)
{
	SolvedList *list = part;

	dlist_init(&list->all);
	posterior_recency_init(&list->recency);
}

/* Free what is in no list; the lock is held, unless no other process has seen it. */
static void
solved_free(PosteriorSolvedSums *s)
{
	posterior_cached_free(s->cached);
	if (s->weights != NULL)
		posterior_weights_let_go(s->weights, &s->holder);
	if (s->model != NULL)
		posterior_model_release(s->model);
	if (s->content.bytes != NULL)
		posterior_arena_free((void *) s->content.bytes);
	if (!posterior_is_shared)
		pg_atomic_fetch_sub_u64(&posterior_shared->used, s->bytes);
	posterior_arena_free(s);
}

static Size
solved_evict(void *piece)
{
	PosteriorSolvedSums *s = piece;
	Size		bytes = s->bytes;

	dlist_delete(&s->node);
	posterior_recency_remove(&s->use);
	solved_free(s);
	return bytes;
}

static bool
solved_is_idle(const PosteriorUse *use)
{
	return POSTERIOR_USER_OF(PosteriorSolvedSums, use, use)->pins == 0;
}

static void *
solved_oldest(uint64 *used)
{
	PosteriorUse *oldest = posterior_recency_oldest(&solved_list->recency, solved_is_idle,
													posterior_tick());

	if (oldest == NULL)
		return NULL;
	*used = oldest->used;
	return POSTERIOR_USER_OF(PosteriorSolvedSums, use, oldest);
}

static void
solved_pass(void *piece)
{
	posterior_recency_pass(&solved_list->recency, &((PosteriorSolvedSums *) piece)->use);
}

static void
solved_forget(uint32 incarnation)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &solved_list->all)
	{
		PosteriorSolvedSums *s = dlist_container(PosteriorSolvedSums, node, iter.cur);

		if (s->key.incarnation == incarnation && s->pins == 0)
			(void) solved_evict(s);
	}
}

static bool
solved_may_go(const void *piece, uint64 *used)
{
	const PosteriorSolvedSums *s = piece;

	*used = s->use.used;
	return s->pins == 0;
}

PosteriorSharedPart posterior_solved_part = {
	.place = (void **) &solved_list,.size = solved_size,.initialize = solved_initialize,
	.forget = solved_forget,.oldest = solved_oldest,.evict = solved_evict,.pass = solved_pass,
	.may_go = solved_may_go
};

/* ---- finding --------------------------------------------------------------------------------- */

bool
posterior_solved_key_hash(PosteriorSolvedKey *key, PosteriorSolvedContent content)
{
	if (content.length > MOST_CONTENT)
		return false;
	key->hash = hash_bytes(content.bytes, (int) content.length);
	return true;
}

/* The lock is held. */
static PosteriorSolvedSums *
solved_pin(const PosteriorSolvedKey *key, PosteriorSolvedContent content)
{
	dlist_iter	iter;

	dlist_foreach(iter, &solved_list->all)
	{
		PosteriorSolvedSums *s = dlist_container(PosteriorSolvedSums, node, iter.cur);

		if (memcmp(&s->key, key, sizeof(*key)) == 0 && s->content.length == content.length
			&& memcmp(s->content.bytes, content.bytes, content.length) == 0)
		{
			s->pins++;
			s->use.used = posterior_tick();
			return s;
		}
	}
	return NULL;
}

PosteriorSolvedSums *
posterior_solved_find(const PosteriorSolvedKey *key, PosteriorSolvedContent content)
{
	PosteriorSolvedSums *found;

	posterior_lock(LW_EXCLUSIVE);
	found = solved_pin(key, content);
	posterior_unlock();
	return found;
}

void
posterior_solved_unpin(PosteriorSolvedSums *s)
{
	posterior_lock(LW_EXCLUSIVE);
	s->pins--;
	posterior_unlock();
}

/* ---- making ---------------------------------------------------------------------------------- */

/* In memory of the arena; not listed yet. */
static TnpStatus
solved_try(const PosteriorSolvedKey *key, PosteriorSolvedContent content, PosteriorModel *model,
		   const TnpColumnKind *kinds, TnpSums *sums, Size words, const int64 *fit,
		   PosteriorSolvedSums **solved, TnpError *error)
{
	PosteriorSolvedSums *s = posterior_arena_alloc(sizeof(PosteriorSolvedSums));
	void	   *bytes;
	TnpStatus	status;

	if (s == NULL)
		return posterior_no_memory(error);
	memset(s, 0, sizeof(*s));
	s->key = *key;
	/* until it is listed */
	s->pins = 1;
	posterior_arena_own(&posterior_solved_part, s, true);
	bytes = posterior_arena_alloc(Max(content.length, 1));
	s->content = (PosteriorSolvedContent) {bytes, content.length};
	if (bytes == NULL)
		status = posterior_no_memory(error);
	else
	{
		memcpy(bytes, content.bytes, content.length);
		status = posterior_cached_of_sums(model, kinds, sums, words, fit, true, &s->cached, error);
	}
	if (status == TNP_OK)
	{
		s->bytes = posterior_cached_bytes(s->cached) + content.length;
		*solved = s;
	}
	else
	{
		if (bytes != NULL)
			posterior_arena_free(bytes);
		posterior_arena_free(s);
	}
	return status;
}

/* Let go of what this context or role has had for longest. The lock is held. */
static void
solved_trim(const PosteriorSolvedKey *key)
{
	PosteriorSolvedSums *oldest = NULL;
	int			n = 0;
	dlist_iter	iter;

	dlist_foreach(iter, &solved_list->all)
	{
		PosteriorSolvedSums *s = dlist_container(PosteriorSolvedSums, node, iter.cur);

		if (s->key.incarnation != key->incarnation || s->key.role != key->role
			|| memcmp(&s->key.kept, &key->kept, sizeof(pg_uuid_t)) != 0)
			continue;
		n++;
		if (s->pins == 0 && (oldest == NULL || s->use.used < oldest->use.used))
			oldest = s;
	}
	if (n >= PER_CONTEXT && oldest != NULL)
		(void) solved_evict(oldest);
}

/* List it, pinned; or the same of another session, which has been faster. */
static PosteriorSolvedSums *
solved_publish(PosteriorSolvedSums *s, PosteriorModel *model)
{
	PosteriorSolvedSums *other;

	if (!posterior_is_shared)
	{
		pg_atomic_fetch_add_u64(&posterior_shared->used, s->bytes);
		s->model = model;
		posterior_model_acquire(model);
	}
	posterior_lock(LW_EXCLUSIVE);
	s->weights = model->weights;
	if (s->weights != NULL)
		posterior_weights_hold(s->weights, &s->holder, &posterior_solved_part, s);
	other = solved_pin(&s->key, s->content);
	if (other == NULL)
	{
		s->pins = 1;
		s->use.used = posterior_tick();
		dlist_push_head(&solved_list->all, &s->node);
		posterior_recency_add(&solved_list->recency, &s->use);
	}
	else
		solved_free(s);
	posterior_unlock();
	return other != NULL ? other : s;
}

TnpStatus
posterior_solved_make(const PosteriorSolvedKey *key, PosteriorSolvedContent content,
					  PosteriorModel *model, const TnpColumnKind *kinds, TnpSums *sums, Size words,
					  const int64 *fit, PosteriorSolvedSums **solved, TnpError *error)
{
	Size		bytes = tnp_sums_encoding_bytes(model->model, sums) + content.length
		+ sizeof(PosteriorSolvedSums) + SLACK;
	TnpStatus	status;

	if (posterior_is_shared && model->weights == NULL)
		return posterior_no_memory(error);
	posterior_lock(LW_EXCLUSIVE);
	solved_trim(key);
	posterior_unlock();
	if (!posterior_reserve(bytes, POSTERIOR_END_HIGH, true))
		return posterior_no_memory(error);
	for (int i = 0;; i++)
	{
		status = solved_try(key, content, model, kinds, sums, words, fit, solved, error);
		if (status != TNP_NO_MEMORY || i == POSTERIOR_EVICTIONS
			|| !posterior_evict_own(bytes << i))
			break;
	}
	posterior_arena_done();
	if (status == TNP_OK)
		*solved = solved_publish(*solved, model);
	return status;
}
