/*
 * protocol_test.c: messages between sessions and the server: what is written is read again, and
 * what is malformed is refused.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>

#include "server/protocol.h"
#include "tap.h"

static const TnpColumnKind kinds[3] = {TNP_NUMERIC, TNP_CATEGORICAL, TNP_NUMERIC};
static const double levels[2] = {0.1, 0.9};
static const double x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const double y[4] = {0.1, 0.2, 0.3, 0.4};

/* A request of every part: 4 rows given of 10, 2 queries with targets. */
static TnpWireRequest
example(void)
{
	TnpWireRequest	a;

	memset(&a, 0, sizeof(a));
	a.model[0] = 7;
	a.key = (TnpWireKey) {1, 2};
	a.rows = 10;
	a.prefix = 8;
	a.first = 6;
	a.given = 4;
	a.capacity = 20;
	a.queries = 2;
	a.before = 70;
	a.n_features = 3;
	a.kind = TNP_REQUEST_REDUCE;
	a.reductions = TNP_REDUCE_MEAN | TNP_REDUCE_QUANTILES | TNP_REDUCE_LOG_DENSITY;
	a.n_levels = 2;
	a.flags = TNP_EXECUTE_TARGETS;
	a.n_classes = 3;
	return a;
}

static void *
write_example(const TnpWireRequest *a, uint64_t *length)
{
	void	   *bytes;

	*length = tnp_wire_request_length(a);
	bytes = malloc((size_t) *length);
	tnp_wire_write_request(a, &(TnpRows) {4, 3, kinds, x, y, 3, 0, 1},
						   &(TnpRows) {2, 3, kinds, x + 3, y + 1, 0, 0, 1}, levels, bytes);
	return bytes;
}

static void
test_headers(void)
{
	TnpHeader	h = tnp_wire_header(TNP_EXECUTE, 42, 1000, true),
				bad;
	TnpError	error;
	bool		foreign;

	ok(sizeof(TnpHeader) == 32, "a header has 32 bytes");
	ok(tnp_wire_check_header(&h, &foreign, &error) == TNP_OK && !foreign,
	   "a header is read as it was written");
	for (size_t i = 0; i < sizeof(TnpHeader); i++)
	{
		bad = h;
		((unsigned char *) &bad)[i] ^= 0x10;
		ok(tnp_wire_check_header(&bad, &foreign, &error) == TNP_BAD_ARGUMENT &&
		   error.message[0] != '\0', "another byte %zu is refused", i);
	}
	bad = h;
	bad.version++;
	ok(tnp_wire_check_header(&bad, &foreign, &error) != TNP_OK && foreign,
	   "another version is told as such");
	contains(error.detail, "protocol version 4 was received, 3 is spoken here",
			 "with both numbers");
	h = tnp_wire_header(TNP_EXECUTE, 1, TNP_WIRE_MAX + 1, true);
	ok(tnp_wire_check_header(&h, &foreign, &error) != TNP_OK,
	   "a payload that is too long is refused");
	h = tnp_wire_header(TNP_EXECUTE, 1, TNP_WIRE_MAX_INLINE + 1, false);
	ok(tnp_wire_check_header(&h, &foreign, &error) != TNP_OK, "and one that is too long to follow");
}

static void
test_requests(void)
{
	static TnpWireQuery q;
	TnpWireRequest	a = example();
	uint64_t	length;
	TnpError	error;
	void	   *bytes = write_example(&a, &length);

	ok(tnp_wire_read_request(bytes, length, &q, &error) == TNP_OK, "a question is read");
	ok(memcmp(q.request, &a, sizeof(a)) == 0, "its numbers");
	ok(q.given.n == 4 && q.given.n_features == 3 && q.given.n_classes == 3 &&
	   memcmp(q.given.x, x, sizeof(x)) == 0 && memcmp(q.given.y, y, sizeof(y)) == 0, "its rows");
	ok(q.queries.n == 2 && memcmp(q.queries.x, x + 3, 6 * sizeof(double)) == 0 &&
	   memcmp(q.queries.y, y + 1, 2 * sizeof(double)) == 0, "its queries");
	ok(q.given.before == a.first && q.queries.before == 70, "and what comes before these");
	ok(q.kinds[0] == TNP_NUMERIC && q.kinds[1] == TNP_CATEGORICAL &&
	   memcmp(q.levels, levels, sizeof(levels)) == 0, "kinds and levels");
	for (uint64_t shorter = 0; shorter < length; shorter += 8)
		if (tnp_wire_read_request(bytes, shorter, &q, &error) == TNP_OK)
			ok(false, "a request of %llu bytes is refused", (unsigned long long) shorter);
	ok(tnp_wire_read_request(bytes, length + 8, &q, &error) != TNP_OK,
	   "a request with something after it is refused");
	((unsigned char *) bytes)[sizeof(TnpWireRequest) + 1] = 2;
	ok(tnp_wire_read_request(bytes, length, &q, &error) != TNP_OK,
	   "an unknown kind of feature is refused");
	free(bytes);
}

#define REFUSED(change, name) do { \
		TnpWireRequest	a = example(); \
		static TnpWireQuery q; \
		TnpError	error; \
		unsigned char *bytes; \
		uint64_t	length; \
		change; \
		length = tnp_wire_request_length(&a); \
		bytes = calloc(1, length > 0 && length < 1000000 ? length : sizeof(a)); \
		memcpy(bytes, &a, sizeof(a)); \
		ok(tnp_wire_read_request(bytes, length > 0 && length < 1000000 ? length : sizeof(a), &q, \
								 &error) == TNP_BAD_ARGUMENT && error.detail[0] != '\0', \
		   name " is refused"); \
		free(bytes); \
	} while (0)

static void
test_refusals(void)
{
	REFUSED(a.rows = -1, "a negative number of rows");
	REFUSED(a.rows = INT64_MAX, "a monstrous number of rows");
	REFUSED(a.prefix = 11, "a prefix beyond the rows");
	REFUSED(a.prefix = -1, "a negative prefix");
	REFUSED(a.first = 7, "more rows than are asked about");
	REFUSED(a.first = -1, "a negative first row");
	REFUSED(a.given = -1, "a negative number of given rows");
	REFUSED(a.given = INT64_MAX, "a monstrous number of given rows");
	REFUSED(a.queries = -1, "a negative number of queries");
	REFUSED(a.queries = INT64_MAX / 8, "a monstrous number of queries");
	REFUSED(a.before = TNP_UNNUMBERED - 1, "queries before all");
	REFUSED(a.before = INT64_MAX, "queries behind all");
	REFUSED(a.n_features = -1, "a negative number of features");
	REFUSED(a.n_features = 5000, "too many features");
	REFUSED(a.n_levels = 65, "too many levels");
	REFUSED(a.n_levels = 0, "quantiles without levels");
	REFUSED(a.reductions = 0, "no reduction");
	REFUSED(a.reductions = 31, "an unknown reduction");
	REFUSED(a.kind = 9, "an unknown kind of request");
	REFUSED(a.kind = TNP_REQUEST_PREDICT, "a prediction with reductions");
	REFUSED(a.flags = 0, "a log density without targets");
	REFUSED(a.flags |= 8, "an unknown flag");
	REFUSED(a.n_classes = -1, "a negative number of classes");
	REFUSED(a.n_classes = 1 << 20, "too many classes");
	REFUSED((a.kind = TNP_REQUEST_SAMPLE, a.reductions = 0, a.n_levels = 0, a.flags = 0,
			 a.draws = 0), "no draw");
	REFUSED((a.kind = TNP_REQUEST_SCORE, a.reductions = 0, a.n_levels = 0,
			 a.orders = TNP_AS_APPENDED - 1),
			"a number of orders below that of appending");
	REFUSED((a.kind = TNP_REQUEST_JOINT, a.reductions = 0, a.n_levels = 0),
			"a joint distribution with targets");
	REFUSED((a.kind = TNP_REQUEST_JOINT, a.reductions = 0, a.n_levels = 0, a.flags = 0,
			 a.draws = 1), "one with draws");
	{
		TnpWireRequest	a = example();
		double		bad[2] = {0.5, NAN};
		uint64_t	length = tnp_wire_request_length(&a);
		void	   *bytes = malloc((size_t) length);
		static TnpWireQuery q;
		TnpError	error;

		tnp_wire_write_request(&a, &(TnpRows) {4, 3, kinds, x, y, 3, 0, 1},
							   &(TnpRows) {2, 3, kinds, x, y, 3, 0, 1}, bad, bytes);
		ok(tnp_wire_read_request(bytes, length, &q, &error) != TNP_OK,
		   "a level that is no number is refused");
		free(bytes);
	}
}

static void
test_answers(void)
{
	TnpWireRequest	a = example();
	uint64_t	length;

	ok(tnp_wire_answer_length(&a, TNP_GAUSSIAN, 1, &length) && length == 2 * 4 * 8,
	   "mean, two quantiles and a density of two queries");
	a.kind = TNP_REQUEST_PREDICT;
	ok(tnp_wire_answer_length(&a, TNP_MIXTURE, 20, &length) && length == 2 * 60 * 8,
	   "two mixtures of 20");
	a.kind = TNP_REQUEST_SAMPLE;
	a.draws = TNP_WIRE_MAX_ROWS;
	a.queries = TNP_WIRE_MAX_ROWS;
	ok(!tnp_wire_answer_length(&a, TNP_GAUSSIAN, 1, &length),
	   "more draws than there can be are refused");
	a.draws = TNP_WIRE_MAX_ANSWER / sizeof(double);
	a.queries = 1;
	ok(tnp_wire_answer_length(&a, TNP_GAUSSIAN, 1, &length) && length == TNP_WIRE_MAX_ANSWER,
	   "the longest answer");
	a.draws++;
	ok(!tnp_wire_answer_length(&a, TNP_GAUSSIAN, 1, &length), "one draw more is refused");
	a.draws = 3;
	a.queries = 5;
	ok(tnp_wire_answer_length(&a, TNP_GAUSSIAN, 1, &length) && length == 15 * 8,
	   "three draws of five");
	a.kind = TNP_REQUEST_SCORE;
	ok(tnp_wire_answer_length(&a, TNP_GAUSSIAN, 1, &length) && length == 8, "one density");
	a.kind = TNP_REQUEST_JOINT;
	ok(tnp_wire_answer_length(&a, TNP_GAUSSIAN, 1, &length) && length == 30 * 8,
	   "five means and their covariances");
	a.queries = 20000;
	ok(!tnp_wire_answer_length(&a, TNP_GAUSSIAN, 1, &length),
	   "a covariance that is too large is refused");
}

static void
test_others(void)
{
	TnpError	error = {TNP_BAD_VALUE, "something", "a detail"},
				got;
	TnpWireFailure f = tnp_wire_failure(TNP_BAD_VALUE, true, &error);
	bool		fault;
	struct
	{
		TnpWireLoad load;
		char		bytes[16];
	}			model = {{{1}, 11}, "0123456789"};
	const TnpWireLoad *load;
	const void *file;

	ok(tnp_wire_read_failure(&f, sizeof(f), &fault, &got) == TNP_OK && fault &&
	   got.status == TNP_BAD_VALUE, "a failure is read");
	is_string(got.message, "something", "its message");
	is_string(got.detail, "a detail", "its detail");
	ok(tnp_wire_read_failure(&f, sizeof(f) - 1, &fault, &got) != TNP_OK, "a short one is refused");
	f.status = 0;
	ok(tnp_wire_read_failure(&f, sizeof(f), &fault, &got) != TNP_OK,
	   "one without a failure is refused");
	f.status = TNP_BAD_VALUE;
	memset(f.message, 'x', sizeof(f.message));
	ok(tnp_wire_read_failure(&f, sizeof(f), &fault, &got) != TNP_OK,
	   "a text without an end is refused");
	ok(tnp_wire_read_load(&model, sizeof(model), &load, &file, &got) == TNP_OK &&
	   load->length == 11 && memcmp(file, "0123456789", 11) == 0, "a model is read");
	model.load.length = 17;
	ok(tnp_wire_read_load(&model, sizeof(model), &load, &file, &got) != TNP_OK,
	   "a length that does not fit is refused");
	model.load.length = UINT64_MAX;
	ok(tnp_wire_read_load(&model, sizeof(model), &load, &file, &got) != TNP_OK,
	   "nor one beyond everything");
	ok(tnp_wire_read_load(&model, 8, &load, &file, &got) != TNP_OK, "nor half a message");
}

static void
test_parcels(void)
{
	TnpParcel	parcel;
	int			file;
	char		bytes[10000];

	if (!tnp_parcel_files())
		return;
	memset(bytes, 'x', sizeof(bytes));
	file = tnp_parcel_send("head", 4, bytes, sizeof(bytes));
	ok(file >= 0, "a memory file is made");
	ok(ftruncate(file, 0) != 0 && write(file, "y", 1) < 0, "and no process can change it");
	ok(tnp_parcel_receive(dup(file), sizeof(bytes) + 4, &parcel) &&
	   memcmp(parcel.bytes, "headxxxx", 8) == 0, "it is mapped");
	tnp_parcel_free(&parcel);
	ok(!tnp_parcel_receive(file, sizeof(bytes), &parcel) && parcel.bytes == NULL,
	   "one of another size is refused");
	file = open("/dev/null", O_RDONLY);
	ok(!tnp_parcel_receive(file, 0, &parcel), "another kind of file is refused");
	{
		char		name[] = "/tmp/pg_posterior_parcel_XXXXXX";

		file = mkstemp(name);
		unlink(name);
		ok(write(file, bytes, 100) == 100 && !tnp_parcel_receive(file, 100, &parcel),
		   "and one that could be truncated while it is read");
	}
	file = tnp_parcel_send(NULL, 0, NULL, 0);
	ok(tnp_parcel_receive(file, 0, &parcel) && parcel.bytes == NULL, "an empty one");
}

int
main(void)
{
	test_headers();
	test_requests();
	test_refusals();
	test_answers();
	test_others();
	test_parcels();
	return done_testing();
}
