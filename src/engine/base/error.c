/*
 * error.c: how the engine reports a failure, and small allocation helpers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE_PAGE ((uintptr_t) 2 << 20)

TnpStatus
tnp_fail(TnpError *error, TnpStatus status, const char *format,...)
{
	va_list		args;

	if (error == NULL)
		return status;
	error->status = status;
	error->detail[0] = '\0';
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return status;
}

void
tnp_detail(TnpError *error, const char *format,...)
{
	va_list		args;

	if (error == NULL)
		return;
	va_start(args, format);
	vsnprintf(error->detail, sizeof(error->detail), format, args);
	va_end(args);
}

TnpStatus
tnp_no_memory(TnpError *error)
{
	return tnp_fail(error, TNP_NO_MEMORY, "out of memory");
}

/* count * size, at least 1; 0 if that overflows. */
static size_t
product(size_t count, size_t size)
{
	if (size != 0 && count > (SIZE_MAX / 2) / size)
		return 0;
	return count * size == 0 ? 1 : count * size;
}

/*
 * Ask for large pages where memory is large: keys and values are read from one end to the other for
 * every question, and small pages cost a tenth of the time of a single row. What the system makes
 * of it changes nothing else.
 */
static void *
advise(void *pointer, size_t bytes)
{
#ifdef MADV_HUGEPAGE
	uintptr_t	start = ((uintptr_t) pointer + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE,
				end = ((uintptr_t) pointer + bytes) / LARGE_PAGE * LARGE_PAGE;

	if (pointer != NULL && end > start)
		madvise((void *) start, end - start, MADV_HUGEPAGE);
#else
	(void) bytes;
#endif
	return pointer;
}

void *
tnp_alloc(const TnpEnv *env, size_t count, size_t size)
{
	size_t		bytes = product(count, size);

	return bytes == 0 ? NULL : advise(env->alloc(env->arg, bytes), bytes);
}

void *
tnp_alloc_zero(const TnpEnv *env, size_t count, size_t size)
{
	void	   *p = tnp_alloc(env, count, size);

	if (p != NULL)
		memset(p, 0, count * size);
	return p;
}

void
tnp_free(const TnpEnv *env, void *pointer)
{
	if (pointer != NULL)
		env->free(env->arg, pointer);
}

void *
tnp_keep(const TnpEnv *env, size_t count, size_t size)
{
	size_t		bytes = product(count, size);

	if (bytes == 0)
		return NULL;
	return advise(env->keep != NULL ? env->keep(env->arg, bytes) : env->alloc(env->arg, bytes),
				  bytes);
}

void *
tnp_keep_zero(const TnpEnv *env, size_t count, size_t size)
{
	void	   *p = tnp_keep(env, count, size);

	if (p != NULL)
		memset(p, 0, count * size);
	return p;
}

void
tnp_drop(const TnpEnv *env, void *pointer)
{
	if (pointer == NULL)
		return;
	if (env->keep != NULL)
		env->drop(env->arg, pointer);
	else
		env->free(env->arg, pointer);
}

TnpEnv
tnp_lasting(const TnpEnv *env)
{
	TnpEnv		lasting = *env;

	if (env->keep != NULL)
	{
		lasting.alloc = env->keep;
		lasting.free = env->drop;
	}
	return lasting;
}

int
tnp_estimators(const TnpEnv *env)
{
	int			wanted = env->estimators != NULL ? env->estimators(env->arg) : 1;

	return wanted < 1 ? 1 : wanted > TNP_MAX_VIEWS ? TNP_MAX_VIEWS : wanted;
}

bool
tnp_interrupted(const TnpEnv *env)
{
	return env->interrupted != NULL && env->interrupted(env->arg);
}

void
tnp_answered(const TnpEnv *env, int64_t rows)
{
	if (env->answered != NULL)
		env->answered(env->arg, rows);
}

static void *
default_alloc(void *arg, size_t size)
{
	(void) arg;
	return malloc(size);
}

static void
default_free(void *arg, void *pointer)
{
	(void) arg;
	free(pointer);
}

TnpStatus
tnp_clear(const TnpEnv *env, void *to, size_t bytes, TnpError *error)
{
	for (size_t at = 0; at < bytes; at += TNP_POLL_BYTES)
	{
		if (tnp_interrupted(env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		memset((char *) to + at, 0, bytes - at < TNP_POLL_BYTES ? bytes - at : TNP_POLL_BYTES);
	}
	return TNP_OK;
}

TnpStatus
tnp_copy(const TnpEnv *env, void *to, const void *from, size_t bytes, TnpError *error)
{
	for (size_t at = 0; at < bytes; at += TNP_POLL_BYTES)
	{
		if (tnp_interrupted(env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		memcpy((char *) to + at, (const char *) from + at,
			   bytes - at < TNP_POLL_BYTES ? bytes - at : TNP_POLL_BYTES);
	}
	return TNP_OK;
}

const TnpEnv tnp_default_env = {.alloc = default_alloc,.free = default_free};
