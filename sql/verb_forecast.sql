-- calendar, forecast, forecast_total, backtest
\set SHOW_CONTEXT never
SET TimeZone = 'UTC';
-- calendar: sine and cosine of one angle each, of the local clock
SELECT round(hour_sin::numeric, 3) AS hour_sin, round(hour_cos::numeric, 3) AS hour_cos,
	round(weekday_sin::numeric, 3) AS weekday_sin, round(weekday_cos::numeric, 3) AS weekday_cos
FROM (VALUES (timestamp '2024-01-01 06:00'), ('2024-02-29 12:00')) v (t), posterior.calendar(t);
SELECT round(monthday_sin::numeric, 3) AS monthday_sin,
	round(monthday_cos::numeric, 3) AS monthday_cos, round(yearday_sin::numeric, 3) AS yearday_sin,
	round(yearday_cos::numeric, 3) AS yearday_cos
FROM (VALUES (timestamp '2024-01-01 06:00'), ('2024-02-29 12:00')) v (t), posterior.calendar(t);
SELECT bool_and(abs(hour_sin ^ 2 + hour_cos ^ 2 - 1) < 1e-12
		AND abs(weekday_sin ^ 2 + weekday_cos ^ 2 - 1) < 1e-12
		AND abs(monthday_sin ^ 2 + monthday_cos ^ 2 - 1) < 1e-12
		AND abs(yearday_sin ^ 2 + yearday_cos ^ 2 - 1) < 1e-12) AS circles
FROM generate_series('2024-01-01'::timestamp, '2024-12-31', '7 hours 13 minutes') t,
	posterior.calendar(t);
SET TimeZone = 'Asia/Tokyo';
SELECT posterior.calendar('2024-01-01 06:00+00'::timestamptz) = posterior.calendar(
		'2024-01-01 15:00'::timestamp) AS local,
	posterior.calendar('2024-02-05'::date) = posterior.calendar(
		'2024-02-05 00:00'::timestamp) AS day;
SET TimeZone = 'UTC';
-- an infinite time is refused, NULL is none
SELECT posterior.calendar('infinity'::timestamp);
\set VERBOSITY sqlstate
SELECT posterior.calendar('-infinity'::timestamptz);
SELECT posterior.calendar('infinity'::date);
\set VERBOSITY default
SELECT posterior.calendar(NULL::timestamp) IS NULL AS nothing;
-- two stores with a week and a trend; a table with odd names
CREATE TABLE "Daily Sales" ("Store" int, "day" date, "Qty ""sold""" float8, promo boolean,
		PRIMARY KEY ("Store", day));
INSERT INTO "Daily Sales" SELECT s, '2023-01-01'::date + i, s * 100 + 0.1 * i + 5 * (i % 7)
	+ 20 * (i % 11 = 0)::int + 2 * posterior.draw(posterior.normal(0, 1), 1, i + 1000 * s),
	i % 11 = 0
FROM generate_series(1, 2) s, generate_series(0, 199) i;
CREATE VIEW one AS SELECT day, "Qty ""sold""" AS qty, promo FROM "Daily Sales" WHERE "Store" = 1;
SELECT series, step, at::date AS day,
	abs(mean - (series->>'Store')::int * 100 - 0.1 * (199 + step) - 5 * ((199 + step) % 7)
		- 2) < 12 AS near, low < median AND median < high AS ordered,
	abs(posterior.cdf(prediction, high) - posterior.cdf(prediction, low) - 0.8) < 1e-6 AS band,
		drawn IS NULL AS drawn
FROM posterior.forecast('"Daily Sales"', 'day', 'Qty "sold"', horizon => 7, by => '{Store}',
		level => 0.8);
-- a model that encodes in less time does for the rest
SET posterior.model = 'tabular_small';
-- the answer does not depend on the order of the rows, nor on the search path
CREATE TABLE shuffled AS SELECT * FROM one ORDER BY md5(day::text);
SET search_path = pg_temp;
SELECT bool_and(a.prediction::text = b.prediction::text) AS same
	FROM posterior.forecast('public.one', 'day', 'qty', 3) a
	JOIN posterior.forecast('public.shuffled', 'day', 'qty', 3) b USING (step);
RESET search_path;
-- joint draws have the marginals' means, are the same with the same seed, and rows of one draw
-- belong together
SELECT bool_and(abs(avg - mean) < 0.25 * (high - low)) AS means, min(cardinality(drawn)) AS draws
	FROM (SELECT *, (SELECT avg(v) FROM unnest(drawn) v)
		FROM posterior.forecast('one', 'day', 'qty', 4, draws => 200, seed => 3)) f;
SELECT a.drawn = b.drawn AS seed, a.drawn <> c.drawn AS other
	FROM posterior.forecast('one', 'day', 'qty', 1, draws => 20, seed => 3) a,
	posterior.forecast('one', 'day', 'qty', 1, draws => 20, seed => 3) b,
	posterior.forecast('one', 'day', 'qty', 1, draws => 20, seed => 4) c;
SELECT t.series, abs(t.mean - f.mean) < 1e-6 AS mean, t.low < t.median
	AND t.median < t.high AS ordered, t.high - t.low < f.widths AS "narrower than the sum of bands"
FROM posterior.forecast_total('"Daily Sales"', 'day', 'Qty "sold"', 5, by => '{Store}',
		draws => 200) t,
	LATERAL (SELECT sum(mean) AS mean, sum(high - low) AS widths
			FROM posterior.forecast('"Daily Sales"', 'day', 'Qty "sold"', 5, by => '{Store}') f
			WHERE f.series = t.series) f ORDER BY 1;
-- features that are known ahead: in a relation of their own, or in rows without a target
CREATE TABLE plan AS SELECT '2023-01-01'::date + i AS day, i % 11 = 0 AS promo
	FROM generate_series(200, 215) i;
SELECT step, mean > lag(mean) OVER (ORDER BY step) + 12 AS promotion
	FROM posterior.forecast('one', 'day', 'qty', 11, features => '{promo}', known => 'plan')
	WHERE step IN (9, 10);
CREATE TABLE with_plan AS SELECT * FROM one UNION ALL SELECT day, NULL, promo FROM plan;
SELECT bool_and(a.prediction::text = b.prediction::text) AS same
	FROM posterior.forecast('one', 'day', 'qty', 11, features => '{promo}', known => 'plan') a
	JOIN posterior.forecast('with_plan', 'day', 'qty', 11, features => '{promo}') b USING (step);
-- holidays
CREATE TABLE holidays (name text, day date);
INSERT INTO holidays SELECT 'promotion', '2023-01-01'::date + i FROM generate_series(0, 219, 11) i;
SELECT step, mean > lag(mean) OVER (ORDER BY step) + 12 AS holiday
	FROM posterior.forecast('one', 'day', 'qty', 11, holidays => 'holidays') WHERE step IN (9, 10);
-- steps: months and their ends, weeks, hours over a change to summer time, integers, gaps
CREATE VIEW months AS SELECT ('2020-01-31'::date + make_interval(months => i))::date AS at,
	sin(i / 2.0) + i % 3 AS y FROM generate_series(0, 59) i WHERE i NOT IN (7, 8);
SELECT at::date FROM posterior.forecast('months', 'at', 'y', 3);
CREATE VIEW quarters AS SELECT '2010-02-15'::timestamp + make_interval(months => 3 * i) AS at,
	i + i % 4 AS y FROM generate_series(0, 39) i;
SELECT at FROM posterior.forecast('quarters', 'at', 'y', 2);
CREATE VIEW years AS SELECT make_date(1950 + i, 7, 1) AS at, i + i % 4 AS y
	FROM generate_series(0, 39) i;
SELECT at::date FROM posterior.forecast('years', 'at', 'y', 2);
CREATE VIEW weeks AS SELECT '2020-01-06'::date + 7 * i AS at, i + i % 4 AS y
	FROM generate_series(0, 59) i;
SELECT at::date FROM posterior.forecast('weeks', 'at', 'y', 2);
SET TimeZone = 'Europe/Berlin';
CREATE VIEW hours AS SELECT '2024-03-28 00:00+00'::timestamptz + make_interval(hours => i) AS at,
	sin(i / 4.0) AS y FROM generate_series(0, 71) i;
SELECT at FROM posterior.forecast('hours', 'at', 'y', 3);
CREATE VIEW midnights AS SELECT ('2024-03-01'::date + i)::timestamptz AS at, i % 7 AS y
	FROM generate_series(0, 40) i;
SELECT at FROM posterior.forecast('midnights', 'at', 'y', 1);
SET TimeZone = 'UTC';
CREATE VIEW numbers AS SELECT 10 * i AS k, sin(i / 3.0) AS y FROM generate_series(1, 60) i
	WHERE i % 13 <> 0;
SELECT at_number, at FROM posterior.forecast('numbers', 'k', 'y', 2, season => 19);
-- constant and short series have finite answers
CREATE VIEW constant AS SELECT i AS k, 5 AS y FROM generate_series(1, 30) i;
SELECT step, round(mean::numeric, 1) AS mean, high - low < 0.5 AS narrow
	FROM posterior.forecast('constant', 'k', 'y', 2);
CREATE VIEW short AS SELECT i AS k, i % 3 AS y FROM generate_series(1, 12) i;
SELECT count(*) AS steps, bool_and(high > low) AS bands
	FROM posterior.forecast('short', 'k', 'y', 3);
-- backtest: scores beside the last season again
SELECT series, origin, n, crps > 0 AND crps < baseline_crps AS better,
	coverage BETWEEN 0.5 AND 1 AS coverage, rmse >= mae AS rmse,
	abs(skill - (1 - crps / baseline_crps)) < 1e-12 AS skill,
	(SELECT abs(sum(p) - 1) < 1e-9 FROM unnest(pit) p) AND cardinality(pit) = 10 AS pit
		FROM posterior.backtest('"Daily Sales"', 'day', 'Qty "sold"', 7, by => '{Store}',
			origins => 2);
SELECT origin::date, n FROM posterior.backtest('one', 'day', 'qty', 7, origins => 2,
		each_origin => true);
-- no leak: what comes after an origin changes nothing at that origin, in whichever part of the
-- answer
SELECT count(*) AS steps, bool_and(a.prediction::text = b.prediction::text) AS predictions,
	bool_and(a.baseline::text = b.baseline::text) AS baselines,
	bool_or(a.value <> b.value) AS "values differ"
FROM (SELECT array_agg(qty ORDER BY day) AS y,
		array_agg(CASE WHEN day > '2023-05-11' THEN 1e6 ELSE qty END ORDER BY day) AS z FROM one) s,
	LATERAL posterior_internal.backtest_steps(y, NULL, 0, 7, 7, false, 4) a
		JOIN LATERAL posterior_internal.backtest_steps(z, NULL, 0, 7, 7, false, 4) b
			USING (origin, step)
WHERE a.origin <= '2023-05-11'::date - '2023-01-01'::date + 1;
-- a leak would show: coins cannot be foretold
CREATE VIEW coins AS SELECT i AS k, (hashint4(i) & 1)::float8 AS y FROM generate_series(1, 150) i;
SELECT n, mae > 0.3 AS mae, rmse > 0.45 AS rmse, log_density < 3 AS density
	FROM posterior.backtest('coins', 'k', 'y', 3, origins => 8);
-- mistakes
SELECT posterior.forecast('one', 'day', 'qty', horizon => 0);
SELECT posterior.forecast('one', 'day', 'qty', horizon => NULL);
SELECT posterior.forecast('one', 'day', 'quantity', 3);
SELECT posterior.forecast('one', 'date', 'qty', 3);
SELECT posterior.forecast('one', 'day', '"qty"', 3);
SELECT posterior.forecast('nowhere', 'day', 'qty', 3);
SELECT posterior.forecast('one', 'day', 'day', 3);
SELECT posterior.forecast('one', 'day', 'promo', 3);
CREATE VIEW pairs AS SELECT day, ARRAY[qty, qty] AS "both ways" FROM one;
SELECT posterior.forecast('pairs', 'day', 'both ways', 3);
-- what the hints name are numbers
CREATE VIEW cast_so AS SELECT extract(epoch FROM day) AS day, promo::integer,
	"both ways"[1] AS "both ways" FROM one JOIN pairs USING (day);
SELECT bool_and(posterior_internal.is_number(atttypid)) AS numbers FROM pg_attribute
WHERE attrelid = 'cast_so'::regclass;
DROP VIEW cast_so, pairs;
SELECT posterior.forecast('"Daily Sales"', 'day', 'Qty "sold"', 3);
SELECT posterior.forecast('"Daily Sales"', 'day', 'Qty "sold"', 3, by => '{store}');
SELECT posterior.forecast('"Daily Sales"', 'day', 'Qty "sold"', 3, by => '{day}');
SELECT posterior.forecast('one', 'day', 'qty', 3, level => 90);
SELECT posterior.forecast('one', 'day', 'qty', 3, model => 'prophet');
SELECT posterior.forecast('one', 'day', 'qty', 3, features => '{promo}');
SELECT posterior.forecast('one', 'day', 'qty', 30, features => '{promo}', known => 'plan');
SELECT posterior.forecast('one', 'day', 'qty', 3, features => '{qty}');
SELECT posterior.forecast('one', 'day', 'qty', 3, known => 'plan');
SELECT posterior.forecast('one', 'day', 'qty', 3, holidays => 'numbers');
SELECT posterior.forecast('one', 'day', 'qty', 3, draws => -1);
SELECT posterior.forecast('one', 'day', 'qty', 3, every => '1 week');
SELECT posterior.forecast('one', 'day', 'qty', 3, every => '-1 day');
SELECT posterior.forecast('numbers', 'k', 'y', 3, every => '1 day');
CREATE TABLE bad (t text, at timestamptz, y float8);
SELECT posterior.forecast('bad', 'at', 'y', 3);
INSERT INTO bad SELECT '2024-01-01'::date + i, '2024-01-01'::timestamptz + make_interval(days => i),
	NULL FROM generate_series(1, 30) i;
SELECT posterior.forecast('bad', 't', 'y', 3);
SELECT posterior.forecast('bad', 'at', 'y', 3);
UPDATE bad SET y = 1 WHERE at < '2024-01-08';
SELECT posterior.forecast('bad', 'at', 'y', 3);
UPDATE bad SET y = 'NaN';
SELECT posterior.forecast('bad', 'at', 'y', 3);
UPDATE bad SET y = 1, at = CASE WHEN at < '2024-01-03' THEN NULL ELSE at END;
SELECT posterior.forecast('bad', 'at', 'y', 3);
UPDATE bad SET at = '2024-01-01'::timestamptz
	+ make_interval(mins => (extract(doy FROM t::date) ^ 2)::int);
SELECT posterior.forecast('bad', 'at', 'y', 3);
CREATE VIEW huge AS SELECT i AS k, 1e308 * sin(i) AS y, 1e-320::float8 * (i % 5) AS small,
	1e120 * (3 + sin(i)) AS large, CASE i WHEN 70 THEN 1e200 WHEN 71 THEN -1e200 ELSE i % 3 END
		AS two, CASE i WHEN 70 THEN 1e200 ELSE i % 3 END AS one FROM generate_series(1, 100) i;
SELECT posterior.forecast('huge', 'k', 'y', 3);
SELECT posterior.backtest('huge', 'k', 'y', 3);
SELECT posterior.forecast('huge', 'k', 'small', 3);
SELECT posterior.forecast('huge', 'k', 'two', 3);
SELECT posterior.backtest('huge', 'k', 'one', 3);
SELECT bool_and(low > 1e120 AND high < 5e120) AS large
	FROM posterior.forecast('huge', 'k', 'large', 3);
SELECT crps < baseline_crps AND rmse < baseline_rmse AS large
	FROM posterior.backtest('huge', 'k', 'large', 3, origins => 3);
DROP VIEW huge;
SELECT posterior.backtest('short', 'k', 'y', 3);
SELECT posterior.backtest('one', 'day', 'qty', 0);
SELECT posterior.backtest('one', 'day', 'qty', 3, origins => 0);
RESET posterior.model;
-- a series that is constant, one that rarely changes, and one that follows a pattern exactly: what
-- comes lies within the bands, however few components far to one side hold the mean beside it
CREATE VIEW exact AS SELECT k, 7.0 AS fixed, 20 + 0.5 * (k / 100) AS price,
	100 + k / 10.0 + 5 * (k % 7) AS pattern FROM generate_series(0, 149) k;
SELECT count(*) AS steps, count(*) FILTER (WHERE 7 BETWEEN low AND high) AS within,
	bool_and(high - low < 0.01) AS narrow FROM posterior.forecast('exact', 'k', 'fixed', 7);
-- and what the last season tells exactly leaves no skill to be had
SELECT name, n, coverage > 0.9 AS covers, skill IS NULL AS "no skill"
FROM unnest('{fixed,price,pattern}'::text[]) name,
	posterior.backtest('exact', 'k', name, 7, season => 7, origins => 6);
DROP VIEW exact;
-- a mixture that is widened keeps its mean and its peak; a normal distribution is one
SELECT abs(posterior.mean(w) - posterior.mean(d)) < 1e-12 AS mean,
	abs(posterior.median(w) - posterior.median(d)) < 1e-6 AS median,
	posterior.stddev(w) > posterior.stddev(d) AS wider
FROM posterior.pool(ARRAY[posterior.normal(7, 1e-6), posterior.normal(9, 1)], '{0.98, 0.02}') d,
	posterior_internal.widen(d, 2) w;
SELECT posterior_internal.widen(posterior.normal(3, 2), 2);
SELECT posterior_internal.widen(posterior.normal(3, 2), 0);
-- a value with its point in the wrong place counts as missing to all members of the pool; two that
-- end the series are its level; a model that does not say how far is far takes all as they are
CREATE VIEW told AS SELECT name, array_agg(CASE WHEN k = ANY (wrong) THEN 1000 * y ELSE y END
		ORDER BY k) AS y, array_agg(CASE WHEN k = ANY (wrong) THEN 'NaN' ELSE y END
		ORDER BY k) AS lacking
	FROM (SELECT k, 100 + k + 10 * sin(k * 2 * pi() / 7) + cos(k * k) AS y
			FROM generate_series(1, 100) k) v,
		(VALUES ('first', '{1}'::int[]), ('inside', '{40}'), ('last', '{100}'),
			('last two', '{99,100}')) w (name, wrong) GROUP BY name;
CREATE FUNCTION missed(model text) RETURNS TABLE (name text, missing boolean)
	LANGUAGE sql AS $$
	SELECT set_config('posterior.model', model, true);
	SELECT name, bool_and(a.prediction::text = b.prediction::text)
	FROM told, LATERAL posterior_internal.forecast_steps(y, NULL, 0, 7, 2, false) a
		JOIN LATERAL posterior_internal.forecast_steps(lacking, NULL, 0, 7, 2, false) b USING (step)
	GROUP BY name ORDER BY name $$;
SELECT * FROM missed('tabular');
SELECT * FROM missed('tabular_small') LIMIT 1;
CREATE TABLE mistaken AS SELECT k, v FROM told, unnest(y) WITH ORDINALITY u (v, k)
	WHERE name = 'last';
SELECT step, round(mean / 10) AS mean, high - low < 20 AS narrow
	FROM posterior.forecast('mistaken', 'k', 'v', 2, season => 7);
DROP TABLE mistaken;
DROP FUNCTION missed;
-- a level that ends the series may go up and down
SELECT count(*) FROM unnest(posterior_internal.near_series((SELECT array_agg(
		CASE WHEN k > 395 THEN 5000 * (1 + k % 2) ELSE cos(k * k) END ORDER BY k)
	FROM generate_series(1, 400) k))) v WHERE v = 'NaN';
-- a feature foretells events: they stay, and say nothing of other days; a mistake beside them is
-- left out, and so are events that no column foretells
CREATE TABLE events AS SELECT k, 100 + cos(k * k) + CASE WHEN k IN (100, 280) THEN 80 ELSE 0 END
		AS y, (k IN (100, 280, 403))::int AS event FROM generate_series(1, 405) k;
CREATE FUNCTION left_out(y float8[], x float8[]) RETURNS integer[] LANGUAGE sql AS $$
	SELECT array_agg(k ORDER BY k)
	FROM unnest(posterior_internal.near_series(y, x, 0)) WITH ORDINALITY u (v, k)
	WHERE v = 'NaN' $$;
SELECT left_out(y, x) AS foretold, left_out(y, NULL) AS alone,
	left_out(y[:199] || 1e6::float8 || y[201:], x) AS mistake,
	left_out(y, (SELECT array_agg(ARRAY[k]) FROM generate_series(1, 400) k)) AS "all different"
FROM (SELECT array_agg(y ORDER BY k) AS y, array_agg(ARRAY[event]::float8[] ORDER BY k) AS x
	FROM events WHERE k <= 400) e;
SELECT posterior_internal.near_series('{1,2}', '{{1},{NULL}}', 0);
SELECT posterior_internal.near_series('{1,2}', '{{1}}', 0);
SELECT posterior_internal.near_series('{1,2}', '{{1},{2}}', 2);
SELECT posterior_internal.near_series(NULL) IS NULL AS nothing;
SELECT bool_or(f.prediction::text <> g.prediction::text) AS differ,
	max(f.high - f.low) FILTER (WHERE f.step <> 3) < 4 AS narrow
FROM (SELECT array_agg(y ORDER BY k) FILTER (WHERE k <= 400) AS y,
		array_agg(CASE WHEN y > 150 THEN 'NaN' ELSE y END ORDER BY k) FILTER (WHERE k <= 400)
			AS lacking, array_agg(ARRAY[event]::float8[] ORDER BY k) AS x FROM events) e,
	LATERAL (SELECT step, prediction, posterior.quantile(prediction, 0.05) AS low,
			posterior.quantile(prediction, 0.95) AS high
		FROM posterior_internal.forecast_steps(y, x, 0, 1, 5, true)) f
		JOIN LATERAL posterior_internal.forecast_steps(lacking, x, 0, 1, 5, true) g USING (step);
DROP TABLE events;
DROP FUNCTION left_out;
-- where columns foretell something the regressions, which alone know them, can have nearly all of
-- the pool; holidays are such a column, the calendar is none
CREATE VIEW priced AS SELECT '2023-01-02'::date + k AS day,
		(100 + 5 * sin(k * 2 * pi() / 7) + cos(k * k)) / price AS qty, price
	FROM (SELECT k, 1 - 0.1 * (k / 7 * 5 % 4) AS price FROM generate_series(0, 209) k) p;
SELECT told.crps < plain.crps / 3 AS better, told.coverage > 0.75 AS covers
FROM posterior.backtest('priced', 'day', 'qty', 7, features => '{price}', origins => 4) told,
	posterior.backtest('priced', 'day', 'qty', 7, origins => 4) plain;
SELECT name, foretold
FROM (VALUES ('alone', NULL, NULL, NULL), ('feature', '{price}', NULL, NULL),
		('holidays', NULL, 'holidays', NULL), ('in months', NULL, 'holidays', 'month'))
		v (name, features, free, step),
	posterior_internal.series(CASE WHEN step IS NULL THEN 'priced' ELSE 'months' END, CASE
		WHEN step IS NULL THEN 'day' ELSE 'at' END, CASE WHEN step IS NULL THEN 'qty' ELSE 'y' END,
		NULL, features::text[], NULL, free::regclass, NULL, 0, 4096);
DROP VIEW priced;
DROP VIEW told;
-- groups that are too short are left out with a warning; the setting of the model comes back, and
-- an error brings it back
DELETE FROM "Daily Sales" WHERE "Store" = 2 AND day > '2023-01-05';
SELECT DISTINCT series FROM posterior.forecast('"Daily Sales"', 'day', 'Qty "sold"', 2,
		by => '{Store}', model => 'tabular_small');
SHOW posterior.model;
-- so are those too short for so many steps ahead; one alone is an error
CREATE VIEW ahead AS SELECT s, '2024-01-01'::date + i AS day, (10 + i * 37 % 11)::float8 AS y
FROM (VALUES (1, 100), (2, 15)) v (s, n), generate_series(1, n) i;
CREATE VIEW month AS SELECT day, y FROM ahead WHERE s = 1 AND day <= '2024-01-30';
SELECT series, count(*) FROM posterior.forecast('ahead', 'day', 'y', 60, by => '{s}') GROUP BY 1;
SELECT count(*) FROM posterior.forecast('month', 'day', 'y', 90);
SELECT count(*) FROM posterior.forecast('month', 'day', 'y', 30);
SELECT series FROM posterior.backtest('ahead', 'day', 'y', 70, by => '{s}');
DROP VIEW month, ahead;
-- with the caller's rights: no privilege, no rows of others
CREATE ROLE regress_verb_reader;
SET ROLE regress_verb_reader;
SELECT count(*) FROM posterior.forecast('one', 'day', 'qty', 2);
RESET ROLE;
GRANT SELECT ON "Daily Sales" TO regress_verb_reader;
ALTER TABLE "Daily Sales" ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON "Daily Sales" TO regress_verb_reader USING ("Store" = 1);
INSERT INTO "Daily Sales" SELECT 3, day, 0, false FROM "Daily Sales" WHERE "Store" = 1;
SET ROLE regress_verb_reader;
SELECT DISTINCT series FROM posterior.forecast('"Daily Sales"', 'day', 'Qty "sold"', 2,
		by => '{Store}');
RESET ROLE;
-- a name cannot leave its quotes
CREATE TABLE injected ("y) FROM injected; DROP TABLE injected; --" float8, k int);
INSERT INTO injected SELECT i % 5, i FROM generate_series(1, 20) i;
SELECT count(*) FROM posterior.forecast('injected', 'k',
		'y) FROM injected; DROP TABLE injected; --', 2);
DROP OWNED BY regress_verb_reader;
DROP ROLE regress_verb_reader;
DROP VIEW one, months, quarters, years, weeks, hours, midnights, numbers, constant, short, coins;
DROP TABLE "Daily Sales", shuffled, plan, with_plan, holidays, bad, injected;
