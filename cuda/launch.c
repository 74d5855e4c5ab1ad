/*
 * launch.c: the shape of a launch: rows per tile, blocks per tile, whether keys are split, and the
 * layout of shared memory.
 *
 * Two costs are weighed. A tile streams all weights and visible keys through one block (or a team),
 * whatever its height: high tiles share that. And all multiprocessors should have something to do:
 * low tiles, and teams, see to that. Nothing here changes an answer by a bit (products.h,
 * softmax.h).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "host.h"

#include <string.h>

#include "kernels.h"

CudaForce	cuda_force;
bool		cuda_force_late = false;

/*
 * Bytes of weights and keys that a block should read per layer before sharing them out is worth the
 * barriers.
 */
#define WORTH_A_BLOCK ((int64_t) 16 << 10)

/*
 * Bytes of partial results in memory up to which splitting keys is worth them; what is needed grows
 * with tiles times keys.
 */
#define WORTH_A_SPLIT ((int64_t) 256 << 20)

/* Bytes of shared memory that a block takes besides its own. */
#define SHARED_OF_SYSTEM 1024

/*
 * What a block takes that is alone on a multiprocessor, and what two of 32 rows take beside each
 * other: in proportion, as measured on an H100 (width 128, 6 layers, 1,024 keys).
 */
#define COST_ALONE(rows) (90 + (rows))
#define COST_BESIDE 152

/* Tasks of a block, each a chunk of keys, from which on other teams take a part of them. */
#define WORTH_COPIES (3 * CUDA_WARPS)

static int
round_up(int n, int unit)
{
	return (n + unit - 1) / unit * unit;
}

/*
 * Offsets of everything in shared memory for tiles of `rows` rows; returns the bytes without
 * partial results. nested: each row of the state lies behind what is used of a row of x0, whose
 * rows are as long as those of x1, which takes the feed-forward part; 0 where it has no room there.
 */
static int
lay_out_as(const TnpDeviceModel *m, int rows, int team, bool nested, CudaWalk *walk)
{
	const CudaModel *s = &m->shape;
	int			element = s->precision == 0 ? 2 : 4,
				heads = team > s->heads ? 1 : (s->heads + team - 1) / team,
				head_columns = cuda_k_tiles(s->precision,
											s->head_tiles) * cuda_k_tile(s->precision),
				at = 0;

	walk->row_x = cuda_row(s->precision, s->operand);
	walk->row_q = cuda_row(s->precision, heads * head_columns);
	walk->row_h = round_up(s->width, 32) + 8;
	walk->at_x0 = at;
	if (nested)
	{
		int			before = round_up(cuda_row(s->precision, m->first_operand) * element, 16);

		if (before + walk->row_h * 4 > walk->row_x * element)
			return 0;
		walk->row_h = walk->row_x * element / 4;
		walk->at_h = at + before;
		/* both are cleared to the end of their last row */
		at += round_up(before, 128);
	}
	at += round_up(rows * walk->row_x * element, 128);
	walk->at_x1 = at;
	at += round_up(rows * walk->row_x * element, 128);
	walk->at_q = at;
	at += round_up(rows * walk->row_q * element, 128);
	if (!nested)
	{
		walk->at_h = at;
		at += round_up(rows * walk->row_h * 4, 128);
	}
	walk->at_rows = at;
	at += round_up((TILE_ROW_ARRAYS * rows + 4 * (rows / 16)) * 4, 8);
	walk->at_bells = at;
	at = round_up(at + CUDA_BELLS * 8, 128);
	walk->at_input = at;
	at += round_up(rows * CUDA_DIRECT * 4, 128);
	walk->at_ring = at;
	at += CUDA_WARPS * CUDA_RING_WORDS(s->precision, rows, s->head_tiles) * 4;
	return at;
}

/* The same, nested where a tile of 16 rows has no room in a block otherwise. */
static int
lay_out(const TnpDeviceModel *m, int rows, int team, CudaWalk *walk)
{
	int			most = m->device->facts.shared_bytes,
				bytes = lay_out_as(m, rows, team, false, walk),
				nested;
	CudaWalk	other;

	if (rows > 16 || bytes <= most)
		return bytes;
	other = *walk;
	nested = lay_out_as(m, rows, team, true, &other);
	if (nested == 0 || nested > most)
		return bytes;
	*walk = other;
	return nested;
}

bool
cuda_fits(const TnpDeviceModel *m)
{
	CudaWalk	walk;

	return lay_out(m, 16, 1, &walk) <= m->device->facts.shared_bytes;
}

/* Tiles of `rows` rows for n rows, or streams of a chain. */
static int64_t
count_tiles(const CudaWalk *walk, int rows, int64_t n)
{
	int64_t		per_tile = walk->mode == CUDA_CHAIN ? rows / 16 * walk->group : rows;

	return (n + per_tile - 1) / per_tile;
}

/* Numbers of partial results of `chunks` chunks, of heads whose rows a block computes. */
static int64_t
count_parts(const CudaModel *s, int heads, int64_t chunks, int rows)
{
	return heads * chunks * rows * (s->head_tiles * 8 + 2);
}

/* Whether that many find room: in shared memory, of which `room` bytes are left, or outside. */
static bool
have_room(int64_t parts, int64_t room, int64_t blocks)
{
	return parts * 4 <= room || parts * 4 <= WORTH_A_SPLIT / blocks;
}

/* What that many blocks take, in waves that fill all multiprocessors. */
static int64_t
cost_of(const TnpDeviceModel *m, int rows, int used, int64_t blocks)
{
	const GpuFacts *facts = &m->device->facts;
	int			beside = CUDA_BESIDE(m->shape.precision, rows, m->shape.head_tiles);
	int64_t		wave,
				rest;

	if (beside * (used + SHARED_OF_SYSTEM) > facts->shared_bytes + SHARED_OF_SYSTEM)
		beside = 1;
	wave = (int64_t) beside * facts->multiprocessors;
	rest = blocks % wave;
	return blocks / wave * (beside > 1 ? COST_BESIDE : COST_ALONE(rows)) +
		(rest == 0 ? 0 : rest <= facts->multiprocessors ? COST_ALONE(rows) : COST_BESIDE);
}

/*
 * Rows per tile: as high as fits, unless lower ones are done sooner, or would leave warps idle that
 * no chunk of keys can be given to.
 */
static int
choose_rows(const TnpDeviceModel *m, const CudaWalk *walk, int64_t chunks)
{
	const GpuFacts *facts = &m->device->facts;
	const CudaModel *s = &m->shape;
	int			best = 16;
	int64_t		best_cost = INT64_MAX;
	CudaWalk	forced;

	for (int rows = 16; rows <= cuda_largest_tile(s->precision, s->head_tiles); rows *= 2)
	{
		CudaWalk	try;
		int64_t		blocks = count_tiles(walk, rows, walk->n),
					cost;
		int			units = s->heads * (rows / 16) /
			CUDA_TOGETHER(s->precision, rows, s->head_tiles),
					used = lay_out(m, rows, 1, &try);

		if (rows > 16 && used > facts->shared_bytes)
			break;
		cost = cost_of(m, rows, used, blocks);
		if (units < CUDA_WARPS && !have_room(count_parts(s, s->heads, chunks, rows),
											 facts->shared_bytes - used, blocks))
			cost = cost * CUDA_WARPS / units;
		if (cost <= best_cost)
		{
			best = rows;
			best_cost = cost;
		}
	}
	/* few rows gain nothing from a tile that is mostly empty */
	while (best > 16 && count_tiles(walk, best / 2, walk->n) <= 1)
		best /= 2;
	if (cuda_force.rows > 0
		&& cuda_force.rows <= cuda_largest_tile(m->shape.precision, m->shape.head_tiles)
		&& lay_out(m, cuda_force.rows, 1, &forced) <= facts->shared_bytes)
		best = cuda_force.rows;
	return best;
}

/*
 * Whether the blocks of a team may push the results of layers to each other's bells instead of
 * meeting at barriers of the team. Every block must then have something to push at each of them: to
 * have what all others pushed says that none of them still reads what is pushed next.
 */
static bool
may_push(const CudaModel *s, const CudaWalk *walk, int team)
{
	int			fewest = s->width < s->feedforward ? s->width : s->feedforward;

	return team > 1 && cuda_force.pushes >= 0
		&& (walk->mode == CUDA_QUERY || walk->mode == CUDA_CHAIN || walk->mode == CUDA_APPEND)
		&& CUDA_HAS_ROOM(s->precision, s->head_tiles) && !s->two_stream
		&& s->head_width % 2 == 0 && (fewest + 7) / 8 >= team
		&& (team <= s->heads || team % s->heads == 0);
}

/*
 * Blocks per tile: a power of two; no more than run at once for all tiles. Of larger teams fewer
 * blocks do: multiprocessors come in groups, and a team is of one.
 */
static int
choose_team(const TnpDeviceModel *m, const CudaWalk *walk, int64_t tiles, int64_t keys)
{
	const GpuFacts *facts = &m->device->facts;
	int			element = m->shape.precision == 0 ? 2 : 4,
				team = 1,
				next = 1,		/* of facts->teams */
				/* beyond the heads blocks wait once more for each other; four share out linears */
				most = m->shape.heads > 4 ? m->shape.heads : 4;
	int64_t		per_layer =
		((int64_t) m->shape.width * (4 * m->shape.width + 2 * m->shape.feedforward) +
							 2 * keys * m->shape.width) * element;

	if (walk->mode == CUDA_ENCODE || walk->mode == CUDA_HALVES)
		return 1;
	if (cuda_force.team > 0)
		return cuda_force.team < facts->team ? cuda_force.team : facts->team;
	while (2 * team <= facts->team && tiles <= facts->teams[next]
		   && per_layer / (2 * team) >= WORTH_A_BLOCK
		   && (2 * team <= most || !may_push(&m->shape, walk, 2 * team)))
	{
		team *= 2;
		next++;
	}
	return team;
}

/*
 * Teams that compute the same tile, which share out its keys and nothing else: so many that a warp
 * has no more than one task, where that saves more than the barrier of all of them takes. One warp
 * is left for what the first team does alone.
 */
static int
choose_copies(const TnpDeviceModel *m, const CudaWalk *walk, int rows, int64_t tasks)
{
	int64_t		most = m->device->facts.together / ((int64_t) walk->tiles * walk->team),
				copies = (tasks + CUDA_WARPS - 2) / (CUDA_WARPS - 1);

	if (!CUDA_HAS_ROOM(m->shape.precision, m->shape.head_tiles) || rows > 16
		|| (walk->mode != CUDA_QUERY && walk->mode != CUDA_APPEND))
		return 1;
	if (cuda_force.copies > 0)
		copies = cuda_force.copies;
	else if (tasks < WORTH_COPIES)
		return 1;
	copies = copies < most ? copies : most;
	return copies > 1 ? (int) copies : 1;
}

/*
 * Which blocks attend to which keys, and where partial results lie. chunks: of the keys. Returns
 * the bytes of shared memory, of which `used` are taken already.
 */
static int
choose_split(const TnpDeviceModel *m, int rows, int64_t chunks, int used, CudaWalk *walk,
			 CudaPlan *plan)
{
	const CudaModel *s = &m->shape;
	int			share = walk->team > s->heads ? walk->team / s->heads : 1,
				heads = (s->heads + walk->team - 1) / walk->team,
				units = heads * (rows / 16) / CUDA_TOGETHER(s->precision, rows, s->head_tiles),
				room = m->device->facts.shared_bytes - used;
	bool		shared;
	int64_t		part;

	walk->copies = choose_copies(m, walk, rows, units * (chunks / share));
	walk->split = share > 1 || walk->copies > 1 || units < CUDA_WARPS;
	if (cuda_force.split > 0 && walk->mode != CUDA_HALVES)
		walk->split = 1;
	else if (cuda_force.split < 0)
		walk->split = share > 1 || walk->copies > 1;
	shared = share > 1 || walk->copies > 1;
	part = count_parts(s, walk->copies > 1 ? 2 * s->heads : shared ? s->heads : heads, chunks,
					   rows);
	/*
	 * blocks that share heads must leave partial results; others only gain by it, and with many
	 * tiles there is enough to do without
	 */
	if (!shared && cuda_force.split == 0
		&& !have_room(part, room, (int64_t) walk->tiles * walk->team))
		walk->split = 0;
	walk->at_part = -1;
	if (!walk->split)
		return used;
	if (!shared && !cuda_force.part_in_memory && part * 4 <= room)
	{
		walk->at_part = used;
		return used + round_up((int) part * 4, 128);
	}
	walk->part_floats = part;
	plan->part_bytes = (size_t) (walk->tiles * (shared ? 1 : walk->team) * part) * 4;
	return used;
}

/*
 * Where each warp's first chunk of a layer comes early, if there is room; `used` bytes are taken
 * already. Returns the bytes of shared memory.
 */
static int
choose_early(const TnpDeviceModel *m, int rows, int used, CudaWalk *walk)
{
	const CudaModel *s = &m->shape;
	int			bytes = CUDA_WARPS * CUDA_EARLY_WORDS(s->head_tiles) * 4;

	walk->at_early = -1;
	if (!CUDA_HAS_ROOM(s->precision, s->head_tiles) || rows > 16 || s->two_stream || !walk->split
		|| (walk->mode != CUDA_QUERY && walk->mode != CUDA_CHAIN && walk->mode != CUDA_APPEND)
		|| bytes > m->device->facts.shared_bytes - used || cuda_force_late)
		return used;
	walk->at_early = used;
	return used + bytes;
}

void
cuda_own_words(const CudaModel *s, int64_t slots, CudaWalk *walk)
{
	int64_t		panels = (slots + CUDA_BLOCK - 1) / CUDA_BLOCK * 2,
				caches = (int64_t) (s->two_stream ? 2 : 1) * s->layers * s->heads;

	walk->own.panels = panels;
	walk->own_words_k = caches * panels * cuda_key_words(s->precision, s->head_tiles);
	walk->own_words_v = caches * panels * cuda_value_words(s->precision, s->head_tiles);
}

TnpStatus
cuda_plan(const TnpDeviceModel *m, int64_t keys, int64_t private_slots, CudaWalk *walk,
		  CudaPlan *plan, TnpError *error)
{
	const CudaModel *s = &m->shape;
	int			rows;
	int64_t		tiles;

	if (m->layered)
		return cuda_layers_plan(m, walk, plan, error);
	rows = walk->mode == CUDA_APPEND ? 16 : choose_rows(m, walk, cuda_chunks(keys));
	tiles = count_tiles(walk, rows, walk->n);
	memset(plan, 0, sizeof(*plan));
	if (tiles > INT32_MAX / 8)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the number of rows is out of range");
	walk->tiles = (int) tiles;
	walk->team = choose_team(m, walk, tiles, keys);
	walk->team_bits = walk->team >= 8 ? 3 : walk->team / 2;
	walk->pushes = rows == 16 && may_push(s, walk, walk->team);
	plan->kernel = (GpuKernel) {s->precision, rows, s->head_tiles};
	plan->shared = choose_split(m, rows, cuda_chunks(keys),
								lay_out(m, rows, walk->team, walk), walk, plan);
	plan->shared = choose_early(m, rows, plan->shared, walk);
	plan->arrived = walk->copies > 1 ? (s->two_stream ? 2 : 1) * s->layers : 0;
	plan->raw_bytes = (size_t) tiles * rows * s->outputs * sizeof(float);
	plan->params_bytes = (size_t) tiles * rows * s->params * sizeof(double);
	if (walk->mode == CUDA_ENCODE)
	{
		plan->state_bytes = (size_t) walk->n * s->width * sizeof(float);
		plan->query_bytes = (size_t) walk->n * walk->row_q * (s->precision == 0 ? 2 : 4);
	}
	if (walk->mode == CUDA_CHAIN)
	{
		cuda_own_words(s, private_slots, walk);
		plan->own_bytes = (size_t) (tiles * (rows / 16) * (walk->own_words_k + walk->own_words_v)) *
			4;
	}
	return TNP_OK;
}

CudaWalk
cuda_walk_of(const TnpDeviceEncoding *e, int64_t rows, CudaMode mode)
{
	const TnpConfig *c = &e->model->model->config;
	CudaWalk	walk;

	memset(&walk, 0, sizeof(walk));
	walk.model = e->model->shape;
	walk.mode = mode;
	walk.cache = e->cache;
	walk.shared = c->sinks + rows;
	walk.behind = rows - e->stats.n0;
	walk.position = c->positions > 0 ? (int) (rows - e->prefix) : -1;
	walk.y_center = e->stats.y_center;
	walk.y_scale = e->stats.y_scale;
	walk.y_clip = c->target_clip;
	if (e->stats.y_bound.is_set)
		walk.y_bound = (CudaBound) {1, e->stats.y_bound.middle, e->stats.y_bound.farthest,
									e->stats.y_bound.limit};
	walk.classes.n = e->stats.n_classes;
	walk.classes.ordered = e->stats.orders_classes;
	for (int i = 0; e->stats.orders_classes && i < e->stats.n_classes; i++)
	{
		walk.classes.place[i] = e->stats.class_place[i];
		walk.classes.given[e->stats.class_place[i]] = (unsigned char) i;
	}
	walk.group = 1;
	walk.copies = 1;
	return walk;
}
