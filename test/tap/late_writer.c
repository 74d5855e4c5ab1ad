/*
 * late_writer.c: a library that writes while a transaction commits, like extensions that keep their
 * changes until then. SELECT late_write('statements') has them executed in its callback for the end
 * of the transaction. The newest callback is called first: a library that is loaded before
 * pg_posterior writes after pg_posterior has entered the transaction in the writer logs.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static char *statements = NULL; /* of this transaction */

/* late_write(statements text) */
PG_FUNCTION_INFO_V1(late_write);
Datum
late_write(PG_FUNCTION_ARGS)
{
	statements = MemoryContextStrdup(TopTransactionContext, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	PG_RETURN_VOID();
}

static void
at_transaction_end(XactEvent event, void *arg)
{
	char	   *what = statements;

	(void) arg;
	statements = NULL;
	if (what == NULL || (event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE))
		return;
	PushActiveSnapshot(GetTransactionSnapshot());
	if (SPI_connect() != SPI_OK_CONNECT || SPI_execute(what, false, 0) < 0 ||
		SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "could not execute \"%s\"", what);
	PopActiveSnapshot();
}

void
_PG_init(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
}
