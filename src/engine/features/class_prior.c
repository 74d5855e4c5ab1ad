/*
 * class_prior.c: what a classifier's head takes a share of besides the network.
 *
 * Each in turn takes its share of what was there before: the logistic regression of the network's
 * logits, the process of these, trees of all. A row has one number for all of it, and how much of
 * the answer that is depends on the prefix alone, but for rows of which trees are silent.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/class_prior.h"

#include "engine/features/class_process.h"
#include "engine/features/logistic.h"
#include "engine/features/trees.h"
#include "engine/features/trees_known.h"

bool
tnp_prior_is_apart(const TnpModel *model, const TnpStats *stats)
{
	return tnp_trees_blend_weight(model, stats) > 0 || tnp_class_process_share(model, stats) > 0
		|| stats->wanted_mean.share > 0;
}

double
tnp_prior_share(const TnpModel *model, const TnpStats *stats, bool trees_speak)
{
	double		logistic = tnp_logistic_blend_weight(model, stats),
				process = tnp_class_process_share(model, stats),
				trees = trees_speak ? tnp_trees_blend_weight(model, stats) : 0;

	if (process == 0 && trees == 0)
		return logistic;
	return 1 - (1 - logistic) * (1 - process) * (1 - trees);
}

void
tnp_prior_logits(const TnpModel *model, const TnpStats *stats, const double *x, float *said)
{
	double		logistic = tnp_logistic_blend_weight(model, stats),
				process = tnp_class_process_share(model, stats),
				trees = tnp_trees_blend_weight(model, stats),
				all,
				smooth[TNP_MAX_CLASS_ROOM] = {0},
				stepped[TNP_MAX_CLASS_ROOM] = {0};
	bool		speak = trees > 0 && tnp_trees_know(stats, x);

	said[tnp_classes(model)] = speak;
	if (!speak)
		trees = 0;
	if (process == 0 && trees == 0)
		return;
	all = tnp_prior_share(model, stats, speak);
	if (process > 0)
		tnp_class_process_logits(model, stats, x, smooth);
	if (speak)
		tnp_trees_logits(stats, x, stepped);
	for (int c = 0; c < stats->n_classes; c++)
		said[c] = (float) (((1 - trees) * (1 - process) * logistic * said[c]
							+ (1 - trees) * process * smooth[c] + trees * stepped[c]) / all);
}
