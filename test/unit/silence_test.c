/*
 * silence_test.c: when a server counts as one that hangs, by a clock that the test moves.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server/silence.h"

#include "tap.h"

#define ALLOWED 30000.0
#define HOUR 3600000.0

/* Look once in `every` ms, for at most `looks` times, until it hangs; the clock then. */
static double
look(TnpSilence *silence, double now, double every, int looks, bool *hangs)
{
	*hangs = false;
	for (int i = 0; i < looks && !*hangs; i++)
	{
		now += every;
		*hangs = tnp_silence_hangs(silence, now, ALLOWED);
	}
	return now;
}

static void
test_undisturbed(void)
{
	const double every[] = {1, 250, 1000};

	for (int i = 0; i < 3; i++)
	{
		TnpSilence	silence;
		bool		hangs;
		double		now;

		tnp_silence_break(&silence, HOUR);
		now = look(&silence, HOUR, every[i], 1000000, &hangs);
		ok(hangs, "a server that says nothing hangs, with a look each %g ms", every[i]);
		is_near(now - HOUR, ALLOWED, 1e-6, "when it has said nothing for as long as is allowed");
		tnp_silence_break(&silence, now);
		now = look(&silence, now, every[i], (int) (ALLOWED / every[i]) - 1, &hangs);
		ok(!hangs, "a sign of life begins anew");
	}
}

static void
test_pauses(void)
{
	TnpSilence	silence;
	bool		hangs;
	double		now;

	tnp_silence_break(&silence, 0);
	now = look(&silence, 0, 500, 1, &hangs);
	ok(!tnp_silence_hangs(&silence, now + HOUR, ALLOWED), "an hour without a look is no silence");
	now = look(&silence, now + HOUR, 1000, 28, &hangs);
	ok(!hangs, "and the server is given time after it");
	now = look(&silence, now, 1000, 1, &hangs);
	ok(hangs, "as much as was left");

	tnp_silence_break(&silence, 0);
	look(&silence, 0, HOUR, 29, &hangs);
	ok(!hangs, "pause upon pause is no silence");
	tnp_silence_break(&silence, 0);
	look(&silence, 0, HOUR, 30, &hangs);
	ok(hangs, "but a server that hangs is found, however rare the looks are");
}

static void
test_shortest(void)
{
	TnpSilence	silence;

	is_near(tnp_silence_step(1000), 125, 0, "a second is looked at in eight steps");
	is_near(tnp_silence_step(ALLOWED), 1000, 0, "half a minute in steps of a second");
	tnp_silence_break(&silence, 0);
	/* a server gives signs every 500 ms */
	ok(!tnp_silence_hangs(&silence, 125, 1000) && !tnp_silence_hangs(&silence, 250, 1000)
	   && !tnp_silence_hangs(&silence, 375, 1000) && !tnp_silence_hangs(&silence, 499, 1000)
	   && !tnp_silence_hangs(&silence, HOUR, 1000)
	   && !tnp_silence_hangs(&silence, HOUR + 125, 1000),
	   "the shortest setting leaves time after a pause, too");
}

int
main(void)
{
	test_undisturbed();
	test_pauses();
	test_shortest();
	return done_testing();
}
