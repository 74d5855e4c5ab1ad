-- bounds without a level; distributions as JSON
\set SHOW_CONTEXT never
SELECT posterior.bounds(posterior.normal(0, 1)) = posterior.bounds(posterior.normal(0, 1),
		0.9) AS "ninety per cent";
CREATE TABLE d (id int, d posterior.distribution);
INSERT INTO d VALUES (1, posterior.normal(0.1, 2)),
	(2, posterior.mixture('{0.25,0.75}', '{-1,4}', '{0.5,2}')),
	(3, posterior.bars('{0.25,0,0.75}', '{-1,0,1,3}')),
	(4, posterior.bars('{0.25,0.5,0.25}', '{-1,0,1,3}', true)),
	(7, posterior.from_quantiles('{-1,0.1,2}', 0.3, 1e-5)),
		(5, posterior.categorical(ARRAY['a "b" \ c', 'é'], '{0.5,0.5}'));
SELECT id, d::jsonb FROM d ORDER BY id;
SELECT id, d::jsonb::posterior.distribution OPERATOR(posterior.=) d AS "round trip",
	to_jsonb(d) = d::jsonb AS to_jsonb, d::json::jsonb = d::jsonb AS json FROM d ORDER BY id;
-- digits that read back, whatever the session asks for; rows with a distribution are objects inside
SET extra_float_digits = -5;
SELECT posterior.normal(1 / 3.0, 2 / 3.0)::jsonb::posterior.distribution
	OPERATOR(posterior.=) posterior.normal(1 / 3.0, 2 / 3.0) AS digits;
SHOW extra_float_digits;
RESET extra_float_digits;
SELECT jsonb_agg(d)->0->'d'->>'kind' AS kind FROM d WHERE id = 1;
SELECT '{"kind": "poisson"}'::jsonb::posterior.distribution;
SELECT '[]'::jsonb::posterior.distribution;
SELECT '{"kind": "normal", "mean": 0, "sd": -1}'::jsonb::posterior.distribution;
SELECT '{"kind": "mixture", "weights": [1], "means": [0, 1], "sds": [1]}'::jsonb
	::posterior.distribution;
DROP TABLE d;
-- a frame that contains the current row with its target is told once a statement
SET posterior.leak_notice = on;
CREATE TABLE r AS SELECT i AS k, i % 2 AS g, i AS x, CASE WHEN i < 11 THEN i END AS y
	FROM generate_series(1, 12) i;
SELECT count(p) FROM (SELECT posterior.regress(y, x) OVER (ORDER BY k) AS p FROM r) s;
SELECT count(p) FROM (SELECT posterior.regress(y, x)
		OVER (PARTITION BY g ORDER BY k) AS p FROM r) s;
SELECT count(p) FROM (SELECT posterior.classify(g, x) OVER () AS p FROM r) s;
SELECT count(p) FROM (SELECT posterior.regress(y, x)
		OVER (ORDER BY k ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING EXCLUDE TIES) AS p FROM r) s;
-- and these are not
SELECT count(p) FROM (SELECT posterior.regress(y, x)
		OVER (ORDER BY k ROWS BETWEEN 6 PRECEDING AND 1 PRECEDING) AS p FROM r) s;
SELECT count(p) FROM (SELECT posterior.regress(y, x)
		OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) AS p
		FROM r) s;
SELECT count(p) FROM (SELECT posterior.regress(y, x)
		OVER (ORDER BY k ROWS BETWEEN 1 FOLLOWING AND 6 FOLLOWING) AS p FROM r) s;
SELECT count(p) FROM (SELECT y, posterior.regress(y, x)
		OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS p
		FROM (SELECT k, x, CASE WHEN k < 0 THEN y END AS y FROM r) n) s;
SET posterior.leak_notice = off;
SELECT count(p) FROM (SELECT posterior.regress(y, x) OVER (ORDER BY k) AS p FROM r) s;
RESET posterior.leak_notice;
DROP TABLE r;
-- objects that are no distribution
SELECT posterior.from_jsonb('{"kind": "normal", "mean": 1}');
SELECT posterior.from_jsonb('{"kind": "normal", "mean": null, "sd": 1}');
SELECT posterior.from_jsonb('{"kind": "mixture", "weights": 1}');
SELECT posterior.from_jsonb('{"kind": "quantiles", "quantiles": [1, 2, 3], "upper_tail": 1}');
SELECT posterior.from_jsonb('{"kind": "bars", "masses": ["1"], "borders": [0, 1]}');
SELECT posterior.from_jsonb('{"kind": "categorical", "labels": [1], "probabilities": [1]}');
SELECT 'normal(-0x10, 1)'::posterior.distribution;
