-- accessors of posterior.distribution against closed forms and against each other, for every kind
CREATE TABLE d (id int, d posterior.distribution);
INSERT INTO d VALUES (1, posterior.normal(3, 2)), (2, posterior.normal(-1000, 1e-3)),
	(3, posterior.mixture('{0.3,0.7}', '{-1,4}', '{0.5,2}')),
	(4, posterior.mixture('{0.5,0.5}', '{-100,100}', '{1,1}')),
		(5, posterior.bars('{0.2,0,0.8}', '{-1,0,1,3}')),
		(6, posterior.bars('{0.1,0.6,0.3}', '{-1,0,1,3}', true)),
	(7, posterior.from_quantiles('{-1,0,0.5,2,3}', 0.7, 0.6));
-- a quantile is the inverse of cdf; pdf is the exponential of log_pdf and the slope of cdf; bounds
-- are quantiles
SELECT id, bool_and(abs(posterior.cdf(d, posterior.quantile(d, p)) - p) < 1e-9) AS inverse,
	bool_and(abs(posterior.pdf(d, q)
				- exp(posterior.log_pdf(d, q))) <= 1e-12 * posterior.pdf(d, q)) AS pdf,
	bool_and(abs((posterior.cdf(d, q + h) - posterior.cdf(d, q - h)) / (2 * h)
				- posterior.pdf(d, q)) <= 1e-4 * (1 + posterior.pdf(d, q))) AS slope
FROM (SELECT id, d, p, posterior.quantile(d, p) AS q, posterior.stddev(d) * 1e-5 AS h
		FROM d, unnest(ARRAY[0.01, 0.15, 0.4, 0.55, 0.77, 0.95]) p) s GROUP BY id ORDER BY id;
SELECT id, posterior.quantile(d, ARRAY[0.1, 0.5, 0.9]) = ARRAY[posterior.quantile(d, 0.1),
		posterior.median(d), posterior.quantile(d, 0.9)] AS array_form,
	abs(upper(posterior.bounds(d, 0.8)) - posterior.quantile(d, 0.9)) < 1e-9 * posterior.stddev(d)
		AND abs(lower(posterior.bounds(d, 0.8))
			- posterior.quantile(d, 0.1)) < 1e-9 * posterior.stddev(d) AS bounds,
	posterior.variance(d) = posterior.stddev(d) ^ 2
		OR abs(posterior.variance(d) / posterior.stddev(d) ^ 2 - 1) < 1e-14 AS variance
		FROM d ORDER BY id;
-- moments, entropy and CRPS of each kind by the integral of the pdf, on a grid of midpoints
SELECT id, abs(sum(w * f) - 1) < 1e-3 AS total, abs(sum(w * f * (y - m))) < 1e-3 * max(s) AS mean,
	abs(sum(w * f * (y - m) ^ 2) / max(s) ^ 2 - 1) < 1e-3 AS variance,
	abs(-sum(CASE WHEN f > 0 THEN w * f * ln(f) ELSE 0 END) - max(e)) < 1e-3 AS entropy,
		abs(sum(w * (c - (y >= m + 0.3 * s)::int) ^ 2) - max(crps)) < 1e-3 * max(s) AS crps
FROM (SELECT id, m + s * (i + 0.5) / 600 AS y, s / 600 AS w, CASE
		WHEN posterior.log_pdf(d, m + s * (i + 0.5) / 600) > -400
		THEN posterior.pdf(d, m + s * (i + 0.5) / 600) ELSE 0 END AS f,
		CASE WHEN posterior.cdf(d, m + s * (i + 0.5) / 600) > 1e-100
		THEN posterior.cdf(d, m + s * (i + 0.5) / 600) ELSE 0 END AS c, m, s,
		posterior.entropy(d) AS e,
		posterior.crps(d, m + 0.3 * s) AS crps
	FROM (SELECT id, d, posterior.mean(d) AS m, posterior.stddev(d) AS s FROM d) t,
		generate_series(-6000, 5999) i) g GROUP BY id ORDER BY id;
-- the mode is where the density is highest
SELECT id, bool_and(posterior.pdf(d, posterior.mode(d)) >= posterior.pdf(d,
			posterior.quantile(d, i / 500.0)) * (1 - 1e-9)) AS highest FROM d, generate_series(1,
		499) i GROUP BY id ORDER BY id;
-- draws have the distribution's moments and quantiles
SELECT id, abs(avg(y) - max(posterior.mean(d))) < 0.1 * max(posterior.stddev(d)) AS mean,
	abs(stddev(y) / max(posterior.stddev(d)) - 1) < 0.1 AS sd,
	abs(avg((y < posterior.quantile(d, 0.2))::int) - 0.2) < 0.04 AS tail
		FROM d, posterior.draw(d, 4000, id) y GROUP BY id ORDER BY id;
-- known numbers
SELECT round(posterior.quantile(posterior.normal(0, 1), 0.975)::numeric, 9) AS z,
	round(posterior.cdf(posterior.normal(0, 1), -1)::numeric, 9) AS cdf,
	round(posterior.log_pdf(posterior.normal(0, 1), 40)::numeric, 6) AS far,
		round(posterior.crps(posterior.normal(0, 1), 0)::numeric, 9) AS crps;
SELECT posterior.quantile(posterior.normal(0, 1), ARRAY[0, 1]) AS ends,
	posterior.cdf(posterior.normal(0, 1), 'Infinity') AS top,
	posterior.cdf(posterior.normal(0, 1), '-Infinity') AS bottom,
	posterior.pdf(posterior.bars('{1}', '{0,1}'), 1.5) AS outside,
		posterior.log_pdf(posterior.bars('{1}', '{0,1}'), 1.5) AS log_outside;
SELECT posterior.quantile(posterior.normal(0, 1), '{}'::float8[]),
	posterior.quantile(posterior.normal(0, 1), NULL::float8[]), posterior.draw(NULL, 3);
SELECT posterior.most_probable('categorical("b": 0.5, "a": 0.5)'),
	posterior.probability('categorical("": 0.25, "é": 0.75)', ''),
	posterior.probability('categorical("": 0.25, "é": 0.75)', 'é'),
	round(posterior.entropy('categorical("x": 1)')::numeric, 9) AS certain;
-- order and hash: any, but one, and the same as equality
SELECT bool_and((a.d OPERATOR(posterior.=) b.d) = (a.id = b.id)) AS equality,
	bool_and((a.d OPERATOR(posterior.<) b.d) = (b.d OPERATOR(posterior.>) a.d)) AS order_one,
	bool_and((a.d OPERATOR(posterior.<=) b.d) <> (a.d OPERATOR(posterior.>) b.d)) AS order_two,
		bool_and((a.d OPERATOR(posterior.<>) b.d) = (a.id <> b.id)) AS inequality FROM d a, d b;
CREATE INDEX ON d USING btree (d);
CREATE INDEX ON d USING hash (d);
SET enable_seqscan = off;
SELECT count(*) FROM d WHERE d OPERATOR(posterior.=) 'normal(3, 2)';
RESET enable_seqscan;
-- a label has one probability
SELECT posterior.categorical('{b,a,b}', '{0.2,0.3,0.5}');
SELECT 'categorical("a": 0.5, "a": 0.5)'::posterior.distribution;
-- SQLSTATEs
\set VERBOSITY sqlstate
SELECT 'normal(1'::posterior.distribution;
SELECT 'normal(1, -1)'::posterior.distribution;
SELECT posterior.normal('Infinity', 1);
SELECT posterior.bars('{0.5,0.5}', '{0,1}');
SELECT posterior.bars('{0.5,0.5}', '{0,1,1}');
SELECT posterior.bars('{-0.5,1.5}', '{0,1,2}');
SELECT posterior.categorical('{a,NULL}', '{0.5,0.5}');
SELECT posterior.categorical('{a,a}', '{0.5,0.5}');
SELECT posterior.categorical('{}', '{}');
SELECT posterior.quantile(posterior.normal(0, 1), 'NaN'::float8);
SELECT posterior.quantile(posterior.normal(0, 1), '{NULL}'::float8[]);
SELECT posterior.crps(posterior.normal(0, 1), 'NaN');
SELECT posterior.quantile('categorical("a": 1)', 0.5);
SELECT posterior.most_probable(posterior.normal(0, 1));
SELECT * FROM posterior.draw('categorical("a": 1)', 1);
SELECT * FROM posterior.draw(posterior.normal(0, 1), -1);
\set VERBOSITY default
DROP TABLE d;
