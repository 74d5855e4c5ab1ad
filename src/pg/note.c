/*
 * note.c: the trigger functions of tables with named contexts.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "shared.h"

#include "commands/trigger.h"

PG_FUNCTION_INFO_V1(posterior_note_statement);
Datum
posterior_note_statement(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(NULL);
}

PG_FUNCTION_INFO_V1(posterior_note_insert);
Datum
posterior_note_insert(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(NULL);
}

PG_FUNCTION_INFO_V1(posterior_note_change);
Datum
posterior_note_change(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(NULL);
}
