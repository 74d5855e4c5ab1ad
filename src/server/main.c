/*
 * main.c: pg_posterior_server: holds models and encodings in the memory of a device and answers the
 * sessions' requests about them.
 *
 * PostgreSQL's background worker "posterior supervisor" starts it with --supervised: then it ends
 * when standard input does, and standard error is a pipe of lines of which the first character says
 * what they are: R the device is open and clients are welcome, L and W and D for the log, an empty
 * one is a sign of life. By hand: pg_posterior_server --device cpu --socket /tmp/s
 *
 * The process exits with 0 when it was told to end, with 1 when it could not start, and with 2 when
 * the device has failed and only a new process can go on.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server/server.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The command line. */
typedef struct Options
{
	const char *socket,
			   *device,			/* cpu, cuda */
			   *library;		/* of the cuda device */
	long long	memory;			/* MiB, 0: the device's default */
	int			ordinal;
	TnpPrecision precision;
	bool		supervised;
} Options;

static TnpServer server;
static volatile sig_atomic_t told_to_end = 0;

/* For the device and the store. */
static void
say_log(void *argument, const char *line)
{
	tnp_say(argument, 'L', "%s", line);
}

static void
say_debug(void *argument, const char *line)
{
	tnp_say(argument, 'D', "%s", line);
}

static void
end_soon(int signal)
{
	(void) signal;
	told_to_end = 1;
}

static bool
work_is_unwanted(void *argument)
{
	if (told_to_end)
		server.ending = true;
	return tnp_unwanted(argument);
}

static int
usage(FILE *to, int code)
{
	fprintf(to,
			"pg_posterior_server answers requests of pg_posterior on a device; "
			"PostgreSQL starts it.\n\n"
			"  --socket PATH         where clients connect\n"
			"  --device cpu|cuda     what computes\n"
			"  --library PATH        pg_posterior_cuda.so, for --device cuda\n"
			"  --ordinal N           which of the devices (0)\n"
			"  --memory MIB          device memory that may be used "
			"(three quarters of what is free)\n"
			"  --precision fp16|fp32 inputs of matrix products (fp16)\n"
			"  --supervised          end with standard input, give signs of life\n"
			"  --help, --version\n");
	return code;
}

/* Whole numbers between 0 and max. */
static bool
read_number(const char *text, long long max, long long *number)
{
	char	   *end;

	errno = 0;
	*number = strtoll(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *number >= 0 && *number <= max;
}

/* Returns -1, or the status to exit with. */
static int
read_options(int argc, char **argv, Options *o)
{
	static const struct option names[] = {
		{"socket", required_argument, NULL, 's'},
		{"device", required_argument, NULL, 'd'},
		{"library", required_argument, NULL, 'l'},
		{"ordinal", required_argument, NULL, 'o'},
		{"memory", required_argument, NULL, 'm'},
		{"precision", required_argument, NULL, 'p'},
		{"supervised", no_argument, NULL, 'S'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0}
	};
	int			c;
	long long	number;

	*o = (Options) {.device = "cpu",.precision = TNP_PRECISION_FP16};
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
	{
		bool		good = true;

		switch (c)
		{
			case 's':
				o->socket = optarg;
				break;
			case 'd':
				o->device = optarg;
				good = strcmp(optarg, "cpu") == 0 || strcmp(optarg, "cuda") == 0;
				break;
			case 'l':
				o->library = optarg;
				break;
			case 'o':
				good = read_number(optarg, 1024, &number);
				o->ordinal = (int) number;
				break;
			case 'm':
				good = read_number(optarg, (long long) 1 << 40, &o->memory);
				break;
			case 'p':
				o->precision = strcmp(optarg, "fp32") == 0 ? TNP_PRECISION_FP32
					: TNP_PRECISION_FP16;
				good = strcmp(optarg, "fp32") == 0 || strcmp(optarg, "fp16") == 0;
				break;
			case 'S':
				o->supervised = true;
				break;
			case 'h':
				return usage(stdout, 0);
			case 'V':
				printf("pg_posterior_server, protocol %d, devices %d\n", TNP_WIRE_VERSION,
					   TNP_DEVICE_API);
				return 0;
			default:
				return usage(stderr, 1);
		}
		if (!good)
		{
			fprintf(stderr, "pg_posterior_server: bad value \"%s\"\n", optarg);
			return 1;
		}
	}
	if (optind < argc || o->socket == NULL)
		return usage(stderr, 1);
	return -1;
}

/* Every client is an open file, and its payloads are for a moment: as many as the system allows. */
static void
raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void) setrlimit(RLIMIT_NOFILE, &limit);
}

/* The table of the device, or NULL with a line said. */
static const TnpDeviceApi *
find_api(const Options *o)
{
	const TnpDeviceApi *api;
	void	   *library;

	if (strcmp(o->device, "cpu") == 0)
		return &tnp_cpu_device;
	library = dlopen(o->library != NULL ? o->library : "pg_posterior_cuda.so",
					 RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
	{
		tnp_say(&server, 'W', "the CUDA provider cannot be loaded: %s", dlerror());
		return NULL;
	}
	api = dlsym(library, TNP_DEVICE_SYMBOL);
	if (api == NULL)
		tnp_say(&server, 'W', "the CUDA provider has no table of functions: %s", dlerror());
	else if (api->version != TNP_DEVICE_API || api->size != sizeof(TnpDeviceApi))
	{
		tnp_say(&server, 'W',
				"the CUDA provider is of version %u (%u bytes), this server needs %d (%zu bytes)",
				(unsigned) api->version, (unsigned) api->size, TNP_DEVICE_API,
				sizeof(TnpDeviceApi));
		return NULL;
	}
	return api;
}

/* ---- signs of life while the device opens ---------------------------------------------------- */

#define SIGN_EVERY 500			/* ms */
#define MOST_SIGNS 1200			/* ten minutes: a driver may translate all kernels the first time */

static pthread_mutex_t opening_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened_event = PTHREAD_COND_INITIALIZER;
static bool opened = false;

/*
 * An empty line to the supervisor now and then, until the device is open: one call of the driver
 * may take longer than the supervisor waits, and polls nothing meanwhile.
 */
static void *
give_signs(void *argument)
{
	(void) argument;
	pthread_mutex_lock(&opening_lock);
	for (int signs = 0; !opened && signs < MOST_SIGNS; signs++)
	{
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += SIGN_EVERY * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		if (pthread_cond_timedwait(&opened_event, &opening_lock, &until) == ETIMEDOUT
			&& write(2, "\n", 1) < 0 && errno == EPIPE)
			break;
	}
	pthread_mutex_unlock(&opening_lock);
	return NULL;
}

/* api->init, with signs of life for a supervisor. Nothing else runs beside it. */
static TnpStatus
open_device(const TnpDeviceApi *api, const TnpDeviceConfig *config, TnpDevice **device,
			TnpError *error)
{
	pthread_t	thread;
	sigset_t	all,
				before;
	bool		signs;
	TnpStatus	status;

	/* signals are the main thread's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	signs = server.supervised && pthread_create(&thread, NULL, give_signs, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	status = api->init(config, device, error);
	if (signs)
	{
		pthread_mutex_lock(&opening_lock);
		opened = true;
		pthread_cond_signal(&opened_event);
		pthread_mutex_unlock(&opening_lock);
		pthread_join(thread, NULL);
	}
	return status;
}

static void
supervisor_greet(const Options *o)
{
	TnpDeviceInfo info;
	TnpWireWelcome *w = &server.welcome;

	server.store.api->describe(server.store.device, &info);
	memcpy(w->provider, info.provider, sizeof(w->provider));
	memcpy(w->name, info.name, sizeof(w->name));
	memcpy(w->version, info.version, sizeof(w->version));
	tnp_wire_end_welcome(w);
	w->precision = info.precision;
	w->exact = info.exact;
	w->memory_total = info.memory_total;
	w->memory_limit = info.memory_limit;
	w->pid = (uint64_t) getpid();
	tnp_say(&server, 'L',
			"device %d is open: %s, %s%s%s, %llu MB of its memory, inputs of products in %d bits",
			o->ordinal, w->provider, w->name, w->version[0] != '\0' ? ", " : "",
			w->version, (unsigned long long) (w->memory_limit >> 20),
			w->precision == TNP_PRECISION_FP32 ? 32 : 16);
	if (server.supervised)
		tnp_say(&server, 'R', "%s", w->provider);
}

int
main(int argc, char **argv)
{
	Options		o;
	int			code = read_options(argc, argv, &o);
	struct sigaction action = {.sa_handler = end_soon};
	const TnpDeviceApi *api;
	TnpDevice  *device;
	TnpError	error = {TNP_OK, "", ""};
	double		deadline;

	if (code >= 0)
		return code;
	server.supervised = o.supervised;
	server.most_bytes = TNP_SERVER_BYTES;
	server.began = server.turned = tnp_now();
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	raise_file_limit();
	if (o.supervised)
		fcntl(2, F_SETFL, fcntl(2, F_GETFL) | O_NONBLOCK);
	if ((api = find_api(&o)) == NULL)
		return 1;
	if (open_device(api, &(TnpDeviceConfig) {o.ordinal, (size_t) o.memory << 20, o.precision,
											 work_is_unwanted, say_log, &server}, &device, &error)
		!= TNP_OK)
	{
		tnp_say(&server, 'W', "the device cannot be opened: %s%s%s", error.message,
				error.detail[0] != '\0' ? ": " : "", error.detail);
		return 1;
	}
	tnp_store_init(&server.store, api, device);
	server.store.log = say_debug;
	server.store.arg = &server;
	if (!tnp_listen(&server, o.socket))
		return 1;
	supervisor_greet(&o);
	while (!server.ending && !told_to_end)
	{
		tnp_serve_once(&server, server.queue != NULL || server.n_released > 0 ? 0 : -1);
		tnp_answer_queued(&server);
	}
	tnp_tell_queued(&server);
	/* under a supervisor it may be a successor's by now */
	if (!o.supervised)
		unlink(o.socket);
	server.supervised = false;
	/* replies that are under way should arrive */
	deadline = tnp_now() + 1000;
	for (bool some = true; some && tnp_now() < deadline;)
	{
		some = false;
		for (TnpClient *c = server.clients; c != NULL; c = c->next)
			some = some || (!c->gone && c->state == TNP_REPLYING);
		if (some)
			tnp_serve_once(&server, 50);
	}
	server.supervised = o.supervised;
	tnp_say(&server, 'L',
			server.code == 0 ? "the server ends" : "the server ends, to be started anew");
	tnp_close(&server);
	if (server.code == 0)
	{
		tnp_store_clear(&server.store);
		api->shutdown(device);
	}
	return server.code;
}
