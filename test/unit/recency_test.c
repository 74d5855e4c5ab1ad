/*
 * recency_test.c: the order of use: what comes, is used, is in use and goes leaves it whole, what
 * goes was used least recently but for second chances, and no search takes long.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>
#include <string.h>

/* PostgreSQL is not needed for it, and the rest of src/pg is not linked */
#include "pg/shmem/recency.c"

#include "tap.h"

#define PIECES 30000

typedef struct Piece
{
	uint64_t	before;			/* what is no use must not change */
	PosteriorUse use;
	int			pins;
	bool		in;
} Piece;

static Piece pieces[PIECES];
static PosteriorRecency all;
static uint64_t now;			/* the clock */
static int	calls;				/* of idle() */
static uint64_t state = 1;

static uint64_t
random_below(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n;
}

static Piece *
piece_of(const PosteriorUse *use)
{
	return POSTERIOR_USER_OF(Piece, use, use);
}

static bool
idle(const PosteriorUse *use)
{
	calls++;
	return piece_of(use)->pins == 0;
}

static void
begin(void)
{
	memset(pieces, 0, sizeof(pieces));
	posterior_recency_init(&all);
	now = 1;
}

static void
come(Piece *p)
{
	p->use.used = now++;
	p->in = true;
	posterior_recency_add(&all, &p->use);
}

static void
go(Piece *p)
{
	posterior_recency_remove(&p->use);
	p->in = false;
}

static void
touch(Piece *p)
{
	p->use.used = now++;
}

static Piece *
oldest(void)
{
	PosteriorUse *use = posterior_recency_oldest(&all, idle, now++);

	return use == NULL ? NULL : piece_of(use);
}

/* Whether the ring has the pieces that are in, each once, both ways. */
static bool
whole(int n)
{
	int			in = 0,
				met = 0;

	for (int i = 0; i < n; i++)
		in += pieces[i].in;
	for (PosteriorUse *use = all.ends.newer; use != &all.ends && met <= in; use = use->newer)
	{
		met++;
		if (use->older->newer != use || use->newer->older != use || !piece_of(use)->in
			|| use->seen > use->used || piece_of(use)->before != 0)
			return false;
	}
	return met == in;
}

/* What a search is to find, told without one: *exact, if no other idle piece was used before it. */
static Piece *
expected(bool *exact)
{
	Piece	   *best = NULL;
	uint64_t	least = UINT64_MAX;
	int			met = 0;

	for (PosteriorUse *use = all.ends.newer; use != &all.ends; use = use->newer)
		if (piece_of(use)->pins == 0 && use->used < least)
			least = use->used;
	for (PosteriorUse *use = all.ends.newer; use != &all.ends; use = use->newer)
	{
		if (best != NULL && met >= MOST)
			break;
		met++;
		if (piece_of(use)->pins > 0)
			continue;
		if (best == NULL || use->used < best->use.used)
			best = piece_of(use);
		if (use->used == use->seen)
			break;
	}
	*exact = best == NULL || best->use.used == least;
	return best;
}

/* Pieces come, are used, pinned, evicted and dropped at random. */
static void
check_random(int n, int rounds, bool touches)
{
	int			broken = 0,
				wrong = 0,
				searches = 0,
				none = 0,
				inexact = 0;

	begin();
	for (int round = 0; round < rounds; round++)
	{
		Piece	   *p = &pieces[random_below((uint64_t) n)],
				   *wanted;
		bool		exact;

		switch (random_below(8))
		{
			case 0:
			case 1:
			case 2:
				if (!p->in)
					come(p);
				else if (touches)
					touch(p);
				break;
			case 3:
				if (p->in)
					p->pins++;
				break;
			case 4:
			case 5:
				if (p->pins > 0)
					p->pins--;
				break;
			case 6:
				/* as a drop, which takes what is in use out of the order as well */
				if (p->in && random_below(2) == 0)
				{
					go(p);
					p->pins = 0;
				}
				break;
			case 7:
				wanted = expected(&exact);
				p = oldest();
				searches++;
				none += p == NULL;
				wrong += p != wanted || (p != NULL && (p->pins > 0 || !p->in));
				inexact += !exact;
				/* what finds no room around it stays, or is passed over */
				if (p != NULL && random_below(4) > 0)
					go(p);
				else if (p != NULL && touches)
					posterior_recency_pass(&all, &p->use);
				break;
		}
		broken += !whole(n);
	}
	ok(broken == 0, "of %d pieces the order has each that is in once", n);
	is_int(wrong, 0, "what goes is idle, and unused since it got its place or the oldest met");
	ok(searches > rounds / 20, "%d searches, %d in vain, %d of them not exact", searches, none,
	   inexact);
	if (!touches)
		is_int(inexact, 0, "without uses in between it is the least recently used one");
}

static void
check_ends(void)
{
	begin();
	ok(oldest() == NULL, "nothing is the oldest of nothing");
	for (int i = 0; i < 3; i++)
		come(&pieces[i]);
	touch(&pieces[0]);
	ok(oldest() == &pieces[1], "what was used since has a second chance");
	ok(oldest() == &pieces[1], "what stays is found again");
	posterior_recency_pass(&all, &pieces[1].use);
	ok(oldest() == &pieces[2], "unless it is passed over");
	posterior_recency_pass(&all, &pieces[2].use);
	posterior_recency_pass(&all, &pieces[0].use);
	ok(oldest() == &pieces[1], "for one round");
	pieces[1].pins = 1;
	ok(oldest() == &pieces[2], "what is in use does not go");
	go(&pieces[2]);
	pieces[0].pins = 1;
	ok(oldest() == NULL, "where all are in use nothing goes");
	pieces[0].pins = 0;
	ok(oldest() == &pieces[0], "until one is not");
	go(&pieces[0]);
	go(&pieces[1]);
	ok(whole(3) && all.ends.newer == &all.ends, "the order is empty again");
}

/* However many there are and have been used, one search asks about a few. */
static void
check_length(void)
{
	int			most = 0;

	begin();
	for (int i = 0; i < PIECES; i++)
		come(&pieces[i]);
	for (int i = 0; i < PIECES; i++)
		touch(&pieces[(uint64_t) i * 7919 % PIECES]);
	for (int i = 0; i < 1000; i++)
	{
		Piece	   *p;

		calls = 0;
		p = oldest();
		most = calls > most ? calls : most;
		go(p);
		come(p);
	}
	ok(most <= MOST, "a search looks at %d of %d pieces, all of them used", most, PIECES);
	begin();
	for (int i = 0; i < PIECES; i++)
	{
		come(&pieces[i]);
		pieces[i].pins = i < PIECES / 2;
	}
	calls = 0;
	ok(oldest() == &pieces[PIECES / 2], "the first idle one is found behind many in use");
	ok(calls == PIECES / 2 + 1, "once in a long search");
	calls = 0;
	ok(oldest() == &pieces[PIECES / 2] && calls == 1, "and then at once");
	for (int i = 0; i < PIECES; i++)
		pieces[i].pins = 1;
	calls = 0;
	ok(oldest() == NULL && calls <= PIECES + 1, "in vain each is looked at once");
}

/* ---- how many are found ---------------------------------------------------------------------- */

#define ASKED 2000				/* contents, the k-th of which is asked for as often as 1/k says */
#define ROUNDS 60000

static int	sequence[ROUNDS];

/* The piece with the least tick among `room`, exactly. */
static int
exact_victim(const uint64_t *used, const int *content, int room)
{
	int			least = 0;

	for (int i = 1; i < room; i++)
		if (used[content[i]] < used[content[least]])
			least = i;
	return least;
}

static int
exact_hits(int room)
{
	static uint64_t used[2 * ASKED];
	static int	content[ASKED];
	int			n = 0,
				hits = 0;

	memset(used, 0, sizeof(used));
	for (int r = 0; r < ROUNDS; r++)
	{
		int			c = sequence[r];

		if (used[c] > 0)
			hits++;
		else if (n < room)
			content[n++] = c;
		else
		{
			int			i = exact_victim(used, content, room);

			used[content[i]] = 0;
			content[i] = c;
		}
		used[c] = (uint64_t) r + 1;
	}
	return hits;
}

static int
chance_hits(int room)
{
	int			n = 0,
				hits = 0;

	begin();
	calls = 0;
	for (int r = 0; r < ROUNDS; r++)
	{
		Piece	   *p = &pieces[sequence[r]];

		if (p->in)
		{
			hits++;
			touch(p);
			continue;
		}
		if (n == room)
		{
			go(oldest());
			n--;
		}
		come(p);
		n++;
	}
	return hits;
}

static void
check_hits(void)
{
	static double below[ASKED];
	double		sum = 0;

	for (int k = 0; k < ASKED; k++)
		below[k] = sum += 1.0 / (k + 1);
	/* skewed, and the second time what is popular changes by and by, and what comes once */
	for (int kind = 0; kind < 2; kind++)
		for (int room = 50; room <= 800; room *= 4)
		{
			int			exact,
						chance;

			for (int r = 0; r < ROUNDS; r++)
			{
				double		at = (double) random_below(1 << 30) / (1 << 30) * sum;
				int			k = 0;

				while (below[k] < at)
					k++;
				sequence[r] = kind == 0 ? k
					: random_below(5) == 0 ? ASKED + r % ASKED : (k + r / 100) % ASKED;
			}
			exact = exact_hits(room);
			chance = chance_hits(room);
			ok(chance > exact - ROUNDS / 200,
			   "of %d uses %d are found, %d in the exact order (room for %d, kind %d)", ROUNDS,
			   chance, exact, room, kind);
			ok(calls < 4 * (ROUNDS - chance), "in %.1f steps a search",
			   (double) calls / (ROUNDS - chance - room));
		}
}

int
main(void)
{
	check_ends();
	check_random(6, 20000, true);
	check_random(200, 20000, true);
	check_random(40, 20000, false);
	check_length();
	check_hits();
	return done_testing();
}
