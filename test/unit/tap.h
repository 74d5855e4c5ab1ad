/*
 * tap.h: the unit tests' way to say what holds, in the Test Anything Protocol.
 *
 * Each test program includes this once, calls ok(), is_int(), is_near() and the others, or skip(),
 * and ends with: return done_testing(); A failure is reported with its place and the values, and
 * the program goes on. Nothing here is thread-safe.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TAP_H
#define TAP_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int	tap_tests = 0;
static int	tap_failures = 0;

/* One result with a formatted name; returns whether it holds. */
static inline bool __attribute__((format(printf, 4, 5)))
tap_result(bool holds, const char *file, int line, const char *format,...)
{
	va_list		args;

	tap_tests++;
	if (!holds)
		tap_failures++;
	printf("%s %d - ", holds ? "ok" : "not ok", tap_tests);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	if (!holds)
		printf("#   failed at %s line %d\n", file, line);
	fflush(stdout);
	return holds;
}

/* One test, with a formatted name, that cannot be made here. */
static inline void __attribute__((format(printf, 2, 3)))
skip(const char *why, const char *format,...)
{
	va_list		args;

	printf("ok %d - ", ++tap_tests);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(" # SKIP %s\n", why);
	fflush(stdout);
}

/* A remark for the reader of the output. */
static inline void __attribute__((format(printf, 1, 2)))
diag(const char *format,...)
{
	va_list		args;

	printf("#   ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

static inline bool
tap_is_int(long long got, long long expected, const char *file, int line, const char *name)
{
	bool		holds = tap_result(got == expected, file, line, "%s", name);

	if (!holds)
		diag("got %lld, expected %lld", got, expected);
	return holds;
}

/* NaN is near NaN only, an infinity near itself only. */
static inline bool
tap_is_near(double got, double expected, double tolerance, const char *file, int line,
			const char *name)
{
	bool		near = isnan(expected) ? isnan(got) : got == expected ||
		fabs(got - expected) <= tolerance;
	bool		holds = tap_result(near, file, line, "%s", name);

	if (!holds)
		diag("got %.17g, expected %.17g, difference %g, tolerance %g", got, expected,
			 got - expected, tolerance);
	return holds;
}

static inline bool
tap_is_string(const char *got, const char *expected, const char *file, int line, const char *name)
{
	bool		holds = tap_result(strcmp(got, expected) == 0, file, line, "%s", name);

	if (!holds)
		diag("got \"%s\", expected \"%s\"", got, expected);
	return holds;
}

/* The text contains the part. */
static inline bool
tap_contains(const char *got, const char *part, const char *file, int line, const char *name)
{
	bool		holds = tap_result(strstr(got, part) != NULL, file, line, "%s", name);

	if (!holds)
		diag("got \"%s\", expected it to contain \"%s\"", got, part);
	return holds;
}

#define ok(holds, ...) tap_result(holds, __FILE__, __LINE__, __VA_ARGS__)
#define is_int(got, expected, name) tap_is_int(got, expected, __FILE__, __LINE__, name)
#define is_near(got, expected, tolerance, name) \
	tap_is_near(got, expected, tolerance, __FILE__, __LINE__, name)
#define is_string(got, expected, name) tap_is_string(got, expected, __FILE__, __LINE__, name)
#define contains(got, part, name) tap_contains(got, part, __FILE__, __LINE__, name)

/* Print the plan; the value is main's. A program that tested nothing has failed. */
static inline int
done_testing(void)
{
	printf("1..%d\n", tap_tests);
	if (tap_failures > 0)
		diag("%d of %d tests failed", tap_failures, tap_tests);
	return tap_failures > 0 || tap_tests == 0 ? 1 : 0;
}

#endif							/* TAP_H */
