/*
 * silence.h: for how long the server has given no sign of life, as its supervisor counts it.
 *
 * Only time counts in which the supervisor ran itself. It looks at the clock once in a step at
 * least, and what took longer counts as one step: the machine was suspended, the supervisor was
 * stopped, or others had the processors, and then the server may have had no chance either. A
 * server that hangs is found all the same, on the busiest machine after a few looks.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SILENCE_H
#define TNP_SILENCE_H

#include <stdbool.h>

#define TNP_SILENCE_STEPS 8		/* at least, in the longest silence that is allowed */
#define TNP_SILENCE_STEP 1000	/* ms, at most */

/* Times are in ms, of a clock that only goes forward. */
typedef struct TnpSilence
{
	double		looked,			/* at the clock, last */
				lasted;
} TnpSilence;

/* A sign of life, or a new server. */
static inline void
tnp_silence_break(TnpSilence *silence, double now)
{
	*silence = (TnpSilence) {.looked = now};
}

/* What counts of one look to the next where `allowed` is the longest silence. */
static inline double
tnp_silence_step(double allowed)
{
	return allowed / TNP_SILENCE_STEPS < TNP_SILENCE_STEP ? allowed / TNP_SILENCE_STEPS
		: TNP_SILENCE_STEP;
}

/* There was no sign up to now: whether the silence is longer than allowed. */
static inline bool
tnp_silence_hangs(TnpSilence *silence, double now, double allowed)
{
	double		step = tnp_silence_step(allowed),
				passed = now - silence->looked;

	silence->lasted += passed < step ? passed : step;
	silence->looked = now;
	return silence->lasted >= allowed;
}

#endif							/* TNP_SILENCE_H */
