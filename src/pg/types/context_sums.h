/*
 * context_sums.h: values of type posterior.context that have sums of rows (docs/sums.md): their
 * size does not depend on the number of rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CONTEXT_SUMS_H
#define POSTERIOR_CONTEXT_SUMS_H

#include "pg/types/context_value.h"

/*
 * After the columns' kinds, padded, such a value has words: the number of words of its basis,
 * these, and unless it has no rows those of the sums. What they mean is the engine's
 * (engine/tnp.h), and is checked where a model is at hand.
 */
static inline const int64 *
posterior_context_words(const PosteriorContext *c)
{
	return (const int64 *) posterior_context_x(c);
}

static inline Size
posterior_context_n_words(const PosteriorContext *c)
{
	return ((const char *) c + VARSIZE(c) - (const char *) posterior_context_words(c))
		/ sizeof(int64);
}

static inline Size
posterior_basis_words(const PosteriorContext *c)
{
	return (Size) posterior_context_words(c)[0];
}

static inline const int64 *
posterior_basis(const PosteriorContext *c)
{
	return posterior_context_words(c) + 1;
}

/* Words of its sums, and how many, 0 where it has no rows. */
static inline const int64 *
posterior_sums(const PosteriorContext *c)
{
	return posterior_basis(c) + posterior_basis_words(c);
}

static inline Size
posterior_sums_words(const PosteriorContext *c)
{
	return posterior_context_n_words(c) - 1 - posterior_basis_words(c);
}

/*
 * A value of n rows of so many targets with this basis, in the current memory context; its sums, of
 * n_sums words, are for the caller to fill, 0 where n is.
 */
PosteriorContext *posterior_make_sums(int n_targets, int n_features, const uint8 *kinds,
									  Size n_basis, const int64 *basis, Size n_sums, int64 n);

/* The first byte of the binary form of sums of several targets, whose number has a byte there. */
#define POSTERIOR_CONTEXT_SUMS_SEVERAL (POSTERIOR_CONTEXT_SUMS + 4)

/* Append a value's binary form to a message, and read it back: raises 22P03 for anything else. */
void		posterior_send_sums(StringInfo buffer, const PosteriorContext *c);
PosteriorContext *posterior_receive_sums(StringInfo buffer);

#endif							/* POSTERIOR_CONTEXT_SUMS_H */
