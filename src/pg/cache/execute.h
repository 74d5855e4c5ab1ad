/*
 * execute.h: questions about an encoding: the place where it is decided who answers, the CPU in this process or the device.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ASK_H
#define POSTERIOR_ASK_H

#include "pg/cache/lookup.h"

#include "server/protocol.h"

/*
 * Have a request answered: kind, queries and what the kind needs are set, and room for the answer; rows are all those of the encoding. Raises what the engine reports, and what the device
 * does unless posterior.on_device_error = cpu.
 */
void		posterior_execute(PosteriorContextHandle *e, TnpRequest *request);

/* The same with an encoding that was made for this question and ends with it, also by an error; asked of the one who answered `like`, or, if that is NULL, by the rule. */
void		posterior_execute_uncached(PosteriorContextHandle *fresh, const PosteriorContextHandle *like, TnpRequest *request);

/* Whether a request about n rows that are encoded for the CPU is surely answered by it. */
bool		posterior_executes_here(const PosteriorModel *model, int64 n, const TnpRequest *request);

/* Whether what this encoding answered last is bitwise reproducible. */
bool		posterior_executed_exactly(const PosteriorContextHandle *e);

/* Whether a context of n rows is to be encoded on the device. Raises if that is demanded and impossible. */
bool		posterior_build_on_device(PosteriorModel *model, int64 n);

/* Whether the CPU answers when the device has failed in this way; then the failure is counted and told for debugging. */
bool		posterior_may_fall_back(const TnpError *fault);

#endif							/* POSTERIOR_ASK_H */
