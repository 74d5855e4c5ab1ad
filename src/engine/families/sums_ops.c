/*
 * sums_ops.c: contexts that are sums, of whatever family (engine/tnp.h, "sums").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums_ops.h"

#include <string.h>

#include "engine/file/model.h"
#include "engine/network/encoding.h"

double
sums_number(int64_t word)
{
	double		number;

	memcpy(&number, &word, sizeof(number));
	return number;
}

int64_t
sums_word(double number)
{
	int64_t		word;

	memcpy(&word, &number, sizeof(word));
	return word;
}

static const TnpSumsOps *
ops_of(const TnpModel *model)
{
	return model->config.family->sums;
}

static const TnpSumsOps *
ops_of_encoding(const TnpEncoding *encoding)
{
	return ops_of(encoding->model);
}

bool
tnp_keeps_sums(const TnpModel *model)
{
	return model->info.mergeable;
}

bool
tnp_prefers_sums(const TnpModel *model)
{
	return model->info.mergeable && model->config.family->bare;
}

/* ---- bases ----------------------------------------------------------------------------------- */

size_t
tnp_basis_words(const TnpModel *model, int n_features)
{
	return ops_of(model)->basis_words(model, n_features);
}

TnpStatus
tnp_basis_make(const TnpModel *model, const TnpRows *rows, int64_t *basis, TnpError *error)
{
	return ops_of(model)->basis_make(model, rows, basis, error);
}

TnpStatus
tnp_basis_check(const TnpModel *model, int n_features, const TnpColumnKind *kinds, size_t words,
				const int64_t *basis, TnpError *error)
{
	return ops_of(model)->basis_check(model, n_features, kinds, words, basis, error);
}

/* ---- sums ------------------------------------------------------------------------------------ */

size_t
tnp_sums_bytes(const TnpModel *model, const int64_t *basis)
{
	return ops_of(model)->bytes(model, basis);
}

size_t
tnp_sums_words(const TnpModel *model, const int64_t *basis)
{
	return ops_of(model)->words(model, basis);
}

void
tnp_sums_begin(const TnpModel *model, const int64_t *basis, TnpSums *sums)
{
	ops_of(model)->begin(model, basis, sums);
}

int64_t
tnp_sums_rows(const TnpSums *sums)
{
	return sums->n;
}

bool
tnp_sums_takes(const TnpModel *model, TnpSums *sums, const double *x, const double *y)
{
	return ops_of(model)->takes(model, sums, x, y);
}

TnpStatus
tnp_sums_add(const TnpModel *model, TnpSums *sums, const TnpRows *rows, int sign, TnpError *error)
{
	return ops_of(model)->add(model, sums, rows, sign, error);
}

TnpStatus
tnp_sums_merge(const TnpModel *model, TnpSums *into, TnpSums *from, int sign, TnpError *error)
{
	return ops_of(model)->merge(model, into, from, sign, error);
}

void
tnp_sums_write(const TnpModel *model, TnpSums *sums, int64_t *words)
{
	ops_of(model)->write(model, sums, words);
}

TnpStatus
tnp_sums_read(const TnpModel *model, TnpSums *sums, const int64_t *words, TnpError *error)
{
	return ops_of(model)->read(model, sums, words, error);
}

TnpStatus
tnp_sums_check_change(const TnpSums *sums, int64_t n, int sign, int64_t most, TnpError *error)
{
	if (sign < 0 ? sums->n >= n : n <= most - sums->n)
		return TNP_OK;
	return tnp_fail(error, TNP_BAD_VALUE, sign < 0 ? "more rows are taken away than there are"
					: "too many rows for sums");
}

TnpStatus
tnp_sums_check_rows(const TnpModel *model, int64_t n, TnpError *error)
{
	if (n >= model->config.min_rows)
		return TNP_OK;
	tnp_fail(error, TNP_TOO_FEW_ROWS, "the context has too few rows for the model");
	tnp_detail(error, "%lld row%s given, at least %d needed", (long long) n, n == 1 ? "" : "s",
			   model->config.min_rows);
	return TNP_TOO_FEW_ROWS;
}

/* ---- encodings ------------------------------------------------------------------------------- */

size_t
tnp_fit_words(const TnpModel *model, const int64_t *basis)
{
	return ops_of(model)->fit_words(model, basis);
}

void
tnp_fit_write(const TnpEncoding *encoding, int64_t *words)
{
	ops_of_encoding(encoding)->fit_write(encoding, words);
}

size_t
tnp_sums_encoding_bytes(const TnpModel *model, const TnpSums *sums)
{
	return ops_of(model)->encoding_bytes(model, sums);
}

TnpStatus
tnp_sums_encode_fitted(const TnpModel *model, const TnpColumnKind *kinds, TnpSums *sums,
					   size_t words, const int64_t *fit, bool keep, TnpEncoding **encoding,
					   TnpError *error)
{
	return ops_of(model)->encode(model, kinds, sums, words, fit, keep, encoding, error);
}

TnpStatus
tnp_sums_encode(const TnpModel *model, const TnpColumnKind *kinds, TnpSums *sums,
				TnpEncoding **encoding, TnpError *error)
{
	return tnp_sums_encode_fitted(model, kinds, sums, 0, NULL, false, encoding, error);
}

int64_t
tnp_sums_fit_rows(const TnpEncoding *encoding)
{
	return ops_of_encoding(encoding)->fit_rows(encoding);
}

double
tnp_sums_drift(const TnpEncoding *encoding)
{
	return ops_of_encoding(encoding)->drift(encoding);
}

bool
tnp_sums_have_evidence(const TnpModel *model)
{
	return ops_of(model)->log_evidence != NULL;
}

double
tnp_sums_log_evidence(const TnpEncoding *encoding)
{
	return ops_of_encoding(encoding)->log_evidence(encoding);
}
