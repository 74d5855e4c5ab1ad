/*
 * route.h: which provider answers: the CPU in this process, or the device.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ROUTE_H
#define POSTERIOR_ROUTE_H

#include "pg/models/model_cache.h"

#include "engine/inference/request.h"

/* Multiply-adds of encoding n rows, and of a request about n encoded rows. */
double		posterior_build_work(const PosteriorModel *model, int64 n);
double		posterior_request_work(const PosteriorModel *model, int64 n, const TnpRequest *request);

/*
 * Whether the device can answer about this model. Raises if the settings demand it and it cannot.
 */
bool		posterior_route_to_device(PosteriorModel *model);

/* Whether a context of n rows is to be encoded on the device. Raises as above. */
bool		posterior_build_on_device(PosteriorModel *model, int64 n);

/* Whether a request about n rows that are encoded for the CPU is certainly answered by it. */
bool		posterior_executes_here(const PosteriorModel *model, int64 n,
									const TnpRequest *request);

/*
 * Whether the CPU answers when the device has failed in this way; the failure is counted, and a
 * debug message tells of the change.
 */
bool		posterior_may_fall_back(const TnpError *fault);

#endif							/* POSTERIOR_ROUTE_H */
