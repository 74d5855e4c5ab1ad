/*
 * server_inputs.c: what test/fuzz/types loads into a server: a mutator of values, and the ways by
 * which bytes from elsewhere become values of a type.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "postgres.h"

#include <limits.h>

#include "executor/executor.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

PG_MODULE_MAGIC;

/* ---- mutation -------------------------------------------------------------------------------- */

#define MOST_BYTES 65536

/* splitmix64 */
static uint64
next(uint64 *state)
{
	uint64		z = (*state += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* Less than n, or 0. */
static int
below(uint64 *state, int n)
{
	return n > 0 ? (int) (next(state) % (uint64) n) : 0;
}

/* Replace `removed` bytes at `at` by others. */
static void
put_bytes(StringInfo value, int at, int removed, const char *bytes, int n)
{
	int			rest = value->len - at - removed;
	char	   *tail = palloc(rest + 1);

	memcpy(tail, value->data + at + removed, rest);
	value->len = at;
	appendBinaryStringInfo(value, bytes, n);
	appendBinaryStringInfo(value, tail, rest);
	pfree(tail);
}

static const char *const words[] = {
	"normal(", "mixture(", "bars(", "bars_half_normal(", "categorical(", "quantiles(", "\"", "\\",
	"\": ", "*normal(", " + ", " [", "] ", ", ", ")", "nan", "-inf", "1e999",
	"-0", "4.9e-324", "1e-400", "0x1p3", "0.1", "1", "1.7976931348623157e308",
	"99999999999999999999", ".", "-", "e", " ", "\t",
	"\xc3\xa9", "\xf0\x9f\x98\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xff", "ff",
	"7ff8000000000000", "fff0000000000000", "00", "f"
};

static const double doubles[] = {
	0, 1, -1, 0.5, 4.9e-324, 2.2250738585072014e-308, 1e-300, 1e300, 1.7976931348623157e308,
	-1.7976931348623157e308,
	9007199254740992.0, -9007199254740993.0};

static const int64 integers[] = {
	0, 1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 255, 256, 1600, 32767, 65535, 65536, 65537, INT_MAX,
	-1, -2, INT_MIN,
	INT64CONST(4294967296), PG_INT64_MAX, PG_INT64_MIN};

/* A number in the network's order, of 1, 2, 4 or 8 bytes. */
static void
put_integer(StringInfo value, uint64 *state, int64 integer)
{
	int			size = 1 << below(state, 4),
				at;

	if (value->len < size)
		return;
	at = below(state, value->len - size + 1);
	for (int i = size - 1; i >= 0; i--, integer >>= 8)
		value->data[at + i] = (char) integer;
}

static void
put_double(StringInfo value, uint64 *state)
{
	int			choice = below(state, lengthof(doubles) + 4),
				at;
	uint64		bits;

	if (value->len < 8)
		return;
	if (choice < (int) lengthof(doubles))
		memcpy(&bits, &doubles[choice], 8);
	else
		bits = choice % 4 == 0 ? UINT64CONST(0x7FF0000000000000)
			: choice % 4 == 1 ? UINT64CONST(0xFFF0000000000000)
			: choice % 4 == 2 ? UINT64CONST(0x7FF8000000000001) : next(state);
	at = value->len - 8
		 - (below(state, 2) ? 8 * below(state, value->len / 8) : below(state, value->len - 7));
	for (int i = 7; i >= 0; i--, bits >>= 8)
		value->data[at + i] = (char) bits;
}

/* A length of less than 9, or sometimes of less than `long_one`, that is at most `most`. */
static int
length(uint64 *state, int long_one, int most)
{
	int			n = below(state, below(state, 4) == 0 ? long_one : 9);

	return Min(n, most);
}

static void
mutate_once(StringInfo value, const char *other, int n_other, bool text, uint64 *state)
{
	int			at = below(state, value->len + 1),
				n = length(state, 64, value->len - at),
				from = below(state, n_other),
				taken = length(state, 256, n_other - from);
	char		byte = (char) (next(state) & (text ? 0x7F : 0xFF));
	const char *word = words[below(state, lengthof(words))];

	switch (below(state, text ? 7 : 10))
	{
		case 0:
			if (at < value->len)
				value->data[at] ^= (char) (1 << below(state, text ? 7 : 8));
			break;
		case 1:
			put_bytes(value, at, Min(1, value->len - at), &byte, 1);
			break;
		case 2:
			put_bytes(value, at, 0, &byte, 1);
			break;
		case 3:
			put_bytes(value, at, n, NULL, 0);
			break;
		case 4:
			put_bytes(value, at, value->len - at, NULL, 0);
			break;
		case 5:
			put_bytes(value, at, n, other + from, taken);
			break;
		case 6:
			put_bytes(value, at, n, word, strlen(word));
			break;
		case 7:
			put_integer(value, state, integers[below(state, lengthof(integers))]);
			break;
		case 8:
			put_double(value, state);
			break;
		case 9:
			/* counts and kinds are at the beginning */
			if (value->len > 0)
				value->data[below(state, Min(value->len, 16))] += (char) (1 - 2 * below(state, 2));
			break;
	}
	if (value->len > MOST_BYTES)
		value->len = MOST_BYTES;
}

/*
 * fuzz.mutant(value bytea, other bytea, is_text boolean, seed bigint): the value with one to eight
 * changes, some of them bytes of the other
 */
PG_FUNCTION_INFO_V1(fuzz_mutant);
Datum
fuzz_mutant(PG_FUNCTION_ARGS)
{
	bytea	   *from = PG_GETARG_BYTEA_PP(0),
			   *other = PG_GETARG_BYTEA_PP(1);
	uint64		state = (uint64) PG_GETARG_INT64(3);
	StringInfoData value;

	initStringInfo(&value);
	appendBinaryStringInfo(&value, VARDATA_ANY(from), VARSIZE_ANY_EXHDR(from));
	for (int n = 1 << below(&state, 4), i = 0; i < n; i++)
		mutate_once(&value, VARDATA_ANY(other), VARSIZE_ANY_EXHDR(other), PG_GETARG_BOOL(2),
					&state);
	PG_RETURN_BYTEA_P(cstring_to_text_with_len(value.data, value.len));
}

/* ---- values ---------------------------------------------------------------------------------- */

/*
 * fuzz.receive(bytea, type): a value of the second argument's type from its binary form, as a
 * client sends it
 */
PG_FUNCTION_INFO_V1(fuzz_receive);
Datum
fuzz_receive(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	Oid			type = get_fn_expr_rettype(fcinfo->flinfo),
				function,
				parameter;
	StringInfoData buffer;
	Datum		value;

	initStringInfo(&buffer);
	appendBinaryStringInfo(&buffer, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	getTypeBinaryInputInfo(type, &function, &parameter);
	value = OidReceiveFunctionCall(function, &buffer, parameter, -1);
	/* as every caller of a receiving function checks */
	if (buffer.cursor != buffer.len)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("incorrect binary data format")));
	return value;
}

/*
 * fuzz.input(bytea, type): a value of the second argument's type from its text, which the server
 * checks first
 */
PG_FUNCTION_INFO_V1(fuzz_input);
Datum
fuzz_input(PG_FUNCTION_ARGS)
{
	char	   *string = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Oid			type = get_fn_expr_rettype(fcinfo->flinfo),
				function,
				parameter;

	pg_verifymbstr(string, strlen(string), false);
	getTypeInputInfo(type, &function, &parameter);
	return OidInputFunctionCall(function, string, parameter, -1);
}

/* fuzz.is_text(text): whether the bytes are valid in the server's encoding */
PG_FUNCTION_INFO_V1(fuzz_is_text);
Datum
fuzz_is_text(PG_FUNCTION_ARGS)
{
	text	   *string = PG_GETARG_TEXT_PP(0);

	PG_RETURN_BOOL(pg_verifymbstr(VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string), true));
}

/*
 * fuzz.state(bytea, deserialize regprocedure, final regprocedure): an aggregate's state from its
 * serialized form, finished
 */
PG_FUNCTION_INFO_V1(fuzz_state);
Datum
fuzz_state(PG_FUNCTION_ARGS)
{
	AggState   *aggregate = makeNode(AggState);
	FmgrInfo	deserialize,
				final;
	Datum		state,
				value;

	aggregate->curaggcontext = CreateStandaloneExprContext();
	fmgr_info(PG_GETARG_OID(1), &deserialize);
	fmgr_info(PG_GETARG_OID(2), &final);
	{
		LOCAL_FCINFO(call, 2);

		InitFunctionCallInfoData(*call, &deserialize, 2, InvalidOid, (Node *) aggregate, NULL);
		call->args[0] = (NullableDatum) {PG_GETARG_DATUM(0), false};
		call->args[1] = (NullableDatum) {(Datum) 0, false};
		state = FunctionCallInvoke(call);
		InitFunctionCallInfoData(*call, &final, 1, InvalidOid, (Node *) aggregate, NULL);
		call->args[0] = (NullableDatum) {state, false};
		value = FunctionCallInvoke(call);
	}
	/* the value is in this call's memory; only the state goes */
	FreeExprContext(aggregate->curaggcontext, true);
	return value;
}
