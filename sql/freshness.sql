-- freshness of named contexts: rows that wait for the next boundary, and what never waits
\set SHOW_CONTEXT never
SELECT posterior.load_model('columns',
		current_setting('test.models') || '/columns/columns.safetensors'),
	posterior.load_model('columns_classes',
		current_setting('test.models') || '/columns/columns_classes.safetensors');
CREATE SCHEMA freshness;
SET search_path = freshness;
SET posterior.model = 'columns';
SET posterior.class_model = 'columns_classes';
CREATE TABLE gauges (id int PRIMARY KEY, x float8, kind text, y float8, label text);
INSERT INTO gauges SELECT i, sin(i), (ARRAY['a', 'b', NULL])[1 + i % 3],
	10 + 3 * cos(i) + i % 3, CASE WHEN i % 4 < 2 THEN 'low' ELSE 'high' END
	FROM generate_series(1, 40) i;
SELECT posterior.create_context('bounded', 'gauges', 'y', '{x,kind}', 'id', 'columns',
	freshness => 'bounded');
SELECT freshness FROM posterior.contexts WHERE name = 'bounded';
-- whether the context answers as a value of its first n rows, those before the window left out
CREATE FUNCTION as_of(rows int, start int DEFAULT 0) RETURNS boolean LANGUAGE sql AS $$
	SELECT posterior.predict('bounded', q) OPERATOR(posterior.=)
		(SELECT posterior.predict(posterior.context(y, x, kind ORDER BY id), q.x, q.kind)
			FROM (SELECT * FROM gauges ORDER BY id OFFSET start LIMIT rows) s)
	FROM (SELECT 0.3::float8 AS x, 'b' AS kind) q $$;
SELECT as_of(40);
-- rows up to the boundary at 48 wait; so do rows of the own transaction
INSERT INTO gauges SELECT i, i, 'new', 50 FROM generate_series(41, 45) i;
SELECT as_of(40), as_of(45);
BEGIN;
INSERT INTO gauges VALUES (46, 0.1, 'b', 9);
SELECT as_of(40), as_of(46);
INSERT INTO gauges VALUES (47, 0.1, 'b', 9), (48, 0.2, 'a', 8);
SELECT as_of(40), as_of(48);
ROLLBACK;
SELECT as_of(40);
-- what is before the boundary never waits: changes, deletions, rows in between
UPDATE gauges SET y = 51 WHERE id = 44;
SELECT as_of(40);
UPDATE gauges SET y = 7 WHERE id = 4;
SELECT as_of(40);
INSERT INTO gauges VALUES (0, 0.5, 'a', 11);
SELECT as_of(40);
DELETE FROM gauges WHERE id BETWEEN 1 AND 7;
SELECT count(*) FROM gauges;
SELECT as_of(32), as_of(39);
INSERT INTO gauges VALUES (50, 1, 'b', 5);
SELECT as_of(40);
-- rows without a target do not count
INSERT INTO gauges SELECT i, 1, 'b', NULL FROM generate_series(51, 60) i;
SELECT as_of(40);
DELETE FROM gauges WHERE y IS NULL;
-- a refresh takes in what waits, up to the next boundary
INSERT INTO gauges VALUES (51, 1, 'a', 6), (52, 2, 'b', 7);
SELECT as_of(40), as_of(42);
SELECT posterior.refresh_context('bounded');
SELECT as_of(42);
INSERT INTO gauges VALUES (53, 3, 'a', 6);
SELECT as_of(42);
INSERT INTO gauges SELECT i, i, 'a', i FROM generate_series(54, 58) i;
SELECT as_of(48);
-- a window: 48 rows, of which it has those from 30 on, 18 that end at the boundary of 16
SELECT posterior.alter_context('bounded', max_rows => 20);
SELECT as_of(16, 30);
INSERT INTO gauges VALUES (59, 1, 'b', 3);
SELECT as_of(16, 30);
INSERT INTO gauges VALUES (60, 1, 'b', 3);
SELECT as_of(20, 30);
INSERT INTO gauges VALUES (61, 1, 'b', 3);
SELECT as_of(10, 40);
SELECT posterior.alter_context('bounded', max_rows => 0);
-- the limit counts what is encoded
SET posterior.row_limit = 48;
SELECT as_of(48);
SELECT posterior.alter_context('bounded', freshness => 'exact');
SELECT as_of(51);
RESET posterior.row_limit;
SELECT as_of(51);
-- an older snapshot
SELECT posterior.alter_context('bounded', freshness => 'bounded');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT as_of(48);
SAVEPOINT s;
INSERT INTO gauges SELECT i, 1, 'b', 4 FROM generate_series(62, 66) i;
SELECT as_of(56);
ROLLBACK TO s;
SELECT as_of(48);
COMMIT;
-- labels: a new one waits as its row does
SELECT posterior.create_context('labels', 'gauges', 'label', '{x,kind}', 'id', 'columns_classes',
	filter => 'id BETWEEN 8 AND 39', freshness => 'bounded');
SELECT posterior.alter_context('labels', filter => 'id BETWEEN 8 AND 39 OR id > 1000');
CREATE FUNCTION labels() RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(p.label, ',' ORDER BY p.label)
	FROM (SELECT 0.3::float8 AS x, 'b' AS kind) q,
		LATERAL posterior.probabilities(posterior.predict('labels', q)) p $$;
SELECT labels();
INSERT INTO gauges VALUES (1001, 1, 'b', NULL, 'middle');
SELECT labels();
INSERT INTO gauges SELECT 1001 + i, 1, 'b', NULL, 'low' FROM generate_series(1, 7) i;
SELECT labels();
-- what is refused
SELECT posterior.create_context('other', 'gauges', 'y', '{x}', 'id', 'columns',
	freshness => 'soon');
SELECT posterior.create_context('other', 'gauges', 'y', '{x}', 'id', 'toy', freshness => 'bounded');
SELECT posterior.alter_context('bounded', model => 'tabular');
SELECT posterior.drop_context('bounded'), posterior.drop_context('labels');
RESET search_path;
DROP SCHEMA freshness CASCADE;
SELECT posterior.drop_model('columns'), posterior.drop_model('columns_classes');
