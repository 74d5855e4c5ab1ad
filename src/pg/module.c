/*
 * module.c: loading of the library and its settings.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/batch/batch.h"
#include "pg/cache/lookup.h"
#include "pg/cache/reuse_state.h"
#include "pg/cache/solved_sums.h"
#include "pg/device/device_client.h"
#include "pg/device/supervisor.h"
#include "pg/models/engine_env.h"
#include "pg/models/model_cache.h"
#include "pg/models/row_limit.h"
#include "pg/named/context_refresh.h"
#include "pg/named/definition.h"
#include "pg/named/fold_turns.h"
#include "pg/named/launcher.h"
#include "pg/named/worker.h"
#include "pg/shmem/arena.h"
#include "pg/shmem/progress.h"
#include "pg/shmem/shared.h"
#include "pg/sql/window.h"
#include "pg/types/distribution_summary.h"
#include "pg/visibility/write_tracker.h"

#include "miscadmin.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

/*
 * What lies in shared memory, in the order in which a database's life is forgotten: entries and
 * solved sums pin weights, and so go first.
 */
static PosteriorSharedPart *const shared_parts[] = {
	&posterior_incarnation_part,
	&posterior_arena_part,
	&posterior_progress_part,
	&posterior_server_part,
	&posterior_worker_part,
	&posterior_fold_turns_part,
	&posterior_writer_log_part,
	&posterior_reuse_state_part,
	&posterior_directory_part,
	&posterior_solved_part,
	&posterior_weights_part
};

static const struct config_enum_entry cache_modes[] = {
	{"on", POSTERIOR_CACHE_ON, false},
	{"off", POSTERIOR_CACHE_OFF, false},
	{"verify", POSTERIOR_CACHE_VERIFY, false},
	{NULL, 0, false}
};

static const struct config_enum_entry kernel_tables[] = {
	{"cpu", POSTERIOR_KERNELS_CPU, false},
	{"half", POSTERIOR_KERNELS_HALF, false},
	{"reference", POSTERIOR_KERNELS_REFERENCE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry row_security_modes[] = {
	{"refuse", POSTERIOR_ROW_SECURITY_REFUSE, false},
	{"private", POSTERIOR_ROW_SECURITY_PRIVATE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry device_modes[] = {
	{"auto", POSTERIOR_DEVICE_AUTO, false},
	{"cpu", POSTERIOR_DEVICE_CPU, false},
	{"cuda", POSTERIOR_DEVICE_CUDA, false},
	{NULL, 0, false}
};

static const struct config_enum_entry on_error_modes[] = {
	{"error", POSTERIOR_ON_ERROR_ERROR, false},
	{"cpu", POSTERIOR_ON_ERROR_CPU, false},
	{NULL, 0, false}
};

static const struct config_enum_entry precisions[] = {
	{"fp16", TNP_PRECISION_FP16, false},
	{"fp32", TNP_PRECISION_FP32, false},
	{NULL, 0, false}
};

static const struct config_enum_entry server_devices[] = {
	{"cuda", 0, false},
	{"cpu", 1, false},
	{NULL, 0, false}
};

/* Settings about the server that computes on a device. */
static void
define_device_settings(void)
{
	DefineCustomEnumVariable(
		"posterior.device",
		"Where predictions are computed: in this process, or by a server process on a GPU.",
		"auto uses a GPU where there is one; cuda raises an error where there is none; cpu uses "
		"none. Small requests are answered in this process in any case. "
		"The server is started with PostgreSQL, unless this is cpu then.",
		&posterior_device, POSTERIOR_DEVICE_AUTO, device_modes, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("posterior.on_device_error",
							 "What happens when the device or its server fails while it answers.",
							 "error raises an error; cpu answers on the CPU.",
							 &posterior_on_device_error, POSTERIOR_ON_ERROR_ERROR, on_error_modes,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable(
		"posterior.device_threshold",
		"Million multiply-adds from which on a request is answered by the device.",
		"docs/device.md says how they are counted. 0 sends everything to the device.",
		&posterior_device_threshold, 2, 0, 1e12, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"posterior.device_memory", "Device memory for models, encodings and requests.",
		"0 is three quarters of what is free when the server starts.", &posterior_device_memory, 0,
		0, MAX_KILOBYTES, PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("posterior.device_number", "Which of the machine's devices is used.",
							NULL, &posterior_device_number, 0, 0, 1024, PGC_SIGHUP, 0, NULL, NULL,
							NULL);
	DefineCustomIntVariable(
		"posterior.device_timeout",
		"Time without a sign of life after which the server is killed and started anew.", NULL,
		&posterior_device_timeout, 30, 1, 86400, PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomEnumVariable(
		"posterior.precision",
		"Inputs of matrix products on the device: 16 or 32 bits; sums are of 32 bits.", NULL,
		&posterior_precision, TNP_PRECISION_FP16, precisions, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("posterior.server_device",
							 "What the server computes on: a GPU, or for tests the CPU.", NULL,
							 &posterior_server_device, 0, server_devices, PGC_SIGHUP,
							 GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomStringVariable("posterior.server_program", "Program that is started as the server.",
							   "Empty is pg_posterior_server beside the module.",
							   &posterior_server_program, "", PGC_SIGHUP,
							   GUC_NOT_IN_SAMPLE | GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
}

/* Settings about models and what they compute with. */
static void
define_model_settings(void)
{
	DefineCustomStringVariable("posterior.model", "Model that predictions use.",
							   "The view posterior.models lists those that are loaded.",
							   &posterior_model_name, "tabular", PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable(
		"posterior.class_model", "Model that predictions of labels use.",
		"The view posterior.models lists those that are loaded; such a model has classes.",
		&posterior_class_model_name, "tabular_class", PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable(
		"posterior.leak_notice",
		"Whether a notice tells that a frame contains the current row with its target.",
		"Predictions of such a row have seen what they predict.", &posterior_leak_notice, true,
		PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable(
		"posterior.cache", "Whether encodings of contexts are kept and used again.",
		"verify answers every request twice, from the cache and from scratch, and raises an error "
		"when the answers differ.",
		&posterior_cache_mode, POSTERIOR_CACHE_ON, cache_modes, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"posterior.cache_size", "Memory for encodings of contexts and parsed models.",
		"Shared by all sessions when shared_preload_libraries contains pg_posterior, else of each "
		"session, for encodings only.",
		&posterior_cache_size, 65536, 64, MAX_KILOBYTES,
		process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_USERSET, GUC_UNIT_KB,
		NULL, NULL, NULL);
	DefineCustomEnumVariable(
		"posterior.kernels",
		"Arithmetic of predictions: fast, fast with keys and values of contexts in 16 bits, or "
		"the slow reference.",
		"half halves the memory of most encodings and the time of single predictions on long "
		"contexts; where the processor cannot convert 16-bit numbers it is cpu.",
		&posterior_kernels, POSTERIOR_KERNELS_CPU, kernel_tables, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("posterior.threads",
							"Threads, the session's own included, that work on one large request.",
							"0: four, or as many as there are processors. Answers do not depend on "
							"it. Small requests, parallel workers and background workers use one.",
							&posterior_threads, 0, 0, 64, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("posterior.estimators",
							"Views of a table that a model of the architecture columns averages "
							"over.",
							"Each has the columns in another order, and every second one has them "
							"made normal. Time and memory grow with it; other models have one "
							"view.",
							&posterior_estimators, 1, 1, TNP_MAX_VIEWS, PGC_USERSET, 0, NULL, NULL,
							NULL);
}

/* Settings about named contexts, limits and batches. */
static void
define_context_settings(void)
{
	DefineCustomEnumVariable(
		"posterior.row_security",
		"What a named context does for users to whom row-level security of its relation applies.",
		"refuse raises an error; private computes from the rows that the user may see and shares "
		"nothing.",
		&posterior_row_security, POSTERIOR_ROW_SECURITY_REFUSE, row_security_modes, PGC_USERSET, 0,
		NULL, NULL, NULL);
	DefineCustomIntVariable(
		"posterior.row_limit",
		"Most rows of a context, with those of a joint request, that a prediction is made from.",
		"-1: as many as the model's file says, 20000 where it says nothing; 0: any number. Time "
		"grows with the square of the rows.",
		&posterior_row_limit, -1, -1, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"posterior.joint_limit",
		"Most time, as estimated, that encoding again may take for a joint question.",
		"For models that cannot append rows: they encode all rows again after each row of a draw. "
		"-1: any time.",
		&posterior_joint_limit, 600000, -1, INT_MAX, PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"posterior.joint_notice",
		"Time, as estimated, from which on a NOTICE tells what a joint question takes.",
		"The estimate counts 10 billion multiplications a second. -1: never.",
		&posterior_joint_notice, 1000, -1, INT_MAX, PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"posterior.maintenance_delay",
		"Time after a write until the contexts of the table are encoded ahead of the next read.",
		"-1 leaves it to the next read.", &posterior_maintenance_delay, 1000, -1, 3600000,
		PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomRealVariable(
		"posterior.drift_limit",
		"Drift of the rows after a named context's prefix from which on the background worker has "
		"it encoded anew.",
		"In standard deviations, as posterior.stat_contexts shows it; 0: never. 0.5 is a good "
		"value where later rows differ from earlier ones.",
		&posterior_drift_limit, 0, 0, 1e6, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable(
		"posterior.batch_calls",
		"Whether calls of posterior.predict and posterior.predict_targets for many rows are "
		"answered together.",
		"Answers are the same.", &posterior_batch_calls, true, PGC_USERSET, 0, NULL, NULL, NULL);
}

void
_PG_init(void)
{
	define_model_settings();
	define_context_settings();
	posterior_summary_register();
	define_device_settings();
	posterior_batch_scan_register();
	posterior_plan_rewrite_register();
	MarkGUCPrefixReserved("posterior");
	posterior_segment_declare(shared_parts, lengthof(shared_parts));
	if (process_shared_preload_libraries_in_progress)
	{
		posterior_segment_request();
		posterior_write_tracker_register();
		posterior_launcher_register();
		posterior_supervisor_register();
	}
}
