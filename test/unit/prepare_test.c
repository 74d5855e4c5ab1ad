/*
 * prepare_test.c: preprocessing of tables for models that read columns, against what the TabICL
 * package and scipy make of the same tables (prepare_golden.h).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/prepare.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/twister.h"
#include "engine/features/power.h"
#include "engine/features/power_column.h"
#include "prepare_golden.h"
#include "tap.h"

static const TnpColumnKind kinds[COLUMNS] = {[2] = TNP_CATEGORICAL};

static TnpRows
context_rows(const double *y)
{
	return (TnpRows) {ROWS, COLUMNS, kinds, golden_x, y, 0, 0, 1};
}

/* The largest difference of n prepared rows from the golden cells, relative to their size. */
static double
difference(const TnpPrepared *p, TnpNormal normal, int64_t n, const double *x, const double *golden)
{
	double		worst = 0;

	for (int64_t i = 0; i < n; i++)
	{
		float		cells[KEPT];

		tnp_prepare_row(p, normal, x + i * COLUMNS, cells);
		for (int f = 0; f < KEPT; f++)
			worst = fmax(worst, fabs(cells[f] - golden[i * KEPT + f])
						 / (1 + fabs(golden[i * KEPT + f])));
	}
	return worst;
}

static void
test_golden(void)
{
	double		y[ROWS],
				worst = 0;
	TnpRows		rows = context_rows(y);
	TnpPrepared *p,
			   *copy;
	TnpError	error;

	for (int i = 0; i < ROWS; i++)
		y[i] = i;
	ok(tnp_prepare(&tnp_default_env, &rows, false, true, &p, &error) == TNP_OK,
	   "a table is fitted");
	ok(p->n_columns == KEPT, "constant columns are left out");
	ok(p->column[0].source == 2 && p->column[1].source == 0, "categories come first");
	ok(difference(p, TNP_NORMAL_NONE, ROWS, golden_x, golden_context_none) < 1e-6, "context");
	ok(difference(p, TNP_NORMAL_NONE, QUERIES, golden_x + ROWS * COLUMNS, golden_queries_none)
	   < 1e-6, "queries");
	for (int f = 0; f < KEPT; f++)
		worst = fmax(worst,
					 fabs(p->column[f].power - golden_powers[f]) / (1 + fabs(golden_powers[f])));
	ok(worst < 1e-5, "powers (difference %g)", worst);
	worst = difference(p, TNP_NORMAL_POWER, ROWS, golden_x, golden_context_power);
	ok(worst < 1e-5, "context, made normal (difference %g)", worst);
	worst = difference(p, TNP_NORMAL_POWER, QUERIES, golden_x + ROWS * COLUMNS,
					   golden_queries_power);
	ok(worst < 1e-5, "queries, made normal (difference %g)", worst);
	ok(fabs(p->y_center - 19.5) < 1e-12 && fabs(p->y_scale - sqrt(133.25)) < 1e-12, "targets");

	copy = malloc(p->size);
	memcpy(copy, p, p->size);
	tnp_free(&tnp_default_env, p);
	ok(difference(copy, TNP_NORMAL_NONE, QUERIES, golden_x + ROWS * COLUMNS, golden_queries_none)
	   < 1e-6, "a copy of the bytes is as good");
	free(copy);
}

static void
test_powers(void)
{
	int			n = sizeof(golden_sample_powers) / sizeof(double);

	for (int i = 0; i < n; i++)
	{
		double		power = tnp_power_fit(50, golden_samples + 50 * i);

		ok(fabs(power - golden_sample_powers[i]) < 1e-5 * (1 + fabs(power)),
		   "power of sample %d: %.9g, scipy's %.9g", i, power, golden_sample_powers[i]);
	}
	ok(tnp_power_transform(3, 1) == 3 && tnp_power_transform(-3, 1) == -3, "1 is the identity");
	ok(tnp_power_transform(3, 0) == log1p(3) && tnp_power_transform(-3, 2) == -log1p(3),
	   "the logarithms");
}

static void
test_orders(void)
{
	TnpOrder	orders[8];
	int			column[8 * KEPT],
				count = tnp_orders(&tnp_default_env, KEPT, 0, 8, orders, column);
	bool		good = true;

	ok(count == 8 && memcmp(column, golden_orders, sizeof(column)) == 0,
	   "orders of columns are the package's");
	for (int e = 0; e < 8; e++)
		good = good && orders[e].normal == (TnpNormal) (e % 2) && orders[e].shift == 0;
	ok(good, "the ways of making normal take turns");
	count = tnp_orders(&tnp_default_env, KEPT, 3, 8, orders, column);
	ok(count == 8 && memcmp(column, golden_orders + 8 * KEPT, sizeof(column)) == 0,
	   "and with classes");
	for (int e = 0; e < 8; e++)
		good = good && orders[e].shift == golden_shifts[e];
	ok(good, "shifts of classes");
	ok(tnp_orders(&tnp_default_env, 1, 0, 8, orders, column) == 2, "one column has two views");
	ok(tnp_orders(&tnp_default_env, KEPT, 3, 1, orders, column) == 1 && column[KEPT - 1] == KEPT - 1
	   && orders[0].normal == TNP_NORMAL_NONE && orders[0].shift == 0,
	   "one estimator has the table as it is");
}

/* Known first numbers of the generator. */
static void
test_twister(void)
{
	TnpTwister	t;

	tnp_twister_seed(&t, 42);
	ok(tnp_twister_next(&t) == 2746317213u && tnp_twister_next(&t) == 478163327u
	   && tnp_twister_next(&t) == 107420369u, "random.Random(42).getrandbits(32)");
	for (int i = 3; i < 1000; i++)
		tnp_twister_next(&t);
	ok(tnp_twister_next(&t) == 2672573305u, "after a refill");
}

static void
test_edges(void)
{
	double		x[] = {5, NAN, 5, NAN, 5, NAN},
				y[] = {1, 1, 1};
	TnpRows		rows = {3, 2, NULL, x, y, 0, 0, 1};
	TnpPrepared *p;
	float		cells[2];
	TnpError	error;

	ok(tnp_prepare(&tnp_default_env, &rows, false, true, &p, &error) == TNP_OK
	   && p->n_columns == 1 && p->column[0].source == 0, "all constant: the first column stays");
	tnp_prepare_row(p, TNP_NORMAL_POWER, x, cells);
	ok(cells[0] == 0 && p->y_scale == 1, "and is 0; a constant target has the scale 1");
	tnp_free(&tnp_default_env, p);
	rows.n = 1;
	ok(tnp_prepare(&tnp_default_env, &rows, true, false, &p, &error) == TNP_OK
	   && p->n_columns == 2 && p->y_center == 0, "of one row nothing is constant");
	tnp_free(&tnp_default_env, p);
	x[0] = DBL_MAX;
	x[2] = -DBL_MAX;
	rows.n = 3;
	ok(tnp_prepare(&tnp_default_env, &rows, false, false, &p, &error) == TNP_BAD_VALUE
	   && strstr(error.message, "feature 1") != NULL, "numbers without moments are refused");
	x[0] = x[2] = 0;
	y[0] = 1e308;
	y[1] = -1e308;
	ok(tnp_prepare(&tnp_default_env, &rows, false, false, &p, &error) == TNP_BAD_VALUE
	   && strstr(error.message, "targets") != NULL, "such targets, too");
}

/* The scaling "power" of columns: what is far away, what is equal, what hardly differs. */
static void
test_power_columns(void)
{
	double		x[] = {1, 2, 3, 5, 9, 40},
				tiny[] = {0, 1e-18, 0, 0, 0, 0};
	TnpColumn	column = {.mean = 10, .sd = 13.6};

	tnp_power_column_fit(&column, 6, x);
	ok(column.power.power < 0 && column.power.power > -20, "a long tail is shortened");
	ok(tnp_power_column_scale(&column, 2) > tnp_power_column_scale(&column, 1)
	   && tnp_power_column_scale(&column, 40) > tnp_power_column_scale(&column, 9),
	   "the order of numbers stays");
	ok(tnp_power_column_scale(&column, 1e300) == tnp_power_column_scale(&column, 40)
	   && tnp_power_column_scale(&column, -1e300) == tnp_power_column_scale(&column, 1),
	   "numbers beyond count as the nearest of the rows");
	column = (TnpColumn) {.mean = 1e-18 / 6, .sd = 4e-19};
	tnp_power_column_fit(&column, 6, tiny);
	ok(column.power.power == 1 && column.power.sd == 1, "numbers that hardly differ stay");
}

int
main(void)
{
	test_golden();
	test_powers();
	test_orders();
	test_twister();
	test_edges();
	test_power_columns();
	done_testing();
}
