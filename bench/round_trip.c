/*
 * round_trip.c: what the server process for devices adds to a statement. Three connections take
 * turns, call by call, so that whatever else the machine does meets all of them alike: SELECT 1, a
 * small prediction that the session computes, and the same prediction from the server process,
 * which computes on the CPU as well. What the third takes longer than the second is the round trip.
 *
 *   make build/round_trip && test/with-server \
 *       --conf shared_preload_libraries=pg_posterior --conf posterior.server_device=cpu \
 *       --conf posterior.device=auto build/round_trip [CALLS [ROWS]]
 *
 * Prints microseconds: the smallest, the median and the 90th percentile of each kind of call, then
 * the median of the differences of neighbouring calls. Not installed, not part of any test.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KINDS 3
#define WARM_UP 200

static const char *const names[KINDS] = {"SELECT 1", "session", "server"};

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static void
must(PGconn *c, PGresult *r)
{
	ExecStatusType s = PQresultStatus(r);

	if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK)
	{
		fprintf(stderr, "round_trip: %s", PQerrorMessage(c));
		exit(1);
	}
	PQclear(r);
}

static PGconn *
begin(const char *device, const char *question)
{
	PGconn	   *c = PQconnectdb("");
	char		set[64];

	if (PQstatus(c) != CONNECTION_OK)
	{
		fprintf(stderr, "round_trip: %s", PQerrorMessage(c));
		exit(1);
	}
	snprintf(set, sizeof(set), "SET posterior.device = %s", device);
	must(c, PQexec(c, set));
	must(c, PQexec(c, "SET posterior.device_threshold = 0"));
	must(c, PQprepare(c, "q", question, 0, NULL));
	return c;
}

static int
by_size(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return x < y ? -1 : x > y;
}

static double
quantile(double *x, int n, double level)
{
	qsort(x, (size_t) n, sizeof(double), by_size);
	return x[(int) (level * (n - 1))];
}

int
main(int argc, char **argv)
{
	int			calls = argc > 1 ? atoi(argv[1]) : 5000,
				rows = argc > 2 ? atoi(argv[2]) : 20;
	const char *predict = "SELECT posterior.mean(posterior.predict(ctx, 1, 2)) FROM round_trip";
	PGconn	   *c[KINDS];
	double	   *took[KINDS],
			   *added = malloc((size_t) calls * sizeof(double));
	char		sql[256];
	PGconn	   *maker = PQconnectdb("");

	must(maker, PQexec(maker, "CREATE EXTENSION IF NOT EXISTS pg_posterior"));
	must(maker, PQexec(maker, "SET posterior.model = 'tabular_small'"));
	must(maker, PQexec(maker, "DROP TABLE IF EXISTS round_trip"));
	snprintf(sql, sizeof(sql),
			 "CREATE TABLE round_trip AS SELECT posterior.context(sin(i * 0.1), i * 0.1, "
			 "cos(i * 0.3)) AS ctx FROM generate_series(1, %d) i", rows);
	must(maker, PQexec(maker, sql));
	PQfinish(maker);
	c[0] = begin("cpu", "SELECT 1");
	c[1] = begin("cpu", predict);
	c[2] = begin("cuda", predict);
	for (int k = 0; k < KINDS; k++)
		took[k] = malloc((size_t) calls * sizeof(double));
	for (int i = -WARM_UP; i < calls; i++)
	{
		for (int k = 0; k < KINDS; k++)
		{
			double		began = now();

			must(c[k], PQexecPrepared(c[k], "q", 0, NULL, NULL, NULL, 0));
			if (i >= 0)
				took[k][i] = now() - began;
		}
		if (i >= 0)
			added[i] = took[2][i] - took[1][i];
	}
	printf("%-20s %9s %9s %9s\n", "microseconds", "smallest", "median", "90 %");
	for (int k = 0; k < KINDS; k++)
	{
		printf("%-20s %9.1f %9.1f %9.1f\n", names[k], quantile(took[k], calls, 0),
			   quantile(took[k], calls, 0.5), quantile(took[k], calls, 0.9));
		PQfinish(c[k]);
	}
	printf("%-20s %9s %9.1f %9.1f\n", "added by the server", "", quantile(added, calls, 0.5),
		   quantile(added, calls, 0.9));
	printf("median, as a multiple of SELECT 1: session %.2f, server %.2f\n",
		   quantile(took[1], calls, 0.5) / quantile(took[0], calls, 0.5),
		   quantile(took[2], calls, 0.5) / quantile(took[0], calls, 0.5));
	return 0;
}
