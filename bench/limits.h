/*
 * limits.h: what this machine's vector units and memory can do at most.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef LIMITS_H
#define LIMITS_H

/*
 * Print one JSON object: 1e9 per second of multiply-adds, exponentials and bytes read from sets of
 * four sizes, by one thread and by `threads`, with the instructions of these kernels.
 */
void		print_limits(const char *kernels, int threads, double seconds);

#endif							/* LIMITS_H */
