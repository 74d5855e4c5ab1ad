/*
 * revise.c: encodings that take over rows from others: after deletes and updates, and of frames
 * that move. Only a family whose rows are kept by themselves can (family.h, take_over); others may
 * go on with what there is of the rows that both begin with (go_on).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/inference/encode.h"

#include <string.h>

#define NEAR 8					/* rows within which all ways to go on are tried */
#define TRIES 16				/* rows compared for each row that there is, at most */

/* ---- what both have -------------------------------------------------------------------------- */

/* Rows of two tables are being matched, in their order. */
typedef struct Match
{
	const TnpEncoding *from;
	const TnpRows *a,
			   *b;
	int64_t		tries;			/* that are left */
	TnpStretch *stretches;
	int64_t		n,
				room;
} Match;

static bool
same_row(const TnpRows *a, int64_t i, const TnpRows *b, int64_t j)
{
	int			targets = tnp_rows_targets(a),
				features = a->n_features;

	return memcmp(a->y + i * targets, b->y + j * targets, targets * sizeof(double)) == 0
		&& (features == 0 || memcmp(a->x + i * features, b->x + j * features,
									features * sizeof(double)) == 0);
}

static bool
match_at(Match *m, int64_t i, int64_t j)
{
	m->tries--;
	return i < m->a->n && j < m->b->n && same_row(m->a, i, m->b, j);
}

/*
 * Where rows agree again that do not at *i and *j: within few rows, or after any number that are in
 * one only, or in both in the same number. Otherwise neither row is anywhere in the other table.
 */
static void
match_go_on(Match *m, int64_t *i, int64_t *j)
{
	int64_t		rest_a = m->a->n - *i,
				rest_b = m->b->n - *j,
				rest = rest_a > rest_b ? rest_a : rest_b,
				skip_a = 1,
				skip_b = 1;

	for (int64_t s = 1; s <= NEAR; s++)
		for (int64_t a = 0; a <= s; a++)
			if (match_at(m, *i + a, *j + s - a))
			{
				*i += a;
				*j += s - a;
				return;
			}
	for (int64_t s = NEAR + 1; s < rest && m->tries > 0; s++)
	{
		bool		deleted = match_at(m, *i + s, *j),
					both = !deleted && match_at(m, *i + s, *j + s);

		if (!deleted && !both && !match_at(m, *i, *j + s))
			continue;
		skip_a = deleted || both ? s : 0;
		skip_b = deleted ? 0 : s;
		break;
	}
	*i += skip_a;
	*j += skip_b;
}

/* Find stretches; false where so much differs that it is not worth while. */
static bool
match_rows(Match *m)
{
	int64_t		i = 0,
				j = 0,
				shared = 0;

	while (i < m->a->n && j < m->b->n)
	{
		int64_t		n = 0;

		while (i + n < m->a->n && j + n < m->b->n && same_row(m->a, i + n, m->b, j + n))
			n++;
		if (n > 0)
		{
			if (m->n == m->room)
				return false;
			m->stretches[m->n++] = (TnpStretch) {m->from, i, j, n};
			shared += n;
		}
		i += n;
		j += n;
		if (i == m->a->n || j == m->b->n)
			break;
		if (m->tries <= 0)
			return false;
		match_go_on(m, &i, &j);
	}
	return shared > m->b->n / 2;
}

/* ---- encodings ------------------------------------------------------------------------------- */

bool
tnp_takes_over(const TnpEncoding *from, const TnpRows *rows, int64_t prefix)
{
	const TnpModel *model = from->model;
	int64_t		n0 = prefix > model->config.min_rows ? prefix : model->config.min_rows;

	if (model->config.family->take_over == NULL && model->config.family->go_on == NULL)
		return false;
	if (!model->info.scales_by_prefix)
		return true;
	if (from->stats.n0 != n0 || rows == NULL)
		return from->stats.n0 == n0;
	if (from->n < n0 || rows->n < n0)
		return false;
	for (int64_t i = 0; i < n0; i++)
	{
		TnpRows		own = tnp_encoding_view(from);

		if (!same_row(&own, i, rows, i))
			return false;
	}
	return true;
}

/* The rows that `from` keeps something of to go on with, if both begin with them. */
static bool
match_kept_rows(Match *m, int64_t kept)
{
	int64_t		n = 0;

	while (n < kept && match_at(m, n, n))
		n++;
	m->stretches[0] = (TnpStretch) {m->from, 0, 0, n};
	m->n = 1;
	return n == kept && n > 0;
}

static bool
same_columns(const TnpEncoding *from, const TnpRows *rows)
{
	if (rows->n_features != from->n_features
		|| tnp_rows_targets(rows) != from->model->config.n_targets || rows->y == NULL)
		return false;
	for (int f = 0; f < rows->n_features; f++)
		if ((rows->kinds != NULL ? rows->kinds[f] : TNP_NUMERIC) != from->kinds[f])
			return false;
	return true;
}

TnpStatus
tnp_revise(const TnpEncoding *from, const TnpRows *rows, int64_t prefix, TnpEncoding **revised,
		   TnpError *error)
{
	const TnpModel *model = from->model;
	const TnpFamily *family = model->config.family;
	TnpRows		own = tnp_encoding_view(from);
	Match		m = {.from = from, .a = &own, .b = rows,
					 .tries = TRIES * (from->n + rows->n) + NEAR * NEAR,
					 .room = rows->n / NEAR + 2};
	TnpStatus	status = TNP_OK;

	*revised = NULL;
	if (!same_columns(from, rows) || !tnp_takes_over(from, rows, prefix))
		return TNP_OK;
	m.stretches = tnp_alloc(&model->env, m.room, sizeof(TnpStretch));
	if (m.stretches == NULL)
		return tnp_no_memory(error);
	if (family->take_over != NULL ? match_rows(&m) : match_kept_rows(&m, family->kept_rows(from)))
		status = tnp_build_from(model, rows, prefix, from->estimators, m.stretches, m.n, revised,
								error);
	tnp_free(&model->env, m.stretches);
	return status;
}
