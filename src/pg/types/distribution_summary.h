/*
 * distribution_summary.h: the short text of a distribution (posterior.distribution_style).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_DISTRIBUTION_SUMMARY_H
#define POSTERIOR_DISTRIBUTION_SUMMARY_H

#include "pg/types/distribution_value.h"

#include "lib/stringinfo.h"

/* Define the setting. */
void		posterior_summary_register(void);

/* Whether the session asked for summaries and the caller writes to its client. */
bool		posterior_is_summary_wanted(void);

void		posterior_append_summary(StringInfo out, const PosteriorDistribution *d);

/* Whether a text begins as a summary does, which no full text does. */
bool		posterior_is_summary(const char *text);

#endif							/* POSTERIOR_DISTRIBUTION_SUMMARY_H */
