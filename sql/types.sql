-- posterior.distribution: text and binary form, accessors, equality
SELECT 'normal(3.2, 0.5)'::posterior.distribution,
	' mixture( 0.25*normal(1,2) + 0.75*normal(-1e3,.5) ) '::posterior.distribution;
SELECT 'bars(0 [0.2] 1 [0.8] 2.5)'::posterior.distribution,
	'bars_half_normal(-1 [0.5] 0 [0.5] 1)'::posterior.distribution,
	'quantiles(0.5 [1, 2,4] 0.7)'::posterior.distribution;
SELECT 'categorical("red": 0.2, "dark \"blue\"": 0.8)'::posterior.distribution;
-- text and binary forms read back to the same value
CREATE TABLE d (id int, d posterior.distribution);
INSERT INTO d VALUES (1, posterior.normal(0.1, 1e-100)),
	(2, posterior.mixture('{0.1,0.2,0.7}', '{1,2,0.30000000000000004}', '{3,4,5}')),
	(3, posterior.bars('{0.5,0,0.5}', '{0,1,2,5}')),
		(4, posterior.bars('{0.25,0.75}', '{-1,0,1}', true)),
	(5, posterior.categorical('{a,"b c"}', '{0.25,0.75}')),
	(6, posterior.from_quantiles('{-1,0.1,2}', 0.3, 1e-5));
SELECT id, d::text::posterior.distribution OPERATOR(posterior.=) d AS text_form, posterior.kind(d)
	FROM d ORDER BY id;
SELECT set_config('test.file', current_setting('data_directory') || '/posterior_types.bin',
		false) \gset ignored_
DO $$ BEGIN
	EXECUTE format('COPY d TO %L (FORMAT binary)', current_setting('test.file'));
	CREATE TABLE e (LIKE d);
	EXECUTE format('COPY e FROM %L (FORMAT binary)', current_setting('test.file'));
END $$;
SELECT count(*) AS binary_form FROM d JOIN e USING (id) WHERE d.d OPERATOR(posterior.=) e.d;
SELECT count(*) FROM (SELECT d FROM (SELECT d FROM d UNION ALL SELECT d FROM d) twice GROUP BY d) s;
SELECT count(DISTINCT d) FROM (SELECT d FROM d UNION ALL SELECT d FROM d) twice;
-- accessors
SELECT posterior.mean(d), posterior.variance(d), posterior.stddev(d), posterior.median(d),
	posterior.mode(d), posterior.quantile(d, 0.5),
	round(posterior.pdf(d, 3)::numeric, 6) AS pdf,
		round(posterior.log_pdf(d, 3)::numeric, 6) AS log_pdf, posterior.cdf(d, 3) AS cdf,
	round(posterior.crps(d, 3)::numeric, 6) AS crps,
		round(posterior.entropy(d)::numeric, 6) AS entropy
FROM (SELECT posterior.normal(3, 2) AS d) s;
SELECT round(posterior.mean(d)::numeric, 6) AS mean,
	round(posterior.variance(d)::numeric, 6) AS variance,
	round(posterior.mode(d)::numeric, 3) AS mode,
	round(posterior.median(d)::numeric, 6) AS median
		FROM (SELECT posterior.mixture('{0.5,0.5}', '{-1,1}', '{0.1,0.2}') AS d) s;
SELECT posterior.mean(d), posterior.quantile(d, ARRAY[0, 0.25, 0.5, 1]), posterior.cdf(d, 1),
	posterior.pdf(d, 7) FROM (SELECT posterior.bars('{0.5,0,0.5}', '{0,1,2,4}') AS d) s;
SELECT posterior.mean(d), posterior.quantile(d, ARRAY[0, 0.2, 0.3, 0.4, 0.8, 1]),
	posterior.cdf(d, 2), posterior.pdf(d, 2)
	FROM (SELECT posterior.from_quantiles('{0,1,3,7}', 1, 4) AS d) s;
SELECT posterior.bounds(posterior.bars('{1}', '{0,10}'), 0.9),
	5.0::float8 <@ posterior.bounds(posterior.bars('{1}', '{0,10}'), 0.9) AS inside,
	posterior.bounds(posterior.normal(0, 1), 1), posterior.bounds(posterior.normal(7, 1), 0);
SELECT posterior.probability(d, 'a'), posterior.probability(d, 'z'), posterior.most_probable(d),
	round(posterior.entropy(d)::numeric, 6) AS entropy FROM d WHERE id = 5;
-- draws: a seed gives the same draws, and a longer series begins with the shorter one
SELECT (SELECT array_agg(x)
		FROM posterior.draw(posterior.normal(0, 1), 5, 42) x) = (SELECT (array_agg(x))[1:5]
		FROM posterior.draw(posterior.normal(0, 1), 500, 42) x) AS same,
	(SELECT array_agg(x)
			FROM posterior.draw(posterior.normal(0, 1), 5, 42) x) <> (SELECT array_agg(x)
			FROM posterior.draw(posterior.normal(0, 1), 5, 43) x) AS other_seed;
SELECT abs(avg(x) - 10) < 0.2 AS mean, abs(stddev(x) - 2) < 0.2 AS sd
	FROM posterior.draw(posterior.normal(10, 2), 2000, 1) x;
SELECT posterior.mean(NULL), posterior.quantile(posterior.normal(0, 1), NULL::float8);
-- bad text, bad numbers, bad questions
SELECT 'normal(1)'::posterior.distribution;
SELECT 'normal(1, 0)'::posterior.distribution;
SELECT 'normal(nan, 1)'::posterior.distribution;
SELECT 'normal(1, 1) x'::posterior.distribution;
SELECT 'poisson(3)'::posterior.distribution;
SELECT 'mixture(0.5*normal(0, 1) + 0.6*normal(0, 1))'::posterior.distribution;
SELECT 'bars(0 [1] 0)'::posterior.distribution;
SELECT 'quantiles(1 [2, 2] 1)'::posterior.distribution;
SELECT 'quantiles(0 [1, 2] 1)'::posterior.distribution;
SELECT 'quantiles([1, 2] 1)'::posterior.distribution;
SELECT posterior.from_quantiles('{1}', 1, 1);
SELECT posterior.from_quantiles('{1,NULL}', 1, 1);
SELECT 'categorical("a: 1)'::posterior.distribution;
SELECT posterior.normal('NaN', 1);
SELECT posterior.normal(0, 'Infinity');
SELECT posterior.mixture('{0.5,0.5}', '{1}', '{1,2}');
-- too many of each: the same error, wherever it is noticed
SELECT posterior.mixture(v, v, v) FROM (SELECT array_fill(1.0::float8, ARRAY[1025]) AS v) s;
SELECT ('mixture(' || rtrim(repeat('1*normal(0, 1) + ', 1025), '+ ')
		|| ')')::posterior.distribution;
SELECT posterior.bars(array_fill(1.0::float8, ARRAY[65537]), array_fill(1.0::float8, ARRAY[65538]));
SELECT posterior.mean(posterior.bars(array_fill(1 / 65536::float8, ARRAY[65536]),
			ARRAY(SELECT i::float8 FROM generate_series(0, 65536) i)));
SELECT posterior.mixture('{0.5,NULL}', '{1,2}', '{1,2}');
SELECT posterior.quantile(posterior.normal(0, 1), 1.5);
SELECT posterior.quantile(posterior.normal(0, 1), ARRAY[0.5, 'NaN']);
SELECT posterior.bounds(posterior.normal(0, 1), -0.1);
SELECT posterior.pdf(posterior.normal(0, 1), 'NaN');
SELECT posterior.mean('categorical("a": 1)');
SELECT posterior.probability(posterior.normal(0, 1), 'a');
SELECT * FROM posterior.draw(posterior.normal(0, 1), 0);
SELECT * FROM posterior.draw(posterior.normal(0, 1), 1000000000);
-- posterior.context: text form, accessors, equal rows give equal bytes whatever their order
CREATE TABLE r AS SELECT i AS id, i * 0.5 AS x, CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN 'one'
	ELSE 'two' END AS label, sin(i) AS y FROM generate_series(1, 20) i;
CREATE TABLE c AS SELECT posterior.context(y, x, label) AS a,
	posterior.context(y, x, label ORDER BY id DESC) AS b FROM r;
SELECT posterior.rows(a), posterior.features(a),
	a::text::posterior.context::text = a::text AS text_form, a::text = b::text AS order_kept FROM c;
SELECT (SELECT posterior.context(y, x, label)
		FROM (SELECT * FROM r ORDER BY id DESC) s)::text = a::text AS canonical FROM c;
SELECT posterior.rows(posterior.context(CASE WHEN id > 5 THEN y END, x)) AS with_target FROM r;
SELECT posterior.context(y, x) IS NULL AS no_rows FROM r WHERE false;
SELECT '00'::posterior.context;
SELECT 'zz00112233445566778899aabb'::posterior.context;
SELECT (substr(a::text, 1, length(a::text) - 16))::posterior.context FROM c;
DROP TABLE d, e, r, c;
