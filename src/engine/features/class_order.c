/*
 * class_order.c: the order in which a network sees classes (docs/model-format.md section 3, "Order
 * of classes").
 *
 * Classes have names, and no order. A network has a weight for each place, so that its answers
 * change a little with the order it is shown. What decides here are the rows: other names of the
 * classes have the same answers, bitwise.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/class_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/compare.h"
#include "engine/base/error.h"
#include "engine/base/sorted.h"

typedef struct Class
{
	int64_t		count;			/* rows of the prefix */
	int64_t		apart;			/* where counts are equal: how far its cells are from the middle */
	int			index;
} Class;

/* Most frequent first, then those whose cells are the farthest, then as they were given. */
static int
compare_classes(const void *a, const void *b)
{
	const Class *x = a,
			   *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (x->apart != y->apart)
		return x->apart > y->apart ? -1 : 1;
	return x->index - y->index;
}

/*
 * What feature f adds to the classes' sums: of a number how far it stands from the middle of its
 * column, of a label how many rows have it; work [n0].
 */
static void
add_feature(const TnpRows *rows, int64_t n0, int f, double *work, Class *class)
{
	bool		labels = rows->kinds != NULL && rows->kinds[f] == TNP_CATEGORICAL;
	int64_t		n = 0;

	for (int64_t i = 0; i < n0; i++)
		if (!isnan(rows->x[i * rows->n_features + f]))
			work[n++] = rows->x[i * rows->n_features + f];
	qsort(work, n, sizeof(double), tnp_compare_doubles);
	for (int64_t i = 0; i < n0; i++)
	{
		double		x = rows->x[i * rows->n_features + f];
		int64_t		below,
					until;

		if (isnan(x))
			continue;
		below = tnp_count_below(work, n, x, false);
		until = tnp_count_below(work, n, x, true);
		class[(int) rows->y[i]].apart += labels ? until - below : llabs(below + until - n);
	}
}

/* Whether two classes with rows have equally many. */
static bool
are_equal(const Class *class, int n)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			if (class[i].count > 0 && class[i].count == class[j].count)
				return true;
	return false;
}

TnpStatus
tnp_class_order_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats, double *y,
					  TnpError *error)
{
	Class		class[TNP_MAX_CLASS_ROOM];
	int			n = stats->n_classes;
	double	   *work;

	for (int c = 0; c < n; c++)
		class[c] = (Class) {.index = c};
	for (int64_t i = 0; i < stats->n0; i++)
		class[(int) rows->y[i]].count++;
	if (are_equal(class, n))
	{
		work = tnp_alloc(&model->env, stats->n0, sizeof(double));
		if (work == NULL)
			return tnp_no_memory(error);
		for (int f = 0; f < rows->n_features; f++)
		{
			if (tnp_interrupted(&model->env))
			{
				tnp_free(&model->env, work);
				return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
			}
			add_feature(rows, stats->n0, f, work, class);
		}
		tnp_free(&model->env, work);
	}
	qsort(class, n, sizeof(Class), compare_classes);
	for (int c = 0; c < n; c++)
		stats->class_place[class[c].index] = (unsigned char) c;
	for (int64_t i = 0; i < stats->n0; i++)
		y[i] = stats->class_place[(int) rows->y[i]];
	return TNP_OK;
}

void
tnp_class_order_answer(const TnpStats *stats, double *params)
{
	double		said[TNP_MAX_CLASS_ROOM];

	memcpy(said, params, stats->n_classes * sizeof(double));
	for (int c = 0; c < stats->n_classes; c++)
		params[c] = said[stats->class_place[c]];
}
