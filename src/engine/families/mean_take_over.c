/*
 * mean_take_over.c: sums of rows that other encodings have in part (family.h, take_over).
 *
 * In a stretch that is taken over, the sum of the first rows here is the sum of the first rows
 * there and an offset, which changes from stretch to stretch by what one has in between and the
 * other has not. So the marks there are marks here, and the rows that stay are not looked at.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/mean.h"

#include <string.h>

#define FEW_ROWS (2 * MEAN_ROWS)	/* are encoded; the sum of more is a difference of sums */

#define POLL_ROWS 256			/* are encoded between two polls */

/* The work of taking over. A sum that may become a mark is held until the next one is known. */
typedef struct TakeOver
{
	TnpEncoding *e;
	int			d;
	TnpScratch	work;
	const TnpEncoding *from;	/* of the last stretch, ... */
	int64_t		there,			/* ... and the end of that one in both */
				here;
	MeanMarker	marker;
	int64_t		held;			/* rows of held_sum */
	int64_t		held_sum[2 * TNP_MAX_WIDTH],
				offset[2 * TNP_MAX_WIDTH];
} TakeOver;

static TnpStatus
add_rows(TakeOver *t, const TnpEncoding *e, int64_t first, int64_t n, int64_t *sum,
		 TnpError *error)
{
	TnpStatus	status = TNP_OK;

	for (int64_t some; status == TNP_OK && n > 0; first += some, n -= some)
	{
		some = n < POLL_ROWS ? n : POLL_ROWS;
		if (tnp_interrupted(&e->model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		status = mean_add_from(e, &t->work, t->work.rows, t->work.h, first, some, sum, error);
	}
	return status;
}

/* Add, or take away, the sum of the first n rows of `from`. */
static TnpStatus
add_first(TakeOver *t, const TnpEncoding *from, int64_t n, int sign, int64_t *sum, TnpError *error)
{
	int64_t		first[2 * TNP_MAX_WIDTH];
	TnpStatus	status = mean_sum_of(from, &t->work, t->work.rows, t->work.h, n, first, error);

	if (status == TNP_OK)
		mean_add_sum(t->d, first, sign, sum);
	return status;
}

/* ---- marks ----------------------------------------------------------------------------------- */

/* The sum of the first `rows` rows passes by, not more than MEAN_ROWS after the last one. */
static void
hold(TakeOver *t, int64_t rows, const int64_t *sum)
{
	if (rows <= t->held)
		return;
	if (rows - t->marker.rows > MEAN_ROWS)
		mean_marker_set(&t->marker, t->held, t->held_sum);
	t->held = rows;
	memcpy(t->held_sum, sum, mean_bytes(t->d));
}

/* Let sums pass by until one of `rows` rows may. */
static TnpStatus
hold_up_to(TakeOver *t, int64_t rows, TnpError *error)
{
	TnpStatus	status = TNP_OK;
	int64_t		sum[2 * TNP_MAX_WIDTH];

	while (status == TNP_OK && rows - t->held > MEAN_ROWS)
	{
		memcpy(sum, t->held_sum, mean_bytes(t->d));
		status = add_rows(t, t->e, t->held, MEAN_ROWS, sum, error);
		if (status == TNP_OK)
			hold(t, t->held + MEAN_ROWS, sum);
	}
	return status;
}

/* ---- stretches ------------------------------------------------------------------------------- */

/* The offset of the next stretch. */
static TnpStatus
move_offset(TakeOver *t, const TnpStretch *s, TnpError *error)
{
	int64_t		between[2 * TNP_MAX_WIDTH] = {0};
	TnpStatus	status = TNP_OK;

	if (t->from == s->from && s->at - t->there <= FEW_ROWS)
	{
		status = add_rows(t, s->from, t->there, s->at - t->there, between, error);
		if (status == TNP_OK)
			mean_add_sum(t->d, between, -1, t->offset);
	}
	else
	{
		if (t->from != NULL)
			status = add_first(t, t->from, t->there, 1, t->offset, error);
		if (status == TNP_OK)
			status = add_first(t, s->from, s->at, -1, t->offset, error);
	}
	if (status == TNP_OK)
		status = add_rows(t, t->e, t->here, s->to - t->here, t->offset, error);
	return status;
}

static TnpStatus
take_stretch(TakeOver *t, const TnpStretch *s, TnpError *error)
{
	const TnpKvCache *marks = &s->from->cache;
	int64_t		end = s->at + s->n,
				sum[2 * TNP_MAX_WIDTH];
	TnpStatus	status = move_offset(t, s, error);

	for (int64_t k = mean_mark_before(marks, s->at), last = mean_mark_before(marks, end);
		 status == TNP_OK && k <= last; k++)
	{
		int64_t		rows = mean_mark_rows(marks, k) - s->at + s->to;

		if (rows < s->to)
			continue;
		memcpy(sum, mean_slot(marks, k), mean_bytes(t->d));
		mean_add_sum(t->d, t->offset, 1, sum);
		status = hold_up_to(t, rows, error);
		if (status == TNP_OK)
			hold(t, rows, sum);
	}
	t->from = s->from;
	t->there = end;
	t->here = s->to + s->n;
	return status;
}

/* After the last stretch: the sum of all rows up to there. */
static TnpStatus
finish(TakeOver *t, TnpError *error)
{
	int64_t		sum[2 * TNP_MAX_WIDTH];
	TnpStatus	status;

	memcpy(sum, t->offset, mean_bytes(t->d));
	status = t->from == NULL ? TNP_OK : add_first(t, t->from, t->there, 1, sum, error);
	if (status == TNP_OK)
		status = hold_up_to(t, t->here, error);
	if (status != TNP_OK)
		return status;
	hold(t, t->here, sum);
	mean_marker_pass(&t->marker, t->here, sum);
	return mean_set_total(t->e, t->here, sum, error);
}

TnpStatus
mean_take_over(TnpEncoding *e, const TnpStretch *stretches, int64_t n, TnpError *error)
{
	const TnpModel *model = e->model;
	TakeOver   *t = tnp_alloc_zero(&model->env, 1, sizeof(TakeOver));
	TnpStatus	status = t == NULL ? tnp_no_memory(error)
		: tnp_work_make(model, &e->stats, TNP_TILE, &t->work, error);

	if (status != TNP_OK)
	{
		tnp_free(&model->env, t);
		return status;
	}
	t->e = e;
	t->d = model->config.width;
	t->marker = mean_marker_at(&e->cache, 0);
	for (int64_t s = 0; status == TNP_OK && s < n; s++)
		status = take_stretch(t, &stretches[s], error);
	if (status == TNP_OK)
		status = finish(t, error);
	tnp_work_free(model, &t->work);
	tnp_free(&model->env, t);
	return status;
}
