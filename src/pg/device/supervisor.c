/*
 * supervisor.c: starts the server for devices, reads its messages, starts it anew when it has
 * ended, and ends it with PostgreSQL.
 *
 * The server is a program of its own, started with exec: no CUDA function is ever called in a
 * process that has PostgreSQL's shared memory mapped. Its standard input is a pipe that is never
 * written to, so it notices the supervisor's end, however that comes; its standard error is a pipe
 * of lines (main.c of the server says which). When no line has come for posterior.device_timeout,
 * the server hangs and is killed; a time in which this process did not run either does not count
 * (silence.h).
 *
 * A server that was ready and then is killed is started anew after FIRST_DELAY; one that cannot
 * start, or that fails soon, each time after twice the time.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/device/supervisor.h"

#include "pg/base/bridge.h"
#include "pg/device/server_state.h"
#include "pg/shmem/shared.h"

#include "server/protocol.h"
#include "server/silence.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/procsignal.h"
#include "utils/timestamp.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define FIRST_DELAY 100			/* ms before the next start */
#define LAST_DELAY 60000
/* ms: a server that fails sooner after its start is waited for longer */
#define SOON 10000
#define PATIENCE 2000			/* ms that a server is given to end by itself */
#define MAX_ARGUMENTS 24

int			posterior_device_memory = 0;
int			posterior_device_number = 0;
int			posterior_device_timeout = 30;
int			posterior_precision = 0;
int			posterior_server_device = 0;
char	   *posterior_server_program = NULL;

static pid_t child = 0;
static int	input = -1;			/* the child's standard input, this process's end */
static int	output = -1;		/* its standard error, this process's end */
static char line[1024];			/* what has been read of the current line */
static int	line_length = 0;
static char arguments[2048];	/* the command line of the child, for comparison */
static bool warned;				/* the child's last sign of life has said what is wrong */
static int	delay = FIRST_DELAY;
static double next_start = 0,	/* by clock_ms() */
			started = 0;
static TnpSilence silence;		/* of the child */

/* Milliseconds of a clock that only goes forward. */
static double
clock_ms(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return INSTR_TIME_GET_MILLISEC(now);
}

bool
posterior_device_seen(void)
{
	static const char *const files[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg",
										"/dev/nvhost-gpu"};

	for (int i = 0; i < lengthof(files); i++)
		if (access(files[i], F_OK) == 0)
			return true;
	return false;
}

/* Where the shared object with the CUDA provider would be. */
static void
library_path(char *path, size_t size)
{
	snprintf(path, size, "%s/pg_posterior_cuda.so", pkglib_path);
}

void
posterior_supervisor_register(void)
{
	BackgroundWorker worker;
	char		library[MAXPGPATH];

	library_path(library, sizeof(library));
	if (posterior_device == POSTERIOR_DEVICE_CPU)
		return;
	if (posterior_device == POSTERIOR_DEVICE_AUTO && posterior_server_device == 0
		&& !(posterior_device_seen() && access(library, R_OK) == 0))
		return;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = 1;
	strlcpy(worker.bgw_library_name, "pg_posterior", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "posterior_supervisor_main",
			sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "posterior supervisor", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "posterior supervisor", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}

/* ---- the child ------------------------------------------------------------------------------- */

static void
server_set_state(PosteriorServerState state)
{
	pg_atomic_write_u32(&posterior_server->state, state);
}

/* The command line: words with a NUL after each, in `words`; returns their number. */
static int
child_arguments(char **argv, char *words, size_t size)
{
	char		program[MAXPGPATH],
				library[MAXPGPATH],
				number[32],
				memory[32];
	const char *all[] = {
		NULL,          "--supervised",
		"--socket",    POSTERIOR_SOCKET,
		"--device",    posterior_server_device == 1 ? "cpu" : "cuda",
		"--library",   NULL,
		"--ordinal",   NULL,
		"--memory",    NULL,
		"--precision", posterior_precision == TNP_PRECISION_FP32 ? "fp32" : "fp16",
	};
	size_t		at = 0;

	snprintf(program, sizeof(program), "%s/pg_posterior_server", pkglib_path);
	library_path(library, sizeof(library));
	snprintf(number, sizeof(number), "%d", posterior_device_number);
	snprintf(memory, sizeof(memory), "%d", posterior_device_memory);
	all[0] = posterior_server_program[0] != '\0' ? posterior_server_program : program;
	all[7] = library;
	all[9] = number;
	all[11] = memory;
	memset(words, 0, size);
	for (int i = 0; i < lengthof(all); i++)
	{
		argv[i] = words + at;
		at += strlcpy(words + at, all[i], size - at) + 1;
		if (at >= size)
			elog(ERROR, "the command line of the posterior server is too long");
	}
	argv[lengthof(all)] = NULL;
	return lengthof(all);
}

/* In the child, between fork and exec: no function of PostgreSQL's. */
pg_noreturn static void
child_exec(char **argv, int in, int err)
{
	sigset_t	none;
	int			null = open("/dev/null", O_WRONLY);
	ssize_t		ignored;

	setpgid(0, 0);
#ifdef __linux__
	/* if memory runs out, the kernel's choice should not fall on a backend */
	{
		int			file = open("/proc/self/oom_score_adj", O_WRONLY);

		/* where that is not allowed, it stays as it is */
		ignored = file >= 0 ? write(file, "500", 3) : 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	dup2(in, 0);
	dup2(null, 1);
	dup2(err, 2);
	for (int file = 3; file < 4096; file++)
		close(file);
	for (int i = 1; i < 32; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(argv[0], argv);
	ignored = write(2, "W its program cannot be started\n", 32);
	(void) ignored;
	_exit(1);
}

static void
child_start(void)
{
	char	   *argv[MAX_ARGUMENTS];
	int			in[2],
				err[2];

	child_arguments(argv, arguments, sizeof(arguments));
	server_set_state(POSTERIOR_SERVER_STARTING);
	if (pipe(in) != 0)
		elog(ERROR, "could not make a pipe for the posterior server: %m");
	if (pipe(err) != 0)
	{
		close(in[0]);
		close(in[1]);
		elog(ERROR, "could not make a pipe for the posterior server: %m");
	}
	child = fork();
	if (child == 0)
		child_exec(argv, in[0], err[1]);
	close(in[0]);
	close(err[1]);
	if (child < 0)
	{
		child = 0;
		close(in[1]);
		close(err[0]);
		elog(ERROR, "could not fork for the posterior server: %m");
	}
	input = in[1];
	output = err[0];
	(void) fcntl(input, F_SETFD, FD_CLOEXEC);
	(void) fcntl(output, F_SETFD, FD_CLOEXEC);
	(void) fcntl(output, F_SETFL, O_NONBLOCK);
	line_length = 0;
	warned = false;
	started = clock_ms();
	tnp_silence_break(&silence, started);
	pg_atomic_fetch_add_u64(&posterior_server->starts, 1);
	pg_atomic_write_u64(&posterior_server->since, (uint64) GetCurrentTimestamp());
	pg_atomic_write_u64(&posterior_server->pid, (uint64) child);
}

/* What the server says. */
static void
child_take_line(const char *text)
{
	tnp_silence_break(&silence, clock_ms());
	if (text[0] == '\0')
	{
		/* it has gone on */
		warned = false;
		return;
	}
	if (text[0] == 'R' && text[1] == ' ')
		server_set_state(POSTERIOR_SERVER_READY);
	else if ((text[0] == 'L' || text[0] == 'W' || text[0] == 'D') && text[1] == ' ')
	{
		ereport(text[0] == 'W' ? WARNING : text[0] == 'L' ? LOG : DEBUG1,
				(errmsg_internal("posterior server: %s", text + 2)));
		if (text[0] == 'W')
		{
			strlcpy(posterior_server->ended, text + 2, sizeof(posterior_server->ended));
			warned = true;
		}
	}
	else
		ereport(LOG,
				(errmsg_internal("posterior server: %s", text)));
}

/* Read what there is. False at the end of it. */
static bool
child_read_lines(void)
{
	char		bytes[1024];

	for (;;)
	{
		ssize_t		n = read(output, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return true;
		if (n <= 0)
			return false;
		for (ssize_t i = 0; i < n; i++)
		{
			if (bytes[i] != '\n' && line_length < (int) sizeof(line) - 1)
			{
				line[line_length++] = bytes[i];
				continue;
			}
			line[line_length] = '\0';
			line_length = 0;
			child_take_line(line);
		}
	}
}

/* Wait up to PATIENCE for the child, then kill it. Its status. */
static int
child_reap(bool ask)
{
	int			status = 0;

	if (ask)
		kill(child, SIGTERM);
	for (int waited = 0; waitpid(child, &status, WNOHANG) == 0; waited += 10)
	{
		if (waited >= PATIENCE)
			kill(child, SIGKILL);
		pg_usleep(10000L);
	}
	return status;
}

static void
child_close(void)
{
	close(input);
	close(output);
	input = output = -1;
	child = 0;
	pg_atomic_write_u64(&posterior_server->pid, 0);
}

/* The child has closed its pipe: it has ended, or is about to. */
static void
child_ended(void)
{
	int			status = child_reap(false);
	bool was_ready = pg_atomic_read_u32(&posterior_server->state) == POSTERIOR_SERVER_READY,
		 killed =
			 WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM),
		 young = clock_ms() - started < SOON;
	int			wait = FIRST_DELAY;

	/* one that lived, or was ready until it was killed, can start */
	if (!young || (was_ready && killed))
		delay = FIRST_DELAY;
	else
	{
		wait = delay;
		delay = Min(2 * delay, LAST_DELAY);
	}
	if (WIFSIGNALED(status))
		snprintf(posterior_server->ended, sizeof(posterior_server->ended),
				 "it was ended by signal %d", WTERMSIG(status));
	else if (was_ready && !warned)
		snprintf(posterior_server->ended, sizeof(posterior_server->ended),
				 "it exited with status %d", WEXITSTATUS(status));
	child_close();
	next_start = clock_ms() + wait;
	server_set_state(wait > 1000 ? POSTERIOR_SERVER_WAITING : POSTERIOR_SERVER_STARTING);
	ereport(LOG,
			(errmsg("posterior server has ended: %s", posterior_server->ended),
			 errdetail("It is started again in %d ms.", wait)));
}

/* At the end of this process. */
static void
child_end(int code, Datum argument)
{
	server_set_state(POSTERIOR_SERVER_OFF);
	if (child > 0)
	{
		close(input);
		input = -1;
		child_reap(true);
		(void) child_read_lines();
		unlink(POSTERIOR_SOCKET);
		child = 0;
	}
	pg_atomic_write_u64(&posterior_server->pid, 0);
}

/* ---- the worker ------------------------------------------------------------------------------ */

/* A setting may have changed: another command line is another server. */
static void
child_reconsider(void)
{
	char	   *argv[MAX_ARGUMENTS];
	char		lookup[sizeof(arguments)];

	ProcessConfigFile(PGC_SIGHUP);
	child_arguments(argv, lookup, sizeof(lookup));
	if (child > 0
		&& (posterior_device == POSTERIOR_DEVICE_CPU
			|| memcmp(lookup, arguments, sizeof(lookup)) != 0))
	{
		ereport(LOG,
				(errmsg("posterior server is ended because its settings have changed")));
		server_set_state(POSTERIOR_SERVER_STARTING);
		child_reap(true);
		(void) child_read_lines();
		child_close();
	}
	next_start = 0;
	delay = FIRST_DELAY;
	if (child == 0)
		server_set_state(posterior_device == POSTERIOR_DEVICE_CPU ? POSTERIOR_SERVER_OFF
																  : POSTERIOR_SERVER_STARTING);
}

/* ms until something is to be done although nothing happens; -1: nothing. */
static long
time_until_next(void)
{
	double		allowed = posterior_device_timeout * 1000.0;

	if (child > 0)
		return Max(1, (long) Min(tnp_silence_step(allowed), allowed - silence.lasted));
	if (posterior_device == POSTERIOR_DEVICE_CPU)
		return -1;
	return Max(0, (long) ceil(next_start - clock_ms()));
}

/* The child has said nothing for longer than it may. */
static void
child_kill(void)
{
	ereport(WARNING,
			(errmsg("posterior server is killed because it hangs"),
			 errdetail("It has given no sign of life for %d s.", posterior_device_timeout),
			 errhint("Setting posterior.device_timeout is how long that may take.")));
	kill(child, SIGKILL);
	child_ended();
}

void
posterior_supervisor_main(Datum argument)
{
	static uint32 event = 0;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGUSR1, procsignal_sigusr1_handler);
	pqsignal(SIGCHLD, SIG_DFL);
	BackgroundWorkerUnblockSignals();
	posterior_shared_attach();
	before_shmem_exit(child_end, (Datum) 0);
	for (;;)
	{
		long		timeout;
		int			events;

		CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending)
			proc_exit(0);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			child_reconsider();
		}
		if (child == 0 && posterior_device != POSTERIOR_DEVICE_CPU
			&& clock_ms() >= next_start)
			child_start();
		timeout = time_until_next();
		events =
			WaitLatchOrSocket(MyLatch,
							  WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (timeout >= 0 ? WL_TIMEOUT : 0)
								  | (child > 0 ? WL_SOCKET_READABLE : 0),
							  child > 0 ? output : PGINVALID_SOCKET, timeout,
							  posterior_wait_event(&event, "PosteriorSupervisorMain"));
		if (events & WL_LATCH_SET)
			ResetLatch(MyLatch);
		if (child == 0)
			continue;
		/* a wait that was interrupted for long says nothing of what there is to be read */
		if (!child_read_lines())
			child_ended();
		else if (tnp_silence_hangs(&silence, clock_ms(), posterior_device_timeout * 1000.0))
			child_kill();
	}
}
