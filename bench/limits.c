/*
 * limits.c: what this machine's vector units and memory can do at most: loops that do nothing but
 * multiply and add in registers, numbers or words of 16 bits, or take exponentials, or read.
 *
 * They are compiled for AVX-512, AVX2 and the baseline, and the one that the CPU provider would
 * choose is measured.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "limits.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef double (*Loop) (const float *data, size_t floats, long rounds);

/* One thread's share. */
typedef struct Share
{
	Loop		loop;
	float	   *data;
	size_t		floats;
	double		seconds,
				rate;			/* what the loop counts, 1e9 per second */
} Share;

#define LOOPS(SUFFIX, BYTES, TARGET) \
typedef float Vector##SUFFIX __attribute__((vector_size(BYTES))); \
typedef int Int##SUFFIX __attribute__((vector_size(BYTES))); \
static volatile float sink##SUFFIX; \
TARGET static double \
fma##SUFFIX(const float *data, size_t floats, long rounds) \
{ \
	Vector##SUFFIX s0 = {data[0]}, s1 = s0 + data[3], s2 = s0 + data[4], \
		s3 = s0 + data[5], s4 = s0 + data[6], s5 = s0 + data[7], s6 = s0 + data[8], \
		s7 = s0 + data[9], s8 = s0 + data[10], s9 = s0 + data[11], \
		a = s0 + data[1], b = s0 + data[2]; \
	(void) floats; \
	for (long i = 0; i < rounds; i++) \
	{ \
		s0 = s0 * a + b; s1 = s1 * a + b; s2 = s2 * a + b; s3 = s3 * a + b; s4 = s4 * a + b; \
		s5 = s5 * a + b; s6 = s6 * a + b; s7 = s7 * a + b; s8 = s8 * a + b; s9 = s9 * a + b; \
	} \
	s0 += s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9; \
	sink##SUFFIX = s0[0]; \
	return 10.0 * (BYTES / 4) * (double) rounds; \
} \
TARGET static double \
exp##SUFFIX(const float *data, size_t floats, long rounds) \
{ \
	Vector##SUFFIX sum = {0}; \
	(void) floats; \
	for (long i = 0; i < rounds; i++) \
		for (int j = 0; j < 16; j++) \
		{ \
			Vector##SUFFIX x, y, f, p; \
			memcpy(&x, data + j * (BYTES / 4), BYTES); \
			x = x - (float) (i & 15); \
			y = x + 12582912.0f; \
			f = x - (y - 12582912.0f); \
			p = ((((f * 1.3e-3f + 9.6e-3f) * f + 5.5e-2f) * f + 2.4e-1f) * f + 6.9e-1f) * f + \
				1.0f; \
			sum += (Vector##SUFFIX) ((Int##SUFFIX) p + ((Int##SUFFIX) y << 23)); \
		} \
	sink##SUFFIX = sum[0]; \
	return 16.0 * (BYTES / 4) * (double) rounds; \
} \
TARGET static double \
read##SUFFIX(const float *data, size_t floats, long rounds) \
{ \
	Vector##SUFFIX s[8] = {{0}}; \
	for (long i = 0; i < rounds; i++) \
		for (size_t at = 0; at < floats; at += 8 * (BYTES / 4)) \
			for (int j = 0; j < 8; j++) \
			{ \
				Vector##SUFFIX v; \
				memcpy(&v, data + at + j * (BYTES / 4), BYTES); \
				s[j] += v; \
			} \
	s[0] += s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7]; \
	sink##SUFFIX = s[0][0]; \
	return 4.0 * (double) floats * (double) rounds; \
}

#if defined(__x86_64__)
LOOPS(512, 64, __attribute__((target("avx512f,avx512dq,avx2,fma"))))
LOOPS(256, 32, __attribute__((target("avx2,fma"))))
#endif
LOOPS(128, 16, )

/* Products of words of 16 bits, two added to each sum of 32 bits; `a` is another each time. */
#define WORDS(SUFFIX, BITS, TARGET, ADD_PRODUCT) \
TARGET static double \
words##SUFFIX(const float *data, size_t floats, long rounds) \
{ \
	Int##BITS s[8] = {{0}}, a, b; \
	(void) floats; \
	memcpy(&a, data, sizeof(a)); \
	memcpy(&b, data + sizeof(a) / 4, sizeof(b)); \
	for (long i = 0; i < rounds; i++) \
		_Pragma("GCC unroll 8") \
		for (int j = 0; j < 8; j++) \
		{ \
			__asm__ volatile("" : "+x" (a)); \
			s[j] = ADD_PRODUCT(s[j], a, b); \
		} \
	s[0] += s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7]; \
	sink128 = (float) s[0][0]; \
	return 8.0 * (BITS / 16) * (double) rounds; \
}

#if defined(__x86_64__)
#define TWO_512(s, a, b) ((s) + (Int512) _mm512_madd_epi16((__m512i) (a), (__m512i) (b)))
#define ONE_512(s, a, b) \
	((Int512) _mm512_dpwssd_epi32((__m512i) (s), (__m512i) (a), (__m512i) (b)))
#define TWO_256(s, a, b) ((s) + (Int256) _mm256_madd_epi16((__m256i) (a), (__m256i) (b)))
#define TWO_128(s, a, b) ((s) + (Int128) _mm_madd_epi16((__m128i) (a), (__m128i) (b)))
WORDS(Vnni, 512, __attribute__((target("avx512f,avx512bw,avx512vnni"))), ONE_512)
WORDS(512, 512, __attribute__((target("avx512f,avx512bw"))), TWO_512)
WORDS(256, 256, __attribute__((target("avx2"))), TWO_256)
WORDS(128, 128, , TWO_128)
#endif

static void
choose_loops(const char *name, Loop *loops)
{
	loops[0] = fma128;
	loops[1] = exp128;
	loops[2] = read128;
	loops[3] = NULL;
#if defined(__x86_64__)
	loops[3] = words128;
	if (strncmp(name, "cpu-avx512", 10) == 0)
	{
		loops[0] = fma512;
		loops[1] = exp512;
		loops[2] = read512;
		loops[3] = __builtin_cpu_supports("avx512vnni") ? wordsVnni : words512;
	}
	else if (strncmp(name, "cpu-avx2", 8) == 0)
	{
		loops[0] = fma256;
		loops[1] = exp256;
		loops[2] = read256;
		loops[3] = words256;
	}
#else
	(void) name;
#endif
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

/* The best of several stretches of about a fiftieth of the time each. */
static void *
measure(void *arg)
{
	Share	   *s = arg;
	long		rounds = 1;
	double		start,
				took,
				end = now() + s->seconds;

	for (;;)
	{
		start = now();
		s->loop(s->data, s->floats, rounds);
		took = now() - start;
		if (took > s->seconds / 50)
			break;
		rounds *= 2;
	}
	s->rate = 0;
	do
	{
		double		rate;

		start = now();
		rate = s->loop(s->data, s->floats, rounds) / (now() - start) * 1e-9;
		s->rate = rate > s->rate ? rate : s->rate;
	} while (now() < end);
	return NULL;
}

/* The sum over threads, each with `bytes` of its own. */
static double
together(Loop loop, size_t bytes, int threads, double seconds)
{
	pthread_t	id[64];
	Share		share[64];
	double		sum = 0;

	for (int t = 0; t < threads; t++)
	{
		share[t] = (Share) {loop, aligned_alloc(4096, bytes), bytes / sizeof(float), seconds, 0};
		for (size_t i = 0; i < share[t].floats; i++)
			share[t].data[i] = 1e-3f * (float) (i % 7);
	}
	for (int t = 1; t < threads; t++)
		pthread_create(&id[t], NULL, measure, &share[t]);
	measure(&share[0]);
	for (int t = 1; t < threads; t++)
		pthread_join(id[t], NULL);
	for (int t = 0; t < threads; t++)
	{
		sum += share[t].rate;
		free(share[t].data);
	}
	return sum;
}

void
print_limits(const char *kernels, int threads, double seconds, size_t more)
{
	const size_t bytes[5] = {(size_t) 16 << 10, (size_t) 256 << 10, (size_t) 4 << 20,
							 (size_t) 256 << 20, more};
	Loop		loops[4];
	double		each = seconds / (more > 0 ? 16 : 14);

	if (threads > 64)
		threads = 64;
	choose_loops(kernels, loops);
	printf("{\"kernels\": \"%s\"", kernels);
	for (int all = 0; all < 2; all++)
	{
		int			t = all ? threads : 1;

		printf(", \"%s\": {\"multiply_add\": %.2f, \"exp\": %.2f", all ? "all" : "one",
			   together(loops[0], 4096, t, each), together(loops[1], 4096, t, each));
		if (loops[3] != NULL)
			printf(", \"words\": %.2f", together(loops[3], 4096, t, each));
		for (int i = 0; i < (more > 0 ? 5 : 4); i++)
			printf(", \"read %zu KiB\": %.1f", bytes[i] >> 10,
				   together(loops[2], bytes[i], t, each));
		printf("}");
	}
	printf("}\n");
}
