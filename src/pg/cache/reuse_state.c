/*
 * reuse_state.c: counters and proofs of named contexts. They are found by the context's identity,
 * which no other context ever has.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/reuse_state.h"

#include "pg/shmem/shared.h"

#include "utils/float.h"

/* [POSTERIOR_STATES], in shared memory, under posterior_lock */
static PosteriorReuseState *states = NULL;

static Size
states_size(void)
{
	return POSTERIOR_STATES * sizeof(PosteriorReuseState);
}

static void
states_initialize(void *part)
{
	/* zeros are states that are free; counters are initialized when a state is taken */
}

static void
states_forget(uint32 incarnation)
{
	for (int i = 0; i < POSTERIOR_STATES; i++)
		if (states[i].incarnation == incarnation)
			states[i].taken = false;
}

PosteriorSharedPart posterior_reuse_state_part = {
	.place = (void **) &states,.size = states_size,.initialize = states_initialize,
	.forget = states_forget
};

static uint64
double_bits(double x)
{
	uint64		bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* The state of a context, or NULL. The lock is held. */
static PosteriorReuseState *
state_find(const pg_uuid_t *context)
{
	for (int i = 0; i < POSTERIOR_STATES; i++)
	{
		PosteriorReuseState *s = &states[i];

		if (s->taken && s->incarnation == posterior_incarnation()
			&& memcmp(&s->context, context, sizeof(pg_uuid_t)) == 0)
			return s;
	}
	return NULL;
}

/*
 * The state of a context, taking over another one's place if need be. The lock is held exclusively.
 */
static PosteriorReuseState *
state_make(const pg_uuid_t *context)
{
	PosteriorReuseState *oldest = NULL,
			   *s = state_find(context);

	if (s != NULL)
		return s;
	for (int i = 0; i < POSTERIOR_STATES; i++)
	{
		s = &states[i];
		if (oldest == NULL || (oldest->taken && (!s->taken || s->used < oldest->used)))
			oldest = s;
	}
	oldest->taken = true;
	oldest->incarnation = posterior_incarnation();
	oldest->context = *context;
	oldest->proven = false;
	oldest->rests = 0;
	memset(&oldest->version, 0, sizeof(oldest->version));
	for (int i = 0; i < CACHE_LOOKUP_OUTCOMES; i++)
		pg_atomic_init_u64(&oldest->lookups[i], 0);
	pg_atomic_init_u64(&oldest->rows, 0);
	pg_atomic_init_u64(&oldest->prefix, 0);
	pg_atomic_init_u64(&oldest->waiting, 0);
	pg_atomic_init_u64(&oldest->bytes, 0);
	pg_atomic_init_u64(&oldest->drift, double_bits(get_float8_nan()));
	return oldest;
}

bool
posterior_reuse_state_proof(const pg_uuid_t *context, PosteriorReuseProof *proof)
{
	PosteriorReuseState *s;
	bool		proven;

	posterior_lock(LW_SHARED);
	s = state_find(context);
	proven = s != NULL && s->proven;
	if (proven)
		*proof = s->proof;
	posterior_unlock();
	return proven;
}

void
posterior_reuse_state_prove(const pg_uuid_t *context, const PosteriorReuseProof *proof)
{
	PosteriorReuseState *s;

	posterior_lock(LW_EXCLUSIVE);
	s = state_make(context);
	s->proof = *proof;
	s->proven = true;
	posterior_unlock();
}

static bool
state_is_of(const PosteriorReuseState *s, const PosteriorReuse *reuse)
{
	return memcmp(&s->version, &reuse->version, sizeof(pg_uuid_t)) == 0;
}

void
posterior_reuse_state_count(const pg_uuid_t *context, PosteriorLookupOutcome outcome,
							const PosteriorReuse *reuse)
{
	PosteriorReuseState *s;
	uint64		unknown = double_bits(get_float8_nan());

	posterior_lock(LW_SHARED);
	s = state_find(context);
	if (s == NULL || !state_is_of(s, reuse))
	{
		posterior_unlock();
		posterior_lock(LW_EXCLUSIVE);
		s = state_make(context);
		/* what was said under another definition says nothing about this one, ... */
		if (!state_is_of(s, reuse))
			pg_atomic_write_u64(&s->drift, unknown);
		s->version = reuse->version;
	}
	s->used = posterior_tick();
	pg_atomic_fetch_add_u64(&s->lookups[outcome], 1);
	pg_atomic_write_u64(&s->rows, reuse->rows);
	pg_atomic_write_u64(&s->waiting, reuse->waiting);
	/* ... and of the rows after another prefix nothing about those after this one */
	if ((int64) pg_atomic_exchange_u64(&s->prefix, reuse->prefix) != reuse->prefix)
		pg_atomic_write_u64(&s->drift, unknown);
	pg_atomic_write_u64(&s->bytes, reuse->bytes);
	posterior_unlock();
}

void
posterior_reuse_state_note_drift(const pg_uuid_t *context, const PosteriorReuse *reuse,
								 double drift)
{
	PosteriorReuseState *s;
	uint64		bits = double_bits(drift);
	bool		noted;

	/* statements about sums say mostly what the one before has said */
	posterior_lock(LW_SHARED);
	s = state_find(context);
	noted = s == NULL || pg_atomic_read_u64(&s->drift) == bits;
	posterior_unlock();
	if (noted)
		return;
	posterior_lock(LW_EXCLUSIVE);
	s = state_find(context);
	if (s != NULL && state_is_of(s, reuse)
		&& (int64) pg_atomic_read_u64(&s->prefix) == reuse->prefix)
		pg_atomic_write_u64(&s->drift, bits);
	posterior_unlock();
}

TimestampTz
posterior_reuse_state_rests(const pg_uuid_t *context)
{
	PosteriorReuseState *s;
	TimestampTz until;

	posterior_lock(LW_SHARED);
	s = state_find(context);
	until = s != NULL ? s->rests : 0;
	posterior_unlock();
	return until;
}

void
posterior_reuse_state_rest(const pg_uuid_t *context, TimestampTz until)
{
	posterior_lock(LW_EXCLUSIVE);
	state_make(context)->rests = until;
	posterior_unlock();
}

bool
posterior_reuse_state_read(const pg_uuid_t *context, PosteriorReuseCounters *counters)
{
	PosteriorReuseState *s;
	uint64		bits;

	memset(counters, 0, sizeof(*counters));
	counters->drift = get_float8_nan();
	posterior_shared_attach();
	posterior_lock(LW_SHARED);
	s = state_find(context);
	if (s != NULL)
	{
		for (int i = 0; i < CACHE_LOOKUP_OUTCOMES; i++)
			counters->lookups[i] = (int64) pg_atomic_read_u64(&s->lookups[i]);
		counters->last.version = s->version;
		counters->last.rows = (int64) pg_atomic_read_u64(&s->rows);
		counters->last.prefix = (int64) pg_atomic_read_u64(&s->prefix);
		counters->last.waiting = (int64) pg_atomic_read_u64(&s->waiting);
		counters->last.bytes = (int64) pg_atomic_read_u64(&s->bytes);
		bits = pg_atomic_read_u64(&s->drift);
		memcpy(&counters->drift, &bits, sizeof(bits));
	}
	posterior_unlock();
	return s != NULL;
}

void
posterior_reuse_state_reset(void)
{
	posterior_lock(LW_EXCLUSIVE);
	for (int i = 0; i < POSTERIOR_STATES; i++)
	{
		PosteriorReuseState *s = &states[i];

		if (s->taken && s->incarnation == posterior_incarnation())
			for (int j = 0; j < CACHE_LOOKUP_OUTCOMES; j++)
				pg_atomic_write_u64(&s->lookups[j], 0);
	}
	posterior_unlock();
}
