/*
 * variants.c: a query that lacks cells becomes several that do not.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/inference/variants.h"

#include <string.h>

#include "engine/features/shift.h"

bool
tnp_variants_wanted(const TnpStats *stats, const TnpRows *queries)
{
	for (int64_t i = 0; stats->donors.n > 0 && i < queries->n; i++)
		if (tnp_donors_lend(stats, queries->x + i * queries->n_features))
			return true;
	return false;
}

/* Fill in variants, for which there is room; returns how many there are. */
static int64_t
fill_variants(const TnpModel *model, const TnpStats *stats, const TnpRows *queries, TnpVariants *v)
{
	int			width = queries->n_features;
	int64_t		n = 0;

	for (int64_t i = 0; i < queries->n; i++)
	{
		const double *own = queries->x + i * width;
		int			donors = tnp_donors_of(model, stats, own, v->x + n * width, v->weight + n,
										   &v->sample[i]);

		v->first[i] = n;
		v->labels[i] = donors > 1 ? tnp_donors_new(stats, own, v->label + i * TNP_MOST_NEW) : 0;
		if (v->shift != NULL)
			v->shifts[i] = donors > 0
				? tnp_shifts_of(stats, own, v->shift + i * TNP_MOST_SHIFTS) : 0;
		if (donors == 0)
		{
			memcpy(v->x + n * width, own, (size_t) width * sizeof(double));
			v->weight[n] = 1;
		}
		n += donors > 0 ? donors : 1;
		v->most = donors > v->most ? donors : v->most;
	}
	v->first[queries->n] = n;
	return n;
}

/* Whether two features [n] tell the same variants apart, as an id and a name do. */
static bool
tell_alike(int n, size_t step, const double *a, const double *b)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			if ((a[i * step] == a[j * step]) != (b[i * step] == b[j * step]))
				return false;
	return true;
}

/* New labels that say what no other one before them says: into `kept`, how many. */
static int
new_labels(const TnpVariants *v, int64_t query, const TnpNewLabel **kept)
{
	const double *x = v->x + tnp_variants_first(v, query) * v->rows.n_features;
	int			n = 0;

	for (int i = 0; i < v->labels[query]; i++)
	{
		const TnpNewLabel *label = &v->label[query * TNP_MOST_NEW + i];
		bool		again = false;

		for (int j = 0; j < n && !again; j++)
			again = tell_alike(tnp_variants_count(v, query), v->rows.n_features,
							   x + label->feature, x + kept[j]->feature);
		if (!again)
			kept[n++] = label;
	}
	return n;
}

/* Among the classes that the prefix has. */
static void
share_equally(const TnpStats *stats, TnpVariants *v)
{
	int			there = 0;

	v->n_classes = stats->n_classes;
	for (int c = 0; c < v->n_classes; c++)
	{
		int			place = stats->orders_classes ? stats->class_place[c] : c;

		v->share[c] = stats->class_blend_weight[place] > 0;
		there += v->share[c] > 0;
	}
	for (int c = 0; c < v->n_classes; c++)
		v->share[c] /= there;
}

TnpStatus
tnp_variants_make(const TnpModel *model, const TnpStats *stats, const TnpRows *queries,
				  TnpVariants *v, TnpError *error)
{
	const TnpEnv *env = &model->env;
	int64_t		n = 0;

	*v = (TnpVariants) {.rows = *queries, .most = 1};
	if (!tnp_variants_wanted(stats, queries))
		return TNP_OK;
	for (int64_t i = 0; i < queries->n; i++)
		n += tnp_donors_lend(stats, queries->x + i * queries->n_features)
			? model->config.encode_x.donors + 1 : 1;
	/* cells and weights are written for as many donors as there may be */
	v->x = tnp_alloc(env, n, (size_t) queries->n_features * sizeof(double));
	v->first = tnp_alloc(env, queries->n + 1, sizeof(int64_t));
	v->weight = tnp_alloc(env, n, sizeof(double));
	v->sample = tnp_alloc(env, queries->n, sizeof(int));
	v->label = tnp_alloc(env, queries->n * TNP_MOST_NEW, sizeof(TnpNewLabel));
	v->labels = tnp_alloc(env, queries->n, sizeof(int));
	if (model->config.encode_x.shift)
	{
		v->shift = tnp_alloc(env, queries->n * TNP_MOST_SHIFTS, sizeof(TnpShift));
		v->shifts = tnp_alloc(env, queries->n, sizeof(int));
	}
	if (v->x == NULL || v->first == NULL || v->weight == NULL || v->sample == NULL
		|| v->label == NULL || v->labels == NULL
		|| (model->config.encode_x.shift && (v->shift == NULL || v->shifts == NULL)))
		return tnp_no_memory(error);
	v->rows.n = fill_variants(model, stats, queries, v);
	share_equally(stats, v);
	v->rows.x = v->x;
	v->rows.y = NULL;
	v->rows.before = TNP_UNNUMBERED;
	return TNP_OK;
}

void
tnp_variants_free(const TnpEnv *env, TnpVariants *v)
{
	tnp_free(env, v->x);
	tnp_free(env, v->first);
	tnp_free(env, v->weight);
	tnp_free(env, v->sample);
	tnp_free(env, v->label);
	tnp_free(env, v->labels);
	tnp_free(env, v->shift);
	tnp_free(env, v->shifts);
	v->x = v->weight = NULL;
	v->sample = v->shifts = v->labels = NULL;
	v->label = NULL;
	v->shift = NULL;
	v->first = NULL;
}

size_t
tnp_variants_work(const TnpModel *model, const TnpVariants *v)
{
	TnpDistributionKind kind;
	int			n;

	tnp_answer_shape(model, &kind, &n);
	return tnp_join_work(kind, n, v->most)
		+ (v->shift != NULL ? tnp_join_shifted_work(kind, n) : 0);
}

void
tnp_variants_join(const TnpModel *model, const TnpVariants *v, int64_t query, const double *params,
				  size_t step, double *work, double *joined)
{
	TnpDistributionKind kind;
	int			n,
				count = tnp_variants_count(v, query);

	/* models of several targets have no donors */
	if (count == 1)
		memcpy(joined, params, tnp_answer_size(model) * sizeof(double));
	else
	{
		double		mean[TNP_MOST_VARIANTS],
					wider[TNP_MOST_VARIANTS];
		const TnpNewLabel *label[TNP_MOST_NEW];
		int			labels = new_labels(v, query, label);
		int64_t		first = tnp_variants_first(v, query);
		const double *weight = v->weight + first;
		bool		widens = v->sample[query] > 0 || v->labels[query] > 0;

		tnp_answer_shape(model, &kind, &n);
		widens &= kind == TNP_GAUSSIAN || kind == TNP_MIXTURE;
		if (widens)
		{
			tnp_join_sample(kind, n, count, v->sample[query], params, step, mean, wider);
			for (int i = 0; i < labels; i++)
				tnp_join_new(count, mean, weight,
							 v->x + first * v->rows.n_features + label[i]->feature,
							 v->rows.n_features, label[i]->alike, wider);
		}
		tnp_join(kind, n, count, params, step, weight, widens ? wider : NULL, work, joined);
		for (int i = 0; v->n_classes > 0 && i < labels; i++)
			tnp_join_new_class(v->n_classes, count, params, step, weight,
							   v->x + first * v->rows.n_features + label[i]->feature,
							   v->rows.n_features, label[i]->alike, v->share, joined);
	}
	if (v->shift != NULL && v->shifts[query] > 0)
	{
		tnp_answer_shape(model, &kind, &n);
		tnp_join_shifted(kind, n, v->shifts[query], v->shift + query * TNP_MOST_SHIFTS, work,
						 joined);
	}
}
