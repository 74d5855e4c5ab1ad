-- named contexts answer as a frame over the same rows, in the canonical order, answers
-- compiling the plans would take longer than running them
SET jit = off;
SELECT posterior.load_model('pair', current_setting('test.models')
		|| '/prefix_causal_post.safetensors'), posterior.load_model('chain',
		current_setting('test.models') || '/packed_causal.safetensors'),
	posterior.load_model('rows', current_setting('test.models') || '/rows_tokens.safetensors');
-- The oracle: reads the definition in the view alone, orders and cuts the rows by itself, and asks
-- a growing frame. Counts equal answers.
CREATE FUNCTION agrees(named text, queries regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c posterior.contexts;
	total bigint;
	ordering text;
	list text;
	equal int;
	n int;
BEGIN
	SELECT * INTO STRICT c FROM posterior.contexts WHERE name = named;
	PERFORM set_config('posterior.model', c.model, true);
	SELECT string_agg(o || ' NULLS LAST', ', ') INTO ordering
		FROM regexp_split_to_table(c.order_by, ', ') o;
	SELECT concat_ws(', ', ordering, format('posterior_internal.row_hash(%s, %s)',
				quote_ident(c.target), string_agg(quote_ident(f), ', ' ORDER BY i)),
			quote_ident(c.target) || ' NULLS LAST',
			string_agg(quote_ident(f) || CASE WHEN a.attcollation <> 0 THEN ' COLLATE "C"' ELSE ''
				END || ' NULLS LAST', ', ' ORDER BY i)),
		string_agg(quote_ident(f), ', ' ORDER BY i) INTO ordering, list
	FROM unnest(c.features) WITH ORDINALITY u (f, i) JOIN pg_attribute a ON attrelid = c.relation
		AND attname = f;
	EXECUTE format('CREATE TEMP TABLE visible AS SELECT %s, %s AS y, row_number()
		OVER (ORDER BY %s) AS pos FROM %s WHERE %s IS NOT NULL AND (%s)',
		list, quote_ident(c.target), ordering, c.relation, quote_ident(c.target),
			coalesce(c.filter, 'true'));
	GET DIAGNOSTICS total = ROW_COUNT;
	IF c.max_rows IS NOT NULL THEN
		DELETE FROM visible
			WHERE pos <= (SELECT min(s)
				FROM generate_series(0, total, greatest(1, c.max_rows / 2)) s
				WHERE total - s <= c.max_rows);
		GET DIAGNOSTICS n = ROW_COUNT;
		total := total - n;
	END IF;
	EXECUTE format('SELECT count(*), count(*)
		FILTER (WHERE posterior.predict($1, q)::text = (SELECT d
				FROM (SELECT pos, posterior.regress(y, %1$s)
				OVER (ORDER BY pos ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)::text AS d
		FROM (SELECT pos, y, %1$s FROM visible UNION ALL SELECT 1000000, NULL, %2$s) u) w
			WHERE pos = 1000000)) FROM %3$s q', list, (SELECT string_agg('q.' || quote_ident(f), ',
			' ORDER BY i) FROM unnest(c.features) WITH ORDINALITY u (f, i)), queries)
		INTO n, equal USING named;
	DROP TABLE visible;
	RETURN format('%s of %s equal, %s rows', equal, n, total);
END $$;
CREATE TABLE rentals (id int PRIMARY KEY, temp float8, sky text, open boolean,
		at timestamptz, cnt float8);
INSERT INTO rentals SELECT i, CASE WHEN i % 7 > 0 THEN 10 * sin(i / 9.0) END,
	(ARRAY['sun', 'rain', 'Fog'])[1 + i % 3], i % 2 = 0, '2024-01-01 UTC'::timestamptz
	+ i * interval '7 hours', CASE WHEN i % 11 > 0 THEN 100 + i + 10 * sin(i) END
	FROM generate_series(1, 60) i;
CREATE TABLE asked AS SELECT 'not a feature' AS note, at, open, sky, temp, id + 100 AS id
	FROM rentals WHERE id IN (3, 7, 20);
INSERT INTO asked VALUES (NULL, NULL, NULL, 'snow', NULL, NULL);

-- by name: the order of the columns and columns that are no features do not matter
SELECT posterior.create_context('bikes', 'rentals', 'cnt', model => 'rows');
SELECT agrees('bikes', 'asked');
SELECT count(*), count(p) FROM asked n, LATERAL posterior.predict('bikes', n) p;
SELECT bool_and(posterior.predict('bikes', a)::text = posterior.predict('bikes',
			ROW(r.*)::rentals)::text) AS same FROM asked a JOIN (SELECT id + 100 AS id, temp, sky,
		open, at, NULL::float8 AS cnt FROM rentals) r USING (id);
-- rows of an array, each as if asked alone
SELECT count(*), bool_and(p.prediction::text = posterior.predict('bikes', q.a[p.ord])::text) AS same
	FROM (SELECT array_agg(asked ORDER BY id) AS a FROM asked) q,
	posterior.predict_rows('bikes', q.a) p;
SELECT count(*) FROM posterior.predict_rows('bikes', ARRAY[]::asked[]);
-- predict takes such an array, too, with the name as a literal, a parameter, text or varchar; a
-- value of type name says that a row follows
CREATE VIEW alone AS SELECT row_number() OVER (ORDER BY id) AS ord,
	posterior.predict('bikes', a)::text AS prediction FROM asked a;
SELECT count(*), bool_and(p.prediction::text = alone.prediction) AS same
	FROM posterior.predict('bikes', ARRAY(SELECT asked FROM asked ORDER BY id)) p
	JOIN alone USING (ord);
PREPARE several AS SELECT count(*), bool_and(p.prediction::text = alone.prediction) AS same
	FROM posterior.predict($1, (SELECT array_agg(asked ORDER BY id) FROM asked)) p
		JOIN alone USING (ord);
EXECUTE several('bikes');
SELECT count(*) FROM posterior.contexts c,
	posterior.predict('bikes'::varchar, ARRAY(SELECT asked FROM asked)) p,
	posterior.predict(c.name, ARRAY(SELECT asked FROM asked)) q WHERE c.name = 'bikes';
SELECT count(*) FROM posterior.predict(rows => ARRAY[]::asked[], context => 'bikes');
SELECT count(posterior.predict('bikes'::name, a)), count(posterior.predict('bikes'::varchar, a)),
	count(posterior.predict('bikes'::text, a)) FROM asked a;
SELECT posterior.predict('bikes'::name, ARRAY(SELECT asked FROM asked));
SELECT posterior.predict('bikes', ARRAY[1, 2]);
SELECT posterior.predict('bikes', 1);
-- rows of a subquery and of a join have no table's type
SELECT count(*), count(DISTINCT p::text) FROM (SELECT id, temp, sky, open, at FROM asked) q,
	LATERAL posterior.predict('bikes', q) p;
SELECT count(p) AS joined FROM (SELECT a.id, r.temp, a.sky, a.open, r.at FROM asked a
		JOIN rentals r ON r.id + 100 = a.id) q, LATERAL posterior.predict('bikes', q) p;
SELECT posterior.predict('bikes', NULL::asked) IS NULL AS "no row, no answer",
	posterior.predict(NULL, asked) IS NULL AS "no name either" FROM asked LIMIT 1;
SELECT count(*), count(posterior.predict('bikes', a)) FROM generate_series(1, 4) i LEFT
	JOIN asked a ON a.id = 100 + i;
-- rows of different types at one call site
CREATE FUNCTION ask(r anyelement) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
	RETURN posterior.predict('bikes', r)::text; END $$;
SELECT count(DISTINCT ask(a)) FROM asked a WHERE id = 103;
SELECT ask(a) = ask(b) AS same FROM asked a, (SELECT sky, at, open, temp, id FROM asked) b
	WHERE a.id = 103 AND b.id = 103;

-- every statement sees what its snapshot shows
BEGIN;
INSERT INTO rentals SELECT 100 + i, i, 'rain', true, now(), i FROM generate_series(1, 5) i;
SELECT agrees('bikes', 'asked');
SAVEPOINT s;
DELETE FROM rentals WHERE id % 4 = 0;
SELECT agrees('bikes', 'asked');
ROLLBACK TO s;
UPDATE rentals SET cnt = cnt + 1 WHERE id = 17;
SELECT agrees('bikes', 'asked');
TRUNCATE rentals;
SELECT posterior.predict('bikes', a) FROM asked a;
ROLLBACK;
SELECT agrees('bikes', 'asked');
DELETE FROM rentals WHERE id IN (1, 33);
SELECT agrees('bikes', 'asked');
UPDATE rentals SET cnt = NULL WHERE id = 5;
SELECT agrees('bikes', 'asked');
INSERT INTO rentals VALUES (1, 2, 'sun', false, NULL, 4), (1000, 2, 'sun', false, 'epoch', 4);
SELECT agrees('bikes', 'asked');

-- target, features, filter, order
SELECT posterior.create_context('filtered', 'rentals', 'cnt', features => '{temp,open}',
		order_by => 'at DESC, id', model => 'rows', filter => 'sky <> ''rain'' AND id > 3');
SELECT agrees('filtered', 'asked');
SELECT posterior.create_context('unordered', 'rentals', 'temp', features => '{id,cnt}',
		order_by => 'sky', model => 'rows');
CREATE TABLE counts AS SELECT cnt, id FROM rentals WHERE id % 9 = 2;
SELECT agrees('unordered', 'counts');
-- rows that are equal in the order are ordered by their content, wherever they lie
UPDATE rentals SET id = id WHERE id % 2 = 0;
VACUUM FULL rentals;
SELECT agrees('unordered', 'counts'), agrees('filtered', 'asked');

-- a window is the end of that order, whatever its directions, ties and columns
SELECT posterior.alter_context('filtered', max_rows => 10),
	posterior.alter_context('unordered', max_rows => 13);
SELECT agrees('unordered', 'counts'), agrees('filtered', 'asked');
SELECT posterior.alter_context('filtered', order_by => 'temp, open DESC'),
	posterior.alter_context('unordered', order_by => 'temp DESC, sky, id');
SELECT agrees('unordered', 'counts'), agrees('filtered', 'asked');

-- numbers that are equal as double precision have an order nevertheless
CREATE TABLE counters AS SELECT i AS id, (i % 2)::int AS half, -sin(i) AS x, cos(i * 3) AS z,
	(i % 3) * 100000000000000000000::numeric + (i * 7 % 23) AS y FROM generate_series(1, 23) i;
CREATE TABLE weighed AS SELECT 0.5::float8 AS x, 0.1::float8 AS z;
SELECT posterior.create_context('counters', 'counters', 'y', features => '{x,z}',
		order_by => 'half', model => 'rows');
SELECT agrees('counters', 'weighed');
SELECT posterior.alter_context('counters', order_by => 'y DESC', max_rows => 20);
SELECT agrees('counters', 'weighed');
DROP TABLE counters, weighed;

-- a window of the newest rows: the oldest leave in steps
CREATE TABLE stream (t int PRIMARY KEY, x float8, y float8);
CREATE TABLE next AS SELECT i AS t, 0.5::float8 AS x FROM generate_series(100, 101) i;
SELECT posterior.create_context('recent', 'stream', 'y', order_by => 't', model => 'pair',
		max_rows => 8);
CREATE FUNCTION grow(n int) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP
		INSERT INTO stream SELECT coalesce(max(t), 0) + 1, sin(coalesce(max(t), 0)),
			cos(3 * coalesce(max(t), 0)) FROM stream;
		RETURN NEXT agrees('recent', 'next');
	END LOOP;
END $$;
SELECT grow(20);
SELECT posterior.alter_context('recent', max_rows => 1);
SELECT grow(3);
SELECT posterior.alter_context('recent', max_rows => 0);
SELECT agrees('recent', 'next'), max_rows FROM posterior.contexts WHERE name = 'recent';

-- joint forms: for a model that reads rows one after the other, the same as those of a context
-- value in this order
SELECT posterior.create_context('ordered', 'stream', 'y', features => '{t,x}', model => 'chain');
SET posterior.model = 'chain';
CREATE TABLE value AS SELECT posterior.context(y, t, x ORDER BY t) AS ctx FROM stream;
CREATE TABLE ahead AS SELECT i AS t, sin(i) AS x, cos(i * 3) AS outcome
	FROM generate_series(40, 44) i;
SELECT agrees('ordered', 'next');
SELECT bool_and(posterior.predict('ordered', a)::text = posterior.predict(ctx, t, x)::text) AS same
	FROM ahead a, value;
SELECT count(*), count(DISTINCT s.draw), bool_and(s.y = v.y) AS same
FROM (SELECT array_agg(a ORDER BY t) AS named,
		(SELECT array_agg(b) FROM (SELECT t, x FROM ahead ORDER BY t) b) AS placed
		FROM ahead a) q, value,
	LATERAL posterior.sample('ordered', q.named, 3, 42) s
		JOIN LATERAL posterior.sample(ctx, q.placed, 3, 42) v USING (draw, ord);
SELECT count(*) FROM posterior.sample('ordered', ARRAY(SELECT a FROM ahead a));
SELECT posterior.log_density('ordered', outcome, a ORDER BY t) = posterior.log_density(ctx, outcome,
		t, x ORDER BY t) AS same,
	posterior.log_density('ordered', outcome, a ORDER BY t) <> posterior.log_density('ordered',
			outcome, a ORDER BY t DESC) AS differ,
	posterior.log_density_averaged('ordered', 4, 7, outcome,
			a) = posterior.log_density_averaged(ctx, 4, 7, outcome, t, x) AS averaged FROM ahead a,
		value GROUP BY ctx;
SELECT t % 2 AS odd, posterior.log_density('ordered', CASE WHEN t <> 42 THEN outcome END, a
		ORDER BY t) = (SELECT posterior.log_pdf(p, outcome) FROM ahead b, value,
		posterior.predict(ctx, t, x) p WHERE b.t = 41) AS "row 41 alone",
	posterior.log_density('ordered', CASE WHEN t <> 42 THEN outcome END, a
			ORDER BY t) = 0 AS "nothing asked" FROM ahead a WHERE t IN (41, 42)
		GROUP BY t % 2 ORDER BY 1;
RESET posterior.model;
-- the context's own model answers, whatever posterior.model says
SET posterior.model = 'toy';
SELECT posterior.predict('ordered', a)::text = posterior.predict(ctx, t, x)::text AS same
	FROM ahead a, (SELECT set_config('posterior.model', 'chain', false)) s, value LIMIT 1;
RESET posterior.model;

-- fewer rows than a model needs; none
CREATE TABLE little (x float8, y float8);
SELECT posterior.create_context('little', 'little', 'y', order_by => 'x', model => 'toy');
SELECT posterior.create_context('four', 'little', 'y', order_by => 'x', model => 'rows');
SET posterior.model = 'toy';
SELECT posterior.predict('little',
		n)::text = posterior.predict((SELECT posterior.context(NULL::float8, 1.0)), x)::text
		AS "the prior"
	FROM next n LIMIT 1;
RESET posterior.model;
SELECT posterior.kind(posterior.predict('four', n)) FROM next n LIMIT 1;
INSERT INTO little VALUES (1, 1), (2, NULL);
SELECT agrees('little', 'next');
UPDATE little SET y = 'NaN' WHERE x = 2;
SELECT posterior.kind(posterior.predict('little', n)) FROM next n LIMIT 1;
BEGIN;
ALTER TABLE little ALTER y TYPE numeric;
UPDATE little SET y = 1e400 WHERE x = 2;
SELECT posterior.kind(posterior.predict('little', n)) FROM next n LIMIT 1;
ROLLBACK;
UPDATE little SET y = 1, x = 'Infinity' WHERE x = 2;
SELECT posterior.kind(posterior.predict('little', n)) FROM next n LIMIT 1;
SELECT posterior.warm_context('little');
DELETE FROM little WHERE x > 2;
SELECT posterior.warm_context('little'), agrees('little', 'next');
SELECT count(posterior.drop_context(name)) FROM posterior.contexts;
DROP FUNCTION agrees, ask, grow;
DROP VIEW alone;
DROP TABLE rentals, asked, counts, stream, next, value, ahead, little;
SELECT posterior.drop_model('pair'), posterior.drop_model('chain'), posterior.drop_model('rows');
-- equal intervals are one number, however they are written: equal rows have no order
CREATE TABLE spans AS SELECT i AS id, CASE WHEN i % 3 = 0 THEN '1 day 23:59:59.000002'
	ELSE '47:59:59.000002' END::interval AS d, (i % 2)::float8 AS y FROM generate_series(1, 25) i;
CREATE TABLE turned AS SELECT * FROM spans ORDER BY id DESC;
SELECT posterior.create_context(t, t::regclass, 'y', '{d}', 'd', model => 'tabular_small')
	FROM unnest('{spans,turned}'::text[]) t;
SELECT posterior.predict('spans', q) OPERATOR(posterior.=) posterior.predict('turned', q) AS same
	FROM (SELECT interval '2 days' AS d) q;
DROP TABLE spans, turned;
