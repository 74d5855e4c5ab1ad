/*
 * bridge.c: turns the engine's status codes into errors, and finds memory and interrupts without
 * raising one.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/bridge.h"

#include "miscadmin.h"
#include "utils/memutils.h"

int			posterior_fault_sqlstate = ERRCODE_SYSTEM_ERROR;

bool
posterior_interrupted(void)
{
	return InterruptPending && InterruptHoldoffCount == 0
		&& (QueryCancelPending || ProcDiePending || ClientConnectionLost || posterior_timed_out());
}

void *
posterior_alloc_or_null(MemoryContext context, size_t size)
{
	/* a size beyond MaxAllocHugeSize is an error even with NO_OOM */
	if (size > MaxAllocHugeSize)
		return NULL;
	return MemoryContextAllocExtended(context, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

void *
posterior_scratch_alloc(size_t size)
{
	static MemoryContext scratch = NULL;

	if (scratch == NULL)
		scratch =
			AllocSetContextCreate(TopMemoryContext, "posterior scratch", ALLOCSET_DEFAULT_SIZES);
	return posterior_alloc_or_null(scratch, size);
}

TnpStatus
posterior_no_memory(TnpError *error)
{
	memset(error, 0, sizeof(*error));
	error->status = TNP_NO_MEMORY;
	strlcpy(error->message, "out of memory", sizeof(error->message));
	return TNP_NO_MEMORY;
}

void
posterior_raise_no_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory")));
}

static int
error_sqlstate(TnpStatus status)
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
error_hint(TnpStatus status)
{
	if (status == POSTERIOR_FAULT)
		return posterior_fault_sqlstate == ERRCODE_OUT_OF_MEMORY
				 ? "Raise posterior.device_memory, or set posterior.on_device_error to cpu."
			 : posterior_fault_sqlstate == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
				 ? "Set posterior.device to auto or cpu, or preload the library."
				 : "Repeat the statement, set posterior.on_device_error to cpu, or look into the "
				   "server's log and posterior.stat_server.";
	switch (status)
	{
		case TNP_NO_MEMORY:
			return "Use fewer context rows, fewer draws or a smaller model, or give the server "
				   "more memory.";
		case TNP_BAD_FILE:
		case TNP_BAD_CONFIG:
		case TNP_BAD_TENSOR:
			return "docs/model-format.md describes the file that is expected.";
		case TNP_BAD_SHAPE:
			return "The view posterior.models shows how many features each model takes.";
		case TNP_BAD_VALUE:
			return "The view posterior.models shows what each model takes; the setting "
				   "posterior.model chooses one.";
		case TNP_TOO_FEW_ROWS:
			return "Give it more rows with a target that is not NULL, or choose a model with a "
				   "smaller min_rows in posterior.models.";
		default:
			return NULL;
	}
}

const char *
posterior_sentence(const char *detail)
{
	size_t		length = strlen(detail);
	char *sentence = psprintf("%s%s", detail, length > 0 && detail[length - 1] == '.' ? "" : ".");

	sentence[0] = pg_toupper((unsigned char) sentence[0]);
	return sentence;
}

void
posterior_raise(const TnpError *error, const char *model)
{
	const char *advice = error_hint(error->status);

	CHECK_FOR_INTERRUPTS();
	ereport(ERROR, (errcode(error->status == TNP_INTERRUPTED ? ERRCODE_QUERY_CANCELED
															 : error_sqlstate(error->status)),
					errmsg("%s", error->message),
					error->detail[0] != '\0'
						? (model != NULL ? errdetail("%s (Model \"%s\".)",
													 posterior_sentence(error->detail), model)
										 : errdetail("%s", posterior_sentence(error->detail)))
						: (model != NULL ? errdetail("Model \"%s\".", model) : 0),
					advice != NULL ? errhint("%s", advice) : 0));
}
