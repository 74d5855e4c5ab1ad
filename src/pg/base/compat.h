/*
 * compat.h: the only place that knows about server versions (14 to 18).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_COMPAT_H
#define POSTERIOR_COMPAT_H

#include "postgres.h"

#include "fmgr.h"
#include "nodes/execnodes.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 140000
#error "pg_posterior needs PostgreSQL 14 or newer"
#endif

/* Expression trees are read by servers of the major version that wrote them. */
#define POSTERIOR_SERVER_MAJOR (PG_VERSION_NUM / 100)

#if PG_VERSION_NUM < 150000
#define MarkGUCPrefixReserved(prefix) EmitWarningsOnPlaceholders(prefix)
#endif

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 15 asks for shared memory in a hook of its own. */
#if PG_VERSION_NUM >= 150000
#define POSTERIOR_REQUEST_HOOK 1
#else
#define POSTERIOR_REQUEST_HOOK 0
#endif

/* 18 split what extensions need of EXPLAIN. */
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#else
#include "commands/explain.h"
#endif

/* 18 replaced pg_attribute_noreturn() by this prefix. */
#ifndef pg_noreturn
#define pg_noreturn __attribute__((noreturn))
#endif

/* 17 renamed what is known of transactions. */
#if PG_VERSION_NUM < 170000
#define TransamVariables ShmemVariableCache
#endif

/* 17 has sets of events owned by a resource owner, or, without one, by the process. */
#if PG_VERSION_NUM >= 170000
#define posterior_make_wait_set(events) CreateWaitEventSet(NULL, events)
#else
#define posterior_make_wait_set(events) CreateWaitEventSet(TopMemoryContext, events)
#endif

/* 16 added soft errors to make_range. */
#if PG_VERSION_NUM >= 160000
#define posterior_make_range(type, lower, upper) make_range(type, lower, upper, false, NULL)
#else
#define posterior_make_range(type, lower, upper) make_range(type, lower, upper, false)
#endif

/* 16 has one function for the rights on all kinds of objects, and other names for files. */
#if PG_VERSION_NUM >= 160000
#define posterior_schema_aclcheck(schema, user, mode)                                              \
	object_aclcheck(NamespaceRelationId, schema, user, mode)
#define posterior_function_aclcheck(function, user, mode)                                          \
	object_aclcheck(ProcedureRelationId, function, user, mode)
#define posterior_file_number(relation) ((relation)->rd_locator.relNumber)
#define posterior_file_subtransaction(relation) ((relation)->rd_newRelfilelocatorSubid)
#else
#define posterior_schema_aclcheck(schema, user, mode) pg_namespace_aclcheck(schema, user, mode)
#define posterior_function_aclcheck(function, user, mode) pg_proc_aclcheck(function, user, mode)
#define posterior_file_number(relation) ((relation)->rd_node.relNode)
#define posterior_file_subtransaction(relation) ((relation)->rd_newRelfilenodeSubid)
#endif

/* 18 has columns that are generated when they are read; attgenerated of these. */
#define POSTERIOR_GENERATED_VIRTUAL 'v'

/* 17 has a function for what VACUUM does to the search path; before it, this is equivalent. */
#if PG_VERSION_NUM >= 170000
#define posterior_restrict_search_path() RestrictSearchPath()
#else
#define posterior_restrict_search_path()                                                           \
	((void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,    \
							  GUC_ACTION_SAVE, true, 0, false))
#endif

/* Most sessions at a time. 15 computes it before libraries ask for shared memory. */
#if PG_VERSION_NUM >= 150000
#define posterior_most_sessions() MaxBackends
#else
#define posterior_most_sessions()                                                                  \
	(MaxConnections + autovacuum_max_workers + 1 + max_worker_processes + max_wal_senders)
#endif

/* 17 limits the time of a transaction. */
#if PG_VERSION_NUM >= 170000
#define posterior_timed_out() (TransactionTimeoutPending != 0)
#else
#define posterior_timed_out() false
#endif

/*
 * Whether writes of a table are counted: then relation->pgstat_info is there. From 15 on it may
 * have to be made first.
 */
#if PG_VERSION_NUM >= 150000
#define posterior_is_counted(relation) pgstat_should_count_relation(relation)
#else
#define posterior_is_counted(relation) ((relation)->pgstat_info != NULL)
#endif

/* 17 shows waits of extensions under names of their own; `event` keeps the number of a name. */
#if PG_VERSION_NUM >= 170000
#define posterior_wait_event(event, name)                                                          \
	(*(event) != 0 ? *(event) : (*(event) = WaitEventExtensionNew(name)))
#else
#define posterior_wait_event(event, name) ((void) (event), (uint32) PG_WAIT_EXTENSION)
#endif

/*
 * The head of the private WindowObjectData (nodeWindowAgg.c). Its first two members have been these
 * since window functions exist; they are the only way for a window function to learn its frame
 * clause.
 */
typedef struct PosteriorWindowHead
{
	NodeTag		type;
	WindowAggState *winstate;
} PosteriorWindowHead;

#endif							/* POSTERIOR_COMPAT_H */
