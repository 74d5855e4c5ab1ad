-- score, contrast, suggest, order_gap, watch
\set SHOW_CONTEXT never
CREATE TABLE trials (id int PRIMARY KEY, x float8, kind text, y float8);
INSERT INTO trials SELECT i, i % 40 / 10.0, (ARRAY['p', 'q'])[1 + i % 2],
	4 - (i % 40 / 10.0 - 2) ^ 2 + CASE i % 2 WHEN 1 THEN 2 ELSE 0 END + (hashint4(i) & 15) / 100.0
	FROM generate_series(1, 80) i;
SELECT posterior.create_context('trials', 'trials', 'y', '{x,kind}', order_by => 'id');
-- score: the numbers of predict_summary, by key, whatever the block
CREATE TABLE ask (name text PRIMARY KEY, y float8, kind text, x float8);
INSERT INTO ask SELECT 'r' || i, CASE WHEN i % 3 = 0 THEN 1 END, 'p', i / 10.0
	FROM generate_series(0, 24) i;
SELECT count(*) AS rows, bool_and(abs(s.mean - posterior.mean(p)) < 1e-12) AS mean,
	bool_and(s.quantiles[2] = posterior.quantile(p, 0.5)) AS median
FROM posterior.score('trials', 'ask', block => 7) s JOIN ask a ON a.name = s.row_key->>'name',
	LATERAL posterior.predict('trials'::name, a) p;
SELECT count(*) FROM posterior.score('trials', 'ask', only_missing => true);
SELECT bool_and(a.mean = b.mean) AS same FROM posterior.score('trials', 'ask') a
	JOIN posterior.score('trials', 'ask', block => 1) b USING (row_key);
SELECT posterior.create_context('kinds', 'trials', 'kind', '{x,y}', order_by => 'id');
SELECT count(label) AS labels, bool_and(probability BETWEEN 0.5 AND 1) AS probability,
	count(mean) AS means FROM posterior.score('kinds', 'trials', key => '{id}');
-- contrast: what if the kind were another
SELECT difference > 1 AS difference, probability_greater > 0.9 AS greater, low < difference
	AND difference < high AS band, abs(other_mean - mean - difference) < 1e-12 AS sum
FROM posterior.contrast('trials', '{"x": 2, "kind": "p"}', '{"x": 2, "kind": "q"}');
-- suggest: the best is near x = 2 of kind q
CREATE VIEW candidates AS SELECT i / 5.0 AS x, k AS kind FROM generate_series(0, 20) i,
	unnest('{p,q}'::text[]) k;
SELECT bool_and(abs((row_key->>'x')::float8 - 2) < 0.9 AND row_key->>'kind' = 'q') AS near, count(*)
	FROM posterior.suggest('trials', 'candidates', 3, draws => 64);
SELECT method, bool_and(abs((row_key->>'x')::float8 - 2) > 1.2) AS far
	FROM unnest('{draws,improvement,bound}'::text[]) method,
	LATERAL posterior.suggest('trials', 'candidates', 1, maximize => false, method => method,
		draws => 32) GROUP BY method ORDER BY method;
SELECT abs(sum(share) - 1) < 1e-9 AS shares, min(rank), max(rank)
	FROM posterior.suggest('trials', 'candidates', 100, draws => 16);
-- order_gap: no order of one row matters, gaps are not negative on the same orders
CREATE VIEW held AS SELECT * FROM trials WHERE id <= 8;
SELECT rows, gap >= 0 AS gap, log_density_stddev >= 0 AS spread, kl_gap IS NOT NULL AS kl
	FROM posterior.order_gap('trials', 'held', orders => 4, draws => 4);
SELECT kl_gap FROM posterior.order_gap('trials', 'held', orders => 2, draws => 0);
-- watch: new rows tell their surprise, surprising ones stay out of the context
SELECT posterior.watch('trials', leave_out => true);
INSERT INTO trials (id, x, kind, y) VALUES (1001, 2, 'p', 4.05), (1002, 2, 'p', 40),
	(1003, 2, 'p', NULL);
SELECT id, surprise > 0.01 AS usual FROM trials WHERE id > 1000 ORDER BY id;
SELECT filter FROM posterior.contexts WHERE name = 'trials';
SELECT posterior.mean(posterior.predict('trials'::name,
			'{"x": 2, "kind": "p"}'::jsonb)) < 8 AS "kept out";
SELECT posterior.watch('trials', leave_out => true);
SELECT filter FROM posterior.contexts WHERE name = 'trials';
SELECT posterior.unwatch('trials');
INSERT INTO trials (id, x, kind, y) VALUES (1004, 2, 'p', 40) RETURNING surprise;
-- a context that cannot answer yet lets rows in
CREATE TABLE young (x float8, y float8);
SELECT posterior.create_context('young', 'young', 'y', '{x}', order_by => 'x');
SELECT posterior.watch('young');
INSERT INTO young SELECT i, i FROM generate_series(1, 6) i RETURNING surprise;
INSERT INTO young SELECT 3, 3 RETURNING surprise > 0.1 AS usual;
INSERT INTO young SELECT 3, 1000 RETURNING surprise < 0.1 AS odd;
-- rows of a statement are told from those before it, each as if it had come alone, by one reading
CREATE TABLE loaded AS SELECT i AS id, i / 10.0 AS x, sin(i / 10.0) AS y
FROM generate_series(1, 40) i;
SELECT posterior.create_context('loaded', 'loaded', 'y', '{x}', 'id'), posterior.watch('loaded'),
	posterior.watch('loaded', into_table => 'loads', key => '{id}');
BEGIN;
INSERT INTO loaded VALUES (41, 4.1, 0.1) RETURNING id AS id1, surprise AS surprise1 \gset
ROLLBACK;
BEGIN;
INSERT INTO loaded VALUES (42, 4.1, 0.2) RETURNING id AS id2, surprise AS surprise2 \gset
ROLLBACK;
SELECT skips + deltas + reads + extensions + revisions + rebuilds + private AS before
FROM posterior.stat_contexts WHERE name = 'loaded' \gset
INSERT INTO loaded SELECT 40 + i, 4.1, i / 10.0 FROM generate_series(1, 30) i;
SELECT skips + deltas + reads + extensions + revisions + rebuilds + private - :before <= 4 AS few
FROM posterior.stat_contexts WHERE name = 'loaded';
SELECT id, surprise = CASE id WHEN :id1 THEN :surprise1 ELSE :surprise2 END AS same
FROM loaded WHERE id IN (:id1, :id2) ORDER BY id;
SELECT count(*) AS rows, bool_and(surprise = (SELECT l.surprise FROM loaded l
	WHERE l.id = (row_key->>'id')::int)) AS same FROM loads;
-- COPY, and statements of a function, which catches errors between them
COPY loaded (id, x, y) FROM stdin;
71	4.1	0.1
72	4.1	0.1
\.
SELECT count(DISTINCT surprise) AS one FROM loaded WHERE id > 70;
DO $$ BEGIN
	INSERT INTO loaded VALUES (73, 4.1, 0.1);
	BEGIN
		INSERT INTO loaded VALUES (74, 4.1, 0.1), (75, 4.1, 0.1);
		PERFORM 1 / 0;
	EXCEPTION WHEN division_by_zero THEN
	END;
	INSERT INTO loaded VALUES (76, 4.1, 0.1);
END $$;
CREATE TEMP TABLE within AS SELECT id, surprise FROM loaded WHERE id > 72;
DELETE FROM loaded WHERE id > 72;
INSERT INTO loaded VALUES (73, 4.1, 0.1);
INSERT INTO loaded VALUES (76, 4.1, 0.1);
SELECT l.id, l.surprise = w.surprise AS same FROM within w JOIN loaded l USING (id) ORDER BY id;
SELECT posterior_internal.watch_insert();
-- watches that come and go leave nothing in a session
DO $$ BEGIN
	FOR i IN 1 .. 9 LOOP
		PERFORM posterior.unwatch('loaded');
		PERFORM posterior.watch('loaded'), posterior.watch('loaded', into_table => 'loads',
			key => '{id}');
		INSERT INTO loaded VALUES (100 + i, 4.1, 0.1);
	END LOOP;
END $$;
SELECT ident, count(*) FROM pg_backend_memory_contexts WHERE ident ~ 'watch_\w*_told' GROUP BY ident
	HAVING count(*) > 6;
SELECT count(surprise) FROM loaded WHERE id > 100;
DROP TABLE loaded, loads, within;
-- partitions, whose columns may have other places, and may be attached later
CREATE TABLE parts (id int, x float8, y float8, "key" float8) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (100) PARTITION BY LIST ("key");
CREATE TABLE part1any PARTITION OF part1 DEFAULT;
CREATE TABLE part2 ("key" float8, y float8, junk int, x float8, id int);
ALTER TABLE part2 DROP COLUMN junk;
INSERT INTO parts (id, x, y) SELECT i, i / 10.0, sin(i / 10.0) FROM generate_series(1, 40) i;
SELECT posterior.create_context('parts', 'parts', 'y', '{x}', 'id');
SELECT posterior.watch('parts', 'key');
-- a key may be an expression of columns, and a generated column is empty when a row is told of
CREATE TABLE computed (id int, x float8, y float8, part float8) PARTITION BY RANGE ((part + 1));
CREATE TABLE made (id int PRIMARY KEY, x float8, square float8 GENERATED ALWAYS AS (x * x) STORED,
	y float8);
SELECT posterior.create_context('computed', 'computed', 'y', '{x}', 'id'),
	posterior.create_context('made', 'made', 'y', '{square}', 'id'),
	posterior.create_context('told', 'made', 'square', '{x}', 'id');
SELECT posterior.watch('computed', 'part');
SELECT posterior.watch('made');
SELECT posterior.watch('told', into_table => 'tellings');
DROP TABLE computed, made;
SELECT posterior.watch('parts', leave_out => true),
	posterior.watch('parts', into_table => 'part_log', key => '{id}');
ALTER TABLE part2 ADD surprise float8;
ALTER TABLE parts ATTACH PARTITION part2 FOR VALUES FROM (100) TO (200);
INSERT INTO parts (id, x, y) VALUES (41, 4.1, -0.81), (101, 4.1, -0.81), (102, 4.1, 9)
	RETURNING id, surprise > 0.01 AS usual;
INSERT INTO part2 (id, x, y) VALUES (103, 4.1, 9) RETURNING surprise < 0.01 AS odd;
SELECT row_key, surprise < 0.01 AS odd FROM part_log ORDER BY (row_key->>'id')::int;
SELECT posterior.watch('parts', leave_out => true),
	posterior.alter_context('parts', new_name => 'parted');
INSERT INTO parts (id, x, y) VALUES (104, 4.1, 9) RETURNING surprise < 0.01 AS odd;
SELECT posterior.unwatch('parted');
SELECT count(*) AS triggers FROM pg_trigger WHERE tgname ~ 'posterior_(watch|record)_part';
SELECT posterior.watch('parted');
SELECT posterior.drop_context('parted');
SELECT count(*) AS triggers FROM pg_trigger WHERE tgname ~ 'posterior_(watch|record)_part';
DROP TABLE parts, part_log;
-- the right to read features and key is enough
CREATE TABLE bids (id int PRIMARY KEY, x float8, "x ""f""" text, secret text, y float8);
INSERT INTO bids SELECT i, i / 10.0, 'l' || i % 2, 'hush', sin(i / 10.0)
FROM generate_series(1, 40) i;
SELECT posterior.create_context('bids', 'bids', 'y', '{x,"x \"f\""}', 'id');
CREATE ROLE regress_verb_bidder;
GRANT SELECT (id, x, "x ""f""", y) ON bids TO regress_verb_bidder;
SET ROLE regress_verb_bidder;
SELECT count(mean) FROM posterior.score('bids', 'bids');
SELECT count(*) FROM posterior.suggest('bids', 'bids', 3, draws => 4);
SELECT count(mean) FROM posterior.score('bids', 'bids', key => '{secret}');
RESET ROLE;
DROP OWNED BY regress_verb_bidder;
DROP ROLE regress_verb_bidder;
DROP TABLE bids;
-- of labels
SELECT posterior.watch('kinds', 'oddity');
INSERT INTO trials (id, x, kind, y) VALUES (1005, 2, 'q', 6.05)
	RETURNING oddity BETWEEN 0 AND 1 AS label;
-- into a table: key, time, value, surprise, prediction; with a column, which alone can leave out
CREATE TABLE shop (id int PRIMARY KEY, at timestamptz, x int, y numeric, kind boolean);
INSERT INTO shop SELECT i, '2024-01-01'::timestamptz + make_interval(hours => i), i % 5,
	10 * (i % 5) + i % 3, i % 5 > 2 FROM generate_series(1, 60) i;
SELECT posterior.create_context('shop', 'shop', 'y', '{x}', order_by => 'id');
SELECT posterior.watch('shop', into_table => 'odd rows');
SET TimeZone = 'UTC';
SELECT posterior.watch('shop', into_table => '"odd rows"', "time" => 'at');
INSERT INTO shop (id, at, x, y) VALUES (101, '2024-02-01 00:00+00', 1, 11),
	(102, '2024-02-02 00:00+00', 1, 500), (103, NULL, 1, NULL);
SELECT row_key, at, value, label, surprise > 0.01 AS usual,
	posterior.mean(prediction) BETWEEN 9 AND 13 AS prediction FROM "odd rows" ORDER BY row_key;
SELECT attname FROM pg_attribute WHERE attrelid = 'shop'::regclass AND attname = 'surprise';
SELECT posterior.watch('shop', into_table => '"odd rows"', leave_out => true);
SELECT posterior.watch('shop', 'surprise', into_table => '"odd rows"', key => '{x,kind}',
	leave_out => true);
SELECT now() AS before \gset
INSERT INTO shop (id, x, y) VALUES (104, 2, 21) RETURNING surprise > 0.01 AS usual;
SELECT row_key, at BETWEEN :'before' AND now() AS now FROM "odd rows"
	WHERE row_key->>'x' = '2';
-- of labels
SELECT posterior.create_context('kind of shop', 'shop', 'kind', '{x,y}', order_by => 'id');
SELECT posterior.watch('kind of shop', into_table => 'public.kinds');
INSERT INTO shop (id, x, y, kind) VALUES (105, 1, 11, true);
SELECT value, label, surprise < 0.2 AS odd, posterior.kind(prediction) FROM kinds;
-- inserting needs the right to
CREATE ROLE regress_verb_clerk;
GRANT INSERT, SELECT ON shop TO regress_verb_clerk;
SET ROLE regress_verb_clerk;
INSERT INTO shop (id, x, y) VALUES (106, 2, 21);
RESET ROLE;
GRANT INSERT ON "odd rows", kinds TO regress_verb_clerk;
SET ROLE regress_verb_clerk;
INSERT INTO shop (id, x, y) VALUES (106, 2, 21) RETURNING id;
RESET ROLE;
SELECT posterior.unwatch('shop'), posterior.unwatch('kind of shop'), posterior.unwatch('shop');
SELECT count(*) AS triggers FROM pg_trigger WHERE tgrelid = 'shop'::regclass
	AND tgname ~ 'watch|record';
SELECT posterior.watch('shop', into_table => 'young');
SELECT posterior.watch('shop', into_table => 'shop');
SELECT posterior.watch('shop', into_table => 'more', "time" => 'id');
SELECT posterior.watch('shop', into_table => 'more', key => '{z}');
DROP OWNED BY regress_verb_clerk;
DROP ROLE regress_verb_clerk;
DROP TABLE shop, "odd rows", kinds;
-- mistakes
SELECT posterior.score('nowhere', 'ask');
SELECT posterior.score('trials', 'young');
SELECT posterior.score('trials', 'ask', block => 0);
SELECT posterior.score('trials', 'ask', key => '{z}');
SELECT posterior.contrast('trials', NULL, '{}');
SELECT posterior.contrast('trials', '{"x": 1}', '{"x": 2}');
SELECT posterior.suggest('trials', 'young');
SELECT posterior.suggest('trials', 'candidates', 0);
SELECT posterior.suggest('trials', 'candidates', method => 'guess');
SELECT posterior.suggest('kinds', 'candidates');
CREATE VIEW none AS SELECT * FROM candidates WHERE false;
SELECT posterior.suggest('trials', 'none');
SELECT posterior.order_gap('trials', 'none');
SELECT posterior.order_gap('trials', 'held', orders => 1);
SELECT posterior.watch('trials', 'y');
SELECT posterior.watch('trials', 'kind');
SELECT posterior.watch('trials', threshold => 2);
SELECT posterior.watch('nowhere');
DROP VIEW held, candidates, none;
DROP TABLE trials, ask, young;
-- columns that are called as the parts of the verbs' own statements
CREATE TABLE odd (r float8, q float8, y float8, n int PRIMARY KEY, ord int, row_key text,
		"posterior" text);
INSERT INTO odd SELECT i % 5, i % 3, i % 5 + i % 3, i, i, 'a', 'b' FROM generate_series(1, 30) i;
SELECT posterior.create_context('odd', 'odd', 'y', '{r,q}', order_by => 'n');
SELECT count(mean) FROM posterior.score('odd', 'odd');
SELECT count(*) FROM posterior.suggest('odd', 'odd', 2, draws => 4);
CREATE VIEW "some" AS SELECT * FROM odd WHERE n < 6;
SELECT rows FROM posterior.order_gap('odd', '"some"', orders => 2, draws => 2);
DROP VIEW "some";
DROP TABLE odd;
-- the best so far is one that the context may have
CREATE TABLE tries AS SELECT i AS id, i / 10.0 AS x, sin(i / 10.0) AS y, true AS ok
FROM generate_series(1, 40) i;
INSERT INTO tries VALUES (41, 4.1, 1000, false), (42, 4.2, 'NaN', false);
SELECT posterior.create_context('tries', 'tries', 'y', '{x}', 'id', filter => 'ok');
CREATE VIEW open AS SELECT i AS id, i / 4.0 AS x FROM generate_series(1, 12) i;
SELECT count(*) FILTER (WHERE improvement > 0) > 3 AS some
FROM posterior.suggest('tries', 'open', 12, method => 'improvement');
DROP VIEW open;
DROP TABLE tries;
-- a watch follows its context's name and target, and ends with it
CREATE TABLE watched AS SELECT i AS id, i / 10.0 AS x, sin(i / 10.0) AS y
FROM generate_series(1, 40) i;
SELECT posterior.create_context('first', 'watched', 'y', '{x}', 'id');
SELECT posterior.watch('first'), posterior.watch('first', into_table => 'told', key => '{id}');
SELECT posterior.alter_context('first', new_name => 'it''s \the second');
ALTER TABLE watched RENAME y TO target;
INSERT INTO watched (id, x, target) VALUES (41, 0, 1), (42, 'NaN', 1), (43, 1, 'NaN'), (44, 1, NULL)
	RETURNING id, surprise > 0 AS told;
SELECT count(*), count(surprise) AS told FROM told;
DELETE FROM watched WHERE id IN (42, 43);
DROP TABLE told;
ALTER TABLE watched RENAME surprise TO oddity;
INSERT INTO watched (id, x, target) VALUES (45, 0, 1) RETURNING oddity;
SELECT posterior.watch('it''s \the second', 'oddity');
INSERT INTO watched (id, x, target) VALUES (46, 0, 1) RETURNING oddity > 0 AS told;
SELECT posterior.drop_context('it''s \the second');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'watched'::regclass;
SELECT posterior.unwatch('it''s \the second');
-- triggers of a context that is gone without them
SELECT posterior.create_context('gone', 'watched', 'target', '{x}', 'id');
SELECT posterior.watch('gone', 'oddity');
SELECT posterior.drop_context('gone');
CREATE TRIGGER posterior_watch_gone BEFORE INSERT ON watched FOR EACH ROW
	EXECUTE FUNCTION posterior_internal.watch_insert('gone', 'target', 'oddity', 'number');
INSERT INTO watched (id, x, target) VALUES (47, 0, 1) RETURNING oddity;
SELECT posterior.unwatch('gone');
INSERT INTO watched (id, x, target) VALUES (48, 0, 1) RETURNING oddity;
DROP TABLE watched;
-- a filter that has the column's name in it; a threshold that is changed; a name with odd signs
CREATE TABLE left_out AS SELECT i AS id, i / 10.0 AS x, sin(i / 10.0) AS y, false AS surprise_known
FROM generate_series(1, 40) i;
SELECT posterior.create_context('left out', 'left_out', 'y', '{x}', 'id',
	filter => 'NOT surprise_known');
SELECT posterior.watch('left out', leave_out => true);
SELECT posterior.watch('left out', threshold => 0.2, leave_out => true);
SELECT filter FROM posterior.contexts WHERE name = 'left out';
SELECT posterior.watch('left out', 'o"d\d [1]', leave_out => true);
SELECT posterior.watch('left out', 'o"d\d [1]', threshold => 1e-5, leave_out => true);
SELECT filter FROM posterior.contexts WHERE name = 'left out';
DROP TABLE left_out;
-- labels of a column of fixed width
CREATE TABLE padded AS SELECT i AS id, i / 10.0 AS x,
	CASE WHEN i % 2 = 0 THEN 'ab' ELSE 'cde' END::char(5) AS k FROM generate_series(1, 80) i;
SELECT posterior.create_context('padded', 'padded', 'k', '{x}', 'id'), posterior.watch('padded');
INSERT INTO padded VALUES (81, 2, 'ab') RETURNING surprise > 0 AS told;
DROP TABLE padded;
-- a number that no double precision holds
CREATE TABLE huge AS SELECT i AS id, i / 10.0 AS x, i::numeric AS y FROM generate_series(1, 20) i;
SELECT posterior.create_context('huge', 'huge', 'y', '{x}', 'id'), posterior.watch('huge');
SET client_min_messages = error;
INSERT INTO huge VALUES (21, 2, 1e400) RETURNING surprise IS NULL AS "let in";
RESET client_min_messages;
DROP TABLE huge;
-- more labels, or rows, than a context takes
CREATE TABLE many AS SELECT i AS id, i / 10.0 AS x, chr(97 + i % 10) AS k
FROM generate_series(1, 40) i;
SELECT posterior.create_context('many', 'many', 'k', '{x}', 'id'), posterior.watch('many');
SET client_min_messages = error;
INSERT INTO many VALUES (41, 2, 'z') RETURNING surprise;
INSERT INTO many VALUES (42, 2, 'a') RETURNING surprise IS NULL AS "let in";
DELETE FROM many WHERE k = 'z';
INSERT INTO many VALUES (43, 2, 'a') RETURNING surprise > 0 AS told;
SET posterior.row_limit = 30;
INSERT INTO many VALUES (44, 2, 'a') RETURNING surprise IS NULL AS "let in";
RESET posterior.row_limit;
ALTER TABLE many ALTER x TYPE point USING NULL;
INSERT INTO many VALUES (45, NULL, 'a') RETURNING surprise IS NULL AS "let in";
RESET client_min_messages;
DROP TABLE many;
