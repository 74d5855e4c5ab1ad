/*
 * limits.h: what this machine's vector units and memory can do at most.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef LIMITS_H
#define LIMITS_H

#include <stddef.h>

/*
 * Print one JSON object: 1e9 per second of multiply-adds, exponentials and bytes read from sets of
 * four sizes, and of `more` bytes if that is not 0, by one thread and by `threads`, with the
 * instructions of these kernels.
 */
void		print_limits(const char *kernels, int threads, double seconds, size_t more);

#endif							/* LIMITS_H */
