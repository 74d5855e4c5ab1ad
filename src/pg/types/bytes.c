/*
 * bytes.c: equality, order and hash of the extension's types, by their bytes: what GROUP BY,
 * DISTINCT, sorts and joins need.
 *
 * Equal values have equal bytes (numbers are canonicalised when a value is made), so bytes decide.
 * The order means nothing else.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/compat.h"

#include "common/hashfn.h"

/* Compare two values as memcmp does; the shorter one first when one begins with the other. */
static int
bytes_compare(FunctionCallInfo fcinfo)
{
	struct varlena *a = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0)),
			   *b = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(1));
	Size		la = VARSIZE_ANY_EXHDR(a),
				lb = VARSIZE_ANY_EXHDR(b);
	int			result = memcmp(VARDATA_ANY(a), VARDATA_ANY(b), Min(la, lb));

	if (result == 0)
		result = (la > lb) - (la < lb);
	PG_FREE_IF_COPY(a, 0);
	PG_FREE_IF_COPY(b, 1);
	return result;
}

#define COMPARISON(name, operator) \
	PG_FUNCTION_INFO_V1(posterior_bytes_##name); \
	Datum \
	posterior_bytes_##name(PG_FUNCTION_ARGS) \
	{ \
		PG_RETURN_BOOL(bytes_compare(fcinfo) operator 0); \
	} \
	struct posterior_bytes_##name	/* so that a use ends with a semicolon */

COMPARISON(eq, ==);
COMPARISON(ne, !=);
COMPARISON(lt, <);
COMPARISON(le, <=);
COMPARISON(gt, >);
COMPARISON(ge, >=);

PG_FUNCTION_INFO_V1(posterior_bytes_cmp);
Datum
posterior_bytes_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(bytes_compare(fcinfo));
}

PG_FUNCTION_INFO_V1(posterior_bytes_hash);
Datum
posterior_bytes_hash(PG_FUNCTION_ARGS)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0));
	Datum		hash = hash_any((unsigned char *) VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v));

	PG_FREE_IF_COPY(v, 0);
	return hash;
}
