/*
 * gpu_emulated.cpp: cuda/gpu.h on the emulator: device memory is host memory, kernels run when they
 * are launched, or as late as they may.
 *
 * A test may ask for little memory, and for a failure of the n-th call.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "gpu_emulated.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "emulator.h"
#include "races.h"

typedef bool RunKernel(int precision, int rows, int head_tiles, const CudaWalk *walk, int shared);

extern "C" RunKernel emulated_kernel_HALF_16,
			emulated_kernel_HALF_32,
			emulated_kernel_HALF_64,
			emulated_kernel_FLOAT_16,
			emulated_kernel_FLOAT_32;

/* layered_emulated.cpp */
extern "C" void emulated_step_HALF(const CudaStep *step);
extern "C" void emulated_step_FLOAT(const CudaStep *step);

GpuEmulated gpu_emulated;

static RunKernel *const run_kernel[] = {emulated_kernel_HALF_16, emulated_kernel_HALF_32,
										emulated_kernel_HALF_64, emulated_kernel_FLOAT_16,
emulated_kernel_FLOAT_32};

static const char *failure = "";

/* Memory of the device; where races are looked for, in a place that is watched. */
static void *
device_memory(size_t bytes)
{
#ifdef EMULATOR_RACES
	return race_allocate(bytes, false);
#else
	return malloc(bytes);
#endif
}

static void
free_device_memory(void *memory)
{
#ifdef EMULATOR_RACES
	(void) memory;
#else
	free(memory);
#endif
}

/*
 * Released memory stays held until it is trimmed, and no piece fits a later wish: the worst that a
 * pool may do.
 */
struct Piece
{
	size_t		bytes;
	long		taken;			/* its number among all that is asked */
};

static std::map<void *, Piece> pieces;

/* What the queues have been asked for and have not done. */
struct Work
{
	long		number;
	bool		release;		/* of memory, which a lost device does, too */
	std::function<void()> work;
};

static std::deque<Work> asked[GPU_QUEUES];
static long numbers = 0,
			followed = 0;		/* queue 1 goes on when queue 0 has done all up to here */
static bool lost = false;

/* Shapes of matrix products that were prepared. */
static std::vector<GpuProduct> prepared;

static void
trace(char what, int queue)
{
	if (gpu_emulated.trace_room < 3)
		return;
	snprintf(strchr(gpu_emulated.trace, '\0'), 3, "%c%d", what, queue);
	gpu_emulated.trace_room -= 2;
}

/* Does what a queue has been asked for, up to this number. */
static void
catch_up(int queue, long number)
{
	while (!asked[queue].empty() && asked[queue].front().number <= number)
	{
		Work		next = asked[queue].front();

		asked[queue].pop_front();
		if (!lost || next.release)
			next.work();
	}
}

static void
ask(int queue, const std::function<void()> &work, bool release = false)
{
	asked[queue].push_back(Work{++numbers, release, work});
	if (!gpu_emulated.late)
		catch_up(queue, numbers);
}

/* Stops where queue 1 uses memory that queue 0 may not have taken yet. */
static void
check_taken(int queue, const void *memory)
{
	auto		after = pieces.upper_bound(const_cast<void *>(memory));

	if (queue == 0 || after == pieces.begin())
		return;
	const auto &piece = *--after;

	if ((const char *) memory < (const char *) piece.first + piece.second.bytes
		&& piece.second.taken > followed)
		emulator_stop("queue 1 uses memory before it follows queue 0, which took it");
}

/* Whether this call is the one that fails. */
static bool
fails(void)
{
	gpu_emulated.calls++;
	if (gpu_emulated.fail_at > 0 && gpu_emulated.calls >= gpu_emulated.fail_at)
	{
		failure = "an illegal memory access was encountered";
		lost = true;
		return true;
	}
	return false;
}

GpuResult
gpu_open(int ordinal, GpuFacts *facts)
{
	if (ordinal != 0)
	{
		failure = "invalid device ordinal";
		return GPU_ABSENT;
	}
	memset(facts, 0, sizeof(*facts));
	snprintf(facts->name, sizeof(facts->name), "emulator");
	facts->memory_total = (size_t) 1 << 30;
	facts->memory_free = (size_t) 1 << 30;
	facts->multiprocessors = gpu_emulated.multiprocessors > 0 ? gpu_emulated.multiprocessors : 8;
	facts->shared_bytes = gpu_emulated.shared_bytes > 0 ? gpu_emulated.shared_bytes : 227 << 10;
	facts->team = gpu_emulated.team > 0 ? gpu_emulated.team : 8;
	for (int i = 0; i < 4; i++)
		facts->teams[i] = facts->multiprocessors >> i;
	facts->together = 4 * facts->multiprocessors;
	lost = false;
	numbers = followed = 0;
	return GPU_OK;
}

void
gpu_close(void)
{
	prepared.clear();
	gpu_trim();
}

const char *
gpu_error(void)
{
	return failure;
}

GpuResult
gpu_allocate(size_t bytes, void **memory)
{
	if (fails())
		return GPU_FAILED;
	if (++gpu_emulated.allocations == gpu_emulated.no_memory_at)
		return GPU_NO_MEMORY;
	*memory = device_memory(bytes);
	memset(*memory, 0xff, bytes);
	gpu_emulated.live++;
	pieces[*memory] = Piece{bytes, ++numbers};
	gpu_emulated.held += bytes;
	if (gpu_emulated.held > gpu_emulated.most_held)
		gpu_emulated.most_held = gpu_emulated.held;
	return GPU_OK;
}

size_t
gpu_held(void)
{
	return gpu_emulated.held;
}

void
gpu_trim(void)
{
	for (int queue = 0; queue < GPU_QUEUES; queue++)
		catch_up(queue, numbers);
	gpu_emulated.held = 0;
	for (const auto &piece : pieces)
		gpu_emulated.held += piece.second.bytes;
}

void
gpu_release(void *memory)
{
	if (memory == nullptr)
		return;
	gpu_emulated.live--;
	pieces.erase(memory);
	ask(0,[memory] { free_device_memory(memory); }, true);
#ifdef EMULATOR_RACES
	if (gpu_emulated.live == 0)
		race_free_all();
#endif
}

GpuResult
gpu_allocate_host(size_t bytes, void **memory)
{
	if (++gpu_emulated.allocations == gpu_emulated.no_memory_at)
		return GPU_NO_MEMORY;
	*memory = malloc(bytes);
	gpu_emulated.live++;
	return GPU_OK;
}

void
gpu_release_host(void *memory)
{
	gpu_emulated.live -= memory != nullptr;
	free(memory);
}

static GpuResult
copy(char what, int queue, void *to, const void *from, size_t bytes)
{
	if (fails())
		return GPU_FAILED;
	trace(what, queue);
	ask(queue,[to, from, bytes] { memcpy(to, from, bytes); });
	return GPU_OK;
}

GpuResult
gpu_upload(int queue, void *to, const void *from, size_t bytes)
{
	check_taken(queue, to);
	return copy('u', queue, to, from, bytes);
}

GpuResult
gpu_download(int queue, void *to, const void *from, size_t bytes)
{
	check_taken(queue, from);
	return copy('d', queue, to, from, bytes);
}

GpuResult
gpu_copy(void *to, const void *from, size_t bytes)
{
	return copy('c', 0, to, from, bytes);
}

GpuResult
gpu_clear(void *memory, size_t bytes)
{
	if (fails())
		return GPU_FAILED;
	ask(0,[memory, bytes] { memset(memory, 0, bytes); });
	return GPU_OK;
}

GpuResult
gpu_follow(void)
{
	if (fails())
		return GPU_FAILED;
	trace('f', 1);
	followed = ++numbers;
	ask(1,[number = followed] { catch_up(0, number); });
	return GPU_OK;
}

/* Runs a kernel that exists. */
static void
run(const GpuKernel &kernel, const CudaWalk &walk, int shared)
{
	for (RunKernel *run_one : run_kernel)
		if (run_one(kernel.precision, kernel.rows, kernel.head_tiles, &walk, shared))
			return;
	emulator_stop("a launch of a kernel that does not exist");
}

GpuResult
gpu_launch(int queue, const GpuKernel *kernel, const CudaWalk *walk, int shared)
{
	if (fails())
		return GPU_FAILED;
	if (++gpu_emulated.launches == gpu_emulated.refuse_at
		|| (gpu_emulated.refuse_teams > 0 && walk->team > gpu_emulated.refuse_teams)
		|| (gpu_emulated.refuse_copies && walk->copies > 1))
	{
		gpu_emulated.refused++;
		failure = "too many resources requested for launch";
		return GPU_REFUSED;
	}
	if (shared > (gpu_emulated.shared_bytes > 0 ? gpu_emulated.shared_bytes : 227 << 10)
		|| shared % 16 != 0)
		emulator_stop("a launch with more shared memory than there is");
	trace('l', queue);
	ask(queue,[kernel = *kernel, walk = *walk, shared] { run(kernel, walk, shared); });
	return GPU_OK;
}

/* Whether this launch is refused. */
static bool
refused(void)
{
	if (++gpu_emulated.launches != gpu_emulated.refuse_at)
		return false;
	gpu_emulated.refused++;
	failure = "too many resources requested for launch";
	return true;
}

GpuResult
gpu_step(int queue, const CudaStep *step)
{
	if (fails())
		return GPU_FAILED;
	if (refused())
		return GPU_REFUSED;
	check_taken(queue, step->wide);
	trace('s', queue);
	ask(queue,[step = *step] {
		if (step.walk.model.precision == 0)
			emulated_step_HALF(&step);
		else
			emulated_step_FLOAT(&step);
	});
	return GPU_OK;
}

/* ---- matrix products ------------------------------------------------------------------------- */

static bool
same_shape(const GpuProduct &a, const GpuProduct &b)
{
	return a.precision == b.precision && a.in == b.in && a.out == b.out && a.row_x == b.row_x
		&& a.row_y == b.row_y && a.add == b.add && (a.bias == nullptr) == (b.bias == nullptr);
}

GpuResult
gpu_prepare_product(const GpuProduct *product)
{
	if (fails())
		return GPU_FAILED;
	if (gpu_emulated.no_products)
	{
		failure = "no library of matrix products";
		return GPU_REFUSED;
	}
	if (product->in % 16 != 0 || product->out % 8 != 0 || product->row_x % 16 != 0
		|| product->row_y % 8 != 0)
		emulator_stop("a matrix product whose rows are not aligned");
	for (const GpuProduct &one : prepared)
		if (same_shape(one, *product))
			return GPU_OK;
	prepared.push_back(*product);
	return GPU_OK;
}

#define LANES 16

/* A sum of products in 32 bits, in lanes that are added at the end. */
__attribute__((no_sanitize("address"))) static float
dot(const float *a, const float *b, int n)
{
	float		lane[LANES] = {};

	for (int i = 0; i < n; i += LANES)
		for (int j = 0; j < LANES; j++)
			lane[j] += a[i + j] * b[i + j];
	for (int half = LANES / 2; half > 0; half /= 2)
		for (int j = 0; j < half; j++)
			lane[j] += lane[j + half];
	return lane[0];
}

static void
widen(int precision, const void *from, int n, float *to)
{
	static std::vector<float> halves;

	if (precision == 1)
	{
		memcpy(to, from, (size_t) n * sizeof(float));
		return;
	}
	for (unsigned bits = (unsigned) halves.size(); bits < 1 << 16; bits++)
		halves.push_back(half_to_float((uint16_t) bits));
	for (int i = 0; i < n; i++)
		to[i] = halves[((const uint16_t *) from)[i]];
}

/* What is behind the rows, up to whole blocks, is no number: to read it shows. */
static void
multiply(const GpuProduct &p)
{
	int64_t		all = (p.n + GPU_PRODUCT_ROWS - 1) / GPU_PRODUCT_ROWS * GPU_PRODUCT_ROWS;
	size_t		element = p.precision == 0 ? 2 : 4;
	std::vector<float> x((size_t) p.n * p.in),
				w(p.in);

	memset(p.work, 0xff, GPU_PRODUCT_WORK);
	for (int64_t i = 0; i < p.n; i++)
		widen(p.precision, (const char *) p.x + (size_t) i * p.row_x * element, p.in,
			  &x[(size_t) i * p.in]);
	for (int o = 0; o < p.out; o++)
	{
		widen(p.precision, (const char *) p.w + (size_t) o * p.in * element, p.in, w.data());
		for (int64_t i = 0; i < all; i++)
		{
			float	   *y = p.y + i * p.row_y + o,
						sum = i < p.n ? dot(&x[(size_t) i * p.in], w.data(), p.in) : NAN;

			sum += p.bias != nullptr ? p.bias[o] : 0.0f;
			if (gpu_emulated.crooked && i == GPU_PRODUCT_ROWS + 1)
				sum = nextafterf(sum, INFINITY);
			*y = p.add ? *y + sum : sum;
		}
	}
}

GpuResult
gpu_multiply(int queue, const GpuProduct *product)
{
	bool		known = false;

	if (fails())
		return GPU_FAILED;
	if (refused())
		return GPU_REFUSED;
	for (const GpuProduct &one : prepared)
		known = known || same_shape(one, *product);
	if (!known)
		emulator_stop("a matrix product that nothing was prepared for");
	check_taken(queue, product->y);
	check_taken(queue, product->work);
	trace('m', queue);
	ask(queue,[p = *product] { multiply(p); });
	return GPU_OK;
}

GpuResult
gpu_done(int queue, bool *done)
{
	if (fails())
		return GPU_FAILED;
	/* the second look finds it done, so that waiting is exercised */
	*done = ++gpu_emulated.looks % 2 == 0;
	if (*done)
	{
		catch_up(queue, numbers);
		trace('w', queue);
	}
	return GPU_OK;
}

void
gpu_profile(bool on)
{
	(void) on;
}

GpuResult
gpu_profiled(double *milliseconds, int *launches)
{
	*milliseconds = 0;
	*launches = (int) gpu_emulated.launches;
	return GPU_OK;
}

void
gpu_pause(int looks)
{
	(void) looks;
}

void
gpu_emulated_order(int order)
{
	emulator_order = (EmulatorOrder) order;
}

const char *
gpu_emulated_barrier(int i, int *line)
{
	return emulator_barrier(i, line);
}

void
gpu_emulated_leave_out(const char *file, int line)
{
	emulator_leave_out(file, line);
}

void
gpu_emulated_miscount(const char *file, int line, int bytes)
{
	emulator_miscount(file, line, bytes);
}
