/*
 * bridge.c: lends PostgreSQL's memory and interrupts to the engine, and turns its status codes into errors.
 *
 * The engine never longjmps and neither do its callbacks: memory is asked for without an error, and an interrupt is reported by a
 * return value and raised only after the engine has unwound.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/bridge.h"

#include <unistd.h>

#include "access/parallel.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "pg/cache/cached_context.h"
#include "cpu/cpu.h"
#include "pg/shmem/progress.h"
#include "pg/shmem/shared.h"

int			posterior_fault_sqlstate = ERRCODE_SYSTEM_ERROR;

static void *
bridge_alloc(void *arg, size_t size)
{
	/* a size beyond MaxAllocHugeSize is an error even with NO_OOM */
	if (size > MaxAllocHugeSize)
		return NULL;
	return MemoryContextAllocExtended((MemoryContext) arg, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

static void
bridge_free(void *arg, void *pointer)
{
	(void) arg;
	pfree(pointer);
}

bool
posterior_interrupted(void)
{
	return InterruptPending && (QueryCancelPending || ProcDiePending || ClientConnectionLost || posterior_timed_out()) && InterruptHoldoffCount == 0;
}

static bool
bridge_interrupted(void *arg)
{
	(void) arg;
	return posterior_interrupted();
}

/* Threads that a question may use when posterior.threads is 0. The system is asked once: it reads a file, which takes a tenth of what a short question does. */
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
bridge_threads(void *arg)
{
	(void) arg;
	if (IsParallelWorker() || MyBackendType != B_BACKEND)
		return 1;
	return posterior_threads > 0 ? posterior_threads : machine_threads();
}

static void
bridge_progress(void *arg, int64_t done, int64_t total)
{
	(void) arg;
	(void) total;
	posterior_progress_within(done);
}

TnpEnv
posterior_env(MemoryContext context)
{
	TnpEnv		env = {.alloc = bridge_alloc,.free = bridge_free,.interrupted = bridge_interrupted,.arg = context,.threads = bridge_threads,
	.progress = bridge_progress};

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

void *
posterior_scratch_alloc(size_t size)
{
	static MemoryContext scratch = NULL;

	if (scratch == NULL)
		scratch = AllocSetContextCreate(TopMemoryContext, "posterior scratch", ALLOCSET_DEFAULT_SIZES);
	return bridge_alloc(scratch, size);
}

TnpStatus
posterior_no_memory(TnpError *error)
{
	memset(error, 0, sizeof(*error));
	error->status = TNP_NO_MEMORY;
	strlcpy(error->message, "out of memory", sizeof(error->message));
	return TNP_NO_MEMORY;
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

TnpEnv
posterior_shared_env(void)
{
	TnpEnv		env = posterior_env(NULL);

	env.alloc = scratch_alloc;
	env.keep = arena_keep;
	env.drop = arena_drop;
	return env;
}

static int
sqlstate(TnpStatus status)
{
	if (status == POSTERIOR_FAULT)
		return posterior_fault_sqlstate;
	switch (status)
	{
		case TNP_NO_MEMORY:
			return ERRCODE_OUT_OF_MEMORY;
		case TNP_BAD_FILE:
		case TNP_BAD_CONFIG:
		case TNP_BAD_TENSOR:
			return ERRCODE_INVALID_BINARY_REPRESENTATION;
		case TNP_BAD_SHAPE:
			return ERRCODE_DATATYPE_MISMATCH;
		case TNP_BAD_VALUE:
			return ERRCODE_INVALID_PARAMETER_VALUE;
		case TNP_TOO_FEW_ROWS:
			return ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
		case TNP_BAD_ARGUMENT:
			return ERRCODE_INVALID_PARAMETER_VALUE;
		default:
			return ERRCODE_INTERNAL_ERROR;
	}
}

static const char *
hint(TnpStatus status)
{
	if (status == POSTERIOR_FAULT)
		return posterior_fault_sqlstate == ERRCODE_OUT_OF_MEMORY ? "Raise posterior.device_memory, or set posterior.on_device_error to cpu."
			: posterior_fault_sqlstate == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE ? "Set posterior.device to auto or cpu, or preload the library."
			: "Repeat the statement, set posterior.on_device_error to cpu, or look into the server's log and posterior.stat_server.";
	switch (status)
	{
		case TNP_NO_MEMORY:
			return "Use fewer context rows, fewer draws or a smaller model, or give the server more memory.";
		case TNP_BAD_FILE:
		case TNP_BAD_CONFIG:
		case TNP_BAD_TENSOR:
			return "docs/model-format.md describes the file that is expected.";
		case TNP_BAD_SHAPE:
			return "The view posterior.models shows how many features each model takes.";
		case TNP_BAD_VALUE:
			return "The view posterior.models shows what each model takes; the setting posterior.model chooses one.";
		case TNP_TOO_FEW_ROWS:
			return "Give it more rows with a target that is not NULL, or choose a model with a smaller min_rows in posterior.models.";
		default:
			return NULL;
	}
}

const char *
posterior_sentence(const char *detail)
{
	size_t		length = strlen(detail);
	char	   *sentence = psprintf("%s%s", detail, length > 0 && detail[length - 1] == '.' ? "" : ".");

	sentence[0] = pg_toupper((unsigned char) sentence[0]);
	return sentence;
}

void
posterior_raise(const TnpError *error, const char *model)
{
	const char *advice = hint(error->status);

	CHECK_FOR_INTERRUPTS();
	ereport(ERROR,
			(errcode(error->status == TNP_INTERRUPTED ? ERRCODE_QUERY_CANCELED : sqlstate(error->status)),
			 errmsg("%s", error->message),
			 error->detail[0] != '\0' ? (model != NULL ? errdetail("%s (Model \"%s\".)", posterior_sentence(error->detail), model)
									 : errdetail("%s", posterior_sentence(error->detail)))
			 : (model != NULL ? errdetail("Model \"%s\".", model) : 0),
			 advice != NULL ? errhint("%s", advice) : 0));
}
