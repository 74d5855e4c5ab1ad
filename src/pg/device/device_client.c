/*
 * device_client.c: has the server answer requests; it may have to be sent the model or some rows
 * first.
 *
 * No error is raised between a request and its reply, because callers may have claimed an entry;
 * only reading a model's file may raise, and that is done before.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/device/device_client.h"

#include "pg/base/bridge.h"
#include "pg/models/engine_env.h"
#include "pg/device/connection.h"
#include "pg/shmem/shared.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include <math.h>

#define START_WAIT 10000		/* ms to wait for a server that is about to start */
#define GREETING_WAIT 1000		/* ms to wait for a server that is there */
#define LOOK_AGAIN 20			/* ms between two looks whether it has */
#define STATISTICS_WAIT 1000	/* ms to wait for statistics */
#define KNOWN_MODELS 16

static pg_uuid_t known[KNOWN_MODELS];	/* models that the server has, or had */
static int	n_known = 0;
static uint64 known_on = 0;		/* the connection whose server that is */
static bool model_evicted = false;	/* by the last request's reply */

/* ---- readiness ------------------------------------------------------------------------------- */

/* Whether the settings let a device answer. */
static bool
device_is_allowed(void)
{
	return posterior_device != POSTERIOR_DEVICE_CPU && posterior_kernels == 0;
}

static bool
server_is_ready(void)
{
	return posterior_is_shared
		&& pg_atomic_read_u32(&posterior_server->state) == POSTERIOR_SERVER_READY;
}

bool
posterior_device_possible(void)
{
	return device_is_allowed() && (posterior_device == POSTERIOR_DEVICE_CUDA || server_is_ready());
}

bool
posterior_device_ready(const PosteriorModel *model, TnpError *error)
{
	bool		demanded = posterior_device == POSTERIOR_DEVICE_CUDA;
	TimestampTz until = 0;

	error->status = TNP_OK;
	if (!device_is_allowed())
		return false;
	if (!posterior_is_shared)
	{
		if (demanded)
		{
			posterior_fault(error, "no device can be used",
							"there is a server for devices only when shared_preload_libraries "
							"contains pg_posterior");
			posterior_fault_sqlstate = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
		}
		return false;
	}
	for (;;)
	{
		PosteriorServerState state =
			(PosteriorServerState) pg_atomic_read_u32(&posterior_server->state);
		TnpError	why;

		if (state == POSTERIOR_SERVER_READY)
		{
			/* where there is a choice, a server that hangs is not waited for */
			if (posterior_connect(demanded ? 0 : GetCurrentTimestamp() + GREETING_WAIT * 1000L,
								  error)
				== TNP_OK)
			{
				error->status = TNP_OK;
				return demanded || model->refused_by != posterior_welcome.pid;
			}
			/*
			 * it has just ended, which the supervisor may not know yet: nothing was asked, so
			 * nothing has failed
			 */
			if (error->status == POSTERIOR_FAULT && !demanded)
				error->status = TNP_OK;
			if (!demanded || error->status != POSTERIOR_FAULT || !posterior_server_absent())
				return false;
		}
		if (!demanded)
			return false;
		if (until == 0)
			until = GetCurrentTimestamp() + START_WAIT * 1000L;
		if (state == POSTERIOR_SERVER_OFF || state == POSTERIOR_SERVER_WAITING
			|| GetCurrentTimestamp() > until)
		{
			posterior_server_explain(&why);
			posterior_fault(error, "the posterior server is not running", "%s", why.message);
			return false;
		}
		posterior_disconnect();
		if (posterior_pause(LOOK_AGAIN, error) != TNP_OK)
			return false;
	}
}

static bool
model_is_known(const PosteriorModel *model)
{
	for (int i = 0; i < n_known && known_on == posterior_connection(); i++)
		if (memcmp(&known[i], &model->version, sizeof(pg_uuid_t)) == 0)
			return true;
	return false;
}

bool
posterior_device_at_hand(const PosteriorModel *model)
{
	return device_is_allowed() && server_is_ready() && posterior_connection() != 0
		&& model_is_known(model);
}

bool
posterior_device_exact(void)
{
	return posterior_welcome.exact != 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The name of a model on the wire. */
static void
model_write_name(const PosteriorModel *model, uint8_t *name)
{
	/* numbers of incarnations begin anew with shared memory, whose epoch does not */
	uint64		incarnation = posterior_shared->epoch + posterior_incarnation();

	memcpy(name, model->version.data, UUID_LEN);
	memcpy(name + UUID_LEN, &incarnation, sizeof(incarnation));
	StaticAssertStmt(UUID_LEN + sizeof(incarnation) == TNP_WIRE_MODEL,
					 "a model's name has this size");
}

/* The bytes of a request, allocated; NULL without memory. */
static void *
request_write(const PosteriorModel *model, const PosteriorDeviceRows *rows, const TnpRequest *r,
			  uint64 *length)
{
	TnpWireRequest	ask;
	TnpRows		given;
	void	   *bytes;

	memset(&ask, 0, sizeof(ask));
	model_write_name(model, ask.model);
	ask.key.epoch = posterior_shared->epoch;
	ask.key.serial = rows->serial;
	ask.rows = r->rows;
	ask.prefix = rows->prefix;
	ask.first = Min(rows->mirrored, r->rows);
	ask.given = r->rows - ask.first;
	ask.capacity = rows->capacity;
	ask.queries = r->queries.n;
	ask.before = r->queries.before;
	ask.seed = r->seed;
	ask.first_draw = r->first_draw;
	ask.draws = r->draws;
	ask.orders = r->orders;
	ask.n_features = rows->rows.n_features;
	ask.n_classes = rows->rows.n_classes;
	ask.kind = r->kind;
	ask.reductions = r->reductions;
	ask.n_levels = r->n_levels;
	ask.flags =
		(rows->own ? TNP_EXECUTE_OWN : 0) | (r->queries.y != NULL ? TNP_EXECUTE_TARGETS : 0);
	*length = tnp_wire_request_length(&ask);
	bytes = *length > 0 ? posterior_scratch_alloc(*length) : NULL;
	if (bytes == NULL)
		return NULL;
	given = tnp_rows_part(&rows->rows, ask.first, ask.given);
	tnp_wire_write_request(&ask, &given, &r->queries, r->levels, bytes);
	return bytes;
}

/* One query's reduced answer. Quantiles and log densities may be infinite. */
static bool
reduction_is_sound(const TnpRequest *r, const double *answer)
{
	int			at = 0;

	if ((r->reductions & TNP_REDUCE_MEAN) != 0 && !isfinite(answer[at++]))
		return false;
	if ((r->reductions & TNP_REDUCE_SD) != 0 && (!isfinite(answer[at]) || answer[at++] < 0))
		return false;
	while (at < tnp_reduction_width(r))
		if (isnan(answer[at++]))
			return false;
	return true;
}

/* Whether an answer can be one: what makes no sense must not reach a value, let alone an index. */
static bool
answer_is_sound(const PosteriorModel *model, const PosteriorDeviceRows *rows, const TnpRequest *r,
				const double *answer)
{
	TnpDistributionKind kind;
	int			components,
				classes,
				size;

	tnp_answer_shape(model->model, &kind, &components);
	size = tnp_distribution_size(kind, components);
	classes =
		rows->rows.n_classes > 0 ? Min(rows->rows.n_classes, components) : components;
	switch (r->kind)
	{
		case TNP_REQUEST_PREDICT:
			for (int64 i = 0; i < r->queries.n; i++, answer += size)
			{
				if (tnp_distribution_check(&(TnpDistribution){kind, components, answer}, NULL)
					!= TNP_OK)
					return false;
				for (int c = classes; kind == TNP_CLASSES && c < components; c++)
					if (answer[c] != 0)
						return false;
			}
			return true;
		case TNP_REQUEST_SAMPLE:
			for (int64 i = 0; i < r->draws * r->queries.n; i++)
				if (!isfinite(answer[i])
					|| (kind == TNP_CLASSES
						&& !(answer[i] >= 0 && answer[i] < classes
							 && answer[i] == floor(answer[i]))))
					return false;
			return true;
		case TNP_REQUEST_JOINT:
			for (int64 i = 0; i < r->queries.n * (r->queries.n + 1); i++)
				if (!isfinite(answer[i]))
					return false;
			return true;
		case TNP_REQUEST_REDUCE:
			for (int64 i = 0; i < r->queries.n; i++, answer += tnp_reduction_width(r))
				if (!reduction_is_sound(r, answer))
					return false;
			return true;
		default:
			return r->queries.n == 0 || !isnan(answer[0]);
	}
}

/* Doubles in the answer to a request. */
static uint64
answer_length(const PosteriorModel *model, const TnpRequest *r)
{
	TnpWireRequest	ask;
	TnpDistributionKind kind;
	int			components;
	uint64		length = 0;

	memset(&ask, 0, sizeof(ask));
	ask.kind = r->kind;
	ask.queries = r->queries.n;
	ask.draws = r->draws;
	ask.reductions = r->reductions;
	ask.n_levels = r->n_levels;
	tnp_answer_shape(model->model, &kind, &components);
	return tnp_wire_answer_length(&ask, kind, components, &length) ? length : 0;
}

/* Take over an answer of the right size and kind. */
static TnpStatus
answer_take(const PosteriorModel *model, PosteriorDeviceRows *rows, TnpRequest *request,
			const TnpHeader *header, const TnpParcel *parcel, TnpError *error)
{
	if (header->length != answer_length(model, request))
		return posterior_corrupt(error, "an answer of %llu bytes instead of %llu",
								 (unsigned long long) header->length,
								 (unsigned long long) answer_length(model, request));
	if (!answer_is_sound(model, rows, request, parcel->bytes))
		return posterior_corrupt(error, "its numbers are no answer to what was asked");
	if (header->length > 0)
		memcpy(request->answer, parcel->bytes, header->length);
	rows->mirrored = Max(rows->mirrored, request->rows);
	return TNP_OK;
}

/* Note what the server lacks, for the next round. Fails where that is the model, or if `last`. */
static TnpStatus
missing_take(PosteriorDeviceRows *rows, const TnpRequest *request, const TnpHeader *header,
			 const TnpParcel *parcel, bool last, TnpError *error)
{
	const TnpWireMissing *missing = parcel->bytes;

	if (header->length != sizeof(*missing) || missing->rows < 0 || missing->rows > request->rows)
		return posterior_corrupt(error, "%llu bytes of what is missing",
								 (unsigned long long) header->length);
	if (missing->model == 0 && !last)
	{
		rows->mirrored = missing->rows;
		return TNP_OK;
	}
	/* it was there a moment ago: memory is too small for all that is requested at once */
	model_evicted = missing->model != 0;
	n_known = 0;
	return posterior_no_device_memory(error);
}

/*
 * The device has no launch for this request, and goes on. Where there is a choice it is not asked
 * about the model again.
 */
static TnpStatus
request_refused(PosteriorModel *model, TnpError *error)
{
	char		text[256];

	strlcpy(text, error->message, sizeof(text));
	if (posterior_device != POSTERIOR_DEVICE_CUDA)
		model->refused_by = posterior_welcome.pid;
	return posterior_fault(error, "the device cannot compute this request", "%s", text);
}

TnpStatus
posterior_device_execute(PosteriorModel *model, PosteriorDeviceRows *rows, TnpRequest *request,
						 TnpError *error)
{
	TnpStatus	status = posterior_connect(0, error);
	bool		answered = false;

	model_evicted = false;
	for (int round = 0; status == TNP_OK && !answered; round++)
	{
		TnpHeader	header;
		TnpParcel	parcel;
		uint64		length;
		void	   *bytes = request_write(model, rows, request, &length);

		if (bytes == NULL)
			return posterior_no_memory(error);
		status = posterior_exchange(TNP_EXECUTE, bytes, length, &header, &parcel, 0, error);
		pfree(bytes);
		if (status != TNP_OK)
			return status;
		switch (header.kind)
		{
			case TNP_ANSWER:
				status = answer_take(model, rows, request, &header, &parcel, error);
				answered = true;
				break;
			case TNP_MISSING:
				status = missing_take(rows, request, &header, &parcel, round == 3, error);
				break;
			case TNP_FAILED:
				status = posterior_take_failure(&parcel, error);
				if (status == TNP_BAD_CONFIG)
					status = request_refused(model, error);
				break;
			default:
				status = posterior_corrupt(error, "it is of kind %d", header.kind);
		}
		tnp_parcel_free(&parcel);
	}
	return status;
}

bool
posterior_device_evicted_model(void)
{
	return model_evicted;
}

/* Send a model, or with file = NULL ask for it: *missing. */
static TnpStatus
model_send(const PosteriorModel *model, const bytea *file, bool *missing, TnpError *error)
{
	uint64		size = file != NULL ? VARSIZE_ANY_EXHDR(file) : 0,
				length = sizeof(TnpWireLoad) + MAXALIGN64(size);
	TnpWireLoad *load =
		MemoryContextAllocExtended(CurrentMemoryContext, length, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	TnpHeader	header;
	TnpParcel	parcel;
	TnpStatus	status;

	model_write_name(model, load->model);
	load->length = size;
	if (size > 0)
		memcpy(load + 1, VARDATA_ANY(file), size);
	status = posterior_exchange(TNP_LOAD, load, length, &header, &parcel, 0, error);
	pfree(load);
	if (status != TNP_OK)
		return status;
	*missing = false;
	if (header.kind == TNP_FAILED)
		status = posterior_take_failure(&parcel, error);
	else if (header.kind == TNP_MISSING && file == NULL)
		*missing = true;
	else if (header.kind != TNP_DONE)
		status = posterior_corrupt(error, "it is of kind %d", header.kind);
	tnp_parcel_free(&parcel);
	return status;
}

TnpStatus
posterior_device_prepare(PosteriorModel *model, TnpError *error)
{
	TnpStatus	status = posterior_connect(0, error);
	bool		missing;

	if (status != TNP_OK)
		return status;
	if (model_is_known(model))
		return TNP_OK;
	if (model->refused_by == posterior_welcome.pid)
		return posterior_fault(
			error, "the device cannot compute this model",
			"the posterior server has refused it; posterior.device = cpu answers without a device");
	status = model_send(model, NULL, &missing, error);
	if (status == TNP_OK && missing)
	{
		bytea	   *file = posterior_model_file(model);

		if (file == NULL)
			return posterior_fault(error, "the posterior server lacks the model",
								   "the row of the model is not visible any more");
		status = model_send(model, file, &missing, error);
		pfree(file);
		if (status != TNP_OK && status != POSTERIOR_FAULT && status != TNP_INTERRUPTED)
		{
			char		text[256];

			strlcpy(text, error->message, sizeof(text));
			model->refused_by = posterior_welcome.pid;
			return posterior_fault(error, "the device cannot compute this model", "%s", text);
		}
	}
	if (status == TNP_OK)
	{
		if (known_on != posterior_connection() || n_known == KNOWN_MODELS)
			n_known = 0;
		known_on = posterior_connection();
		known[n_known++] = model->version;
	}
	return status;
}

void
posterior_device_forget(uint64 serial)
{
	TnpWireKey	key = {posterior_shared->epoch, serial};

	posterior_send(TNP_FORGET, &key, sizeof(key));
}

bool
posterior_device_statistics(TnpWireStatistics *statistics)
{
	TimestampTz until = GetCurrentTimestamp() + STATISTICS_WAIT * 1000L;
	TnpHeader	header;
	TnpParcel	parcel;
	TnpError	error;
	TnpStatus	status;
	bool		good;

	if (!posterior_is_shared
		|| pg_atomic_read_u32(&posterior_server->state) != POSTERIOR_SERVER_READY)
		return false;
	status = posterior_connect(until, &error);
	if (status == TNP_OK)
		status = posterior_exchange(TNP_STATS, NULL, 0, &header, &parcel, until, &error);
	if (status != TNP_OK)
	{
		CHECK_FOR_INTERRUPTS();
		return false;
	}
	good = header.kind == TNP_STATISTICS && header.length == sizeof(*statistics);
	if (good)
	{
		memcpy(statistics, parcel.bytes, sizeof(*statistics));
		tnp_wire_end_welcome(&statistics->device);
	}
	else
		posterior_disconnect();
	tnp_parcel_free(&parcel);
	return good;
}
