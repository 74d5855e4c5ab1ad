/*
 * window.h: the setting of window functions.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_WINDOW_H
#define POSTERIOR_WINDOW_H

#include "pg/base/compat.h"

extern bool posterior_leak_notice;	/* posterior.leak_notice */

#endif							/* POSTERIOR_WINDOW_H */
