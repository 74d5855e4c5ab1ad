-- context() and regress() over labels: the type of the target decides
\set SHOW_CONTEXT never
CREATE TYPE mood AS ENUM ('calm', 'wild');
CREATE DOMAIN word AS varchar(10);
CREATE TABLE t AS SELECT i AS k, i % 7 AS x, (i % 7) * 2.0 + i % 2 AS y, i % 7 > 3 AS b,
	CASE WHEN i % 7 > 3 THEN 'high' ELSE 'low' END AS s,
	(CASE WHEN i % 7 > 3 THEN 'wild' ELSE 'calm' END)::mood AS m FROM generate_series(1, 60) i;
-- numbers of every type give a context of numbers
SELECT posterior.labels(posterior.context(k::smallint, x ORDER BY k)) AS smallint,
	posterior.labels(posterior.context(k, x ORDER BY k)) AS integer,
	posterior.labels(posterior.context(k::bigint, x ORDER BY k)) AS bigint,
	posterior.labels(posterior.context(k::real, x ORDER BY k)) AS real,
	posterior.labels(posterior.context(y, x ORDER BY k)) AS numeric,
	posterior.labels(posterior.context(y::float8, x ORDER BY k)) AS float8 FROM t;
-- labels of every type one of labels, the same as class_context
SELECT posterior.labels(posterior.context(s, x ORDER BY k)) AS text,
	posterior.labels(posterior.context(s::varchar, x ORDER BY k)) AS varchar,
	posterior.labels(posterior.context(s::word, x ORDER BY k)) AS domain,
	posterior.labels(posterior.context(s::char(4), x ORDER BY k)) AS char,
	posterior.labels(posterior.context(b, x ORDER BY k)) AS boolean,
	posterior.labels(posterior.context(m, x ORDER BY k)) AS enum FROM t;
SELECT
	posterior.context(s, x ORDER BY k)::text = posterior.class_context(s, x ORDER BY k)::text AS s,
	posterior.context(b, x ORDER BY k)::text = posterior.class_context(b, x ORDER BY k)::text AS b,
	posterior.context(m, x ORDER BY k)::text = posterior.class_context(m, x ORDER BY k)::text AS m,
	posterior.kind(posterior.predict(posterior.context(m, x ORDER BY k), 5)) AS kind FROM t;
-- rows without a label are left out; integers are labels where one says class_context
SELECT posterior.rows(posterior.context(CASE WHEN k < 6 THEN s END, x)) AS rows,
	posterior.labels(posterior.class_context(x % 2, x ORDER BY k)) AS integers FROM t;
-- a literal without a type is text; a typed one is what it says
SELECT posterior.labels(posterior.context('1', x)) AS literal,
	posterior.labels(posterior.context(1, x)) AS number,
	posterior.rows(posterior.context(NULL::float8, x)) AS "no rows" FROM t;
-- frames
SELECT bool_and(posterior.kind(a) = 'categorical' AND a OPERATOR(posterior.=) c) AS text,
	bool_and(b OPERATOR(posterior.=) d) AS boolean,
	bool_and(posterior.kind(e) = 'categorical') AS enum
FROM (SELECT posterior.regress(s, x) OVER w AS a, posterior.regress(b, x) OVER w AS b,
		posterior.classify(s, x) OVER w AS c, posterior.classify(b, x) OVER w AS d,
		posterior.regress(m, x) OVER w AS e, k FROM t
		WINDOW w AS (ORDER BY k ROWS BETWEEN 30 PRECEDING AND 1 PRECEDING)) p WHERE k > 50;
-- and other types are refused
SELECT posterior.context(now(), x) FROM t;
SELECT posterior.regress(now(), x) OVER () FROM t;
DROP TABLE t;
DROP DOMAIN word;
DROP TYPE mood;
