/*
 * races.cpp: what the compiler calls for every access of a kernel, and shadow memory that remembers
 * who has accessed what.
 *
 * Every two bytes have a cell: the last write and up to three reads that nothing has ordered since.
 * A fourth unordered read replaces one of them, so a race of many readers may be missed at one
 * place; it is not at all of them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "races.h"

#include "gpu_emulated.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#define ARENA ((size_t) 1 << 31)	/* of device memory, and as much of shared memory */
#define GRAIN 2
#define READS 3
#define MOST_SHOWN 3
#define OF_DEVICE (-1)

namespace
{

struct Access
{
	RaceClock	clock;			/* launch 0: none */
	const void *code;
	bool		atomic;
};

struct Cell
{
	Access		write;
	Access		read[READS];
};

/* [0]: device, [1]: shared */
char	   *arena[2];
Cell	   *cells[2];
size_t		used[2],
			shared_bytes;		/* of each block of a run, one after the other */

void *
reserve(size_t bytes)
{
	void	   *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
							  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
	{
		perror("races: no room for shadow memory");
		exit(2);
	}
	return memory;
}

void
open_arenas(void)
{
	for (int i = 0; i < 2 && arena[i] == nullptr; i++)
	{
		arena[i] = (char *) reserve(ARENA);
		cells[i] = (Cell *) reserve(ARENA / GRAIN * sizeof(Cell));
	}
}

/*
 * Whether the earlier access a, which writes or reads memory of block `owner`, comes before what
 * the thread of b does.
 */
bool
is_before(const Access &a, bool writes, int owner, const RaceClock &b)
{
	if (a.clock.launch != b.launch)
		return true;
	if (a.clock.run != b.run)
		return false;
	if (a.clock.bell != 0)
		return b.known[a.clock.bell] > a.clock.round;
	if (a.clock.thread == b.thread)
		return true;
	if (a.clock.warp == b.warp && a.clock.warps < b.warps)
		return true;
	if (a.clock.block == b.block ? a.clock.blocks < b.blocks
		: a.clock.team == b.team ? a.clock.teams < b.teams : a.clock.grids < b.grids)
		return true;
	/* of stores a bell tells those alone that a barrier has ended: into the block's own memory */
	if (writes)
		return a.clock.block == owner && a.clock.warps < b.known[2 * a.clock.warp];
	return a.clock.warps < b.known[2 * a.clock.warp]
		|| a.clock.common < b.known[2 * a.clock.warp + 1];
}

void
report(const Access &a, bool a_writes, const Access &b, bool b_writes, const void *place)
{
	gpu_emulated.races++;
	if (gpu_emulated.races > MOST_SHOWN || gpu_emulated.quiet)
		return;
	fprintf(stderr, "# race at %p: %s by block %d thread %d at %p, after %u/%u/%u/%u barriers; "
			"%s by block %d thread %d at %p, after %u/%u/%u/%u; %s\n", place,
			a_writes ? "written" : "read", a.clock.block, a.clock.thread, a.code, a.clock.warps,
			a.clock.blocks, a.clock.teams, a.clock.grids, b_writes ? "written" : "read",
			b.clock.block, b.clock.thread, b.code, b.clock.warps, b.clock.blocks, b.clock.teams,
			b.clock.grids, a.clock.run == b.clock.run && a.clock.team == b.clock.team
			? "of one team" : "of two teams");
}

void
touch(Cell *cell, int owner, const Access &now, bool writes, const char *place)
{
	bool		shared = owner != OF_DEVICE;
	Access		*free_read = nullptr;
	bool		raced = false;

	/* shared memory begins anew with every team */
	if (shared && cell->write.clock.run != now.clock.run)
		cell->write.clock.launch = 0;
	if (cell->write.clock.launch != 0 && !is_before(cell->write, true, owner, now.clock)
		&& !(cell->write.atomic && now.atomic))
	{
		report(cell->write, true, now, writes, place);
		raced = true;
	}
	for (Access &read : cell->read)
	{
		bool		own = read.clock.run == now.clock.run
			&& read.clock.thread == now.clock.thread;

		if (read.clock.launch != now.clock.launch || (shared && read.clock.run != now.clock.run))
			read.clock.launch = 0;
		if (own || read.clock.launch == 0)
		{
			if (own || free_read == nullptr)
				free_read = &read;
			continue;
		}
		if (writes && !raced && !is_before(read, false, owner, now.clock))
		{
			report(read, false, now, true, place);
			raced = true;
		}
		if (free_read == nullptr && is_before(read, false, owner, now.clock))
			free_read = &read;
	}
	if (writes)
	{
		/* what comes later is unordered with a read only if it is with this write, or both raced */
		cell->write = now;
		for (Access &read : cell->read)
			read.clock.launch = 0;
	}
	else
		*(free_read != nullptr ? free_read : &cell->read[now.clock.thread % READS]) = now;
}

void
access(const void *place, size_t bytes, bool writes, bool atomic, const void *code,
	   const RaceClock *clock)
{
	for (int i = 0; i < 2; i++)
	{
		size_t		at = (size_t) ((const char *) place - arena[i]);

		if (arena[i] == nullptr || (const char *) place < arena[i] || at >= ARENA)
			continue;
		if (clock == nullptr)
			return;

		Access		now = {*clock, code, atomic};

		for (size_t cell = at / GRAIN; cell <= (at + bytes - 1) / GRAIN; cell++)
			touch(&cells[i][cell], i == 1 ? (int) (at / shared_bytes) : OF_DEVICE, now, writes,
				  arena[i] + cell * GRAIN);
		return;
	}
}

}								/* namespace */

void *
race_allocate(size_t bytes, bool shared)
{
	size_t		size = (bytes + 255) / 256 * 256;
	char	   *memory;

	open_arenas();
	memory = arena[shared] + used[shared];
	used[shared] += size;
	shared_bytes = shared ? size : shared_bytes;
	if (used[shared] > ARENA)
	{
		fprintf(stderr, "races: no memory is left\n");
		exit(2);
	}
	return memory;
}

void
race_begin_team(void)
{
	used[1] = 0;
}

void
race_free_all(void)
{
	/* what is left in the cells is of earlier launches, which come before everything */
	used[0] = 0;
}

void
race_access(const RaceClock *clock, const void *place, size_t bytes, bool writes)
{
	access(place, bytes, writes, false, __builtin_return_address(0), clock);
}

void
race_found(const char *what)
{
	if (++gpu_emulated.races <= MOST_SHOWN && !gpu_emulated.quiet)
		fprintf(stderr, "# race: %s\n", what);
}

/* ---- what the compiler calls ----------------------------------------------------------------- */

#define ACCESS(name, bytes, writes) \
	void __tsan_##name(void *place); \
	void __tsan_##name(void *place) \
	{ access(place, bytes, writes, false, __builtin_return_address(0), race_now()); }
#define ACCESSES(kind, writes) \
	ACCESS(kind##1, 1, writes) ACCESS(kind##2, 2, writes) ACCESS(kind##4, 4, writes) \
	ACCESS(kind##8, 8, writes) ACCESS(kind##16, 16, writes)

extern "C"
{
ACCESSES(read, false)
ACCESSES(write, true)
ACCESSES(unaligned_read, false)
ACCESSES(unaligned_write, true)

void
__tsan_read_range(void *place, size_t bytes)
{
	if (bytes > 0)
		access(place, bytes, false, false, __builtin_return_address(0), race_now());
}

void
__tsan_write_range(void *place, size_t bytes)
{
	if (bytes > 0)
		access(place, bytes, true, false, __builtin_return_address(0), race_now());
}

int
__tsan_atomic32_fetch_or(int *place, int bits, int order)
{
	int			before = *place;

	(void) order;
	access(place, sizeof(int), true, true, __builtin_return_address(0), race_now());
	*place |= bits;
	return before;
}

void
__tsan_init(void)
{
}

void
__tsan_func_entry(void *place)
{
	(void) place;
}

void
__tsan_func_exit(void)
{
}

void
__tsan_vptr_update(void **place, void *value)
{
	(void) place;
	(void) value;
}
}
