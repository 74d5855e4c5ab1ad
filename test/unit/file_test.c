/*
 * file_test.c: the safetensors reader: what it reads, and a table of files that it must refuse.
 *
 * A file is made from a header text and a number of data bytes. Every file is read from a heap
 * block of exactly its length, so that AddressSanitizer and valgrind see a read beyond it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdint.h>
#include <stdlib.h>

#include "engine/file/safetensors.h"
#include "tap.h"

#define META "\"__metadata__\":{\"pg_posterior\":\"{}\"}"

/* Counts what the reader holds. */
static long held = 0;

static void *
count_alloc(void *arg, size_t size)
{
	(void) arg;
	held++;
	return malloc(size);
}

static void
count_free(void *arg, void *pointer)
{
	(void) arg;
	held--;
	free(pointer);
}

static const TnpEnv counting = {.alloc = count_alloc,.free = count_free};

/* The bytes of a file; the data counts up from 0. The caller frees them. */
static unsigned char *
make_file(const char *header, size_t header_length, size_t data_length, size_t *length)
{
	unsigned char *bytes = malloc(8 + header_length + data_length);

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char) (header_length >> (8 * i));
	memcpy(bytes + 8, header, header_length);
	for (size_t i = 0; i < data_length; i++)
		bytes[8 + header_length + i] = (unsigned char) (i & 0x3f);
	*length = 8 + header_length + data_length;
	return bytes;
}

typedef struct BadFile
{
	const char *name;
	const char *header;
	size_t		data_length;
	const char *message;
	const char *detail;			/* a part of it, or NULL */
} BadFile;

static const BadFile bad_files[] = {
	/* the header's text */
	{"an array", "[]", 0, "not a safetensors file", "0x5b"},
	{"a space first", " {" META "}", 0, "not a safetensors file", "0x20"},
	{"an unfinished object", "{" META, 0, "the file's header is not valid JSON", "at byte"},
	{"rubbish after the object", "{" META "} {", 0, "the file's header is not valid JSON",
	 "end of file expected"},
	{"a duplicate tensor",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
		"\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "not valid JSON",
		"duplicate object key"},
	{"a duplicate tensor, one name escaped",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
		"\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
		"not valid JSON", "duplicate object key"},
	{"a duplicate key in a tensor",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]}}",
	 4,
	 "not valid JSON", "duplicate object key"},
	{"a duplicate key in the metadata",
	 "{\"__metadata__\":{\"pg_posterior\":\"{}\",\"pg_posterior\":\"\"}}", 0, "not valid JSON",
	 "duplicate"},
	{"duplicate metadata", "{" META "," META "}", 0, "not valid JSON", "duplicate"},
	{"invalid UTF-8 in a name", "{" META ",\"\xc3(\":{}}", 0, "not valid JSON", "0xc3"},
	{"an overlong UTF-8 form", "{" META ",\"\xc0\x80\":{}}", 0, "not valid JSON", "0xc0"},
	{"a surrogate in UTF-8", "{" META ",\"\xed\xa0\x80\":{}}", 0, "not valid JSON", "0xed"},
	{"an escaped lone surrogate", "{" META ",\"\\ud800\":{}}", 0, "not valid JSON", "\\uD800"},
	{"NUL in a name", "{" META ",\"a\\u0000\":{}}", 0, "not valid JSON", "NUL"},
	{"NUL in the configuration", "{\"__metadata__\":{\"pg_posterior\":\"{}\\u0000\"}}", 0,
	 "not valid JSON", "\\u0000"},
	{"nine levels", "{" META ",\"a\":[[[[[[[[0]]]]]]]]}", 0,
	 "the file's header is nested too deeply", "9 levels, at most 8"},
	{"a hundred open brackets",
	 "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
	 "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 0,
	 "the file's header is nested too deeply", "at most 8"},
	/* metadata */
	{"no metadata", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
	 "the file has no configuration", "\"pg_posterior\""},
	{"an empty header object", "{}", 0, "the file has no configuration", NULL},
	{"metadata of others only", "{\"__metadata__\":{\"format\":\"pt\"}}", 0,
	 "the file has no configuration", NULL},
	{"metadata that is no object", "{\"__metadata__\":\"pg_posterior\"}", 0,
	 "the file has no configuration", NULL},
	{"a configuration that is no text", "{\"__metadata__\":{\"pg_posterior\":{}}}", 0,
	 "the file has no configuration", NULL},
	/* tensors */
	{"an empty name", "{" META ",\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
	 "a tensor's name is empty", NULL},
	{"a control character in a name",
	 "{" META ",\"a\\nb\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
	 "a tensor's name is empty or has control characters", "\"a?b\""},
	{"DEL in a name",
	 "{" META ",\"a\x7f\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
	 "control characters", NULL},
	{"a C1 control in a name",
	 "{" META ",\"a\xc2\x85\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
	 "control characters", NULL},
	{"a tensor that is no object", "{" META ",\"a\":[]}", 0, "tensor \"a\" is not described",
	 "dtype, shape, data_offsets"},
	{"a tensor without shape", "{" META ",\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4,
	 "tensor \"a\" is not described", NULL},
	{"a tensor with a further key",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":0}}", 4,
	 "is not described", NULL},
	{"a tensor with another key",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"offsets\":[0,4]}}", 4, "is not described",
	 NULL},
	{"dtype BF16", "{" META ",\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,2]}}", 2,
	 "tensor \"a\" has no usable dtype", "dtype is \"BF16\", known are F32, F16"},
	{"dtype F64", "{" META ",\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8,
	 "no usable dtype", "\"F64\""},
	{"dtype I32", "{" META ",\"a\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
	 "no usable dtype", "\"I32\""},
	{"dtype that is no text",
	 "{" META ",\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no usable dtype",
	 "dtype is 32"},
	{"shape that is no array",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4,
	 "no usable shape", "shape is 1"},
	{"shape of rank 9",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
	 "no usable shape", "an array of 9"},
	{"a size of zero",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[2,0],\"data_offsets\":[0,0]}}", 0,
	 "a size that is not a positive integer", "size 2 of its shape is 0"},
	{"a negative size",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4,
	 "not a positive integer", "is -1"},
	{"two negative sizes",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[-1,-1],\"data_offsets\":[0,4]}}", 4,
	 "not a positive integer", "is -1"},
	{"a fractional size",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4,
	 "not a positive integer", "is 1.5"},
	{"a size with an exponent",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1e0],\"data_offsets\":[0,4]}}", 4,
	 "not a positive integer", "is 1.0"},
	{"a size in quotes",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 4,
	 "not a positive integer", "\"1\""},
	{"a size beyond int64",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551617],\"data_offsets\":[0,4]}}",
	 4,
	 "not valid JSON", "too big integer"},
	{"a product that wraps to 1",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[4294967297,4294967295,4294967297,4294967295],"
		"\"data_offsets\":[0,4]}}", 4, "tensor \"a\" is too large", "more than 268435456"},
	{"the largest size",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807],\"data_offsets\":[0,4]}}",
	 4, "too large", NULL},
	{"a product that wraps to 0",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],"
	 "\"data_offsets\":[0,0]}}", 0,
	 "tensor \"a\" is too large", NULL},
	{"offsets that are no array",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":4}}", 4,
	 "no usable data_offsets", NULL},
	{"one offset", "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4,
	 "no usable data_offsets", NULL},
	{"three offsets", "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}",
	 8, "no usable data_offsets", NULL},
	{"a negative offset",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4,
	 "no usable data_offsets", NULL},
	{"a fractional offset",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0.5,4.5]}}", 8,
	 "no usable data_offsets", NULL},
	{"offsets that go back",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4,
	 "no usable data_offsets", NULL},
	{"truncated data", "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
	 7,
	 "tensor \"a\" lies beyond the end of the file",
	 "ends at byte 8 of the data, which has 7 bytes"},
	{"an offset near 2^63",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],"
	 "\"data_offsets\":[9223372036854775803,9223372036854775807]}}", 4,
	 "lies beyond the end", NULL},
	{"fewer bytes than the shape",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
	 "tensor \"a\" has data that does not match its shape",
	 "the data has 4 bytes, dtype and shape make 8"},
	{"more bytes than the shape",
	 "{" META ",\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
	 "does not match its shape", "the data has 8 bytes, dtype and shape make 4"},
	{"a range twice", "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
		"\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
		"overlaps another one", "begins at byte 0"},
	{"an overlap", "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
		"\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
	 "tensor \"b\" overlaps another one",
	 "begins at byte 4 of the data, the tensors before it end at 8"},
	{"a hole at the start",
	 "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
	 "a hole in the data before tensor \"a\"",
	 "begins at byte 4 of the data, the tensors before it end at 0"},
	{"a hole between", "{" META ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
		"\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 12,
		"a hole in the data before tensor \"b\"", "end at 4"},
	{"trailing bytes", "{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
	 5,
	 "the file has bytes after its last tensor", "1 of 5 bytes"},
	{"data without tensors", "{" META "}", 3, "the file has bytes after its last tensor",
	 "3 of 3 bytes"},
};

static void
expect_bad(const char *name, const unsigned char *bytes, size_t length, const char *message,
		   const char *detail)
{
	TnpFile		file;
	TnpError	error = {TNP_OK, "", ""};
	TnpStatus	status = tnp_file_open(&counting, bytes, length, &file, &error);
	bool		as_said = status == TNP_BAD_FILE && error.status == status &&
		strstr(error.message, message) != NULL &&
		(detail == NULL || strstr(error.detail, detail) != NULL);

	if (!ok(as_said, "refused: %s", name))
		diag("status %d, message \"%s\", detail \"%s\"", status, error.message, error.detail);
	if (!ok(held == 0, "  and nothing is held"))
		held = 0;
}

static void
test_bad_files(void)
{
	for (size_t i = 0; i < sizeof(bad_files) / sizeof(bad_files[0]); i++)
	{
		const BadFile *bad = &bad_files[i];
		size_t		length;
		unsigned char *bytes = make_file(bad->header, strlen(bad->header), bad->data_length,
										 &length);

		expect_bad(bad->name, bytes, length, bad->message, bad->detail);
		free(bytes);
	}
}

/* Files that are wrong before the header's text begins. */
static void
test_bad_starts(void)
{
	static const char good[] =
		"{" META ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
	static const unsigned char png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13};
	TnpFile		file;
	TnpError	error;
	size_t		length;
	unsigned char *bytes = make_file(good, sizeof(good) - 1, 4, &length);
	unsigned char *shorter;
	int			opened = 0;

	expect_bad("no bytes", bytes, 0, "not a safetensors file", "0 bytes");
	expect_bad("seven bytes", bytes, 7, "not a safetensors file", "7 bytes, too few");
	expect_bad("a picture", png, sizeof(png), "not a safetensors file", "header length");

	/* Every truncation of a good file, each in a block of its own. */
	for (size_t n = 0; n < length; n++)
	{
		shorter = malloc(n > 0 ? n : 1);
		memcpy(shorter, bytes, n);
		if (tnp_file_open(&counting, shorter, n, &file, &error) == TNP_OK)
		{
			opened++;
			tnp_file_close(&counting, &file);
		}
		free(shorter);
	}
	is_int(opened, 0, "no truncation of a file is read");
	is_int(held, 0, "and none leaves anything");

	memset(bytes, 0, 8);
	expect_bad("a header length of 0", bytes, length, "not a safetensors file",
			   "the header length is 0");
	memset(bytes, 0xff, 8);
	expect_bad("a header length of 2^64 - 1", bytes, length, "not a safetensors file",
			   "the header length is 18446744073709551615");
	memset(bytes, 0, 8);
	bytes[0] = (unsigned char) (length - 7);
	expect_bad("a header one byte longer than the file", bytes, length, "not a safetensors file",
			   "the header length is");
	free(bytes);
}

/* The limits that need large headers: 16 MiB of text, 100,000 tensors, two million values. */
static void
test_large_headers(void)
{
	const size_t max = (size_t) 16 << 20;
	char	   *header = malloc(max + 1);
	size_t		length,
				n;
	unsigned char *bytes;
	TnpFile		file;
	TnpError	error;

	memset(header, ' ', max + 1);
	memcpy(header, "{" META "}", strlen("{" META "}"));
	bytes = make_file(header, max, 0, &length);
	is_int(tnp_file_open(&counting, bytes, length, &file, &error), TNP_OK,
		   "a header of 16 MiB, padded with spaces, is read");
	tnp_file_close(&counting, &file);
	free(bytes);
	bytes = make_file(header, max + 1, 0, &length);
	expect_bad("a header above 16 MiB", bytes, length, "not a safetensors file",
			   "the header length is 16777217");
	free(bytes);

	n = (size_t) sprintf(header, "{" META);
	for (int i = 0; i < 100001; i++)
		n += (size_t) sprintf(header + n,
							  ",\"t%d\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
							  i, 4 * i, 4 * i + 4);
	header[n++] = '}';
	bytes = make_file(header, n, 400004, &length);
	expect_bad("more than 100,000 tensors", bytes, length, "the file has too many tensors",
			   "it has 100001, at most 100000");
	free(bytes);

	n = (size_t) sprintf(header, "{\"a\":[0");
	while (n < 5000000)
		n += (size_t) sprintf(header + n, ",0");
	n += (size_t) sprintf(header + n, "]}");
	bytes = make_file(header, n, 0, &length);
	expect_bad("millions of values", bytes, length, "the file's header has too many values",
			   "at most 2000000");
	free(bytes);
	free(header);
}

static void
test_good_files(void)
{
	static const char header[] =
		"{\"z\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[28,34]},"
	 "\"a.weight\":{\"shape\":[2,3],\"dtype\":\"F32\",\"data_offsets\":[0,24]},"
	 "\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[24,28]},"
	 "\"__metadata__\":{\"format\":\"pt\",\"pg_posterior\":\"{\\\"width\\\": 8}\"}}    ";
	size_t		length;
	unsigned char *bytes = make_file(header, sizeof(header) - 1, 34, &length);
	const unsigned char *data = bytes + 8 + sizeof(header) - 1;
	const TnpFileTensor *t;
	TnpFile		file;
	TnpError	error;

	is_int(tnp_file_open(&counting, bytes, length, &file, &error), TNP_OK,
		   "a file of three tensors is read");
	is_int(file.n_tensors, 3, "it has three tensors");
	is_string(file.config, "{\"width\": 8}", "the configuration is the metadata's text");
	is_int((long long) file.config_length, 12, "of its length");
	t = tnp_file_find(&file, "a.weight");
	ok(t != NULL && !t->half && t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 3 &&
	   t->n_elements == 6 && t->data == data, "a.weight");
	t = tnp_file_find(&file, "scalar");
	ok(t != NULL && t->rank == 0 && t->n_elements == 1 && t->data == data + 24,
	   "a scalar has rank 0 and one element");
	t = tnp_file_find(&file, "z");
	ok(t != NULL && t->half && t->n_elements == 3 && t->data == data + 28, "z");
	ok(tnp_file_find(&file, "a") == NULL && tnp_file_find(&file, "zz") == NULL &&
	   tnp_file_find(&file, "") == NULL &&
	   tnp_file_find(&file, "__metadata__") == NULL, "other names are not found");
	tnp_file_close(&counting, &file);
	is_int(held, 0, "closing gives everything back");
	free(bytes);

	bytes = make_file("{" META "}", strlen("{" META "}"), 0, &length);
	is_int(tnp_file_open(&counting, bytes, length, &file, &error), TNP_OK,
		   "a file without tensors is read");
	ok(file.n_tensors == 0 && tnp_file_find(&file, "a") == NULL, "and has none");
	tnp_file_close(&counting, &file);
	free(bytes);
	is_int(held, 0, "closing gives everything back");
}

/* A tensor over bytes that a test wrote. */
static TnpFileTensor
raw_tensor(bool half, int64_t n, const unsigned char *data)
{
	TnpFileTensor t = {NULL, half, 1, {n}, n, data};

	return t;
}

static void
test_widen_half(void)
{
	static unsigned char all[2 * 65536 + 1];
	unsigned char *data = all + 1;	/* unaligned on purpose */
	int			wrong = 0,
				refused = 0,
				not_finite = 0;

	for (int i = 0; i < 65536; i++)
	{
		data[2 * i] = (unsigned char) i;
		data[2 * i + 1] = (unsigned char) (i >> 8);
	}
	for (int i = 0; i < 65536; i++)
	{
		TnpFileTensor t = raw_tensor(true, 65536, data);
		int			exponent = (i >> 10) & 0x1f;
		double		fraction = i & 0x3ff;
		double		expected = exponent == 0 ? ldexp(fraction, -24)
			: ldexp(1024 + fraction, exponent - 25);
		float		got = 0;

		if (exponent == 0x1f)
		{
			not_finite++;
			refused += !tnp_file_widen(&t, i, 1, &got);
			continue;
		}
		if (i & 0x8000)
			expected = -expected;
		if (!tnp_file_widen(&t, i, 1, &got) || got != (float) expected ||
			!signbit(got) != !signbit(expected))
			wrong++;
	}
	is_int(wrong, 0, "all finite float16 values widen exactly, signs of zero and subnormals "
					 "included");
	is_int(refused, not_finite, "all float16 infinities and NaN are refused");
}

static void
test_widen_single(void)
{
	static const float values[] = {0.0f, -0.0f, 1.0f, -1.5f, 3.4028234e38f, 1e-45f, 1.1754944e-38f,
								   0.1f};
	static const uint32_t bad[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff};
	unsigned char data[1 + 4 * 8] = {0};
	float		out[8];
	TnpFileTensor t = raw_tensor(false, 8, data + 1);

	for (int i = 0; i < 8; i++)
	{
		uint32_t	bits;

		memcpy(&bits, &values[i], 4);
		for (int j = 0; j < 4; j++)
			data[1 + 4 * i + j] = (unsigned char) (bits >> (8 * j));
	}
	ok(tnp_file_widen(&t, 0, 8, out) && memcmp(out, values, sizeof(values)) == 0,
	   "float32 values are what they are, unaligned too");
	ok(tnp_file_widen(&t, 3, 2, out) && out[0] == values[3] && out[1] == values[4],
	   "from the middle");
	for (int i = 0; i < 5; i++)
	{
		for (int j = 0; j < 4; j++)
			data[1 + 4 * 6 + j] = (unsigned char) (bad[i] >> (8 * j));
		ok(!tnp_file_widen(&t, 0, 8, out), "0x%08x is refused", bad[i]);
		ok(tnp_file_widen(&t, 0, 6, out) && tnp_file_widen(&t, 7, 1, out),
		   "and its neighbours are not");
	}
}

int
main(void)
{
	test_good_files();
	test_bad_files();
	test_bad_starts();
	/* many of what the others have few of */
	if (getenv("TNP_QUICK") == NULL)
		test_large_headers();
	test_widen_half();
	test_widen_single();
	return done_testing();
}
