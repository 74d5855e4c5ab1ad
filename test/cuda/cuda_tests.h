/*
 * cuda_tests.h: what the suites of the CUDA device share: a device on the emulator, and comparisons
 * with the engine.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_TESTS_H
#define CUDA_TESTS_H

#include "server/device_api.h"
#include "gpu_emulated.h"
#include "models.h"

extern const TnpDeviceApi tnp_device;

/* Polls, and the poll at which the device is told to stop (0: none). */
extern long cuda_polls,
			cuda_stop_at;

/* An open device with `memory` bytes, 0: its own choice. Exits when it cannot be opened. */
TnpDevice  *cuda_open(TnpPrecision precision, size_t memory);

/*
 * Reads CUDA_TEST_SHAPE, four numbers: rows of a tile, blocks of a team, whether keys are split,
 * and whether partial results are in memory (host.h, CudaForce).
 */
void		cuda_read_shape(void);

/* A model on the device; exits when it cannot be loaded. */
TnpDeviceModel *cuda_load(TnpDevice *device, const TestModel *file);

/*
 * A model that is computed layer by layer, whether or not it fits a block, if it can be; NULL, and
 * a test that is skipped, on a machine without the library of matrix products.
 */
TnpDeviceModel *cuda_load_layered(TnpDevice *device, const TestModel *file);

/*
 * Largest difference of a from b [n], each relative to 1 + |b|; infinite if one is NaN and the
 * other is not.
 */
double		largest_difference(const double *a, const double *b, size_t n);

/* One request to the device; its status. */
TnpStatus	cuda_ask(TnpDeviceEncoding *e, TnpRequest *request);

#endif							/* CUDA_TESTS_H */
