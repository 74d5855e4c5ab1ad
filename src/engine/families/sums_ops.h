/*
 * sums_ops.h: what a family gives whose contexts can be sums over rows (engine/tnp.h, "sums").
 *
 * The public functions (sums_ops.c) ask a model's family; each keeps sums of its own kind, in
 * memory that begins with what all have in common.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SUMS_OPS_H
#define TNP_SUMS_OPS_H

#include "engine/file/family.h"

/* The beginning of sums of any family. */
struct TnpSums
{
	int64_t		n;				/* rows */
	int			columns,
				basis_words;
};

/* As the functions of engine/tnp.h that have these names. */
typedef struct TnpSumsOps
{
	size_t		(*basis_words) (const TnpModel *model, int n_features);
	TnpStatus	(*basis_make) (const TnpModel *model, const TnpRows *rows, int64_t *basis,
							   TnpError *error);
	TnpStatus	(*basis_check) (const TnpModel *model, int n_features, const TnpColumnKind *kinds,
								size_t words, const int64_t *basis, TnpError *error);
	size_t		(*bytes) (const TnpModel *model, const int64_t *basis);
	size_t		(*words) (const TnpModel *model, const int64_t *basis);
	void		(*begin) (const TnpModel *model, const int64_t *basis, TnpSums *sums);
	bool		(*takes) (const TnpModel *model, TnpSums *sums, const double *x,
						  const double *y);
	TnpStatus	(*add) (const TnpModel *model, TnpSums *sums, const TnpRows *rows, int sign,
						TnpError *error);
	TnpStatus	(*merge) (const TnpModel *model, TnpSums *into, TnpSums *from, int sign,
						  TnpError *error);
	void		(*write) (const TnpModel *model, TnpSums *sums, int64_t *words);
	TnpStatus	(*read) (const TnpModel *model, TnpSums *sums, const int64_t *words,
						 TnpError *error);
	size_t		(*fit_words) (const TnpModel *model, const int64_t *basis);
	void		(*fit_write) (const TnpEncoding *encoding, int64_t *words);
	size_t		(*encoding_bytes) (const TnpModel *model, const TnpSums *sums);
	TnpStatus	(*encode) (const TnpModel *model, const TnpColumnKind *kinds, TnpSums *sums,
						   size_t words, const int64_t *fit, bool keep, TnpEncoding **encoding,
						   TnpError *error);
	int64_t		(*fit_rows) (const TnpEncoding *encoding);
	double		(*drift) (const TnpEncoding *encoding);
	double		(*log_evidence) (const TnpEncoding *encoding);	/* or NULL */
} TnpSumsOps;

/* A number and its bits, as words have them. */
double		sums_number(int64_t word);
int64_t		sums_word(double number);

/* Whether n rows can be added to sums of at most `most`, or with sign -1 be taken away. */
TnpStatus	tnp_sums_check_change(const TnpSums *sums, int64_t n, int sign, int64_t most,
								  TnpError *error);

/* TNP_TOO_FEW_ROWS unless a context of n rows may be asked. */
TnpStatus	tnp_sums_check_rows(const TnpModel *model, int64_t n, TnpError *error);

#endif							/* TNP_SUMS_OPS_H */
