/*
 * state.h: what all sessions know of one named context: counters, and the proof of the last reader that published one.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_STATE_H
#define POSTERIOR_STATE_H

#define POSTERIOR_STATES 128	/* named contexts that are watched at once; the least recently used one gives way */

typedef struct PosteriorState
{
	int			unused;
} PosteriorState;

#endif							/* POSTERIOR_STATE_H */
