/*
 * context_sums.c: contexts with sums as values: made, sent and received.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/context_sums.h"

#include "libpq/pqformat.h"
#include "miscadmin.h"

PosteriorContext *
posterior_make_sums(int n_targets, int n_features, const uint8 *kinds, Size n_basis,
					const int64 *basis, Size n_sums, int64 n)
{
	Size		size = offsetof(PosteriorContext, kinds) + MAXALIGN64(n_features)
		+ (1 + n_basis + n_sums) * sizeof(int64);
	PosteriorContext *c;
	int64	   *words;

	Assert((n == 0) == (n_sums == 0));
	c = palloc0(size);
	SET_VARSIZE(c, size);
	c->version = POSTERIOR_CONTEXT_SUMS;
	c->n_labels = n_targets > 1 ? n_targets : 0;
	c->n_features = n_features;
	c->n = n;
	memcpy(c->kinds, kinds, n_features);
	words = (int64 *) posterior_context_words(c);
	words[0] = (int64) n_basis;
	memcpy(words + 1, basis, n_basis * sizeof(int64));
	return c;
}

void
posterior_send_sums(StringInfo buffer, const PosteriorContext *c)
{
	const int64 *words = posterior_context_words(c);
	Size		n = posterior_context_n_words(c);
	int			targets = posterior_context_targets(c);

	pq_sendint8(buffer, targets > 1 ? POSTERIOR_CONTEXT_SUMS_SEVERAL : POSTERIOR_CONTEXT_SUMS);
	pq_sendint16(buffer, c->n_features);
	pq_sendint64(buffer, c->n);
	if (targets > 1)
		pq_sendint8(buffer, targets);
	pq_sendbytes(buffer, (const char *) c->kinds, c->n_features);
	for (Size i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		pq_sendint64(buffer, words[i]);
	}
}

PosteriorContext *
posterior_receive_sums(StringInfo buffer)
{
	int			n_features,
				targets;
	int64		n,
				n_words,
				n_basis;
	const char *kinds;
	PosteriorContext *c;
	int64	   *words;
	bool		several = pq_getmsgbyte(buffer) == POSTERIOR_CONTEXT_SUMS_SEVERAL;

	n_features = (int) pq_getmsgint(buffer, 2);
	n = pq_getmsgint64(buffer);
	targets = several ? pq_getmsgbyte(buffer) : 1;
	if (several && (targets < 2 || targets > TNP_MAX_TARGETS))
		posterior_bad_context(psprintf("%d targets are not several.", targets));
	n_words = ((int64) buffer->len - buffer->cursor - n_features) / 8;
	if (n_features < 1 || n < 0 || n_words < 2
		|| buffer->len - buffer->cursor != n_features + n_words * 8)
		posterior_bad_context("The length of the sums is wrong.");
	kinds = pq_getmsgbytes(buffer, n_features);
	for (int f = 0; f < n_features; f++)
		if (kinds[f] < POSTERIOR_NUMBER || kinds[f] > POSTERIOR_LAST_KIND)
			posterior_bad_context(
				psprintf("Column %d has the unknown kind %d.", f + 1, kinds[f]));
	n_basis = pq_getmsgint64(buffer);
	if (n_basis < 1 || n_basis > n_words - 1 || (n == 0) != (n_basis == n_words - 1))
		posterior_bad_context("The length of the basis is wrong.");
	words = palloc(n_basis * sizeof(int64));
	for (int64 i = 0; i < n_basis; i++)
		words[i] = pq_getmsgint64(buffer);
	c = posterior_make_sums(targets, n_features, (const uint8 *) kinds, n_basis, words,
							n_words - 1 - n_basis, n);
	pfree(words);
	words = (int64 *) posterior_sums(c);
	for (int64 i = 0; i < n_words - 1 - n_basis; i++)
	{
		CHECK_FOR_INTERRUPTS();
		words[i] = pq_getmsgint64(buffer);
	}
	if (n > 0 && words[0] != n)
		posterior_bad_context("The number of rows is not that of the sums.");
	return c;
}
