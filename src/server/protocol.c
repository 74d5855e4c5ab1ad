/*
 * protocol.c: writes and reads messages. Everything that is read is checked against the bytes that
 * are there, so that no count in a message can make the reader look beyond it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server/protocol.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PADDED(n) (((uint64_t) (n) + 7) & ~(uint64_t) 7)

/* Fill *error; the status is TNP_BAD_ARGUMENT. */
static TnpStatus TNP_PRINTF(2, 3)
message_malformed(TnpError *error, const char *format,...)
{
	va_list		args;

	error->status = TNP_BAD_ARGUMENT;
	snprintf(error->message, sizeof(error->message), "malformed message");
	va_start(args, format);
	vsnprintf(error->detail, sizeof(error->detail), format, args);
	va_end(args);
	return TNP_BAD_ARGUMENT;
}

/* FNV-1a. */
static uint32_t
header_sum(const TnpHeader *header)
{
	const unsigned char *bytes = (const unsigned char *) header;
	uint32_t	hash = 2166136261U;

	for (size_t i = 0; i < offsetof(TnpHeader, sum); i++)
		hash = (hash ^ bytes[i]) * 16777619U;
	return hash;
}

TnpHeader
tnp_wire_header(TnpMessage kind, uint64_t id, uint64_t length, bool file)
{
	TnpHeader	header;

	memset(&header, 0, sizeof(header));
	header.magic = TNP_WIRE_MAGIC;
	header.version = TNP_WIRE_VERSION;
	header.kind = (uint16_t) kind;
	header.id = id;
	header.length = length;
	header.flags = file ? TNP_WIRE_FILE : 0;
	header.sum = header_sum(&header);
	return header;
}

TnpStatus
tnp_wire_check_header(const TnpHeader *header, bool *foreign, TnpError *error)
{
	*foreign = false;
	if (header->magic != TNP_WIRE_MAGIC)
		return message_malformed(error, "it begins with %08x", (unsigned) header->magic);
	if (header->version != TNP_WIRE_VERSION)
	{
		*foreign = true;
		error->status = TNP_BAD_ARGUMENT;
		snprintf(error->message, sizeof(error->message),
				 "the server and its client are of different versions");
		snprintf(error->detail, sizeof(error->detail),
				 "protocol version %u was received, %d is spoken here", header->version,
				 TNP_WIRE_VERSION);
		return TNP_BAD_ARGUMENT;
	}
	if (header->sum != header_sum(header))
		return message_malformed(error, "the sum of its header is wrong");
	if ((header->flags & ~TNP_WIRE_FILE) != 0)
		return message_malformed(error, "flags %x are not known", (unsigned) header->flags);
	if (header->length > ((header->flags & TNP_WIRE_FILE) != 0 ? TNP_WIRE_MAX
						  : TNP_WIRE_MAX_INLINE))
		return message_malformed(error, "a payload of %llu bytes is too long",
								 (unsigned long long) header->length);
	return TNP_OK;
}

/* ---- requests -------------------------------------------------------------------------------- */

uint64_t
tnp_wire_request_length(const TnpWireRequest *a)
{
	if (a->n_features < 0 || a->n_features > TNP_WIRE_MAX_FEATURES || a->n_levels < 0
		|| a->n_levels > TNP_MAX_LEVELS || a->given < 0 || a->given > TNP_WIRE_MAX_ROWS
		|| a->queries < 0 || a->queries > TNP_WIRE_MAX_ROWS)
		return 0;
	return sizeof(TnpWireRequest) + PADDED(a->n_features)
		+ sizeof(double) * ((uint64_t) a->n_levels + (uint64_t) a->given * (a->n_features + 1)
							+ (uint64_t) a->queries *
							(a->n_features + ((a->flags & TNP_EXECUTE_TARGETS) != 0 ? 1 : 0)));
}

/* What is wrong with the numbers of a request, or NULL. */
static const char *
request_objection(const TnpWireRequest *a)
{
	bool		targets = (a->flags & TNP_EXECUTE_TARGETS) != 0;

	if ((a->flags & ~(uint32_t) (TNP_EXECUTE_OWN | TNP_EXECUTE_TARGETS)) != 0)
		return "unknown flags";
	if (a->n_classes < 0 || a->n_classes > TNP_WIRE_MAX_CLASSES)
		return "number of classes out of range";
	if (a->rows < 0 || a->rows > TNP_WIRE_MAX_ROWS || a->prefix < 0 || a->prefix > a->rows
		|| a->capacity < 0 || a->capacity > TNP_WIRE_MAX_ROWS)
		return "numbers of rows out of range";
	if (a->first < 0 || a->first > a->rows || a->given > a->rows - a->first)
		return "more rows given than asked about";
	if (a->before < TNP_UNNUMBERED || a->before > INT64_MAX - TNP_WIRE_MAX_ROWS)
		return "queries of no table";
	switch (a->kind)
	{
		case TNP_REQUEST_PREDICT:
			if (targets || a->reductions != 0 || a->n_levels != 0)
				return "a prediction with targets or reductions";
			return a->draws != 0 || a->orders != 0 ? "a prediction with draws or orders" : NULL;
		case TNP_REQUEST_REDUCE:
			if (a->reductions == 0
				|| a->reductions > (TNP_REDUCE_MEAN | TNP_REDUCE_SD | TNP_REDUCE_QUANTILES |
													   TNP_REDUCE_LOG_DENSITY))
				return "unknown reductions";
			if (((a->reductions & TNP_REDUCE_QUANTILES) != 0) != (a->n_levels > 0))
				return "quantiles without levels, or levels without quantiles";
			if (((a->reductions & TNP_REDUCE_LOG_DENSITY) != 0) != targets)
				return "log densities without targets, or targets without log densities";
			return a->draws != 0 || a->orders != 0 ? "a prediction with draws or orders" : NULL;
		case TNP_REQUEST_SAMPLE:
			if (targets || a->reductions != 0 || a->n_levels != 0 || a->orders != 0)
				return "draws with targets, reductions or orders";
			return a->draws < 1 || a->draws > TNP_WIRE_MAX_ROWS ? "number of draws out of range"
				: NULL;
		case TNP_REQUEST_JOINT:
			if (targets || a->reductions != 0 || a->n_levels != 0)
				return "a joint distribution with targets or reductions";
			return a->draws != 0 || a->orders != 0 ? "a joint distribution with draws or orders"
				: NULL;
		case TNP_REQUEST_SCORE:
			if (!targets || a->reductions != 0 || a->n_levels != 0 || a->draws != 0)
				return "a density without targets, or with reductions or draws";
			return a->orders < TNP_AS_APPENDED
				|| a->orders > TNP_WIRE_MAX_ROWS ? "number of orders out of range"
				: NULL;
		default:
			return "unknown kind of request";
	}
}

TnpStatus
tnp_wire_read_request(const void *payload, uint64_t length, TnpWireQuery *q, TnpError *error)
{
	const TnpWireRequest *a = payload;
	const unsigned char *kinds;
	const double *numbers;
	const char *wrong;

	if (length < sizeof(TnpWireRequest))
		return message_malformed(error, "a request of %llu bytes", (unsigned long long) length);
	if (tnp_wire_request_length(a) != length)
		return message_malformed(error, "a request of %llu bytes has %llu",
								 (unsigned long long) tnp_wire_request_length(a),
								 (unsigned long long) length);
	if ((wrong = request_objection(a)) != NULL)
		return message_malformed(error, "%s", wrong);
	kinds = (const unsigned char *) payload + sizeof(TnpWireRequest);
	for (int f = 0; f < a->n_features; f++)
	{
		if (kinds[f] > TNP_CATEGORICAL)
			return message_malformed(error, "feature %d is of unknown kind %d", f + 1, kinds[f]);
		q->kinds[f] = (TnpColumnKind) kinds[f];
	}
	numbers = (const double *) (kinds + PADDED(a->n_features));
	q->request = a;
	q->levels = numbers;
	for (int i = 0; i < a->n_levels; i++)
		if (!(numbers[i] >= 0 && numbers[i] <= 1))
			return message_malformed(error, "level %d of the quantiles is not between 0 and 1",
									 i + 1);
	numbers += a->n_levels;
	q->given = (TnpRows) {a->given, a->n_features, q->kinds, numbers,
						  numbers + a->given * a->n_features, a->n_classes, a->first, 1};
	numbers += a->given * (a->n_features + 1);
	q->queries = (TnpRows) {a->queries, a->n_features, q->kinds, numbers, NULL, a->n_classes,
							a->before, 1};
	if ((a->flags & TNP_EXECUTE_TARGETS) != 0)
		q->queries.y = numbers + a->queries * a->n_features;
	return TNP_OK;
}

void
tnp_wire_write_request(const TnpWireRequest *a, const TnpRows *given, const TnpRows *queries,
					   const double *levels, void *to)
{
	unsigned char *kinds = (unsigned char *) to + sizeof(TnpWireRequest);
	double	   *numbers = (double *) (kinds + PADDED(a->n_features));
	const TnpColumnKind *known = given->kinds != NULL ? given->kinds : queries->kinds;

	memcpy(to, a, sizeof(TnpWireRequest));
	memset(kinds, 0, PADDED(a->n_features));
	for (int f = 0; known != NULL && f < a->n_features; f++)
		kinds[f] = (unsigned char) known[f];
	if (a->n_levels > 0)
		memcpy(numbers, levels, (size_t) a->n_levels * sizeof(double));
	numbers += a->n_levels;
	if (a->given > 0)
	{
		memcpy(numbers, given->x, (size_t) a->given * a->n_features * sizeof(double));
		memcpy(numbers + a->given * a->n_features, given->y, (size_t) a->given * sizeof(double));
		numbers += a->given * (a->n_features + 1);
	}
	if (a->queries > 0)
	{
		memcpy(numbers, queries->x, (size_t) a->queries * a->n_features * sizeof(double));
		if ((a->flags & TNP_EXECUTE_TARGETS) != 0)
			memcpy(numbers + a->queries * a->n_features, queries->y,
				   (size_t) a->queries * sizeof(double));
	}
}

bool
tnp_wire_answer_length(const TnpWireRequest *a, TnpDistributionKind kind, int components,
					   uint64_t *length)
{
	uint64_t	n = (uint64_t) a->queries,
				width = 1;

	switch (a->kind)
	{
		case TNP_REQUEST_PREDICT:
			width = (uint64_t) tnp_distribution_size(kind, components);
			break;
		case TNP_REQUEST_REDUCE:
			{
				TnpRequest	r = {.reductions = a->reductions,.n_levels = a->n_levels};

				width = (uint64_t) tnp_reduction_width(&r);
				break;
			}
		case TNP_REQUEST_SAMPLE:
			width = (uint64_t) a->draws;
			break;
		case TNP_REQUEST_JOINT:
			width = n + 1;
			break;
		default:
			n = n > 0 ? 1 : 0;
			break;
	}
	if (width != 0 && n > TNP_WIRE_MAX_ANSWER / sizeof(double) / width)
		return false;
	*length = n * width * sizeof(double);
	return true;
}

/* ---- the others ------------------------------------------------------------------------------ */

TnpStatus
tnp_wire_read_load(const void *payload, uint64_t length, const TnpWireLoad **load,
				   const void **file, TnpError *error)
{
	*load = payload;
	if (length < sizeof(TnpWireLoad) || (*load)->length > length
		|| PADDED((*load)->length) != length - sizeof(TnpWireLoad))
		return message_malformed(error, "a model in %llu bytes", (unsigned long long) length);
	*file = *load + 1;
	return TNP_OK;
}

TnpWireFailure
tnp_wire_failure(TnpStatus status, bool fault, const TnpError *error)
{
	TnpWireFailure f;

	memset(&f, 0, sizeof(f));
	f.status = status;
	f.fault = fault;
	/* bytes behind the ends of the texts are not compared */
	snprintf(f.message, sizeof(f.message), "%s", error->message);
	snprintf(f.detail, sizeof(f.detail), "%s", error->detail);
	return f;
}

TnpStatus
tnp_wire_read_failure(const void *payload, uint64_t length, bool *fault, TnpError *error)
{
	const TnpWireFailure *f = payload;

	if (length != sizeof(TnpWireFailure)
		|| f->status == TNP_OK || f->status > TNP_NOT_HERE || f->fault > 1
		|| f->message[0] == '\0' || memchr(f->message, 0, sizeof(f->message)) == NULL
		|| memchr(f->detail, 0, sizeof(f->detail)) == NULL)
		return message_malformed(error, "an error without a text");
	*fault = f->fault != 0;
	error->status = (TnpStatus) f->status;
	memcpy(error->message, f->message, sizeof(error->message));
	memcpy(error->detail, f->detail, sizeof(error->detail));
	return TNP_OK;
}

void
tnp_wire_end_welcome(TnpWireWelcome *w)
{
	w->provider[sizeof(w->provider) - 1] = '\0';
	w->name[sizeof(w->name) - 1] = '\0';
	w->version[sizeof(w->version) - 1] = '\0';
}
