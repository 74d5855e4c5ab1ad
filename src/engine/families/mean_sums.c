/*
 * mean_sums.c: exact sums of rows' vectors, and those that an encoding has of its first rows
 * (mean.h).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/mean.h"

#include <math.h>
#include <string.h>

#include "engine/base/exact.h"

#define SMALL 0x1p62			/* numbers below fit a word */

bool
mean_add(int d, const float *e, int64_t *sum)
{
	for (int f = 0; f < d; f++)
	{
		double		number = (double) e[f] * MEAN_UNIT;

		/* a larger one is a whole number: a float has 24 bits */
		if (fabs(number) < SMALL)
			tnp_exact_add(sum + 2 * f, llrint(number));
		else if (fabs(number) < MEAN_LARGEST * MEAN_UNIT)
			tnp_exact_add(sum + 2 * f, (TnpExact) number);
		else
			return false;
	}
	return true;
}

void
mean_add_sum(int d, const int64_t *more, int sign, int64_t *sum)
{
	for (int f = 0; f < d; f++)
		tnp_exact_add(sum + 2 * f, sign * tnp_exact(more + 2 * f));
}

void
mean_divide(int d, const int64_t *sum, int64_t n, float *mean)
{
	for (int f = 0; f < d; f++)
		mean[f] = n > 0 ? (float) ((double) tnp_exact(sum + 2 * f) / ((double) n * MEAN_UNIT)) : 0;
}

TnpStatus
mean_refuse_row(int64_t i, TnpError *error)
{
	tnp_fail(error, TNP_BAD_VALUE, "the values of a row are too large for the model");
	tnp_detail(error, "row %lld", (long long) (i + 1));
	return TNP_BAD_VALUE;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static int64_t *
slot_words(const TnpKvCache *cache, int64_t slot)
{
	return (int64_t *) cache->k[0] + slot * 2 * cache->shape.key_width;
}

int64_t *
mean_slot(const TnpKvCache *cache, int64_t slot)
{
	return slot_words(cache, slot) + 2;
}

int64_t
mean_mark_rows(const TnpKvCache *cache, int64_t k)
{
	return __atomic_load_n(slot_words(cache, k), __ATOMIC_ACQUIRE);
}

int64_t
mean_mark_before(const TnpKvCache *cache, int64_t n)
{
	int64_t		k = n / MEAN_ROWS,	/* has MEAN_ROWS * k rows at most */
				rows = mean_mark_rows(cache, k);

	for (int64_t next; k + 1 < cache->capacity; k++, rows = next)
	{
		next = mean_mark_rows(cache, k + 1);
		if (next <= rows || next > n)
			break;
	}
	return k;
}

/* What is left of rows that were forgotten is no mark any more. */
static void
end_marks(TnpKvCache *cache, int64_t k)
{
	if (k + 1 < cache->capacity)
		__atomic_store_n(slot_words(cache, k + 1), 0, __ATOMIC_RELEASE);
}

MeanMarker
mean_marker_at(TnpKvCache *cache, int64_t n)
{
	MeanMarker	marker = {cache, mean_mark_before(cache, n), 0};

	marker.rows = mean_mark_rows(cache, marker.k);
	end_marks(cache, marker.k);
	return marker;
}

void
mean_marker_set(MeanMarker *marker, int64_t rows, const int64_t *sum)
{
	int64_t		k = ++marker->k;

	end_marks(marker->cache, k);
	memcpy(mean_slot(marker->cache, k), sum, mean_bytes(marker->cache->shape.key_width - 1));
	__atomic_store_n(slot_words(marker->cache, k), rows, __ATOMIC_RELEASE);
	marker->rows = rows;
}

/* ---- sums of the first rows ------------------------------------------------------------------ */

TnpStatus
mean_add_from(const TnpEncoding *e, TnpScratch *work, int tile, float *states, int64_t first,
			  int64_t n, int64_t *sum, TnpError *error)
{
	int			d = e->model->config.width,
				width = e->model->config.family->state_width(e->model);
	TnpStatus	status = TNP_OK;

	for (int64_t i = first; status == TNP_OK && i < first + n; i += tile)
	{
		int			some = first + n - i < tile ? (int) (first + n - i) : tile;

		status = tnp_embed_rows(e, work, i, some, states, error);
		for (int r = 0; status == TNP_OK && r < some; r++)
			if (!mean_add(d, states + (size_t) r * width, sum))
				status = mean_refuse_row(i + r, error);
	}
	return status;
}

/* Behind the numbers of a total is their mean. */
static float *
total_mean(const TnpEncoding *e)
{
	return (float *) (void *) ((char *) e->total + mean_bytes(e->model->config.width));
}

/*
 * The total of an encoding if it is of n rows, or its mean, each unless NULL; another process may
 * be changing it to that of more. False where it is not to be had.
 */
static bool
take_total(const TnpEncoding *e, int64_t n, int64_t *sum, float *mean)
{
	if (e->total == NULL || __atomic_load_n(&e->totalled, __ATOMIC_ACQUIRE) != n)
		return false;
	if (sum != NULL)
		memcpy(sum, e->total, mean_bytes(e->model->config.width));
	if (mean != NULL)
		memcpy(mean, total_mean(e), e->model->config.width * sizeof(float));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&e->totalled, __ATOMIC_RELAXED) == n;
}

TnpStatus
mean_sum_of(const TnpEncoding *e, TnpScratch *work, int tile, float *states, int64_t n,
			int64_t *sum, TnpError *error)
{
	int64_t		k,
				rows;

	if (take_total(e, n, sum, NULL) || (e->viewed != NULL && take_total(e->viewed, n, sum, NULL)))
		return TNP_OK;
	k = mean_mark_before(&e->cache, n);
	rows = mean_mark_rows(&e->cache, k);
	memcpy(sum, mean_slot(&e->cache, k), mean_bytes(e->model->config.width));
	return mean_add_from(e, work, tile, states, rows, n - rows, sum, error);
}

TnpStatus
mean_of_rows(const TnpEncoding *e, TnpScratch *work, float *state, float *mean, TnpError *error)
{
	int64_t		sum[2 * TNP_MAX_WIDTH];
	TnpStatus	status;

	if (take_total(e, e->n, NULL, mean)
		|| (e->viewed != NULL && take_total(e->viewed, e->n, NULL, mean)))
		return TNP_OK;
	status = mean_sum_of(e, work, 1, state, e->n, sum, error);
	if (status == TNP_OK)
		mean_divide(e->model->config.width, sum, e->n, mean);
	return status;
}

TnpStatus
mean_set_total(TnpEncoding *e, int64_t n, const int64_t *sum, TnpError *error)
{
	TnpEnv		env = e->kept ? tnp_lasting(&e->model->env) : e->model->env;
	int			d = e->model->config.width;

	if (e->total == NULL)
	{
		e->total_size = mean_bytes(d) + d * sizeof(float);
		e->totalled = -1;
		e->total = tnp_alloc(&env, 1, e->total_size);
	}
	if (e->total == NULL)
		return tnp_no_memory(error);
	__atomic_store_n(&e->totalled, -1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(e->total, sum, mean_bytes(d));
	mean_divide(d, sum, n, total_mean(e));
	__atomic_store_n(&e->totalled, n, __ATOMIC_RELEASE);
	return TNP_OK;
}

/* The sum of all rows, where it has to be made: of those after the last mark anew. */
static TnpStatus
make_total(TnpEncoding *e, int64_t *sum, TnpError *error)
{
	TnpScratch	work;
	TnpStatus	status = tnp_work_make(e->model, &e->stats, MEAN_ROWS, &work, error);

	if (status != TNP_OK)
		return status;
	status = mean_sum_of(e, &work, work.rows, work.h, e->n, sum, error);
	tnp_work_free(e->model, &work);
	return status;
}

TnpStatus
mean_settle(TnpEncoding *e, TnpError *error)
{
	int64_t		sum[2 * TNP_MAX_WIDTH];
	TnpStatus	status = TNP_OK;

	if (e->total != NULL && e->totalled == e->n)
		return TNP_OK;
	if (e->viewed == NULL || !take_total(e->viewed, e->n, sum, NULL))
		status = make_total(e, sum, error);
	return status == TNP_OK ? mean_set_total(e, e->n, sum, error) : status;
}
