/*
 * mistakes.cpp: kernels with one mistake each, which the emulator must find.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "gpu_emulated.h"

#include "emulator.h"
#include "races.h"

/*
 * Branches of which threads take different ones are calls: else a compiler may make two places of a
 * barrier after them.
 */
#define APART static __attribute__((noinline)) void

APART
open_bells(Bell *bells, int n)
{
	for (int i = 0; i < n && thread_index() == 0; i++)
		open_bell(bells + i);
}

static void
begin_rounds(Bell *bells, int n)
{
	open_bells(bells, n);
	sync_team(2);
}

static void
end_round(Bell *bell, int bytes, int parity)
{
	if (thread_index() == 0)
		expect_pushes(bell, bytes);
	await_pushes(bell, parity);
}

static void
broken(int mistake, unsigned *arrived)
{
	uint32_t	one = bits_of(1.0f),
				odd = bits_of(1.0f) + 1,
				a[4] = {one, one, one, one};
	float		c[4] = {0, 0, 0, 0};
	float	   *shared = (float *) shared_memory();
	const int	threads = 128;
	Bell	   *bell = (Bell *) (shared + threads);
	static const Words words = {1, 2, 3, 4};

	switch (mistake)
	{
		case 1:
			if (thread_index() < 100)
				sync_block();
			break;
		case 2:
			if (thread_index() < 64)
				sync_block();
			else
				sync_block();
			break;
		case 3:
			if (thread_index() % 32 < 7)
				(void) shuffle_xor(1.0f, 1);
			break;
		case 4:
			if (thread_index() % 2 == 0)
				(void) shuffle_xor(1.0f, 1);
			else
				(void) warp_ballot(true);
			break;
		case 5:
			mma_tf32(c, a, one, odd);
			break;
		case 6:
			(void) load_words((const uint32_t *) (shared + 1));
			break;
		case 7:
			shared[66 + thread_index()] = 1.0f;
			break;
		case 8:
			*team_peer(shared, 2, 2) = 1.0f;
			break;
		case 9:
			if (team_rank() == 0)
				sync_team(2);
			break;
		case 10:
			*team_peer(shared, 1 - team_rank(), 2) = 1.0f;
			sync_team(2);
			break;
		case 11:
			sync_team(2);
			*team_peer(shared, 1 - team_rank(), 2) = 1.0f;
			break;
		case 12:
			if (block_index() / 2 == 0)
				sync_grid(arrived, 4);
			break;
		case 13:
			sync_grid(arrived, 4);
			sync_grid(arrived, 4);
			break;
		case 14:
			if (thread_index() == 0)
				copy_ahead((uint32_t *) shared, &words.x);
			close_copies();
			await_copies<1>();
			break;
		case 15:
			sync_team(2);
			push_word((uint32_t *) shared, bell, 1 - team_rank(), 2, one);
			break;
		case 16:
			begin_rounds(bell, 1);
			push_word((uint32_t *) shared + thread_index(), bell, 1 - team_rank(), 2, one);
			end_round(bell, threads * 4 - 4, 0);
			break;
		case 17:
			begin_rounds(bell, 1);
			push_word((uint32_t *) shared + thread_index(), bell, 1 - team_rank(), 2, one);
			end_round(bell, threads * 4 + 4, 0);
			break;
		case 18:
			begin_rounds(bell, 1);
			push_word((uint32_t *) shared + thread_index(), bell, 1 - team_rank(), 2, one);
			end_round(bell, threads * 4, 1);
			break;
		case 19:
			begin_rounds(bell, 1);
			for (int i = 0; i < 2; i++)
				if (thread_index() == 0)
					expect_pushes(bell, 0);
			sync_block();
			await_pushes(bell, 0);
			break;
		case 20:
			begin_rounds(bell, 1);
			push_word((uint32_t *) shared + thread_index(), bell, 1 - team_rank(), 2, one);
			break;
		case 21:
			begin_rounds(bell, 1);
			push_word((uint32_t *) ((char *) (shared + thread_index()) + 2), bell, 0, 2, one);
			end_round(bell, threads * 4, 0);
			break;
		case 22:
			if (thread_index() == 0)
				open_bell(bell);
			sync_block();
			push_word((uint32_t *) shared + thread_index(), bell, team_rank(), 2, one);
			end_round(bell, threads * 4, 0);
			break;
		case 23:
			begin_rounds(bell, 1);
			if (team_rank() == 0)
			{
				sync_block();
				sync_block();
				push_word((uint32_t *) shared + thread_index(), bell, 1, 2, one);
			}
			break;
		default:
			sync_block();
			(void) shuffle_xor(1.0f, 1);
			begin_rounds(bell, 1);
			push_word((uint32_t *) shared + thread_index(), bell, 1 - team_rank(), 2, one);
			end_round(bell, threads * 4, 0);
			sync_team(2);
			*team_peer(shared + thread_index(), 1 - team_rank(), 2) = 1.0f;
			sync_grid(arrived, 4);
			break;
	}
}

void
gpu_emulated_broken(int mistake)
{
	unsigned	arrived = 0;

	emulator_run(2, 2, 128, 128 * sizeof(float) + sizeof(Bell), true,
				 [&]() { broken(mistake, &arrived); });
}

/* ---- races around bells ---------------------------------------------------------------------- */

APART
access_word(uint32_t *word, bool writes)
{
	if (thread_index() == 0 && writes)
		race_access(race_now(), word, sizeof(*word), true);
	else if (thread_index() == 0)
		(void) load_words(word);
}

APART
push_to_both(uint32_t *words, Bell *bell)
{
	for (int rank = 0; rank < 2 && thread_index() == 0; rank++)
		push_word(words + team_rank(), bell, rank, 2, 1);
	if (thread_index() == 0)
		expect_pushes(bell, 2 * (int) sizeof(*words));
}

APART
push_to_own(uint32_t *word, Bell *bell)
{
	if (thread_index() != 1)
		return;
	push_word(word, bell, team_rank(), 2, 1);
	expect_pushes(bell, (int) sizeof(*word));
}

/* A word of block 1: stored by block 0, read by block 1. */
APART
access_first(uint32_t *word, bool writes)
{
	if (thread_index() == 0 && team_rank() == !writes)
		race_access(race_now(), team_peer(word, 1, 2), sizeof(*word), writes);
}

/*
 * A lane reads a word; its warp does something together, then pushes; when that has come, another
 * lane of the same warp pushes into the word, which nothing has a barrier for.
 */
static void
push_back(int mistake)
{
	uint32_t   *word = (uint32_t *) shared_memory(),
			   *other = word + 4;
	Bell	   *bells = (Bell *) (word + 8);

	begin_rounds(bells, 2);
	access_word(word, mistake == 2);
	if (mistake != 1)
		(void) warp_ballot(true);
	if (mistake == 5)
	{
		access_first(other + 2, true);
		sync_block();
	}
	push_to_both(other, bells);
	if (mistake != 3)
		await_pushes(bells, 0);
	if (mistake == 5)
		access_first(other + 2, false);
	push_to_own(word, bells + 1);
	if (mistake == 3)
		await_pushes(bells, 0);
	if (mistake == 4)
		(void) load_words(word);
	await_pushes(bells + 1, 0);
	if (mistake != 4)
		(void) load_words(word);
	sync_team(2);
}

long
gpu_emulated_pushed_back(int mistake)
{
	long		before = gpu_emulated.races;

	emulator_run(1, 2, 32, 8 * sizeof(uint32_t) + 2 * sizeof(Bell), true,
				 [&]() { push_back(mistake); });
	return gpu_emulated.races - before;
}
