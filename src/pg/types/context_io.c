/*
 * context_io.c: type posterior.context: input and output of values with rows and with sums.
 *
 * The text form is the binary form in hexadecimal, because its purpose is to travel through dumps;
 * people look at posterior.rows(c) and posterior.features(c).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/context_sums.h"

#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* Values of all versions. */
static void
send_any(StringInfo buffer, const PosteriorContext *c)
{
	if (posterior_context_is_sums(c))
		posterior_send_sums(buffer, c);
	else
		posterior_send_context(buffer, c);
}

static PosteriorContext *
receive_any(StringInfo buffer)
{
	int			first = buffer->cursor < buffer->len ? buffer->data[buffer->cursor] : 0;

	if (first == POSTERIOR_CONTEXT_SUMS || first == POSTERIOR_CONTEXT_SUMS_SEVERAL)
		return posterior_receive_sums(buffer);
	return posterior_make_context(posterior_receive_rows(buffer));
}

PG_FUNCTION_INFO_V1(posterior_context_send);
Datum
posterior_context_send(PG_FUNCTION_ARGS)
{
	StringInfoData buffer;

	pq_begintypsend(&buffer);
	send_any(&buffer, PG_GETARG_CONTEXT(0));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

PG_FUNCTION_INFO_V1(posterior_context_recv);
Datum
posterior_context_recv(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(receive_any((StringInfo) PG_GETARG_POINTER(0)));
}

PG_FUNCTION_INFO_V1(posterior_context_out);
Datum
posterior_context_out(PG_FUNCTION_ARGS)
{
	StringInfoData buffer;
	char	   *text;

	initStringInfo(&buffer);
	send_any(&buffer, PG_GETARG_CONTEXT(0));
	if ((Size) buffer.len * 2 + 1 > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the context is too large for its text form"),
				 errhint("Use binary output.")));
	text = palloc((Size) buffer.len * 2 + 1);
	text[hex_encode(buffer.data, buffer.len, text)] = '\0';
	PG_RETURN_CSTRING(text);
}

PG_FUNCTION_INFO_V1(posterior_context_in);
Datum
posterior_context_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	Size		length = strlen(text);
	StringInfoData buffer;

	if (length % 2 != 0 || length < 24)
		posterior_bad_context("The text is not a whole number of hexadecimal bytes.");
	initStringInfo(&buffer);
	enlargeStringInfo(&buffer, length / 2);
	buffer.len = hex_decode(text, length, buffer.data);
	PG_RETURN_POINTER(receive_any(&buffer));
}
