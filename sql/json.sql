-- rows as JSON: for clients that send parameters without types; and values that are the only
-- feature of a context
SET posterior.model = 'tabular_small';
CREATE TABLE t AS SELECT i, i / 10.0 AS x, i % 3 = 0 AS b, (ARRAY['red', 'blue'])[1 + i % 2] AS c,
	timestamp '2026-01-01' + i * interval '1 day' AS at, i * interval '1 hour' AS age,
	sin(i / 5.0) AS y FROM generate_series(1, 40) i;
INSERT INTO t VALUES (50, NULL, NULL, NULL, NULL, NULL, NULL),
	(51, 2.5, true, 'green', '2026-03-01 12:00', '-1 day +02:03:04', NULL);
CREATE TABLE v AS SELECT posterior.context(y, x, b, c, at, age ORDER BY i) AS ctx FROM t;
SELECT posterior.create_context('all', 't', 'y', '{x,b,c,at,age}', 'i', 'tabular_small');
-- an object by name and an array by position answer as the row does; what the object has besides is
-- not looked at
SELECT count(*), bool_and(posterior.predict('all', to_jsonb(t))
		OPERATOR(posterior.=) posterior.predict('all', t)) AS object,
	bool_and(posterior.predict('all', jsonb_build_array(x, b, c, at, age))
			OPERATOR(posterior.=) posterior.predict('all', t)) AS array,
	bool_and(posterior.predict(ctx, jsonb_build_array(x, b, c, at, age))
			OPERATOR(posterior.=) posterior.predict(ctx, x, b, c, at, age)) AS value
FROM t, v WHERE i > 20;
-- no setting of the session has a say: a time without a zone is in UTC
SET TimeZone = 'Asia/Tokyo';
SET DateStyle = 'German';
SET IntervalStyle = 'sql_standard';
SELECT posterior.predict('all', jsonb_build_object('x', 2.5, 'b', true, 'c', 'green', 'at', written,
			'age', '-1 day +02:03:04')) OPERATOR(posterior.=) posterior.predict('all', t) AS same
FROM t, unnest(ARRAY['2026-03-01 12:00', '2026-03-01T12:00:00Z', '2026-03-01 14:00+02']) s (written)
	WHERE i = 51;
SELECT posterior.predict('all', '[1, true, "red", "no time", "1 h"]'::jsonb);
SELECT timestamptz '2026-01-01 12:00+00' AS in_tokyo, interval '-1 day +02:03:04' AS sql_standard;
RESET TimeZone;
RESET DateStyle;
RESET IntervalStyle;
-- parameters without types: the cast says what the one parameter is, and jsonb what its parts are
PREPARE by_name AS SELECT round(posterior.mean(posterior.predict($1, $2::jsonb))::numeric,
		6) = round(posterior.mean(posterior.predict('all', t))::numeric, 6) AS same
	FROM t WHERE i = 51;
PREPARE by_place AS SELECT posterior.predict(ctx, $1::jsonb)
	OPERATOR(posterior.=) posterior.predict(ctx, x, b, c, at, age) AS same FROM t, v WHERE i = 51;
PREPARE casts AS SELECT posterior.predict(ctx, $1::float8, $2::boolean, $3::text, $4::timestamp,
		$5::interval) OPERATOR(posterior.=) posterior.predict(ctx, x, b, c, at, age) AS same
	FROM t, v WHERE i = 51;
PREPARE rows AS SELECT count(*)
	FROM posterior.predict_rows('all',
		ARRAY(SELECT r FROM jsonb_to_recordset($1::jsonb) r(x float8, b boolean, c text,
			at timestamp, age interval)));
SELECT name, parameter_types FROM pg_prepared_statements ORDER BY name COLLATE "C";
EXECUTE by_name('all',
		'{"x": 2.5, "b": true, "c": "green", "at": "2026-03-01 12:00", "age": "-1 day +02:03:04"}');
EXECUTE by_place('[2.5, true, "green", "2026-03-01 12:00", "-1 day +02:03:04"]');
EXECUTE casts('2.5', 'true', 'green', '2026-03-01 12:00', '-1 day +02:03:04');
EXECUTE rows('[{"x": 1}, {"x": 2, "c": "red"}]');
DEALLOCATE ALL;
-- lists of them, and the other questions
SELECT count(*), bool_and(p.prediction OPERATOR(posterior.=) posterior.predict('all', t)) AS named,
	bool_and(q.prediction OPERATOR(posterior.=) posterior.predict('all', t)) AS array
FROM (SELECT array_agg(to_jsonb(t) ORDER BY i) AS objects,
		array_agg(jsonb_build_array(x, b, c, at, age) ORDER BY i) AS arrays FROM t WHERE i < 9) a,
	posterior.predict_rows('all', a.objects) p, posterior.predict_rows('all', a.arrays) q, t
		WHERE p.ord = t.i AND q.ord = t.i;
SELECT count(*), bool_and(p.prediction OPERATOR(posterior.=) posterior.predict(ctx, x, b, c, at,
			age)) AS same FROM v, LATERAL posterior.predict_rows(ctx,
		(SELECT array_agg(jsonb_build_array(x, b, c, at, age) ORDER BY i) FROM t WHERE i < 9)) p, t
	WHERE ord = i;
SELECT posterior.log_density('all', y, to_jsonb(t) ORDER BY i) = posterior.log_density('all', y, t
		ORDER BY i) AS density FROM t WHERE i < 5;
SELECT count(*) FROM posterior.sample('all', ARRAY(SELECT to_jsonb(t) FROM t WHERE i < 5), 3, 1);
SELECT posterior.predict('all', NULL::jsonb) IS NULL AS named,
	posterior.predict(ctx, NULL::jsonb) IS NULL AS value FROM v;
-- what is refused
SELECT posterior.predict('all', '{"x": 1}'::jsonb);
SELECT posterior.predict('all', '{"x": "1", "b": null, "c": null, "at": null, "age": null}'::jsonb);
SELECT posterior.predict('all', '[1, 1, null, null, null]'::jsonb);
SELECT posterior.predict(ctx, '[1, null, null, [2], null]'::jsonb) FROM v;
SELECT posterior.predict(ctx, '[1, null, {"c": 1}, null, null]'::jsonb) FROM v;
SELECT posterior.predict(ctx, '[1, 2]'::jsonb) FROM v;
SELECT posterior.predict(ctx, '{"x": 1}'::jsonb) FROM v;
SELECT posterior.predict('all', '1'::jsonb);
SELECT posterior.predict('all', '[1, null, null, "infinity", null]'::jsonb);
SELECT posterior.predict(ctx, '[1e400, null, null, null, null]'::jsonb) FROM v;
SELECT posterior.predict_rows('all', ARRAY['[1, null, null, null, null]', NULL]::jsonb[]);
SELECT posterior.drop_context('all');

-- what a function returns is values, not rows: they are the feature where there is only one
SELECT posterior.create_context('one', 't', 'y', '{x}', 'i', 'tabular_small');
SELECT count(*), bool_and(prediction OPERATOR(posterior.=) posterior.predict('one', q)) AS same
FROM posterior.predict_rows('one', array(SELECT r FROM unnest('{1,2,3}'::int[]) r(x))) p,
	LATERAL (SELECT ord AS x) q;
SELECT bool_and(posterior.predict('one', r) OPERATOR(posterior.=) posterior.predict('one',
			q)) AS same FROM unnest('{1,2,3}'::int[]) r(x), LATERAL (SELECT r.x) q;
SELECT prediction OPERATOR(posterior.=) posterior.predict('one', q) AS missing
	FROM posterior.predict_rows('one', ARRAY[NULL]::float8[]), (SELECT NULL::float8 AS x) q;
SELECT posterior.predict('one', 'red'::text);
SELECT posterior.drop_context('one');
SELECT posterior.create_context('two', 't', 'y', '{x,c}', 'i', 'tabular_small');
SELECT * FROM posterior.predict_rows('two', array(SELECT r FROM unnest('{1,2,3}'::int[]) r(x)));
SELECT count(*) FROM posterior.predict_rows('two',
		array(SELECT r FROM (SELECT x, 'red' AS c FROM unnest('{1,2,3}'::int[]) x) r));
SELECT posterior.drop_context('two');
DROP TABLE t, v;
RESET posterior.model;
