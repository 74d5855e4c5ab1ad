-- what can be a feature
SET posterior.model = 'tabular_small';
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN positive AS numeric CHECK (VALUE > 0);
CREATE TABLE f AS
SELECT i, sin(i)::float8 AS y, i::int2 AS a, i AS b, i::int8 AS c, i::float4 AS d, i::float8 AS e,
	i::numeric AS f, (i::numeric)::positive AS g, i % 2 = 0 AS h,
	'l' || i % 3 AS k, ('l' || i % 3)::varchar(5) AS l, ('l' || i % 3)::char(9) AS m,
		(ARRAY['sad','ok','happy']::mood[])[1 + i % 3] AS n,
	date '2024-01-01' + i AS o, timestamp '2024-01-01' + i * interval '1 hour' AS p,
		timestamptz '2024-01-01 00:00+00' + i * interval '1 hour' AS q, i * interval '1 day' AS r,
	('l' || i % 3)::name AS s
FROM generate_series(1, 30) i;
SELECT posterior.features(posterior.context(y, a, b, c, d, e, f, g, h, k, l, m, n, o, p, q, r, s))
	FROM f;
-- the same label in any text type, the same instant as date or timestamp, is the same cell
SELECT (SELECT posterior.context(y, k) FROM f)::text = (SELECT posterior.context(y, l)
		FROM f)::text AS varchar_is_text,
	(SELECT posterior.context(y, k) FROM f)::text = (SELECT posterior.context(y, m)
			FROM f)::text AS padding_is_nothing,
	(SELECT posterior.context(y, k) FROM f)::text = (SELECT posterior.context(y, s)
			FROM f)::text AS name_is_text,
	(SELECT posterior.context(y, o) FROM f)::text = (SELECT posterior.context(y, o::timestamp)
			FROM f)::text AS date_is_midnight,
	(SELECT posterior.context(y, b) FROM f)::text = (SELECT posterior.context(y, f)
			FROM f)::text AS integer_is_numeric;
-- no session setting reaches a cell
SELECT posterior.context(y, p, q, r)::text AS before FROM f \gset
SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'iso_8601';
SELECT posterior.context(y, p, q, r)::text = :'before' AS same FROM f;
RESET TimeZone; RESET DateStyle; RESET IntervalStyle;
-- NULL is missing, in the context and in the query; an unknown label is missing too
SELECT posterior.kind(posterior.predict(ctx, NULL::int, NULL::text)),
	posterior.predict(ctx, 3, 'never seen')::text = posterior.predict(ctx, 3,
		NULL)::text AS unknown_is_missing,
	posterior.predict(ctx, 3, NULL::text)::text <> posterior.predict(ctx, 3,
			'l1')::text AS label_matters
FROM (SELECT posterior.context(y, CASE WHEN i % 5 > 0 THEN b END, k) AS ctx FROM f) s;
-- a constant column, a constant target
SELECT posterior.stddev(posterior.predict(ctx, 1, 5)) BETWEEN 0.001 AND 10 AS proper,
	posterior.predict(ctx, 1, 5)::text = posterior.predict(ctx, 99, 5)::text AS constant_is_ignored
FROM (SELECT posterior.context(y, 1, b) AS ctx FROM f) s;
-- equal targets are near, and others are not thought impossible
SELECT abs(posterior.mean(d) - 7) < 0.5 AS mean, posterior.stddev(d) BETWEEN 0.01 AND 2 AS near
FROM (SELECT posterior.predict(posterior.context(7, b), 5) AS d FROM f) s;
-- more columns than the model has slots: the most relevant are used
SELECT posterior.kind(posterior.predict(ctx,
			1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,
			23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,
	41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65,66))
FROM (SELECT posterior.context(y, b, b*2, b*3, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b,
			b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b,
	b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b) AS ctx FROM f) s;
-- what cannot be
SELECT posterior.context(y, b, '{}'::json) FROM f;
SELECT posterior.context(y, point(1, 2)) FROM f;
SELECT posterior.context(y, ARRAY[1, 2]) FROM f;
SELECT posterior.context(ARRAY['1'], b) FROM f;
SELECT posterior.context(y) FROM f;
SELECT posterior.context(y, b, CASE WHEN i = 3 THEN 'NaN'::float8 ELSE 1 END) FROM f;
SELECT posterior.context(y, CASE WHEN i = 3 THEN '-Infinity'::float4 ELSE 1 END) FROM f;
SELECT posterior.context(y, 'NaN'::numeric) FROM f;
SELECT posterior.context(y, 'infinity'::date) FROM f;
SELECT posterior.context('NaN'::float8, b) FROM f;
SELECT posterior.context('Infinity'::float8, b) FROM f;
SELECT posterior.context(y, VARIADIC ARRAY[1, 2]) FROM f;
-- columns of a question are those of the context
SELECT posterior.predict(posterior.context(y, b, k), 1) FROM f;
SELECT posterior.predict(posterior.context(y, b, k), 'a'::text, 'b') FROM f;
SELECT posterior.predict(posterior.context(y, b, k), true, 'b') FROM f;
SELECT posterior.predict(posterior.context(y, o), interval '1 day') FROM f;
SELECT posterior.predict(posterior.context(y, b), 'NaN'::float8) FROM f;
-- a moment is what a clock shows in one time zone only: neither is taken for the other, but in a
-- value of 1.0, which does not tell which of them it has
SELECT posterior.predict(posterior.context(y, q), min(p)) FROM f;
SELECT posterior.predict(posterior.context(y, q), min(o)) FROM f;
SELECT posterior.predict(posterior.context(y, p), min(q)) FROM f;
SELECT posterior.predict(posterior.context(y, o), '2024-01-02'::timestamp) IS NOT NULL AS date
FROM f;
SET TimeZone = 'Asia/Tokyo';
SELECT posterior.mean(posterior.predict(ctx, o::timestamp AT TIME ZONE 'UTC'))
		= posterior.mean(posterior.predict(ctx, (o + time '09:00')::timestamptz)) AS same_moment,
	posterior.predict(old, o)::text = posterior.predict(ctx, o::timestamp AT TIME ZONE 'UTC')::text
		AS old_local,
	posterior.predict(old, o::timestamptz)::text = posterior.predict(ctx, o::timestamptz)::text
		AS old_moment
FROM (SELECT ctx, overlay(ctx::text PLACING '03' FROM 23 FOR 2)::posterior.context AS old
	FROM (SELECT posterior.context(y, q) AS ctx FROM f) s) c, f WHERE i = 1;
RESET TimeZone;
SELECT posterior.create_context('clock', 'f', 'y', '{o,p}', 'i'),
	posterior.create_context('moment', 'f', 'y', '{q}', 'i');
SELECT posterior.predict('clock', r) FROM (SELECT o, q AS p FROM f) r;
SELECT posterior.predict('moment', r) FROM (SELECT p AS q FROM f) r;
SELECT posterior.predict('moment', p) FROM f;
SELECT posterior.predict('clock', whole) IS NOT NULL AS clock,
	posterior.predict('moment', whole) IS NOT NULL AS moment FROM f whole WHERE i = 1;
-- the unit of a constant target does not matter, whatever a sum of it rounds to
CREATE FUNCTION width(target float8) RETURNS float8 LANGUAGE sql AS $$
	SELECT posterior.stddev(posterior.predict((SELECT posterior.context(target,
				CASE WHEN i % 6 > 0 THEN sin(i) END, cos(i * i), chr(97 + i % 4), 7.5 ORDER BY i)
			FROM generate_series(1, 130) i), 0.3, 0.2, 'b'::text, 7.5)) / target $$;
SELECT target, round((width(target) / width(0.5))::numeric, 4) AS ratio
	FROM unnest('{0.1, 0.25, 0.7, 1.1, 3, 12.3}'::float8[]) target ORDER BY target;
DROP FUNCTION width(float8);
DROP TABLE f;
DROP TYPE mood;
DROP DOMAIN positive;
-- the identity of a label is the hash that docs/model-format.md describes: a context holds it as
-- its cell
SELECT label, identity,
	position(encode(float8send(identity::float8), 'hex') IN posterior.context(0,
			label)::text) > 0 AS is_the_cell
FROM (VALUES ('', 735455236730778), ('green', 264060553653320), ('red', 2742291000511106)) l (label,
		identity) GROUP BY label, identity ORDER BY label COLLATE "C";
