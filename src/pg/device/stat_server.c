/*
 * stat_server.c: what the views posterior.stat_server and posterior.devices show.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/device/device_client.h"

#include "pg/shmem/shared.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

static const char *const states[] = {[POSTERIOR_SERVER_OFF] = "off",
									 [POSTERIOR_SERVER_STARTING] = "starting",
									 [POSTERIOR_SERVER_READY] = "ready",
									 [POSTERIOR_SERVER_WAITING] = "waiting"};

/*
 * server_state(OUT state text, pid integer, started timestamptz, starts bigint, faults bigint,
 * fallbacks bigint, last_end text, OUT clients, waiting, requests, batches, largest_batch,
 * failures, cancelled, rows_received, builds, appends, evictions, models, encodings, memory_used,
 * memory_limit bigint)
 */
PG_FUNCTION_INFO_V1(posterior_server_state);
Datum
posterior_server_state(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[22];
	bool		nulls[22];
	PosteriorServer *server;
	TnpWireStatistics s;
	uint64		pid;
	char		ended[sizeof(server->ended)];

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	posterior_shared_attach();
	server = posterior_server;
	memset(nulls, true, sizeof(nulls));
	pid = pg_atomic_read_u64(&server->pid);
	values[0] = CStringGetTextDatum(states[pg_atomic_read_u32(&server->state)]);
	values[1] = Int32GetDatum((int32) pid);
	values[2] = TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&server->since));
	values[3] = Int64GetDatum((int64) pg_atomic_read_u64(&server->starts));
	values[4] = Int64GetDatum((int64) pg_atomic_read_u64(&server->faults));
	values[5] = Int64GetDatum((int64) pg_atomic_read_u64(&server->fallbacks));
	strlcpy(ended, server->ended, sizeof(ended));
	values[6] = CStringGetTextDatum(ended);
	nulls[0] = nulls[3] = nulls[4] = nulls[5] = false;
	nulls[1] = nulls[2] = pid == 0;
	nulls[6] = ended[0] == '\0';
	if (posterior_device_statistics(&s))
	{
		uint64 counts[] = {s.clients,       s.waiting,     s.requests,           s.batches,
						   s.largest_batch, s.failures,    s.cancelled,          s.rows_received,
						   s.builds,        s.appends,     s.evictions,          s.models,
						   s.encodings,     s.memory_used, s.device.memory_limit};

		for (int i = 0; i < lengthof(counts); i++)
		{
			values[7 + i] = Int64GetDatum((int64) counts[i]);
			nulls[7 + i] = false;
		}
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * server_device(OUT provider text, name text, version text, precision text, memory bigint,
 * memory_limit bigint, memory_used bigint): NULLs without a server
 */
PG_FUNCTION_INFO_V1(posterior_server_device_info);
Datum
posterior_server_device_info(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[7];
	bool		nulls[7];
	TnpWireStatistics s;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	posterior_shared_attach();
	memset(nulls, true, sizeof(nulls));
	if (posterior_device_statistics(&s))
	{
		memset(nulls, false, sizeof(nulls));
		values[0] = CStringGetTextDatum(s.device.provider);
		values[1] = CStringGetTextDatum(s.device.name);
		values[2] = CStringGetTextDatum(s.device.version);
		values[3] = CStringGetTextDatum(s.device.precision == TNP_PRECISION_FP32 ? "fp32" : "fp16");
		values[4] = Int64GetDatum((int64) s.device.memory_total);
		values[5] = Int64GetDatum((int64) s.device.memory_limit);
		values[6] = Int64GetDatum((int64) s.memory_used);
		nulls[2] = s.device.version[0] == '\0';
		nulls[4] = s.device.memory_total == 0;
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
