/*
 * execute.h: requests about an encoding are answered here, by the CPU in this process or by the
 * device.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_EXECUTE_H
#define POSTERIOR_EXECUTE_H

#include "pg/cache/lookup.h"

#include "engine/inference/request.h"

/*
 * Have a request answered: kind, queries and what the kind needs are set, and room for the answer;
 * rows are all those of the encoding. Raises what the engine reports, and what the device does
 * unless posterior.on_device_error = cpu.
 */
void		posterior_execute(PosteriorContextHandle *e, TnpRequest *request);

/*
 * Have a request answered by an encoding that was made for it and is released with it, also by an
 * error; by the provider that answered `like`, or, if that is NULL, by the rule.
 */
void		posterior_execute_uncached(PosteriorContextHandle *fresh,
									   const PosteriorContextHandle *like, TnpRequest *request);

/* Rows that are answered with a request, each as often as it is drawn or scored. */
int64		posterior_request_rows(const TnpRequest *request);

/*
 * Show in posterior.stat_progress that requests of this kind are answered, about `total` rows in
 * all, for a named context or NULL (posterior_progress_ask); true: the caller calls
 * posterior_show_end. asked: so many are answered before the next request.
 */
bool		posterior_show_question(const pg_uuid_t *context, TnpRequestKind kind, int64 total);
void		posterior_show_asked(int64 done);
void		posterior_show_end(void);

/* Whether what this encoding answered last is bitwise reproducible. */
bool		posterior_executed_exactly(const PosteriorContextHandle *e);

#endif							/* POSTERIOR_EXECUTE_H */
