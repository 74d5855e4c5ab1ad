/*
 * emulator_test.c: the emulator stops kernels that a GPU would run wrongly without a word. Each
 * mistake ends a child process.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_emulated.h"
#include "tap.h"

/* Whether a child that runs the mistake ends as it should. */
static bool
survives(int mistake)
{
	pid_t		child = fork();
	int			status = 0;

	if (child == 0)
	{
		int			nowhere = open("/dev/null", O_WRONLY);

		dup2(nowhere, 2);
		gpu_emulated_broken(mistake);
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
		&& WEXITSTATUS(status) == 0;
}

/* Activations of the kernels against the C library's functions in double precision. */
static void
check_activations(void)
{
	double		worst[2] = {0, 0};

	for (double v = -20; v <= 20; v += 1.0 / 1024)
	{
		double		want[2] = {0.5 * v * erfc(-v * M_SQRT1_2),
			0.5 * v * (1 + tanh(0.79788456080286536 * (v + 0.044715 * v * v * v)))};

		for (int i = 0; i < 2; i++)
			worst[i] = fmax(worst[i], fabs(gpu_emulated_activate((float) v, 2 + i) - want[i]) /
							(1 + fabs(v)));
	}
	ok(worst[0] < 3e-7 && worst[1] < 3e-7, "activations are right: %.1e, %.1e", worst[0], worst[1]);
	for (int i = 1; i <= 3; i++)
		ok(isnan(gpu_emulated_activate(NAN, i)) && gpu_emulated_activate(1e30f, i) == 1e30f
		   && gpu_emulated_activate(-1e30f, i) == 0, "activation %d of NaN and large numbers", i);
}

int
main(void)
{
	static const char *const mistakes[] = {
		"none", "a barrier that a part of a warp reaches", "two barriers for one",
		"lanes missing in a shuffle", "lanes in different operations",
		"an operand that was not rounded", "a misaligned vector", "memory beyond the block's",
		"a block that the team does not have",
		"a barrier that one block of the team reaches",
		"a store in a block that may not have begun", "a store in a block that may have ended",
		"a barrier that one team of the launch reaches",
		"two barriers of a launch that share a counter",
		"a copy that is not awaited",
		"a bell that was not opened", "more pushed than expected", "a round that cannot end",
		"a round of another parity", "a round awaited after the next one", "a push not awaited",
		"a misaligned push", "a bell that other blocks may not find open",
		"a push into a block that may have ended"
	};

	check_activations();
	ok(survives(0), "a correct kernel runs");
	for (int i = 1; i < (int) (sizeof(mistakes) / sizeof(mistakes[0])); i++)
		ok(!survives(i), "stopped: %s", mistakes[i]);
	return done_testing();
}
