/*
 * emulator_test.c: the emulator stops kernels that a GPU would run wrongly without a word. Each
 * mistake ends a child process.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <fcntl.h>
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

	ok(survives(0), "a correct kernel runs");
	for (int i = 1; i < (int) (sizeof(mistakes) / sizeof(mistakes[0])); i++)
		ok(!survives(i), "stopped: %s", mistakes[i]);
	return done_testing();
}
