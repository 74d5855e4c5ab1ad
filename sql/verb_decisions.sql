-- surprise, expected excess and improvement, affine and pool, for every kind of distribution
CREATE TABLE d (id int, d posterior.distribution);
INSERT INTO d VALUES (1, posterior.normal(3, 2)),
	(2, posterior.mixture('{0.3,0.7}', '{-1,4}', '{0.5,2}')),
	(3, posterior.bars('{0.2,0,0.8}', '{-1,0,1,3}')),
		(4, posterior.bars('{0.1,0.6,0.3}', '{-1,0,1,3}', true)),
	(5, posterior.from_quantiles('{-1,0,0.5,3}', 0.7, 0.4));
-- expected excess is the integral of the upper tail
SELECT id, t, abs(posterior.expected_excess(d, y)
		- (SELECT sum((1 - posterior.cdf(d, y + (i + 0.5) / 500)) / 500)
			FROM generate_series(0, 19999) i)) < 1e-5 AS integral,
	abs(posterior.expected_excess(d, y)
			- posterior.expected_improvement(posterior.affine(d, -1), -y,
				false)) < 1e-12 AS mirrored,
	abs(posterior.expected_excess(d, y) - posterior.expected_improvement(d, y, false)
			- (posterior.mean(d) - y)) < 1e-12 AS parity
FROM d, unnest(ARRAY[-2, -0.5, 0, 0.3, 2, 4]) t,
	LATERAL (SELECT posterior.mean(d) + t * posterior.stddev(d)) u (y) ORDER BY 1, 2;
-- the closed form for a normal distribution, and far out in its tail
SELECT round(posterior.expected_improvement(posterior.normal(0, 1), 0)::numeric, 9) AS "phi(0)",
	round(posterior.expected_improvement(posterior.normal(1, 2), 0, false)::numeric,
		9) AS downwards,
	abs(posterior.expected_excess(posterior.normal(0, 1), 20) / 1.3660e-90 - 1) < 1e-2 AS far,
		posterior.expected_excess(posterior.normal(0, 1), 'Infinity') AS never,
		posterior.expected_excess(posterior.normal(0, 1), '-Infinity') AS always;
-- surprise is the two-sided tail, without loss in either tail
SELECT id, bool_and(abs(posterior.surprise(d, posterior.quantile(d, p))
			- 2 * least(p, 1 - p)) < 1e-9) AS tails, posterior.surprise(d,
		posterior.median(d)) > 0.999999 AS median
FROM d, unnest(ARRAY[0.001, 0.2, 0.5, 0.7, 0.99]) p GROUP BY id, d ORDER BY id;
SELECT posterior.surprise(posterior.normal(0, 1), 20) = posterior.surprise(posterior.normal(0, 1),
		-20) AS symmetric, posterior.surprise(posterior.normal(0, 1),
		20) BETWEEN 5.50e-89 AND 5.51e-89 AS far;
SELECT label, round(posterior.surprise('categorical("a": 0.6, "b": 0.3, "c": 0.1)', label)::numeric,
		9) AS surprise FROM unnest('{a,b,c,d}'::text[]) label;
SELECT id, abs(posterior.probability_of_improvement(d, 1.5)
		+ posterior.probability_of_improvement(d, 1.5, false) - 1) < 1e-12 AS complement,
	abs(posterior.upper_confidence_bound(d) - posterior.mean(d)
			- 2 * posterior.stddev(d)) < 1e-12 AS ucb, posterior.upper_confidence_bound(d,
			-1) < posterior.mean(d) AS lower FROM d ORDER BY id;
-- other units
SELECT id, s, abs(posterior.mean(a) - (s * posterior.mean(d) + 5)) < 1e-12 AS mean,
	abs(posterior.stddev(a) - abs(s) * posterior.stddev(d)) < 1e-12 AS sd,
	abs(posterior.quantile(a, 0.3)
			- (s * posterior.quantile(d, CASE WHEN s < 0 THEN 0.7 ELSE 0.3 END)
				+ 5)) < 1e-9 AS quantile, posterior.kind(a) = posterior.kind(d) AS kind
FROM d, unnest(ARRAY[-2.0, 0.5]) s, LATERAL posterior.affine(d, s, 5) a ORDER BY 1, 2;
-- pools
SELECT posterior.pool(ARRAY[posterior.normal(0, 1),
			posterior.mixture('{0.5,0.5}', '{1,2}', '{1,1}'), NULL], '{1,3,0}') AS pool,
	posterior.pool(ARRAY[posterior.normal(0, 1), posterior.bars('{1}', '{0,1}')], '{0,1}') AS one;
-- NULL is NULL
-- labels of other types
CREATE TYPE grade AS ENUM ('good', 'bad');
SELECT posterior.surprise('categorical("true": 0.75, "false": 0.25)', false) AS boolean,
	posterior.surprise('categorical("true": 1)', false) AS unknown,
	posterior.surprise('categorical("good": 0.75, "bad": 0.25)', 'good'::grade) AS enum,
	posterior.surprise('categorical("good": 0.75, "bad": 0.25)', 'bad') AS literal,
	posterior.surprise('categorical("true": 1)', NULL::boolean) IS NULL AS nothing;
SELECT posterior.surprise(posterior.normal(0, 1), true);
DROP TYPE grade;
SELECT posterior.surprise(NULL, 1), posterior.surprise(posterior.normal(0, 1), NULL::float8),
	posterior.pool(NULL, '{1}'), posterior.affine(posterior.normal(0, 1), NULL);
-- errors
SELECT posterior.surprise('categorical("a": 1)', 1);
SELECT posterior.surprise(posterior.normal(0, 1), 'a'::text);
SELECT posterior.surprise(posterior.normal(0, 1), 'NaN'::float8);
SELECT posterior.expected_excess('categorical("a": 1)', 1);
SELECT posterior.affine(posterior.normal(0, 1), 0);
SELECT posterior.affine(posterior.normal(0, 1), 1e200);
SELECT posterior.pool('{}', '{}');
SELECT posterior.pool(ARRAY[posterior.normal(0, 1)], '{1,2}');
SELECT posterior.pool(ARRAY[posterior.normal(0, 1), NULL], '{1,2}');
SELECT posterior.pool(ARRAY[posterior.normal(0, 1), posterior.normal(1, 1)], '{0,0}');
SELECT posterior.pool(ARRAY[posterior.normal(0, 1), posterior.normal(1, 1)], '{-1,2}');
SELECT posterior.pool(ARRAY[posterior.normal(0, 1), posterior.bars('{1}', '{0,1}')], '{1,1}');
DROP TABLE d;
