/*
 * log.c: the clock, and lines for administrators.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server/server.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

double
tnp_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

void
tnp_say(TnpServer *s, char level, const char *format,...)
{
	char		line[640];
	int			n = s->supervised ? snprintf(line, sizeof(line), "%c ", level) : 0;
	va_list		args;

	if (s->silent)
		return;
	va_start(args, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t) n - 1, format, args);
	va_end(args);
	if (n > (int) sizeof(line) - 2)
		n = (int) sizeof(line) - 2;
	line[n++] = '\n';
	/* a log without a reader must not stop the server */
	if (write(2, line, (size_t) n) < 0 && errno == EPIPE)
		s->ending = true;
}
