/*
 * engine_env.c: lends PostgreSQL's memory, interrupts and settings to the engine.
 *
 * The engine never longjmps and neither do its callbacks: memory is asked for without an error, and
 * an interrupt is a return value, which posterior_raise() turns into an error after the engine has
 * unwound. No callback runs in a helper thread.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/models/engine_env.h"

#include <unistd.h>

#include "access/parallel.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/wait_event.h"

#include "cpu/cpu.h"
#include "pg/base/bridge.h"
#include "pg/shmem/progress.h"
#include "pg/shmem/arena.h"
#include "pg/shmem/shared.h"

int			posterior_kernels = POSTERIOR_KERNELS_CPU;
int			posterior_threads = 0;
int			posterior_estimators = 1;

static void *
env_alloc(void *arg, size_t size)
{
	return posterior_alloc_or_null((MemoryContext) arg, size);
}

static void
env_free(void *arg, void *pointer)
{
	(void) arg;
	pfree(pointer);
}

static bool
env_interrupted(void *arg)
{
	(void) arg;
	return posterior_interrupted();
}

/*
 * Threads of a call when posterior.threads is 0. The system is asked once: it reads a file, which
 * takes a tenth of the time of a short request.
 */
static int
machine_threads(void)
{
	static long processors = 0;

	if (processors == 0)
		processors = Max(sysconf(_SC_NPROCESSORS_ONLN), 1);
	return (int) Min(processors, 4);
}

/* Where processes already work side by side, or in the background, each has one thread. */
static int
env_threads(void *arg)
{
	(void) arg;
	if (IsParallelWorker() || MyBackendType != B_BACKEND)
		return 1;
	return posterior_threads > 0 ? posterior_threads : machine_threads();
}

static int
env_estimators(void *arg)
{
	(void) arg;
	return posterior_estimators;
}

static uint32 encode_event = 0; /* number of the wait event */
static bool is_encoding = false;
static instr_time encode_start;
PosteriorEncodeCounters posterior_encode_counters;

void
posterior_encode_event_init(void)
{
	(void) posterior_wait_event(&encode_event, "PosteriorEncode");
	if (encode_event == 0)
		encode_event = PG_WAIT_EXTENSION;
}

void
posterior_encode_event_begin(void)
{
	is_encoding = true;
	INSTR_TIME_SET_CURRENT(encode_start);
	pgstat_report_wait_start(encode_event);
}

void
posterior_encode_event_end(void)
{
	instr_time	end;

	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, encode_start);
	posterior_encode_counters.calls++;
	posterior_encode_counters.seconds += INSTR_TIME_GET_DOUBLE(end);
	is_encoding = false;
	pgstat_report_wait_end();
}

static void
env_progress(void *arg, int64_t done, int64_t total)
{
	(void) arg;
	(void) total;
	posterior_progress_within(done);
	/* a wait for a lock of the arena has ended the event */
	if (is_encoding)
		pgstat_report_wait_start(encode_event);
}

static void
env_answered(void *arg, int64_t rows)
{
	(void) arg;
	posterior_progress_answered(rows);
}

TnpEnv
posterior_env(MemoryContext context)
{
	TnpEnv		env = {.alloc = env_alloc,.free = env_free,.interrupted = env_interrupted,
		.arg = context,.threads = env_threads,.estimators = env_estimators,.progress = env_progress,
		.answered = env_answered
	};

	switch (posterior_kernels)
	{
		case POSTERIOR_KERNELS_CPU:
			env.kernels = tnp_cpu_kernels();
			break;
		case POSTERIOR_KERNELS_HALF:
			env.kernels = tnp_cpu_half_kernels();
			break;
		default:
			env.kernels = &tnp_reference_kernels;
	}
	return env;
}

static void *
scratch_alloc(void *arg, size_t size)
{
	(void) arg;
	return posterior_scratch_alloc(size);
}

static void *
arena_keep(void *arg, size_t size)
{
	(void) arg;
	return posterior_arena_alloc(size);
}

static void
arena_drop(void *arg, void *pointer)
{
	(void) arg;
	posterior_arena_free(pointer);
}

static void *
counted_keep(void *arg, size_t size)
{
	*(Size *) arg += posterior_block_size(size);
	return posterior_scratch_alloc(size);
}

TnpEnv
posterior_shared_env(void)
{
	TnpEnv		env = posterior_env(NULL);

	env.alloc = scratch_alloc;
	env.keep = arena_keep;
	env.drop = arena_drop;
	return env;
}

TnpEnv
posterior_counting_env(Size *bytes)
{
	TnpEnv		env = posterior_shared_env();

	*bytes = 0;
	env.arg = bytes;
	env.keep = counted_keep;
	env.drop = env.free;
	return env;
}
