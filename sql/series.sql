-- a value by its time, finer than what the rows that carry a process can tell
CREATE TABLE readings AS SELECT i AS at, i % 5 = 3 AS asked,
	20 + 5 * sin(i * 0.5) + 0.4 * ((i * 7919 % 1009) / 1009.0 - 0.5) AS value
	FROM generate_series(1, 700) i;
-- between the rows means are near, 0.12 away where no noise is known, and bands hold what they say
SELECT count(*) AS asked, sqrt(avg((posterior.mean(p) - value) ^ 2)) < 0.4 AS near,
	avg((value <@ posterior.bounds(p, 0.9))::int) BETWEEN 0.8 AND 0.99 AS held
	FROM (SELECT posterior.context(value, at ORDER BY at) AS c FROM readings WHERE NOT asked) s,
	readings, LATERAL posterior.predict(c, at) p WHERE asked;
-- a chain knows its own rows: those behind the context go on with the wave
SELECT posterior.log_density(c, value, at ORDER BY at) > 20 * -1.5 AS goes_on
	FROM (SELECT posterior.context(value, at ORDER BY at) AS c FROM readings WHERE at <= 600) s,
	readings WHERE at BETWEEN 601 AND 620;
-- a named context has the bits of an aggregate over the same rows, rows that come included
SELECT posterior.create_context('readings', 'readings', 'value', features => '{at}',
	order_by => 'at', filter => 'NOT asked');
INSERT INTO readings SELECT i, false, 20 + 5 * sin(i * 0.5) FROM generate_series(701, 720) i;
SELECT posterior.refresh_context('readings');
SELECT count(*) AS asked, count(*) FILTER (WHERE posterior.predict('readings', at)::text
		= posterior.predict(c, at)::text) AS same
	FROM (SELECT posterior.context(value, at ORDER BY at) AS c FROM readings WHERE NOT asked) s,
	readings WHERE asked AND at % 3 = 0;
SELECT posterior.drop_context('readings');
DROP TABLE readings;
